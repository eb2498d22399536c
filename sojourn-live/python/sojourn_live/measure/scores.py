"""Every known score of a loaded line, from the same raw samples, each with the version of its
formula. Pure.

A score is a convention, not a measurement, and the conventions disagree: the same line may be a C
on one site and an F on another. So all are shown, each with the source of its formula. Samples are
milliseconds; lost probes are not samples. A score without enough samples is NaN.

    DSLReports   faq/17930: the mean increase under load, averaged over upload and download
    LibreQoS     mean(loaded) - p25(idle), on two scales that its repository publishes: its code's
                 and its README's
    RPM          draft-ietf-ippm-responsiveness-09 §4.3: round trips per minute, averaged over new
                 and loaded connections
    RPM (go)     goresponsiveness, rpm/calculations.go: the same samples, averaged before they are
                 inverted
    QoO          draft-ietf-ippm-qoo as goresponsiveness implements it: where percentiles lie
                 between a useless RTT (0 %) and a perfect one (100 %)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sojourn.arrays import Floats

DRAFT = "draft-ietf-ippm-responsiveness-09"

MOVING_AVERAGE_DISTANCE = 4
"""MAD: the number of intervals that the moving average and the final number cover."""
INTERVAL_S = 5.0
"""ID: the length of an interval in draft -09. Earlier drafts and goresponsiveness have 1 s."""
TRIMMED_MEAN_PERCENT = 95.0
"""TMP: the share of the best samples that the trimmed mean keeps."""
TOLERANCE = 0.05
"""SDT: a moving average is stable when its last MAD values have a standard deviation below this
share of the latest."""

GO_KEEPS_PERCENT = 5.0
"""goresponsiveness's default of -rpm.tmp. Its help calls it the share to trim; its code
(utilities.TrimBy) keeps that share."""
GO_PERCENTILE = 90.0


# -------------------------------------------------------------------------------------------- RPM


@dataclass(frozen=True)
class Rpm:
    """Round trips per minute: 60 000 over milliseconds."""

    rpm: float
    foreign: float
    """RPM of new connections; NaN without samples."""
    loaded: float
    """RPM of the load's own connections; NaN without samples."""


def trimmed_mean(samples: ArrayLike, keep_percent: float = TRIMMED_MEAN_PERCENT) -> float:
    """TM: the mean of the best `keep_percent` of the samples, at least one; NaN without a sample.

    For example, of 1 .. 20 at 95 % the 20 is dropped, and (1 + .. + 19) / 19 = 10.
    """
    values = np.sort(_known(samples))
    if values.size == 0:
        return math.nan
    kept = max(int(values.size * keep_percent / 100), 1)
    return float(values[:kept].mean())


def rpm_draft09(tcp_f: ArrayLike, tls_f: ArrayLike, http_f: ArrayLike, http_l: ArrayLike) -> Rpm:
    """Responsiveness by draft-ietf-ippm-responsiveness-09, §4.3.1: times in ms, of the last MAD
    intervals.

    - `tcp_f`: TCP handshakes of foreign probes.
    - `tls_f`: their TLS handshakes, divided by the round trips of each. Empty: no TLS, and the
      foreign part is the mean of two times instead of three.
    - `http_f`: their GETs.
    - `http_l`: GETs of self probes, on load-generating connections. The draft allows TCP's smoothed
      RTT instead where no GET can be multiplexed.

    For example, if all are 60 ms, the result is 1000 RPM. Foreign times of 20, 40 and 60 ms give 60
    000 / 40 = 1500, and 120 ms on loaded connections gives 500; together 1000.
    """
    tls = [trimmed_mean(tls_f)] if _known(tls_f).size else []
    parts = [trimmed_mean(tcp_f), *tls, trimmed_mean(http_f)]
    foreign = _per_minute(sum(parts) / len(parts))
    loaded = _per_minute(trimmed_mean(http_l))
    return Rpm((foreign + loaded) / 2, foreign, loaded)


def rpm_go(
    foreign_total: ArrayLike, http_l: ArrayLike, keep_percent: float = GO_KEEPS_PERCENT
) -> Rpm:
    """RPM by goresponsiveness's trimmed mean (rpm/calculations.go): 60 s over the mean of two mean
    round trips.

    `foreign_total`: ms of a whole foreign probe, TCP, TLS and GET together. A third of it counts as
    a round trip, although TLS 1.2 has a fourth one and plain HTTP only two. The trimmed mean is
    that of goresponsiveness's code: of n values, the mean of the int(n * keep_percent / 100) least
    (NaN if there are none). Each foreign value counts three times.

    For example, if a third of each foreign probe is 40 ms and each self probe 120 ms, the result is
    60 000 / ((40 + 120) / 2) = 750. The draft's result is 1000.
    """
    thirds = np.repeat(_known(foreign_total) / 3, 3)
    foreign = _least_mean(thirds, keep_percent)
    loaded = _least_mean(_known(http_l), keep_percent)
    return Rpm(_per_minute((foreign + loaded) / 2), _per_minute(foreign), _per_minute(loaded))


def rpm_go_p90(foreign_total: ArrayLike, http_l: ArrayLike) -> Rpm:
    """RPM by goresponsiveness's P90: as `rpm_go`, with 90th percentiles instead of means. The
    percentile is the sample number int(0.9 n) of n sorted ones."""
    foreign = _percentile_go(np.repeat(_known(foreign_total) / 3, 3))
    loaded = _percentile_go(_known(http_l))
    return Rpm(_per_minute((foreign + loaded) / 2), _per_minute(foreign), _per_minute(loaded))


def rpm_class(rpm: float) -> str:
    """The class of -09: Poor below 300 RPM, Fair to 1000, Good to 6000, Excellent above; "" for
    NaN."""
    if math.isnan(rpm):
        return ""
    return next(
        (
            word
            for least, word in ((6000, "Excellent"), (1000, "Good"), (300, "Fair"))
            if rpm >= least
        ),
        "Poor",
    )


def _per_minute(ms: float) -> float:
    return 60_000 / ms if ms > 0 else math.nan


def _least_mean(values: Floats, keep_percent: float) -> float:
    kept = int(values.size * keep_percent / 100)
    return float(np.sort(values)[:kept].mean()) if kept else math.nan


def _percentile_go(values: Floats) -> float:
    at = int(GO_PERCENTILE / 100 * values.size)
    return float(np.sort(values)[at]) if at < values.size else math.nan


def _known(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, dtype=np.float64).ravel()
    return values[np.isfinite(values)]


# ----------------------------------------------------------------------------------------- grades

DSLREPORTS = ((5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D"))
"""dslreports.com/faq/17930: an increase below this many ms gets the letter; F from 400 ms."""
LIBREQOS_CODE = ((5, "A+"), (25, "A"), (50, "B"), (75, "C"), (100, "D"))
"""LibreQoS/bufferbloat test, latencyGradeThresholds.json."""
LIBREQOS_README = DSLREPORTS
"""The same repository's README and public page."""
LIBREQOS_BASELINE = ((75, "A+"), (100, "A"), (125, "B"), (150, "C"), (175, "D"))
"""LibreQoS's grade of the idle RTT itself, ms."""
POINTS = {"A+": 6, "A": 5, "B": 4, "C": 3, "D": 2, "F": 1}


def grade(increase_ms: float, scale: Sequence[tuple[float, str]] = DSLREPORTS) -> str:
    """The letter of an increase: 29.9 ms is an A of DSLReports, 30 ms a B; "" for NaN."""
    if math.isnan(increase_ms):
        return ""
    return next((letter for below, letter in scale if increase_ms < below), "F")


def dslreports(idle: ArrayLike, down: ArrayLike, up: ArrayLike) -> tuple[str, float]:
    """DSLReports's grade and the increase that it grades, ms: (mean(down) + mean(up)) / 2 -
    mean(idle).

    For example, idle 20, downloading 40 and uploading 120 ms give (20 + 100) / 2 = 60 ms, a C. If
    only one direction was measured, its increase alone is graded.
    """
    base = _mean(idle)
    increase = _mean([_mean(part) - base for part in (down, up)])
    return grade(increase), increase


@dataclass(frozen=True)
class LibreQos:
    """LibreQoS's grade and its parts."""

    grade: str
    baseline: str
    """Grade of the idle RTT."""
    phases: Mapping[str, str]
    """Grade of the increase under each load."""


def libreqos(
    idle: ArrayLike,
    loaded: Mapping[str, ArrayLike],
    scale: Sequence[tuple[float, str]] = LIBREQOS_CODE,
) -> LibreQos:
    """LibreQoS's total grade: the worse of the idle RTT's grade and the mean of the loads' ("down",
    "up", "both").

    The increase under a load is its mean - the 25th percentile of the idle RTT. Letters are
    averaged as 6 (A+) to 1 (F) and become letters again at 5.5, 4.5, 3.5, 2.5 and 1.5. For example,
    with idle 20 ms, down 40 (A), up 120 (F) and both 60 ms (B), the mean of 5, 1 and 4 is 3.33, a
    C.
    """
    known = _known(idle)
    if known.size == 0:
        return LibreQos("", "", {})
    base = float(np.quantile(known, 0.25))
    letters = {
        name: grade(_mean(part) - base, scale) for name, part in loaded.items() if _known(part).size
    }
    baseline = grade(_mean(known), LIBREQOS_BASELINE)
    if not letters:
        return LibreQos("", baseline, {})
    mean = sum(POINTS[letter] for letter in letters.values()) / len(letters)
    least = min(float(POINTS[baseline]), mean)
    total = next((letter for letter, points in POINTS.items() if least >= points - 0.5), "F")
    return LibreQos(total, baseline, letters)


# -------------------------------------------------------------------------------------------- QoO

GAMING = ((50, 30.0, 150.0), (95, 65.0, 200.0), (99, 100.0, 250.0))
"""goresponsiveness's "gaming": percentile, perfect RTT, useless RTT (ms)."""


def qoo(samples: ArrayLike, wanted: Sequence[tuple[float, float, float]] = GAMING) -> float:
    """Quality of Outcome, 0 to 100. Each percentile is rated by its position between its useless
    RTT (0) and its perfect RTT (100). The lowest rating is the result.

    For example, if every RTT is 90 ms, p50 has (150 - 90) / (150 - 30) = 50 %. The other
    percentiles are perfect, so the result is 50. NaN without a sample.
    """
    known = _known(samples)
    if known.size == 0:
        return math.nan
    shares = []
    for percentile, perfect, useless in wanted:
        value = float(np.quantile(known, percentile / 100))
        shares.append(min(max((useless - value) / (useless - perfect), 0.0), 1.0))
    return 100 * min(shares)


def _mean(samples: ArrayLike) -> float:
    known = _known(samples)
    return float(known.mean()) if known.size else math.nan
