"""Tasks have an answer that can be checked, and are made anew anywhere from their name.

    from shoal.tasks import Problem, Scoring, WorkerVerifier

    with WorkerVerifier() as verifier:
        problem = Problem("sums", "", "{}", seed=7)
        posed = verifier.pose(problem)
        (scored,) = verifier.score([Scoring(problem, (posed.answer, "99"))])
        print(posed.question, scored.scores)

Names are loaded when first used: a family may need a library that is not installed.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
