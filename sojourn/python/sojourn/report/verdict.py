"""The page's first sentences on simulations: the verdict on several Runs, or the delay that the
queues of one Run add."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sojourn.digits import on_page
from sojourn.judgement import Judgement, added, words
from sojourn.judgement.quantities import Measured


def sentences(measured: Sequence[Measured], found: Judgement) -> list[str]:
    """The verdict on these Runs, as plain text."""
    if len(measured) == 1:
        return _alone(measured[0])
    return found.sentences()


def _alone(one: Measured) -> list[str]:
    ping, sojourn = (one.over_seeds(key)[0] for key in ("ping_p95", "sojourn_p95"))
    base = one.over_seeds("ping_idle")[0]
    if math.isnan(ping) and math.isnan(sojourn):
        return ["No packet was measured after the warm-up, so the delay is unknown."]
    if not math.isnan(ping + base):
        more = max(ping - base, 0.0)
        texts = [
            f"Under this load one ping in twenty takes {on_page(ping)} ms or longer; through empty queues it takes "
            f"{on_page(base)} ms. The queues add {on_page(more)} ms: {added.in_words(more)}."
        ]
    else:
        texts = [
            f"One packet in twenty waits {on_page(sojourn)} ms or longer at the bottleneck: {added.in_words(sojourn)}."
        ]
    used, goodput = (one.over_seeds(key)[0] for key in ("utilisation", "goodput"))
    if not math.isnan(used):
        texts.append(
            f"The bottleneck is {on_page(used)} % used and the flows through it get {on_page(goodput)} Mbit/s of goodput."
        )
    if one.summary.samples < len(one.summary.seeds):
        texts.append(words.alike_seeds(len(one.summary.seeds)))
    return texts
