"""Combines each congestion control, each kind of feedback on marks and each queue discipline; or
each control with a scenario's own disciplines.

Nothing is listed here. The controls and disciplines are those of `CONGESTION` and `QDISCS` that the
simulator has and Linux may have. An engine refuses what its kernel lacks.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sojourn._core import CongestionRecord
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
    for control in _controls():
        for feedback, ecn in _feedback(control).items():
            for discipline in QDISCS.values():
                # A discipline for a card with several queues has one of the other disciplines below
                # it.
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


def each_control(base: Scenario) -> Iterator[Scenario]:
    """Returns each variant of `base` with each control, and the least feedback that it needs.

    Args:
        base: A scenario with one entry of flows, `bulk`.
    """
    for variant in base.variants():
        for control in _controls():
            ecn = next(iter(_feedback(control).values()))
            yield variant.with_(
                {"flow.bulk.congestion": control.name, "flow.bulk.ecn": ecn},
                label=f"{control.name}, {variant.label}",
            )


def _controls() -> Iterator[CongestionRecord]:
    return (control for control in CONGESTION.values() if control.simulated)


def _feedback(control: CongestionRecord) -> dict[str, bool | str]:
    """The kinds of feedback with which the control works, the least first."""
    return {
        name: ecn
        for name, ecn in FEEDBACK.items()
        if (ecn or not control.needs_ecn) and (ecn == "accecn" or not control.needs_accecn)
    }


def _marking(discipline: QdiscRecord) -> str:
    """The shortest text of the discipline with which it marks. The only option added is `ecn`."""
    if ("ecn", None) not in discipline.words():
        return discipline.least
    try:
        return Qdisc.parse(f"{discipline.least} ecn").text
    except UserError:
        # sfq marks only with a RED for each of its flows.
        return discipline.least
