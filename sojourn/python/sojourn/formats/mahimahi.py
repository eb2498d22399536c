"""A trace of Mahimahi: a scenario of its line.

Each line is the millisecond of an opportunity to send 1500 bytes (Netravali et al., "Mahimahi: accurate
record-and-replay for HTTP", 2015). The trace is kept as it is: crates/scenario/src/trace.rs reads it.
The file does not contain its direction, which is taken for down unless the name ends in `.up`.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from sojourn.formats.content import HEAD, Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import GUESSED_DELAY, PORT, TO_RUN, Texts, line_scenario

if TYPE_CHECKING:
    from sojourn.facts import Direction

LEAST = 3
"""Lines by which a trace is recognised."""
OPPORTUNITY_BITS = 12_000
MOST_S = 24 * 3600.0


def _is_trace(content: Content) -> bool:
    lines = content.head.split("\n")
    if len(content.first) == HEAD:
        # The last line may not be whole.
        lines.pop()
    numbers = [line.strip() for line in lines if line.strip()]
    return (
        len(numbers) >= LEAST
        and all(re.fullmatch(r"\d{1,12}", number) for number in numbers)
        and all(int(a) <= int(b) for a, b in itertools.pairwise(numbers))
    )


def _read(content: Content) -> Texts:
    times = []
    for number, line in enumerate(content.lines, 1):
        if line.strip():
            if not re.fullmatch(r"\d{1,12}", line.strip()):
                raise FileFormatError(f"line {number}: {line[:40]!r} is not a millisecond")
            times.append(int(line))
    span_s = times[-1] / 1e3
    if not 0 < span_s <= MOST_S:
        raise FileFormatError(
            f"its last line is {times[-1]}, which is not the length of a trace in ms"
        )
    ways: tuple[Direction, Direction] = ("down", "up")
    way, other = reversed(ways) if content.name.endswith(".up") else ways
    mean = len(times) * OPPORTUNITY_BITS / span_s / 1e6
    keys: dict[str, object] = {
        "qdisc": "fq_codel",
        "delay": GUESSED_DELAY,
        f"{way}.trace": f"{{stem}}.{way}.trace",
        f"{other}.rate": PORT,
    }
    toml = line_scenario(
        f"The line of {content.path.name}.", keys, [way], duration_s=max(min(span_s, 60.0), 1.0), connections=1
    )  # fmt: skip
    taken = [f"{len(times)} opportunities over {span_s:.4g} s as {way}, mean {mean:.4g} Mbit/s"]
    notes = [
        f"The file does not say its direction: it is taken for {way}.",
        f"The file has no delay: {GUESSED_DELAY} in each direction is a guess.",
        f"The file has no rate {other}: {PORT} is a guess.",
    ]
    trace = "\n".join(map(str, times)) + "\n"
    return Texts({".toml": toml, f".{way}.trace": trace}, taken, notes, use=TO_RUN)


FORMATS = (
    Format("mahimahi", "Mahimahi", "mm-throughput-graph's or mm-link's trace, a millisecond a line", Yields.TRACE, _is_trace, _read),
)  # fmt: skip
