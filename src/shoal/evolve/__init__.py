"""Quality-diversity search: archives of programs, the domains they come from, and how they are measured.

from shoal.evolve import Archive, elite_of, find_domain

domain = find_domain("corewar")
opponents = [domain.parse(source) for source in list(domain.starters().values())[:5]]
candidate = domain.parse("mov.i $0, $1")
(evaluation,) = domain.evaluate([candidate], opponents, seed=1, rounds=20)
archive = Archive(domain.axes, evaluation.evaluator)
print(archive.add(elite_of(candidate, evaluation)))
"""

from shoal.evolve.archive import Archive, Placement, Rescore, load
from shoal.evolve.domain import Candidate, Domain, Operator, Outcome, elite_of
from shoal.evolve.elite import MIXED, Elite, cell_of
from shoal.evolve.extraction import extract_program, extract_programs
from shoal.evolve.metrics import Duel, Generality, generality
from shoal.evolve.prompts import Prompt, Prompts, Template
from shoal.evolve.registry import domain_names, find_domain
from shoal.evolve.rounds import choose_opponents
from shoal.runs.search import Axis, Cell, Evaluation, Origin

__all__ = [
    "MIXED",
    "Archive",
    "Axis",
    "Candidate",
    "Cell",
    "Domain",
    "Duel",
    "Elite",
    "Evaluation",
    "Generality",
    "Operator",
    "Origin",
    "Outcome",
    "Placement",
    "Prompt",
    "Prompts",
    "Rescore",
    "Template",
    "cell_of",
    "choose_opponents",
    "domain_names",
    "elite_of",
    "extract_program",
    "extract_programs",
    "find_domain",
    "generality",
    "load",
]
