"""A capture, pcap or pcapng: a scenario that sends its packets again (`resent`). `sojourn look` makes a
measurement of it (`seen`)."""

from __future__ import annotations

from sojourn.formats.content import Content
from sojourn.formats.format import Format, Yields
from sojourn.formats.texts import Texts


def _is_capture(content: Content) -> bool:
    return content.is_capture


def _read(content: Content) -> Texts:
    from sojourn.formats import resent

    return resent.texts(content)


FORMATS = (
    Format(
        "capture",
        "tcpdump",
        "tcpdump -s 128 -w FILE",
        Yields.SCENARIO,
        _is_capture,
        _read,
        takes_time=True,
    ),
)
