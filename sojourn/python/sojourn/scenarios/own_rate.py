"""A user-defined congestion control that paces at the rate at which its segments were delivered, as
BBR does (Cardwell and others 2016). It keeps one bandwidth-delay product in flight, and probes now
and then whether the path has become faster. docs/own.md explains the methods."""

from sojourn.own import CongestionControl, Delivery, S

CYCLE = 8
ROUNDS = 10


class Rate(CongestionControl):
    pacing_rate: int = 0
    startup: float = 2.885  # 2/ln 2: doubles the rate in each round trip
    probe: float = 1.25
    window: float = 2.0  # products of bandwidth and RTT
    fastest: list[int] = [0] * ROUNDS  # bit/s, of each of the last rounds
    least: int = 0
    least_at: int = 0
    rounds: int = 0
    next_round: int = 0
    full: int = 0
    full_rounds: int = 0

    def on_delivery(self, delivery: Delivery) -> None:
        if delivery.rtt > 0 and (
            self.least == 0 or delivery.rtt <= self.least or delivery.now - self.least_at > 10 * S
        ):
            self.least = delivery.rtt
            self.least_at = delivery.now
        if delivery.interval == 0 or self.least == 0:
            return
        before = self.rate()
        if delivery.prior_delivered >= self.next_round:  # a round trip is over
            self.next_round = delivery.total_delivered
            self.rounds += 1
            self.fastest[self.rounds % ROUNDS] = 0
            self.look(before, delivery.app_limited)
        at = self.rounds % ROUNDS
        if delivery.app_limited == 0 or delivery.rate > before:
            self.fastest[at] = max(self.fastest[at], delivery.rate)
        product = self.rate() / 8 * (self.least / S) / delivery.mss
        draining = self.full_rounds == 3 and delivery.inflight > product
        if self.full_rounds == 3 and not draining:
            self.full_rounds = 4
        self.pacing_rate = max(1, int(self.gain(draining) * self.rate()))
        target = max(4.0, self.window * product + 3)
        if self.full_rounds < 3:
            self.cwnd = max(self.cwnd, min(self.cwnd + delivery.acked, self.startup * product + 3))
        else:
            self.cwnd = min(self.cwnd + delivery.acked, target)

    def rate(self) -> int:
        """The path's: the fastest of the last rounds."""
        most = 0
        for at in range(ROUNDS):
            most = max(most, self.fastest[at])
        return most

    def look(self, rate: int, limited: int) -> None:
        """Three rounds without a quarter more: the path is full."""
        if self.full_rounds >= 3 or limited:
            return
        if rate * 4 >= self.full * 5:
            self.full = rate
            self.full_rounds = 0
        else:
            self.full_rounds += 1

    def gain(self, draining: bool) -> float:
        if self.full_rounds < 3:
            return self.startup
        if draining:
            return 1 / self.startup
        phase = self.rounds % CYCLE
        if phase == 0:
            return self.probe
        return 2 - self.probe if phase == 1 else 1.0
