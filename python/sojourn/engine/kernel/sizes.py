"""How large packets get, how long a run lingers, how much memory a guest needs. Pure."""

from collections.abc import Sequence

from sojourn.engine.kernel.graph import Entry, has_queue
from sojourn.scenario import linux
from sojourn.scenario.tcp import MTU

LONGEST_LINGER_NS = 5 * 10**9
_NAMESPACE_KB = 1200
"""A namespace takes a quarter of it; but a kernel allows half as many as it allows threads, of which each MB gives two
(64 kB of stack each, in an eighth of the memory: fork.c, ucount.c)."""
_PACKET_KB = 2.5
"""A full packet in the kernel."""
_SEEN_BYTES = 160
"""A packet that a tap follows, in the traffic program and once more in the archive."""


def mtu(flows: Sequence[Entry]) -> int:
    """Of every device: no packet is cut."""
    largest = MTU
    for flow in flows:
        match flow["traffic"]:
            case {"tcp": tcp}:
                largest = max(largest, tcp["mss"] + tcp["header_bytes"])
            case {"packet_bytes": size}:
                largest = max(largest, size)
            case {"payload_bytes": size}:
                largest = max(largest, size + 40)
    return largest


def linger_ns(links: Sequence[Entry], flows: Sequence[Entry]) -> int:
    """Long enough for what senders still hold at the end, two windows or so: some round trips through queues as full as they get.

    While packets come the taps can't be ended without a packet that one has told and another has not.
    """
    extra = max((flow["path_extra_ns"] + flow["back_extra_ns"] for flow in flows), default=0)
    waits = sorted((_longest_wait(link) + link["delay_ns"] for link in links), reverse=True)
    return int(min(LONGEST_LINGER_NS, 5 * 10**8 + 4 * (extra + sum(waits[:4]))))


def slowest_bps(links: Sequence[Entry]) -> int | None:
    """The least rate that any of them ever has, other than none."""
    rates = [step["bps"] for link in links for step in link["rate"] if step["bps"]]
    rates += [link["shaper"]["bps"] for link in links if link["shaper"]]
    return min(rates, default=None)


def _longest_wait(link: Entry) -> int:
    rate = slowest_bps([link])
    return 0 if rate is None else linux.packets(link["qdisc"]) * MTU * 8 * 10**9 // rate


def memory_mb(realised: Entry, namespaces: int) -> int:
    """What a guest needs, rather too much: packets in queues and on wires, packets that taps follow, namespaces."""
    packets = seen = 0.0
    extra = max((flow["path_extra_ns"] for flow in realised["flows"]), default=0)
    for number, link in enumerate(realised["links"]):
        rate = max((step["bps"] for step in link["rate"]), default=0)
        on_wires = rate / 8 / MTU * (link["delay_ns"] + extra) / 1e9
        in_queue = min(_longest_wait(link) / 1e9 * rate / 8 / MTU, 100_000)
        packets += on_wires + in_queue
        if has_queue(link) and link["sampled"]:
            seen += _seen_a_second(number, realised) * realised["duration_ns"] / 1e9
    need = (_NAMESPACE_KB * namespaces + _PACKET_KB * packets) / 1024 + seen * _SEEN_BYTES / 2**20
    return 192 + 64 * int(need / 64 + 1)


def _seen_a_second(number: int, realised: Entry) -> float:
    """At most so many packets of a link come to its tap: of a ping or a stream what it sends; of all else, with its
    acknowledgements, twice what the narrowest links that it has to pass let through in full packets.
    """
    links = realised["links"]
    sent = 0.0
    narrowest: dict[int, int] = {}
    for flow in realised["flows"]:
        if number not in (*flow["path"], *flow["back"]):
            continue
        match flow["traffic"]:
            case {"kind": "ping", "interval_ns": interval}:
                sent += 1e9 / interval
            case {"kind": "udp", "bps": bps, "packet_bytes": size}:
                sent += bps / 8 / size
            case traffic:
                passed = [at for at in (*flow["path"], number) if _most_bps(links[at])]
                narrow = min(passed, key=lambda at: _most_bps(links[at]))
                narrowest[narrow] = min(narrowest.get(narrow, MTU), _full_packet(traffic))
    return sent + sum(2 * _most_bps(links[at]) / 8 / size for at, size in narrowest.items())


def _most_bps(link: Entry) -> int:
    """The highest rate that it ever has; 0: no limit."""
    rate: int = max((step["bps"] for step in link["rate"]), default=0)
    shaped: int = link["shaper"]["bps"] if link["shaper"] else rate
    return min(rate, shaped) if rate else shaped


def _full_packet(traffic: Entry) -> int:
    """Bytes of an IP packet of TCP, or of video."""
    match traffic:
        case {"tcp": tcp}:
            return int(tcp["mss"] + tcp["header_bytes"])
        case {"payload_bytes": size}:
            return int(size) + 40
    return MTU
