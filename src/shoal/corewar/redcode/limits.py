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
"""Characters of a line when long lines are welcome, and of lines joined by a backslash."""

LINES = 150_000
"""Lines processed, each turn of a FOR counted anew."""

TOKENS = 300_000
"""Tokens processed after all substitutions."""

SUBSTITUTION_DEPTH = 1000
"""EQU texts open within each other."""

NESTED_LOOPS = 1000
"""FOR loops open within each other."""

PROBLEMS = 20
"""Problems and warnings reported for one source."""

SURPLUS_INSTRUCTIONS = 1000
"""How far beyond the length limit a program is expanded before assembling stops."""
