"""What each adversary costs the honest nodes: the table of docs/threat-model.md.

    python -m bench.attacks

Eight honest nodes share for 40 virtual seconds over links that lose 5 % and double 2 % of the messages. After
15 seconds the adversary joins; it sends all that it can think of, ten times a second. Same seed, same table.
"""

from __future__ import annotations

from shoal.sim.adversaries import ADVERSARIES
from shoal.sim.network import Link
from shoal.sim.scenarios import attack

LINK = Link(0.02, 0.05, 0.05, 0.02)


def main() -> None:
    print("| adversary | its messages | honest items | all after | its part | booked to honest nodes |")
    print("| --- | --- | --- | --- | --- | --- |")
    for names, kinds in (
        ("nobody", ()),
        *((kind.__name__, (kind,)) for kind in ADVERSARIES),
        ("all ten", ADVERSARIES),
    ):
        rate = 5 if len(kinds) > 1 else 10
        found = attack(kinds, seconds=40.0, settle=20.0, rate=rate, link=LINK)
        delivered = f"{found.delivered} of {found.honest_items}"
        share = f"{100 * found.foreign_share:.1f} %"
        cells = (
            names,
            f"{found.adversary_messages:,}",
            delivered,
            f"{found.seconds_to_complete:.0f} s",
            share,
        )
        print("| " + " | ".join([*cells, str(found.honest_rejections)]) + " |", flush=True)


if __name__ == "__main__":
    main()
