"""The styles of playing: how each begins, what it puts into programs, and how it likes to change them. A
writer returns a program in Redcode with constants drawn anew; a fragment is a piece of one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shoal.corewar import Settings

Writer = Callable[[random.Random, Settings], str]
Number = Callable[[random.Random, Settings], int]

EVEN: Mapping[str, int] = MappingProxyType(
    {"constant": 8, "mode": 3, "modifier": 2, "opcode": 2, "insert": 3, "delete": 3, "duplicate": 2,
     "swap": 2, "start": 1, "splice": 4}
)  # fmt: skip
"""The usual weights of the kinds of change."""


@dataclass(frozen=True)
class Style:
    """`writers` make programs, `fragments` a few instructions to splice in, `constant` a number as the style
    uses it; `taste` weighs the kinds of change, `boldness` is the probability of one change more."""

    name: str
    writers: tuple[Writer, ...]
    fragments: tuple[Writer, ...]
    constant: Number
    taste: Mapping[str, int]
    boldness: float = 0.45

    def new(self, rng: random.Random, settings: Settings) -> str:
        return rng.choice(self.writers)(rng, settings)

    def fragment(self, rng: random.Random, settings: Settings) -> str:
        return rng.choice(self.fragments)(rng, settings)


def anywhere(rng: random.Random, settings: Settings) -> int:
    return rng.randrange(settings.core_size)


def nearby(rng: random.Random, settings: Settings) -> int:
    return rng.randint(-12, 12) % settings.core_size


def step(rng: random.Random, settings: Settings, spacing: int | None = None) -> int:
    """A step whose multiples hit every `spacing`-th cell of the core; a few cells if not given."""
    size = settings.core_size
    wanted = spacing or rng.choice((1, 2, 4, 5, 8, 10))
    reached = math.gcd(wanted, size)
    for _ in range(64):
        drawn = rng.randrange(max(1, size // 20), max(2, size - size // 20)) // reached * reached
        if drawn and math.gcd(drawn, size) == reached:
            return drawn
    return max(1, reached)


def imp_step(rng: random.Random, settings: Settings, points: int | None = None) -> int:
    """The distance d of an imp ring: points * d = 1 more than a multiple of the core size."""
    size = settings.core_size
    for count in [points] if points else rng.sample((3, 5, 7, 9, 11, 13), 6):
        if math.gcd(count, size) == 1:
            return pow(count, -1, size)
    return 1


def taste(**more: int) -> dict[str, int]:
    """The even taste with some kinds of change made more or less frequent."""
    return {**EVEN, **more}


def repeat(line: str, times: int) -> str:
    return "\n".join([line] * times)


def bomb(rng: random.Random) -> str:
    decoy = f"dat >{rng.randint(1, 99)}, 1"
    return rng.choice(("dat #0, #0", "dat <2667, <1", "spl 0, 0", "spl #0, 0", "jmp 0, <-1", decoy))


# ---- bomber: throws instructions over the core in even steps ----


def _dwarf(rng: random.Random, settings: Settings) -> str:
    by = step(rng, settings, rng.choice((4, 5, 8)))
    again = rng.choice(("jmp loop, 0", f"djn.b loop, #{rng.randint(400, 1999)}", "jmp loop, <-20"))
    return f"""
        org   loop
ptr     dat   #0, #{by}
loop    add.ab #{by}, ptr
        mov.i bomb, @ptr
        {again}
        mov.i bomb, >ptr
        jmp   -1, 0
bomb    {bomb(rng)}
        end
"""


def _stone(rng: random.Random, settings: Settings) -> str:
    by = step(rng, settings, 5)
    return f"""
        org   stone
stone   spl   #0, #{by}
loop    add.b stone, bomb
        mov.i bomb, @bomb
        jmp   loop, 0
bomb    dat   #0, #{rng.randint(0, 4) * 5}
        end
"""


def _double(rng: random.Random, settings: Settings) -> str:
    by, apart = step(rng, settings, 10), rng.choice((5, 15, 25, 100))
    first = "" if rng.random() < 0.5 else "spl #0, 0"
    return f"""
        org   begin
ptr     dat   #{apart + 20}, #20
begin   {first or "nop 0, 0"}
loop    add.f inc, ptr
        mov.i bomb, @ptr
        mov.i {rng.choice(("bomb", "stun"))}, *ptr
        djn.b loop, #{rng.randint(300, 1500)}
        jmp   loop, <{-rng.randint(5, 60)}
inc     dat   #{by}, #{by}
stun    spl   0, 0
bomb    {bomb(rng)}
        end
"""


def _bomb_fragment(rng: random.Random, settings: Settings) -> str:
    return rng.choice((
        f"mov.i 2, {rng.choice('>}<')}{anywhere(rng, settings)}\njmp 2, 0\n{bomb(rng)}",
        f"add.ab #{step(rng, settings)}, 3\nmov.i 2, @2\njmp -2, 0\n{bomb(rng)}",
        f"mov.i {rng.randint(1, 9)}, @{rng.randint(1, 9)}",
        f"sub.x #{step(rng, settings)}, {rng.randint(-6, 6)}",
    ))  # fmt: skip


BOMBER = Style("bomber", (_dwarf, _stone, _double), (_bomb_fragment,), step, taste(constant=14, mode=1))


# ---- clear: sweeps the core cell by cell ----


def _sweep(rng: random.Random, settings: Settings) -> str:
    stream = rng.choice(
        ("jmp loop, 0", "djn.f loop, {ptr", f"djn.f loop, <{-rng.randint(30, 900)}", "jmp loop, {ptr")
    )
    many = rng.choice(("spl #0, 0", "spl #0, <-20", "nop 0, 0", "spl 1, 0", "spl 2, 0"))
    return f"""
        org   begin
ptr     dat   #stun-ptr, #last-ptr+{rng.randint(3, 60)}
begin   {many}
loop    mov.i *ptr, {rng.choice("><")}ptr
{repeat("        mov.i *ptr, >ptr", rng.randint(0, 1))}
        {stream}
        jmp   loop, 0
stun    {rng.choice(("spl #kill-ptr, #last-ptr+5", "dat #kill-ptr, #last-ptr+5"))}
kill    dat   #kill-ptr, #last-ptr+5
last    end
"""


def _gate(rng: random.Random, settings: Settings) -> str:
    away = rng.randint(2, 40)
    return f"""
        org   wait
ptr     dat   #{-away}, #last-ptr+6
wait    {rng.choice(("spl #0", "jmp 1", "spl 0"))}, <-{away}
        mov.i bomb, {rng.choice("><}")}ptr
        {rng.choice(("djn.f -1", "jmp -1", "jmp wait"))}, <-{away}
bomb    dat   <{-away}, #last-ptr+6
last    end
"""


def _clear_fragment(rng: random.Random, settings: Settings) -> str:
    return rng.choice((
        f"mov.i {rng.randint(1, 8)}, >{rng.randint(-8, 8)}\njmp -1, 0",
        "spl #0, 0",
        f"djn.f -1, <{-rng.randint(5, 400)}",
        f"jmp 0, <{-rng.randint(2, 40)}",
        f"mov.i 2, >2\njmp -1, 0\ndat #0, #{rng.randint(4, 60)}",
    ))  # fmt: skip


CLEAR = Style("clear", (_sweep, _gate), (_clear_fragment,), nearby, taste(mode=6, delete=5))


# ---- vampire: throws jumps that lead into a pit ----


def _vampire(rng: random.Random, settings: Settings) -> str:
    by = step(rng, settings, 5)
    tour = rng.choice((settings.core_size // 5, rng.randint(200, 1500)))
    again = rng.choice((f"djn.b loop, #{tour}", "jmp loop, 0"))
    pit = rng.choice((
        "spl 0, 0\n        jmp pit, 0",
        f"spl 1, <{anywhere(rng, settings)}\n        jmp pit, 0",
        f"mov.i bait, <{anywhere(rng, settings)}\n        spl pit, 0\n        jmp pit, 0",
        "spl #0, 0\n        jmp pit, <-30",
    ))  # fmt: skip
    return f"""
        org   loop
pit     {pit}
{repeat("        dat   0, 0", rng.randint(0, 3))}
fang    jmp   pit-{by}, {by}
loop    mov.i fang, @fang
        add.f inc, fang
        {again}
{repeat("        spl   #0, 0", rng.randint(0, 1))}
clear   mov.i bait, >fang
        jmp   clear, 0
inc     dat   #-{by}, #{by}
bait    dat   #0, #bait-fang+3
        end
"""


def _vampire_fragment(rng: random.Random, settings: Settings) -> str:
    by = step(rng, settings, 5)
    return rng.choice((
        f"jmp -{by}, {by}",
        f"mov.i 3, @3\nadd.f 3, 2\njmp -2, 0\njmp -{by}, {by}\ndat #-{by}, #{by}",
        "spl 0, 0\njmp -1, 0",
        f"spl 1, <{anywhere(rng, settings)}\njmp -1, 0",
    ))  # fmt: skip


VAMPIRE = Style("vampire", (_vampire,), (_vampire_fragment,), step, taste(swap=1, splice=6))


# ---- scanner: looks before it shoots ----


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


# ---- quickscan: a few looks in the beginning, then a small replicator ----


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


# ---- random: no ideas, as control ----

_OPCODE_NAMES = "DAT MOV MOV MOV ADD SUB MUL DIV MOD JMP JMZ JMN DJN SEQ SNE SLT SPL SPL NOP".split()
_MODIFIER_NAMES = "A B AB BA F X I I".split()


def _random_line(rng: random.Random, settings: Settings) -> str:
    a, b = ((nearby if rng.random() < 0.7 else anywhere)(rng, settings) for _ in range(2))
    name = f"{rng.choice(_OPCODE_NAMES)}.{rng.choice(_MODIFIER_NAMES)}"
    return f"        {name} {rng.choice('#$*@{<}>')}{a}, {rng.choice('#$*@{<}>')}{b}"


def _random_program(rng: random.Random, settings: Settings) -> str:
    return "\n".join(_random_line(rng, settings) for _ in range(rng.randint(2, 16))) + "\n        end\n"


RANDOM = Style(
    "random", (_random_program,), (_random_line,), anywhere, taste(mode=6, modifier=6, opcode=6), 0.6
)

STYLES = (BOMBER, REPLICATOR, SCANNER, IMP, CLEAR, VAMPIRE, QUICKSCAN, RANDOM)
