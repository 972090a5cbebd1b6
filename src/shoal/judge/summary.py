"""A judge's run in numbers, from its folder alone; works on runs that are not finished."""

from __future__ import annotations

from pathlib import Path

from shoal.judge.comparison import compare
from shoal.judge.settings import NODE, JudgeSettings
from shoal.runs import RunFolder, load_settings, read
from shoal.runs.judging import Board, JudgeNote, JudgeSummary
from shoal.runs.records import Note, Started, Stopped, content_of, decode_payload, reads_run, refusing


@reads_run
def summarise(folder: Path) -> JudgeSummary:
    settings = load_settings(JudgeSettings, folder)
    board, ended, finished = read_board(RunFolder.look(folder).journal_path(NODE))
    entrants = board.ranked
    return JudgeSummary(
        application="judge",
        finished=finished,
        judge=board.judge,
        tasks=settings.tasks,
        asked=sum(one.asked for one in entrants),
        answered=sum(one.answered for one in entrants),
        right=sum(one.right for one in entrants),
        open=board.open,
        entrants=entrants,
        comparisons=compare(entrants),
        refused=dict(sorted(board.refused.items())),
        ended=ended,
    )


def read_board(journal: Path) -> tuple[Board, str, bool]:
    """The board, why the newest process stopped ("": it goes on), and whether nothing is left to do."""
    board, ended, finished = Board(), "", False
    for record in read(journal) if journal.exists() else ():
        with refusing(journal, record):
            match content_of(record):
                case Note(note=note):
                    board.take(decode_payload(note, JudgeNote, "the note"))
                case Stopped(reason=reason) as stopped:
                    ended, finished = reason, stopped.finished
                case Started():
                    ended, finished = "", False
    return board, ended, finished
