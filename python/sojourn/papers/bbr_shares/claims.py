"""Checks of the sentences."""

from __future__ import annotations

from statistics import median

from sojourn.papers.bbr_shares import measures as m
from sojourn.papers.bbr_shares.model import share
from sojourn.papers.bbr_shares.studies import (
    BDP,
    CUBICS,
    DEEP,
    LAW,
    LAWS,
    OTHER_RIVALS,
    OTHERWISE,
    RTT_S,
    SEVERAL,
    VERSIONS,
    beside,
    law,
)
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Finding
from sojourn.papers.said import each


def _found(evidence: Evidence, version: str, bbrs: int, cubics: int) -> dict[float, float]:
    return {depth: one.mean for depth, one in m.along(evidence, version, bbrs, cubics).items()}


def _model(depth: float, flows: int = 1) -> float:
    return 100 * share(depth, BDP, RTT_S, flows)


def whoever(evidence: Evidence) -> Finding:
    """The share by the number of CUBIC's flows, in deep FIFOs."""
    spread, told = [], []
    for depth in DEEP:
        found = {
            cubics: shares[depth]
            for cubics in CUBICS
            if depth in (shares := _found(evidence, "BBR", 1, cubics))
        }
        if len(found) > 1:
            spread.append(max(found.values()) - min(found.values()))
            values = ", ".join(f"{cubics}: {ours:.0f}" for cubics, ours in found.items())
            told.append(f"{depth:g} BDP, {values}")
    return Finding(
        max(spread) < 15,
        f"BBR's share, percent, by the number of CUBIC's flows: {'; '.join(told)}",
        partly=median(spread) < 15,
    )


def unfair(evidence: Evidence) -> Finding:
    """One flow of BBR beside sixteen of CUBIC."""
    found = {depth: ours for depth, ours in _found(evidence, "BBR", 1, 16).items() if depth in DEEP}
    fair = 100 / 17
    told = ", ".join(f"{depth:g} BDP: {ours:.0f}" for depth, ours in found.items())
    return Finding(
        min(found.values()) > 2 * fair,
        f"one flow of 17 would have {fair:.0f} % of an equal share and has, percent, {told}",
        partly=max(found.values()) > 2 * fair,
    )


def newer(evidence: Evidence) -> Finding:
    """How far both versions are from an equal share, one flow of each."""
    off = {
        version: [abs(ours - 50) for ours in _found(evidence, version, 1, 1).values()]
        for version in VERSIONS
    }
    means = {version: sum(values) / len(values) for version, values in off.items()}
    return Finding(
        means["BBR 3"] < means["BBR"],
        "distance from a half over all depths, points: "
        + ", ".join(f"{version} {mean:.0f}" for version, mean in means.items()),
    )


def as_many(evidence: Evidence) -> Finding:
    """As many flows of each: the model with its term for several."""
    off, told = [], []
    for flows in SEVERAL:
        found = {
            depth: ours
            for depth, ours in _found(evidence, "BBR", flows, flows).items()
            if depth in DEEP
        }
        off += [abs(ours / _model(depth, flows) - 1) for depth, ours in found.items()]
        values = ", ".join(
            f"{depth:g}: {ours:.0f} ({_model(depth, flows):.0f})" for depth, ours in found.items()
        )
        told.append(f"{flows} and {flows}, {values}")
    middle = 100 * median(off)
    return Finding(
        middle <= 10,
        f"BBR's share, percent, by the depth in BDP, ours and the model's: {'; '.join(told)}; the median error is "
        f"{middle:.0f} %",
        partly=middle <= 25,
    )


def flows_apart(evidence: Evidence) -> Finding:
    """Shares behind disciplines that keep flows apart, and behind those that don't."""
    found = {
        (version, qdisc): evidence.mean(variant, m.share_percent)
        for version in VERSIONS
        for qdisc in LAWS
        if evidence.has(variant := LAW[law(version, qdisc)])
    }
    apart = [abs(ours - 50) for (_, qdisc), ours in found.items() if qdisc in ("fq_codel", "cake")]
    together = [abs(ours - 50) for (_, qdisc), ours in found.items() if qdisc in ("codel", "pie")]
    told = "; ".join(f"{law(*at)}: {ours:.0f}" for at, ours in found.items())
    return Finding(
        max(apart) < 10 < max(together),
        f"BBR's share, percent, {told}",
        partly=max(apart) < max(together),
    )


def version_3(evidence: Evidence) -> str:
    """What version 3 has in its place."""
    found = _found(evidence, "BBR 3", 1, 1)
    return "version 3 beside one flow of CUBIC, percent: " + ", ".join(
        f"{depth:g} BDP: {ours:.0f}" for depth, ours in found.items()
    )


def other_rivals(evidence: Evidence) -> str:
    """BBR's share under other readings of who is beside it, and when."""
    told = []
    for name in OTHER_RIVALS:
        for cubics in CUBICS:
            runs = [OTHERWISE[f"{name}: {beside('BBR', 1, cubics, depth)}"] for depth in DEEP]
            if evidence.has(*runs):
                shares = [evidence.mean(one, m.share_percent) for one in runs]
                told.append(f"{name}, {cubics} of them: {each(shares)}")
    if not told:
        return "The full version has others."
    return f"BBR's share, percent, at {each(DEEP)} BDP: {'; '.join(told)}."


def assumptions(evidence: Evidence, cubics: str) -> str:
    """Which of the model's assumptions fail, beside so many flows of CUBIC."""
    found = {
        depth: one for depth in DEEP if (one := m.assumed(evidence, int(cubics), depth)) is not None
    }
    if not found:
        return "The full version has what of the model's assumptions fails."

    def model(*measured: str) -> str:
        """The model's shares with these as measured."""
        return each(m.modelled(depth, one, measured) for depth, one in found.items())

    known = list(found.values())
    return (
        f"What the model takes for one is, at {each(list(found))} BDP: the mean queue over its length "
        f"{each([one.full for one in known], 2)}; the queue when BBR measures the RTT over CUBIC's mean "
        f"part of it {each([one.seen for one in known], 2)}; what is in flight over the window "
        f"{each([one.flown for one in known], 2)}; the rate by which that window is made over the one "
        f"that BBR has {each([one.believed for one in known], 2)}. The model says {model()} %; with "
        f"the first as measured {model('full')}, with the second {model('seen')}, with the others "
        f"{model('kept')}, with all {model('full', 'seen', 'kept')}, and there BBR has "
        f"{each([100 * one.share for one in known])}. Linux 6.12 has these shares too (-e kernel)."
    )
