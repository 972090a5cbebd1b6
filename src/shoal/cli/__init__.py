"""The command line: thin verbs over the library, one module per verb.

Exit codes: 0 done, 1 nobody was heard, `doctor` found something to do, or a node was left dead, 2 an option,
a file or a setting is not usable, 3 a program does not assemble, 130 interrupted. An expected error is one
message on standard error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from shoal.errors import AssemblyError, ShoalError

UNUSABLE = 2
NOT_A_PROGRAM = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it stays open as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal may lack characters of a name
    try:
        from shoal.cli.app import app

        try:
            app(args=None if arguments is None else list(arguments), prog_name="shoal")
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
        else:
            code = 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone. What is still buffered must not raise again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        from shoal.cli.output import clean

        what = "the output cannot be written"
        if isinstance(error.filename, str | bytes):
            what = f"{os.fsdecode(error.filename)}: this cannot be read or written"
        print(f"shoal: {clean(what, most=2000)}: {error.strerror or error}", file=sys.stderr)
        return UNUSABLE
    except AssemblyError as error:
        from shoal.cli.output import problem_text

        for problem in error.problems:
            print(problem_text(problem, error.name), file=sys.stderr)
        return NOT_A_PROGRAM
    except ShoalError as error:
        from shoal.cli.output import clean

        print(f"shoal: {clean(str(error), most=2000)}", file=sys.stderr)
        return UNUSABLE
