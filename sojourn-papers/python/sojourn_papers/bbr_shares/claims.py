"""Checks of the sentences."""

from __future__ import annotations

from statistics import fmean, median

from sojourn_papers.bbr_shares import measures as m
from sojourn_papers.bbr_shares import studies as s
from sojourn_papers.bbr_shares.model import share
from sojourn_papers.evidence import Evidence, NotRun, some
from sojourn_papers.formats import at
from sojourn_papers.paper import Finding


def _found(evidence: Evidence, version: str, bbrs: int, cubics: int) -> dict[float, float]:
    return {depth: one.mean for depth, one in m.along(evidence, version, bbrs, cubics).items()}


def _deep(evidence: Evidence, bbrs: int, cubics: int) -> dict[float, float]:
    """BBR's share in the FIFOs that the model covers."""
    found = _found(evidence, "BBR", bbrs, cubics)
    return {depth: ours for depth, ours in found.items() if depth in s.DEEP}


def whoever(evidence: Evidence) -> Finding:
    """The share by the number of CUBIC's flows, in deep FIFOs with all of these numbers."""
    by_cubics = {cubics: _deep(evidence, 1, cubics) for cubics in s.CUBICS}
    spread = []
    for depth in s.DEEP:
        found = [shares[depth] for shares in by_cubics.values() if depth in shares]
        if len(found) == len(s.CUBICS):
            spread.append(max(found) - min(found))
    parts = "; ".join(
        f"beside {cubics}, {at(found)}" for cubics, found in by_cubics.items() if found
    )
    return Finding(
        {
            "farthest apart at one depth, points": max(some(spread)),
            "the median over depths": median(spread),
        },
        f"BBR's share, percent, by the number of CUBIC's flows and the depth in BDP: {parts}",
    )


def unfair(evidence: Evidence) -> Finding:
    """One flow of BBR beside sixteen of CUBIC."""
    fair = 100 / 17
    found = {depth: ours / fair for depth, ours in some(_deep(evidence, 1, 16).items())}
    return Finding(
        {
            "least of its shares over an equal one": min(found.values()),
            "largest": max(found.values()),
        },
        f"By the depth in BDP: {at(found, 1)}",
    )


def newer(evidence: Evidence) -> Finding:
    """The distance of both versions from an equal share, one flow of each."""
    off = {
        version: fmean(abs(ours - 50) for ours in some(_found(evidence, version, 1, 1).values()))
        for version in s.VERSIONS
    }
    return Finding(
        {"nearer to a half, points": off["BBR"] - off["BBR 3"]},
        f"Distance from a half, mean over all depths, points: {at(off)}",
    )


def as_many(evidence: Evidence) -> Finding:
    """The same number of flows of each: the model with its term for several."""
    off, parts = [], []
    for flows in s.SEVERAL:
        found = _deep(evidence, flows, flows)
        if len(found) < 2:
            raise NotRun(f"{flows} and {flows} flows")
        model = {depth: 100 * share(depth, s.BDP, s.RTT_S, flows) for depth in found}
        off += [100 * abs(ours / model[depth] - 1) for depth, ours in found.items()]
        parts.append(f"{flows} and {flows}, {at(found)} (model: {at(model)})")
    return Finding(
        {"median error, %": median(off)},
        f"BBR's share, percent, by the depth in BDP: {'; '.join(parts)}",
    )


def flows_apart(evidence: Evidence) -> Finding:
    """Shares behind disciplines that separate flows, and behind those that don't."""
    off = {
        qdisc: abs(evidence.mean(s.LAW[s.law("BBR", qdisc)], m.share_percent) - 50)
        for qdisc in s.LAWS
    }
    return Finding(
        {
            "farthest from a half with fq_codel and cake, points": max(
                off["fq_codel"], off["cake"]
            ),
            "with codel and pie": max(off["codel"], off["pie"]),
        },
        f"Points from a half: {at(off)}",
    )
