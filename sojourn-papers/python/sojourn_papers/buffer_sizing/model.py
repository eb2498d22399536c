"""The report's formulas: the least utilisation of a link (its equation 6), and the queue of short
flows (section 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence


def utilisation(n: int, share: float) -> float:
    """Equation 6: the least utilisation, %, with n flows and a buffer of `share` times rate * RTT /
    sqrt(n)."""
    # B over (2 T C + B) / sqrt(n), with B = share * 2 T C / sqrt(n).
    inner = share / (1 + share / math.sqrt(n))
    return 100 * math.erf(3 * math.sqrt(3) / (2 * math.sqrt(2)) * inner)


def bursts(packets: int) -> list[int]:
    """The bursts of a flow in slow start that begins with two packets: 2, 4, 8 and the rest."""
    found, burst = [], 2
    while packets > 0:
        found.append(min(burst, packets))
        packets -= burst
        burst *= 2
    return found


def mean_queue(packets: int, load: float, sizes: Sequence[int] = ()) -> float:
    """Section 4: the mean queue of flows of this length, packets. `sizes`: their bursts, if they
    are not slow start's."""
    sizes = sizes or bursts(packets)
    mean, square = (sum(one**power for one in sizes) / len(sizes) for power in (1, 2))
    return load / (2 * (1 - load)) * square / mean - load * mean / 2


def enough(packets: int, load: float, above: float) -> float:
    """The buffer that the queue of these flows exceeds with the probability `above`, packets."""
    sizes = bursts(packets)
    ratio = sum(one**2 for one in sizes) / sum(sizes)
    return -math.log(above) * load / (2 * (1 - load)) * ratio
