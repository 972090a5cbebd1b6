"""Styles that live by being everywhere: copies of themselves, and imps that run."""

from __future__ import annotations

import random

from shoal.corewar import Settings
from shoal.evolve.mutators.style import Style, anywhere, imp_step, nearby, repeat, step, taste

# ---- replicator: copies itself ----


def _paper(rng: random.Random, settings: Settings) -> str:
    shots = "\n".join(
        f"mov.i bomb, {rng.choice('>}')}{anywhere(rng, settings)}" for _ in range(rng.randint(0, 3))
    )
    return f"""
        org   start
start
{repeat("        spl   1, 0", rng.randint(2, 4))}
up      spl   @0, {rng.choice("<>}")}{anywhere(rng, settings)}
        mov.i }}up, >up
{shots}
        mov.i {{up, <down
down    jmp   @0, >{anywhere(rng, settings)}
bomb    {rng.choice(("dat <2667, <1", "dat #1, #1", "dat <1, {1"))}
        end
"""


def _silk(rng: random.Random, settings: Settings) -> str:
    copies = "\n".join(
        f"        spl   @0, {rng.choice('<>')}{anywhere(rng, settings)}\n        mov.i }}-1, >-1"
        for _ in range(rng.randint(1, 3))
    )
    return f"""
        org   start
start   spl   1, {rng.choice("<>")}{anywhere(rng, settings)}
        spl   1, 0
        mov.i -1, 0
{copies}
        mov.i bomb, {rng.choice(">}<")}{anywhere(rng, settings)}
        jmz.a -{rng.randint(3, 5)}, {rng.choice("{*")}-{rng.randint(1, 3)}
bomb    dat   <{rng.randint(1, 2667)}, <{rng.randint(1, 99)}
        end
"""


def _mouse(rng: random.Random, settings: Settings) -> str:
    return f"""
        org   mouse
mouse   mov.ab #last-mouse, left
        mov.a #mouse-trail, trail
copy    mov.i }}trail, >trail
left    djn.b copy, #0
        sub.ab #last-mouse, trail
        spl   @trail, 0
        add.ab #{step(rng, settings)}, trail
        {rng.choice(("jmp mouse, 0", "jmz.b mouse, mouse", "djn.b mouse, #40"))}
trail   dat   #0, #{anywhere(rng, settings)}
last    end
"""


def _replicator_fragment(rng: random.Random, settings: Settings) -> str:
    return rng.choice((
        f"spl @0, <{anywhere(rng, settings)}\nmov.i }}-1, >-1",
        f"mov.i {{-2, <1\njmp @0, >{anywhere(rng, settings)}",
        "spl 1, 0",
        "spl 1, 0\nspl 1, 0",
        f"spl {nearby(rng, settings)}, >{anywhere(rng, settings)}",
    ))  # fmt: skip


REPLICATOR = Style(
    "replicator", (_paper, _silk, _mouse), (_replicator_fragment,), anywhere, taste(duplicate=5, splice=6)
)


# ---- imp: runs, in rings and spirals ----


def _imp(rng: random.Random, settings: Settings) -> str:
    ahead = rng.choice((1, 1, imp_step(rng, settings)))
    far = anywhere(rng, settings)
    return f"""
        org   start
start   {rng.choice(("nop 0, 0", f"mov.i imp, {far}", f"mov.i 2, <{far}"))}
        {rng.choice(("jmp imp, 0", f"spl imp, <{anywhere(rng, settings)}"))}
        {rng.choice(("dat 0, 0", "jmp imp, 0", "dat <1, <1", f"mov.i -1, >{anywhere(rng, settings)}"))}
imp     mov.i {rng.choice("#$")}0, {ahead}
        end
"""


def _ring(rng: random.Random, settings: Settings) -> str:
    points = rng.choice((3, 3, 5, 7, 9))
    by = imp_step(rng, settings, points)
    doublings = rng.randint(1, 4)
    table = "\n".join(f"        dat   imp+{index}*{by}, 0" for index in range(2**doublings))
    return f"""
        org   start
start
{repeat("        spl   1, 0", doublings)}
        jmp   *table, }}0
table
{table}
{repeat("        dat   0, 0", rng.randint(0, 8))}
imp     mov.i {rng.choice("#$")}0, {by}
        end
"""


def _pump(rng: random.Random, settings: Settings) -> str:
    by = imp_step(rng, settings)
    return f"""
        org   start
start   {rng.choice(("spl #0, <-30", "spl 2, 0", "spl 1, 0"))}
        add.a #{by}, launch
launch  spl   imp-{by}, {rng.choice("<>")}{anywhere(rng, settings)}
        djn.b start, #{rng.randint(4, 800)}
        {rng.choice(("jmp -3, 0", "jmp imp, 0", "dat 0, 0"))}
imp     mov.i #{rng.randint(0, 200)}, {by}
        end
"""


def _imp_fragment(rng: random.Random, settings: Settings) -> str:
    return rng.choice((
        f"mov.i #0, {imp_step(rng, settings)}",
        "mov.i 0, 1",
        f"spl 2, 0\nmov.i 0, 1\nmov.i #1, {imp_step(rng, settings)}",
        f"spl 1, 0\nadd.a #{imp_step(rng, settings)}, 1\njmp 1, 0",
    ))  # fmt: skip


IMP = Style("imp", (_imp, _ring, _pump), (_imp_fragment,), imp_step, taste(splice=6, start=2))
