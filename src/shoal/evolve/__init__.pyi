from shoal.errors import CandidateError as CandidateError
from shoal.evolve.archive import (
    MIXED as MIXED,
    Archive as Archive,
    Elite as Elite,
    Placement as Placement,
    Rescore as Rescore,
    cell_of as cell_of,
    load as load,
)
from shoal.evolve.conformance import check_domain as check_domain
from shoal.evolve.domain import (
    Candidate as Candidate,
    Domain as Domain,
    Operator as Operator,
    Outcome as Outcome,
    domain_names as domain_names,
    elite_of as elite_of,
    open_domain as open_domain,
)
from shoal.evolve.extraction import extract_program as extract_program, extract_programs as extract_programs
from shoal.evolve.metrics import (
    ArchiveSummary as ArchiveSummary,
    Duel as Duel,
    generality as generality,
    merge_common as merge_common,
    merge_raw as merge_raw,
    summarise_archive as summarise_archive,
)
from shoal.evolve.prompts import Prompt as Prompt, Prompts as Prompts, Template as Template
from shoal.evolve.rounds import choose_opponents as choose_opponents
from shoal.evolve.settings import EvolveSettings as EvolveSettings
from shoal.runs.search import (
    Axis as Axis,
    Cell as Cell,
    Contest as Contest,
    Evaluation as Evaluation,
    Origin as Origin,
    Words as Words,
)
