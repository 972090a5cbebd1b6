from shoal.tasks.confined import WorkerVerifier as WorkerVerifier
from shoal.tasks.family import Family as Family, Puzzle as Puzzle
from shoal.tasks.questions import question_file_name as question_file_name
from shoal.tasks.registry import known_families as known_families, open_task as open_task
from shoal.tasks.unconfined import DirectVerifier as DirectVerifier
from shoal.tasks.verifier import (
    Posed as Posed,
    Problem as Problem,
    Refused as Refused,
    Scored as Scored,
    Scoring as Scoring,
    Verifier as Verifier,
    rewards as rewards,
)
