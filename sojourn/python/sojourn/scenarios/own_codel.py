"""CoDel as a user-defined discipline. As in Linux, its clock ticks every 1024 ns, and its square
root has 16 bits. docs/own.md explains it line by line."""

from sojourn.own import DROP, MARK, MS, PASS, Discipline, Link, Packet


class CoDel(Discipline):
    bypass = True
    target: int = 5 * MS
    interval: int = 100 * MS
    ecn: bool = False
    first_above: int = 0
    drop_next: int = 0
    count: int = 0
    last_count: int = 0
    inv_sqrt: int = 0
    dropping: bool = False
    entering: bool = False
    again: bool = False

    def dequeue(self, packet: Packet, link: Link) -> int:
        now = link.now >> 10
        late = self.is_late(now - (packet.enqueued >> 10), now, link)
        if self.entering:  # the packet behind the first one dropped
            self.entering = False
            return PASS
        if self.again:  # the packet behind another one dropped
            self.again = False
            self.drop_next = self.control_law(self.drop_next) if late else self.drop_next
        if not late:
            self.dropping = False
        elif not self.dropping:
            self.entering = not (self.ecn and packet.ecn)
            self.dropping = True
            soon = self.drop_next > 0 and now < self.drop_next + 16 * (self.interval >> 10)
            resumed = soon and self.count - self.last_count > 1
            self.count = self.count - self.last_count if resumed else 1
            self.inv_sqrt = self.improved() if resumed else 0xFFFF
            self.last_count = self.count
            self.drop_next = self.control_law(now)
            return DROP if self.entering else MARK
        elif now >= self.drop_next:
            self.count += 1
            self.inv_sqrt = self.improved()
            if self.ecn and packet.ecn:
                self.drop_next = self.control_law(self.drop_next)
                return MARK
            self.again = True
            return DROP
        return PASS

    def is_late(self, sojourn: int, now: int, link: Link) -> bool:
        if sojourn < self.target >> 10 or link.bytes <= link.mtu:
            self.first_above = 0
        elif self.first_above == 0:
            self.first_above = now + (self.interval >> 10)
        return self.first_above > 0 and now > self.first_above

    def control_law(self, t: int) -> int:
        return t + ((self.interval >> 10) * self.inv_sqrt >> 16)

    def improved(self) -> int:
        x = self.inv_sqrt
        return x * ((3 << 32) - self.count * x * x >> 2) >> 31

    def idle(self, link: Link) -> None:
        self.dropping = False
        self.entering = False
        self.again = False
        self.first_above = 0
