"""Quality-diversity search: archives of programs, the domains they come from, and how they are measured.

from shoal.evolve import Archive, elite_of, open_domain

domain = open_domain("corewar")
opponents = [domain.parse(source) for source in list(domain.starters().values())[:5]]
candidate = domain.parse("mov.i $0, $1")
(evaluation,) = domain.evaluate([candidate], opponents, seed=1, rounds=20)
archive = Archive(domain.axes, evaluation.evaluator)
print(archive.add(elite_of(candidate, evaluation)))
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
