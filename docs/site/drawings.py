"""The drawings of docs/concepts, as SVG.

The drawings use named colours. An SVG file opened by itself sets them by the reader's light or dark
scheme. On the site the theme sets them (`inline`). `python docs/generate.py` writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

Point = tuple[float, float]

_COLOURS = """<style>
svg { --ink: #222222; --soft: #6b6b6b; --fill: #f1f1f1; --blue: #0072b2; --red: #d55e00;
  --green: #009e73; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6e6e6; --soft: #a9a9a9; --fill: #2c2f33; --blue: #56b4e9; --red: #ff8f4d;
    --green: #4cd1a5; }
}
</style>
"""
_SHAPES = """<style>
.d-ink { fill: none; stroke: var(--ink); stroke-width: 1.6; }
.d-soft { fill: none; stroke: var(--soft); stroke-width: 1.2; }
.d-dash { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.d-box { fill: var(--fill); stroke: var(--ink); stroke-width: 1.4; }
.d-blue { fill: var(--blue); } .d-red { fill: var(--red); } .d-green { fill: var(--green); }
.d-line-blue { fill: none; stroke: var(--blue); stroke-width: 2.4; }
.d-line-red { fill: none; stroke: var(--red); stroke-width: 2.4; }
.d-line-green { fill: none; stroke: var(--green); stroke-width: 2.4; }
.d-empty { fill: none; stroke: var(--soft); stroke-width: 1; }
.d-tip { fill: var(--ink); }
.d-word { fill: var(--ink); font: 15px sans-serif; }
.d-bold { fill: var(--ink); font: bold 15px sans-serif; }
.d-small { fill: var(--soft); font: 13px sans-serif; }
</style>
"""


class Sheet:
    """A drawing that is being built, in units of the view."""

    def __init__(self, title: str, width: float, height: float) -> None:
        self._title, self._width, self._height = title, width, height
        self._parts: list[str] = []

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width:g} {self._height:g}" '
            f'role="img">\n<title>{escape(self._title)}</title>\n{_COLOURS}{_SHAPES}'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )

    def words(
        self, x: float, y: float, text: str, how: str = "word", anchor: str = "start"
    ) -> None:
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" class="d-{how}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, text: str = "") -> None:
        self._rect(x, y, width, height, "box", 4)
        if text:
            self.words(x + width / 2, y + height / 2 + 5, text, anchor="middle")

    def packet(
        self, x: float, y: float, colour: str, width: float = 14, height: float = 22
    ) -> None:
        self._rect(x, y, width, height, colour, 2)

    def packets(self, x: float, y: float, colours: Sequence[str], step: float = 18) -> None:
        """A row of packets from left to right; "empty" is a place without one."""
        for number, colour in enumerate(colours):
            self.packet(x + number * step, y, colour)

    def path(self, points: Sequence[Point], how: str = "ink") -> None:
        d = " L ".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="M {d}" class="d-{how}"/>')

    def arrow(self, start: Point, end: Point, how: str = "ink") -> None:
        self.path([start, end], how)
        (x, y), (u, v) = start, end
        length = ((u - x) ** 2 + (v - y) ** 2) ** 0.5
        dx, dy = (u - x) / length, (v - y) / length
        left = (u - 10 * dx - 4.5 * dy, v - 10 * dy + 4.5 * dx)
        right = (u - 10 * dx + 4.5 * dy, v - 10 * dy - 4.5 * dx)
        points = " ".join(f"{a:.4g},{b:.4g}" for a, b in (end, left, right))
        self._parts.append(f'<polygon points="{points}" class="d-tip"/>')

    def axes(
        self, x: float, y: float, width: float, height: float, below: str, beside: str
    ) -> None:
        """Axes from the lower left corner (x, y), with a label each."""
        self.arrow((x, y), (x + width, y))
        self.arrow((x, y), (x, y - height))
        self.words(x + width, y + 18, below, "small", "end")
        self.words(x + 8, y - height + 8, beside, "small")

    def _rect(
        self, x: float, y: float, width: float, height: float, how: str, round: float
    ) -> None:
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round:g}" class="d-{how}"/>'
        )


def bufferbloat() -> str:
    sheet = Sheet("A call's packet behind a backup's in the queue of a router", 740, 210)
    sheet.box(10, 30, 90, 40, "backup")
    sheet.box(10, 120, 90, 40, "call")
    sheet.arrow((100, 50), (150, 88))
    sheet.arrow((100, 140), (150, 104))
    sheet.box(155, 62, 360, 66)
    sheet.words(335, 50, "the router's queue: 1000 packets", "bold", "middle")
    sheet.packets(172, 84, ["blue", *["red"] * 18])
    sheet.arrow((515, 95), (560, 95))
    sheet.box(562, 84, 96, 22)
    sheet.words(610, 74, "10 Mbit/s", "word", "middle")
    sheet.arrow((660, 95), (730, 95))
    sheet.words(690, 120, "internet", "small", "middle")
    sheet.words(
        180, 156, "the call's packet came last, and waits for all that are before it:", "small"
    )
    sheet.words(180, 176, "1000 packets x 1500 bytes x 8 bit / 10 Mbit/s = 1.2 s", "small")
    sheet.path([(179, 110), (179, 142)], "dash")
    return sheet.svg()


def bandwidth_delay_product() -> str:
    sheet = Sheet("Goodput and RTT over the data in flight", 740, 360)
    left, bdp, full, right = 70.0, 280.0, 560.0, 690.0
    for x, text in ((bdp, "rate x base RTT"), (full, "rate x base RTT + buffer")):
        sheet.path([(x, 20), (x, 330)], "dash")
        sheet.words(x, 348, text, "small", "middle")
    sheet.axes(left, 160, right - left, 140, "", "goodput")
    sheet.path([(left, 160), (bdp, 60), (right - 15, 60)], "line-blue")
    sheet.words(bdp + 8, 52, "the link's rate: more in flight gives no more", "small")
    sheet.axes(left, 325, right - left, 135, "", "RTT")
    sheet.path([(left, 292), (bdp, 292), (full, 214)], "line-red")
    sheet.words(left + 40, 284, "base RTT", "small")
    sheet.words(bdp + 14, 226, "each extra packet waits", "small")
    sheet.words(full + 8, 218, "losses", "small")
    sheet.words(right + 4, 312, "in flight", "small", "end")
    return sheet.svg()


def what_a_queue_is_for() -> str:
    sheet = Sheet("What a sender has in flight over time, with three sizes of buffer", 740, 250)
    cases = (
        ("too small", 0.35, "the link is idle at times"),
        ("rate x RTT", 1.0, "never idle, never more than needed"),
        ("too large", 2.1, "a queue that is never empty"),
    )
    for number, (name, buffer, says) in enumerate(cases):
        x, width = 20 + 245 * number, 215
        sheet.axes(x, 190, width, 165, "time", "in flight")
        unit = 50.0
        top, bottom = unit * (1 + buffer), unit * (1 + buffer) / 2
        points: list[Point] = []
        for tooth in range(3):
            start = x + 6 + tooth * 64
            points += [(start, 190 - bottom), (start + 62, 190 - top)]
        sheet.path([(x, 190 - unit), (x + width - 6, 190 - unit)], "dash")
        sheet.path(points, ("line-red", "line-green", "line-red")[number])
        sheet.words(x + width / 2, 222, f"buffer: {name}", "bold", "middle")
        sheet.words(x + width / 2, 241, says, "small", "middle")
    sheet.words(690, 156, "rate x RTT", "small", "end")
    return sheet.svg()


def aqm() -> str:
    sheet = Sheet("A burst that drains by itself, and a queue that stands", 740, 270)
    sheet.axes(50, 220, 670, 195, "time", "sojourn time")
    target = 168.0
    sheet.path([(50, target), (710, target)], "dash")
    sheet.words(712, target - 6, "target", "small", "end")
    sheet.path([(60, 218), (110, 80), (180, 214), (215, 218)], "line-green")
    sheet.words(132, 74, "a burst: below the target within", "small")
    sheet.words(132, 91, "an interval. Leave it alone.", "small")
    points: list[Point] = [(270, 216), (330, 130)]
    for tooth in range(3):
        x = 330 + tooth * 50
        points += [(x + 18, 96), (x + 34, 148), (x + 50, 120)]
    points += [(500, 128), (540, 150), (580, 180), (640, 190), (700, 178)]
    sheet.path(points, "line-red")
    sheet.path([(322, 236), (322, 242), (480, 242), (480, 236)], "soft")
    sheet.words(401, 259, "an interval above the target", "small", "middle")
    for x in (480, 512, 540):
        sheet.arrow((x, 62), (x, 92))
    sheet.words(470, 38, "drop or mark, more and more often,", "small")
    sheet.words(470, 55, "until senders slow down", "small")
    return sheet.svg()


def flow_queueing() -> str:
    sheet = Sheet("Packets sorted by flow into queues that take turns", 740, 260)
    sheet.packets(12, 118, ["red", "red", "blue", "red", "green", "red"])
    sheet.words(64, 106, "what arrives", "small", "middle")
    sheet.arrow((124, 129), (160, 129))
    sheet.box(162, 106, 84, 46, "hash")
    queues = (
        ("red", 11, "a backup: its own queue is long"),
        ("blue", 2, "a call"),
        ("green", 1, "a ping"),
    )
    for number, (colour, count, says) in enumerate(queues):
        y = 30 + 84 * number
        sheet.arrow((246, 129), (290, y + 21))
        sheet.box(292, y, 220, 42)
        sheet.packets(506 - 18 * count, y + 10, [colour] * count)
        sheet.words(402, y - 7, says, "small", "middle")
        sheet.arrow((512, y + 21), (560, 129))
    sheet.box(562, 106, 84, 46, "turns")
    sheet.arrow((646, 129), (730, 129))
    sheet.words(688, 118, "the link", "small", "middle")
    sheet.words(650, 208, "each queue sends", "small", "middle")
    sheet.words(650, 225, "a packet or so in turn,", "small", "middle")
    sheet.words(650, 242, "a new one first", "small", "middle")
    return sheet.svg()


def ecn() -> str:
    sheet = Sheet("A mark goes to the receiver, its echo to the sender", 740, 300)
    sender, queue, receiver = 110.0, 370.0, 630.0
    for x, name in ((sender, "sender"), (queue, "queue"), (receiver, "receiver")):
        sheet.box(x - 60, 10, 120, 34, name)
        sheet.path([(x, 44), (x, 290)], "soft")
    sheet.arrow((sender, 70), (queue - 8, 90))
    sheet.words(252, 64, "data, ECT: able to bear a mark", "small", "middle")
    sheet.packet(queue - 7, 80, "red")
    sheet.arrow((queue, 100), (receiver, 122))
    sheet.words(508, 96, "data, CE: marked, not dropped", "small", "middle")
    sheet.arrow((receiver, 140), (sender, 186))
    sheet.words(508, 176, "ACK with ECE, again and again", "small", "middle")
    sheet.words(sender + 8, 208, "cwnd falls, as for a loss;", "small")
    sheet.words(sender + 8, 225, "nothing is sent twice", "small")
    sheet.arrow((sender, 238), (receiver, 272))
    sheet.words(500, 248, "data with CWR: heard you", "small", "middle")
    return sheet.svg()


def shaper_before_the_modem() -> str:
    sheet = Sheet("Where the queue is, without and with a shaper", 740, 300)
    cases = (
        (
            "without a shaper",
            ["empty"] * 7,
            ["blue"] + ["red"] * 8,
            "100 Mbit/s",
            "nobody manages this queue",
        ),
        (
            "with a shaper at 95 %",
            ["red", "red", "red", "red", "red", "red", "blue"],
            ["empty"] * 9,
            "9.5 Mbit/s",
            "",
        ),
    )
    for number, (name, router, modem, between, says) in enumerate(cases):
        y = 30 + 145 * number
        sheet.words(10, y - 4, name, "bold")
        sheet.arrow((10, y + 49), (60, y + 49))
        sheet.box(62, y + 22, 158, 54)
        sheet.packets(80, y + 38, router)
        sheet.words(141, y + 96, "router, with fq_codel", "small", "middle")
        sheet.arrow((220, y + 49), (358, y + 49))
        sheet.words(288, y + 38, between, "word", "middle")
        sheet.box(360, y + 22, 190, 54)
        sheet.packets(376, y + 38, modem)
        sheet.words(455, y + 96, f"modem, a FIFO{': ' + says if says else ''}", "small", "middle")
        sheet.arrow((550, y + 49), (728, y + 49))
        sheet.words(640, y + 38, "line: 10 Mbit/s", "word", "middle")
    return sheet.svg()


def ring_under_the_queue() -> str:
    sheet = Sheet("A ring below a queue discipline, without and with byte queue limits", 740, 290)
    cases = (("256 descriptors", 15, 3), ("with BQL", 3, 6))
    for number, (name, ring, queue) in enumerate(cases):
        y = 34 + 140 * number
        sheet.words(10, y - 6, name, "bold")
        sheet.box(10, y + 14, 220, 56)
        sheet.packets(222 - 18 * queue, y + 31, ["green"] * queue)
        sheet.words(120, y + 90, "CoDel: sees and drops these", "small", "middle")
        sheet.arrow((230, y + 42), (288, y + 42))
        sheet.box(290, y + 14, 296, 56)
        sheet.packets(305, y + 31, ["empty"] * (15 - ring) + ["red"] * ring)
        below = ("the driver's ring: nobody drops these", "as few as keep the wire busy")[number]
        sheet.words(438, y + 90, below, "small", "middle")
        sheet.arrow((586, y + 42), (728, y + 42))
        sheet.words(658, y + 32, "wire", "word", "middle")
    return sheet.svg()


ALL: dict[str, Callable[[], str]] = {
    "bufferbloat": bufferbloat,
    "bandwidth-delay-product": bandwidth_delay_product,
    "what-a-queue-is-for": what_a_queue_is_for,
    "aqm": aqm,
    "flow-queueing": flow_queueing,
    "ecn": ecn,
    "shaper-before-the-modem": shaper_before_the_modem,
    "ring-under-the-queue": ring_under_the_queue,
}
"""Each drawing by its file's name in docs/concepts."""


def files() -> dict[str, str]:
    """The file of each drawing in docs/concepts, and its text."""
    return {f"{name}.svg": draw() for name, draw in ALL.items()}


def inline(svg: str) -> str:
    """A drawing as part of a page, whose style sheet has the colours. It has no empty line, because
    Markdown ends HTML at one."""
    return re.sub(r"\n{2,}", "\n", svg.replace(_COLOURS, "")).strip()
