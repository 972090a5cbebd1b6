"""The most that assembling one source may cost: the worst one ends within about a second.

The first three are pMARS's own limits: a program accepted here is accepted on every hill.
"""

LINE_LENGTH = 255  # characters of a source line; the rest is read as further lines, as on the hills
EXPANDED_LENGTH = 255  # characters of an instruction, or of one expression, after all substitutions
LABELS_AT_ONCE = 7  # labels that may name the same instruction

SOURCE_SIZE = 1 << 18  # characters of a source
LONG_LINE_LENGTH = 4096  # characters of a lenient line, of joined lines, of an expanded FOR or ;assert
LINES = 150_000  # lines processed; each turn of a FOR counts anew
# Tokens processed after all substitutions; long ones, and EQU texts that are open in a loop, count several
# times. The second pass may read as many again from EQU texts that were not known in the first one.
TOKENS = 300_000
TOKEN_LENGTH = 8  # characters of a token after which it counts once more
SUBSTITUTION_DEPTH = 1000  # EQU texts open within each other
NESTED_LOOPS = 1000  # FOR loops open within each other
PROBLEMS = 20  # problems, and warnings, reported for one source
REPEATED_PROBLEMS = 1000  # repetitions of problems that are in the report already, mostly in a loop
KNOWN_NAMES = 200  # names of a program up to which a similar one is looked for when one is not defined
SIMILAR_LENGTH = 24  # characters of a name up to which a similar one is looked for
COMPARISONS = 3000  # labels that are compared with the opcodes, in search of a misspelt one
SURPLUS_INSTRUCTIONS = 1000  # instructions beyond the length limit after which assembling stops
