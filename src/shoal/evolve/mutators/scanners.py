"""Styles that look before they attack."""

from __future__ import annotations

import random

from shoal.corewar import Settings
from shoal.evolve.mutators.style import Style, anywhere, bomb, nearby, repeat, step, taste

# ---- scanner: looks before it shoots ----------------------------------------------------------------------


def _lookout(rng: random.Random, settings: Settings) -> str:
    gap = rng.choice((4, 5, 8, 10, 12))
    by, width = step(rng, settings, 2 * gap), rng.randint(6, 20)
    return f"""
        org   loop
ptr     dat   #{by - gap}, #{by}
{repeat("        dat   0, 0", rng.choice((0, 0, 1, width + 4)))}
loop    add.f inc, ptr
        {rng.choice(("seq.i", "seq.i", "seq.f"))} *ptr, @ptr
        slt.ab #last-ptr+{gap + 1}, ptr
count   djn.b loop, #{rng.randint(300, 900)}
lay     mov.i carpet, }}ptr
width   djn.b lay, #{width}
        add.ab #{width}, width
        sub.a #{width}, ptr
        jmn.b loop, count
        mov.i start, ptr
        spl   #0, 0
clear   mov.i bomb, >ptr
        mov.i bomb, >ptr
        jmp   clear, 0
inc     dat   #{by}, #{by}
carpet  spl   {rng.choice(("#0", "0"))}, 0
start   dat   #0, #last-ptr+5
last
bomb    dat   #0, #last-ptr+5
        end
"""


def _single_scan(rng: random.Random, settings: Settings) -> str:
    by = step(rng, settings)
    hit = rng.choice(
        (f"mov.i bomb, {rng.choice('<>@')}ptr\n        djn.b -1, #{rng.randint(3, 25)}", "mov.i bomb, @ptr")
    )
    then = rng.choice(("jmp scan, 0", "spl #0, 0\n        mov.i bomb, >ptr\n        jmp -1, 0"))
    return f"""
        org   scan
ptr     dat   #0, #{by}
scan    add.ab #{by}, ptr
        {rng.choice(("jmz.f", "jmz.b"))} scan, @ptr
        slt.ab #12, ptr
        jmp   scan, 0
        {hit}
        {then}
bomb    {rng.choice(("spl #0, 15", "dat #0, #15", "spl 0, 15"))}
        end
"""


def _scan_fragment(rng: random.Random, settings: Settings) -> str:
    return rng.choice((
        f"add.f 2, 1\nseq.i {anywhere(rng, settings)}, {anywhere(rng, settings)}\njmp 2, 0",
        f"add.ab #{step(rng, settings)}, 1\njmz.f -1, {anywhere(rng, settings)}",
        f"sne.i {anywhere(rng, settings)}, {anywhere(rng, settings)}\njmp {nearby(rng, settings)}, 0",
        f"slt.ab #{rng.randint(5, 40)}, {rng.randint(-9, 9)}\njmp {nearby(rng, settings)}, 0",
    ))  # fmt: skip


SCANNER = Style("scanner", (_lookout, _single_scan), (_scan_fragment,), step, taste(constant=12, splice=5))


# ---- quickscan: a few looks in the beginning, then a small replicator ------------------------------------


def _quickscan(rng: random.Random, settings: Settings) -> str:
    places = [
        rng.randrange(settings.core_size // 20, settings.core_size) for _ in range(2 * rng.randint(4, 12))
    ]
    looks = "\n".join(
        f"        seq.i found+{one}, found+{other}\n        mov.ab #{one}, found"
        for one, other in zip(places[::2], places[1::2], strict=True)
    )
    return f"""
        org   look
found   dat   #0, #0
look
{looks}
        jmz.b rest, found
        add.ab #{rng.randint(0, 60)}, found
fire    mov.i shot, @found
        sub.ab #{rng.randint(1, 6)}, found
        djn.b fire, #{rng.randint(5, 40)}
        jmp   rest, 0
shot    {rng.choice(("dat #0, #0", "spl #0, 0", "dat <1, <1"))}
rest
{repeat("        spl   1, 0", rng.randint(1, 3))}
up      spl   @0, >{anywhere(rng, settings)}
        mov.i }}up, >up
        mov.i {{up, <down
down    jmp   @0, >{anywhere(rng, settings)}
        end
"""


def _quickscan_fragment(rng: random.Random, settings: Settings) -> str:
    places = [anywhere(rng, settings) for _ in range(4)]
    return rng.choice((
        f"seq.i {places[0]}, {places[1]}\nmov.i 2, {places[0]}\njmp 2, 0\n{bomb(rng)}",
        f"sne.i {places[0]}, {places[1]}\nseq.i {places[2]}, {places[3]}\njmp {nearby(rng, settings)}, 0",
        f"jmz.f 2, {places[0]}\nmov.i 0, {places[0]}",
    ))  # fmt: skip


QUICKSCAN = Style(
    "quickscan", (_quickscan,), (_quickscan_fragment,), anywhere, taste(splice=9, delete=1), 0.6
)
