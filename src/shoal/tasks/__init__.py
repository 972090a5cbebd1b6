"""Tasks have an answer that can be checked, and are made anew anywhere from their name.

    from shoal.tasks import Problem, Scoring, WorkerVerifier

    with WorkerVerifier() as verifier:
        problem = Problem("sums", "", "{}", seed=7)
        posed = verifier.pose(problem)
        (scored,) = verifier.score([Scoring(problem, (posed.answer, "99"))])
        print(posed.question, scored.scores)

Names are loaded when first used: a family may need a library that is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.lazy import lazily

if TYPE_CHECKING:
    from shoal.tasks.confined import WorkerVerifier as WorkerVerifier
    from shoal.tasks.family import Family as Family
    from shoal.tasks.family import Puzzle as Puzzle
    from shoal.tasks.judge import DirectVerifier as DirectVerifier
    from shoal.tasks.questions import question_file_name as question_file_name
    from shoal.tasks.registry import known_families as known_families
    from shoal.tasks.registry import open_family as open_family
    from shoal.tasks.scoring import rewards as rewards
    from shoal.tasks.verifier import Posed as Posed
    from shoal.tasks.verifier import Problem as Problem
    from shoal.tasks.verifier import Refused as Refused
    from shoal.tasks.verifier import Scored as Scored
    from shoal.tasks.verifier import Scoring as Scoring
    from shoal.tasks.verifier import Verifier as Verifier

__all__, __getattr__ = lazily(
    __name__,
    {
        "confined": ("WorkerVerifier",),
        "family": ("Family", "Puzzle"),
        "judge": ("DirectVerifier",),
        "questions": ("question_file_name",),
        "registry": ("known_families", "open_family"),
        "scoring": ("rewards",),
        "verifier": ("Posed", "Problem", "Refused", "Scored", "Scoring", "Verifier"),
    },
)
