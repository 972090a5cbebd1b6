"""Compiles the Core War engine with the package: one plain shared library, loaded with ctypes.

It uses no Python headers, so one wheel per platform serves every Python.
"""

from __future__ import annotations

import sys
from glob import glob

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = "src/shoal/corewar/mars"


class BuildEngine(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + (".dll" if sys.platform == "win32" else ".so")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []  # a plain library: no PyInit function

    def get_libraries(self, ext: Extension) -> list[str]:
        return []

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = ["/O2", "/std:c11"]
        try:
            super().build_extension(ext)
        except Exception as error:
            raise SystemExit(
                f"shoal: the Core War engine could not be compiled ({error}).\n"
                "shoal: a C11 compiler is needed: `apt-get install gcc`, `xcode-select --install`, or the\n"
                "shoal: Visual Studio build tools; then install again. There is no slower fallback."
            ) from error


class AnyPythonWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            "shoal.corewar.mars._engine",
            sources=[f"{FOLDER}/engine.c"],
            depends=sorted(glob(f"{FOLDER}/*.h")),
            # Computed gotos lose speed to global common subexpression elimination, as gcc's manual says.
            extra_compile_args=["-O2", "-std=gnu11", "-fvisibility=hidden", "-fno-gcse"],
        )
    ],
    cmdclass={"build_ext": BuildEngine, "bdist_wheel": AnyPythonWheel},
)
