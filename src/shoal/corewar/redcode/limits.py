"""What assembling one source may cost. A source that needs more is refused, never waited for.

The first three are the reference assembler's own limits, so that a program accepted here is accepted
on every hill. The others bound time and memory: the worst source ends within about a second.
"""

LINE_LENGTH = 255
"""Characters of a source line; what is longer is read as further lines, as on the hills."""

EXPANDED_LENGTH = 255
"""Characters of an instruction, or of one expression, after all substitutions."""

LABELS_AT_ONCE = 7
"""Labels that may name the same instruction."""

SOURCE_SIZE = 1 << 18
"""Characters of a source."""

LONG_LINE_LENGTH = 4096
"""Characters of a line when long lines are welcome, of lines joined by a backslash, and of the expanded
count of a FOR or condition of an ;assert."""

LINES = 150_000
"""Lines processed, each turn of a FOR counted anew."""

TOKENS = 300_000
"""Tokens processed after all substitutions, long ones and open EQU texts in loops counted several times.

The second pass may once more read as many from the EQU texts that were not known in the first one."""

TOKEN_LENGTH = 8
"""Characters of a token after which it counts once more."""

SUBSTITUTION_DEPTH = 1000
"""EQU texts open within each other."""

NESTED_LOOPS = 1000
"""FOR loops open within each other."""

PROBLEMS = 20
"""Problems and warnings reported for one source."""

REPEATED_PROBLEMS = 1000
"""How often problems that are in the report already may occur again, mostly in a loop."""

KNOWN_NAMES = 200
"""Names of a program up to which a similar one is looked for when a name is not defined."""

SIMILAR_LENGTH = 24
"""Characters of a name up to which a similar one is looked for."""

SURPLUS_INSTRUCTIONS = 1000
"""How far beyond the length limit a program is expanded before assembling stops."""
