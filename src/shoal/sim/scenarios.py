"""Scenarios: a script, a run, and figures that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.sim.adversaries import Adversary
from shoal.sim.network import Link
from shoal.sim.swarm import SharingApplication, SimSwarm
from shoal.swarm.settings import ExchangeSettings


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of a run. `complete` is the part of all honest notes that reached all honest others,
    `foreign_share` the part of the gathered items that came from adversaries."""

    honest_items: int
    delivered: int
    complete: float
    seconds_to_complete: float
    foreign_share: float
    honest_rejections: int
    adversary_rejections: int
    most_held_bytes: int
    most_authors: int
    pulls: int
    reopened: int
    messages: int
    adversary_messages: int
    rejected: dict[str, int]
    digest: str


def attack(
    adversaries: Sequence[type[Adversary]] = (),
    *,
    nodes: int = 8,
    seconds: float = 60.0,
    settle: float = 20.0,
    seed: int = 1,
    interval: float = 2.0,
    link: Link | None = None,
    warm_up: float = 15.0,
    rate: int = 20,
) -> Figures:
    """Honest nodes share for `seconds`; adversaries join after `warm_up` and stay. Then `settle` seconds
    without new notes, still under attack."""
    swarm = SimSwarm(
        nodes,
        seed,
        link=link,
        applications=lambda number: SharingApplication(f"node {number}", interval=interval, end=seconds),
    )
    present: list[Adversary] = []
    joining = enumerate(adversaries)
    swarm.at(warm_up, lambda: present.extend(kind(swarm, number, rate) for number, kind in joining))
    swarm.run(seconds)
    complete_at = seconds + settle
    second = seconds
    while second < seconds + settle:
        second += 1.0
        swarm.run(second)
        if completeness(swarm) == 1.0:
            complete_at = min(complete_at, second)
    return figures(swarm, present, complete_at - seconds)


def large(
    nodes: int = 1000,
    shards: int = 32,
    follow: int = 4,
    *,
    interval: float = 5.0,
    size: int = 1000,
    seed: int = 1,
) -> SimSwarm:
    """A swarm in which every node shares one signed item per round of `interval` seconds, follows some shards
    and gathers. Stores are small, so that thousands of nodes fit into one process."""
    settings = ExchangeSettings(
        flush_seconds=0.0,
        shards=shards,
        follow=follow,
        follow_all_until=0,
        keep_frames=16,
        history_frames=8,
        remember_contents=512,
    )
    return SimSwarm(
        nodes,
        seed,
        settings=settings,
        applications=lambda number: SharingApplication(
            f"node {number}", interval=interval, size=size, keep=False
        ),
        steps_per_second=4,
    )


def completeness(swarm: SimSwarm) -> float:
    """The part of the notes of all present nodes that the others have gathered."""
    delivered, expected = _delivered(swarm)
    return delivered / expected if expected else 1.0


def _applications(swarm: SimSwarm) -> list[SharingApplication]:
    return [one.application for one in swarm.nodes if isinstance(one.application, SharingApplication)]


def _delivered(swarm: SimSwarm) -> tuple[int, int]:
    applications = _applications(swarm)
    delivered = expected = 0
    for receiver in applications:
        texts = set(receiver.gathered.values())
        for sender in applications:
            if sender is not receiver:
                expected += sender.count
                delivered += sum(f"{sender.name} {number} " in texts for number in range(1, sender.count + 1))
    return delivered, expected


def figures(swarm: SimSwarm, adversaries: Sequence[Adversary], seconds_to_complete: float) -> Figures:
    honest = {node.identity.node_id for node in swarm.nodes}
    delivered, expected = _delivered(swarm)
    gathered = [author for application in _applications(swarm) for author, *_ in application.gathered]
    rejected: Counter[str] = Counter()
    rejections = {True: 0, False: 0}
    for node in swarm.nodes:
        rejected.update({reason.value: number for reason, number in node.exchange.tally.rejected.items()})
        for author in node.exchange.accounts:
            rejections[author in honest] += node.exchange.accounts.of(author).rejections
    all_figures = [node.exchange.figures() for node in swarm.nodes]
    return Figures(
        honest_items=expected,
        delivered=delivered,
        complete=delivered / expected if expected else 1.0,
        seconds_to_complete=seconds_to_complete,
        foreign_share=sum(author not in honest for author in gathered) / max(1, len(gathered)),
        honest_rejections=rejections[True],
        adversary_rejections=rejections[False],
        most_held_bytes=max(each["held bytes"] for each in all_figures),
        most_authors=max(each["authors"] for each in all_figures),
        pulls=sum(each["pulls asked"] for each in all_figures),
        reopened=sum(node.transport.reopened for node in swarm.nodes),
        messages=swarm.network.deliveries,
        adversary_messages=sum(adversary.sent for adversary in adversaries),
        rejected=dict(sorted(rejected.items())),
        digest=swarm.digest(),
    )
