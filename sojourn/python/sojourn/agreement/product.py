"""Combines each congestion control, each kind of feedback on marks and each queue discipline.

Nothing is listed here. The controls and disciplines are those of `CONGESTION` and `QDISCS` that the
simulator has and Linux may have. An engine refuses what its kernel lacks.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sojourn.errors import UserError
from sojourn.scenario import Scenario
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS, Qdisc, QdiscRecord

FEEDBACK: Final[Mapping[str, bool | str]] = {"no ECN": False, "ECN": True, "AccECN": "accecn"}
"""The values of a flow's key `ecn`."""


def combinations(base: Scenario) -> Iterator[Scenario]:
    """Returns `base` with each combination.

    Args:
        base: A scenario with one link, `bottleneck`, and one entry of flows, `bulk`.
    """
    for control in CONGESTION.values():
        if not control.simulated:
            continue
        for feedback, ecn in FEEDBACK.items():
            if (control.needs_ecn and not ecn) or (control.needs_accecn and ecn != "accecn"):
                continue
            for discipline in QDISCS.values():
                # A discipline for a card with several queues has others of these below it.
                if (
                    not discipline.simulated
                    or not discipline.in_linux()
                    or discipline.for_each_queue
                ):
                    continue
                yield base.with_(
                    {
                        "flow.bulk.congestion": control.name,
                        "flow.bulk.ecn": ecn,
                        "bottleneck.qdisc": _marking(discipline) if ecn else discipline.least,
                    },
                    label=f"{control.name}, {feedback}, {discipline.kind}",
                )


def _marking(discipline: QdiscRecord) -> str:
    """The shortest text with which the discipline marks, if it needs no option but `ecn` for
    that."""
    if ("ecn", None) not in discipline.words():
        return discipline.least
    try:
        return Qdisc.parse(f"{discipline.least} ecn").text
    except UserError:
        # sfq marks only with a RED for each of its flows.
        return discipline.least
