"""Core War: an assembler for Redcode and a simulator that agree with pMARS, as a library.

    from shoal.corewar import assemble, fight, hill, starter_set

    warriors = starter_set()
    result = fight([warriors["dwarf"], warriors["paper"]], hill("94nop"), rounds=100, seed=1)
    for standing in result.standings():
        print(standing.name, standing.wins, standing.ties, standing.losses)

Usable alone: it needs numpy and nothing else of Shoal.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
