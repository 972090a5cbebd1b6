"""`shoal track`: a run's curves for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import option

POLL_SECONDS = 1.0


def track(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders, finished or not.")],
    to: Annotated[
        list[str],
        option("--to", "WHERE", "tensorboard:DIR, jsonl:FILE, wandb:PROJECT or trackio:PROJECT; repeatable."),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the runs end, or Ctrl-C.")
    ] = False,
) -> None:
    """Write the curves of runs to TensorBoard, Weights & Biases, Trackio or a file.

    It only reads the run folders, in a process of its own: the run goes on whatever happens to the tracker.
    Each call writes everything from the beginning.

    \b
    Examples:
      shoal track runs/first --to jsonl:metrics.jsonl
      shoal track runs/first --to tensorboard:curves --follow
    """
    import time
    from contextlib import ExitStack

    from shoal.applications import settings_of
    from shoal.cli.output import note
    from shoal.errors import RunError
    from shoal.trackers import Feed, open_tracker

    given = {run.resolve(): run for run in runs}.values()
    described = [(run, settings_of(run).node_names()) for run in given]
    with ExitStack() as opened:
        trackers = []
        for destination in to:
            tracker = open_tracker(destination)
            opened.callback(tracker.close)
            trackers.append(tracker)
        feed = Feed(described, trackers)
        try:
            feed.poll()
            while follow and not feed.ended:
                time.sleep(POLL_SECONDS)
                feed.poll()
        except KeyboardInterrupt:
            if not follow:  # otherwise it is the ordinary end
                raise
    nodes = "1 node" if feed.nodes == 1 else f"{feed.nodes} nodes"
    points = "1 point" if feed.points == 1 else f"{feed.points} points"
    note(f"{points} of {nodes} written to {', '.join(to)}")
    if feed.unread:
        note(f"{feed.unread} records were of a kind that this release cannot read, and were left out")
    if feed.troubles:
        raise RunError(" ".join(feed.troubles))
