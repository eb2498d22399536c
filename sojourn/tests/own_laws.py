"""User-written disciplines, as texts, for the tests of `sojourn.own`."""

HEAD = "from sojourn.own import DROP, MARK, MS, PASS, Discipline, Link, Packet\n\n\n"

DRR = (
    HEAD
    + '''
class Fair(Discipline):
    """Deficit round robin over queues by hash; the longest queue loses its oldest packet."""

    queues = 8
    limit = 100
    quantum: int = 1514
    deficit: list[int] = [0] * queues
    turn: int = 0

    def enqueue(self, packet: Packet, link: Link) -> int:
        queue = packet.hash % len(self.deficit)
        return queue + MARK if packet.ecn and link.queue_packets[queue] > 20 else queue

    def overflow(self, link: Link) -> int:
        longest = 0
        for queue in range(len(self.deficit)):
            if link.queue_bytes[queue] > link.queue_bytes[longest]:
                longest = queue
        return longest

    def choose(self, link: Link) -> int:
        while True:
            if link.queue_packets[self.turn] > 0:
                if self.deficit[self.turn] > 0:
                    return self.turn
                self.deficit[self.turn] += self.quantum
            else:
                self.deficit[self.turn] = 0
            self.turn = (self.turn + 1) % len(self.deficit)

    def dequeue(self, packet: Packet, link: Link) -> int:
        self.deficit[self.turn] -= packet.bytes
        return PASS
'''
)

TIMED = (
    HEAD
    + '''
TICK = 10 * MS


class Timed(Discipline):
    """Drops at random, more often the longer the queue was at the last tick; a PI controller of its
    own state."""

    timer_start = TICK
    reference: float = 20.0
    probability: float = 0.0
    last: int = 0

    def enqueue(self, packet: Packet, link: Link) -> int:
        return DROP if self.random() < self.probability else 0

    def timer(self, link: Link) -> int:
        error = link.packets - self.reference
        self.probability += 0.0005 * error + 0.005 * (link.packets - self.last)
        self.probability = min(1.0, max(0.0, self.probability))
        self.last = link.packets
        return link.now + TICK
'''
)


def dequeuing(body: str, fields: str = "x: int = 0") -> str:
    """Returns a class `Mine` whose `dequeue` has this body."""
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"import math\n{HEAD}class Mine(Discipline):\n    {fields}\n\n"
        f"    def dequeue(self, packet: Packet, link: Link) -> int:\n{indented}\n"
    )
