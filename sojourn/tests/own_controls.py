"""User-written congestion controls, as texts, for the tests of `sojourn.own`."""

HEAD = "import math\nfrom sojourn.own import MS, S, Ack, Congestion, CongestionControl\n\n\n"

CUBIC = (
    HEAD
    + '''
JIFFY = 4 * MS


class Cubic(CongestionControl):
    """CUBIC as the simulator has it (crates/tcp/src/cc/cubic.rs), without HyStart."""

    counted: int = 0
    w_max: int = 0
    begun: bool = False
    start: int = 0
    origin: int = 0
    k: int = 0
    w_est: int = 0
    ack_cnt: int = 0
    last_time: int = 0
    last_cwnd: int = 0
    cnt: int = 0
    delay_min: int = 0

    def on_ack(self, ack: Ack) -> None:
        if ack.rtt > 0 and not (self.begun and ack.now - self.start < S):
            self.delay_min = ack.rtt if self.delay_min == 0 else min(self.delay_min, ack.rtt)
        if not ack.cwnd_limited:
            return
        acked = ack.acked
        if self.cwnd < self.ssthresh:
            grown = min(self.cwnd + acked, self.ssthresh)
            acked -= int(grown - self.cwnd)
            self.cwnd = grown
            if acked == 0:
                return
        self.update(acked, ack)
        # tcp_cong_avoid_ai
        if self.counted >= self.cnt:
            self.cwnd += 1
            self.counted = 0
        self.counted += acked
        self.cwnd += self.counted // self.cnt
        self.counted %= self.cnt

    def update(self, acked: int, ack: Ack) -> None:
        cwnd = int(self.cwnd)
        begun = self.begun
        if not begun:
            self.begun = True
            self.start = ack.now
            self.origin = max(self.w_max, cwnd)
            self.k = self.root(self.origin - cwnd)
            self.w_est = cwnd
            self.ack_cnt = 0
            self.last_time = 0
            self.last_cwnd = cwnd
            self.cnt = 2
        self.ack_cnt += acked
        now = ack.now // JIFFY
        if begun and now - self.last_time <= 7 and cwnd == self.last_cwnd:
            return
        if not begun or now != self.last_time:
            self.last_time = now
            self.last_cwnd = cwnd
            ahead = -(-self.delay_min // JIFFY)
            t = (now - self.start // JIFFY + ahead) * JIFFY * 1024 // S
            offset = abs(t - self.k)
            delta = 410 * offset * offset * offset >> 40
            target = self.origin + delta
            if t < self.k:
                target = max(0, self.origin - delta)
            self.cnt = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
            if self.w_max == 0:
                self.cnt = min(self.cnt, 20)
        delta = max(1, cwnd * 15 // 8)
        grown = max(0, self.ack_cnt - 1) // delta
        self.ack_cnt -= grown * delta
        self.w_est += grown
        if self.w_est > cwnd:
            self.cnt = min(self.cnt, cwnd // (self.w_est - cwnd))
        self.cnt = max(self.cnt, 2)

    def root(self, distance: int) -> int:
        """K: the cube root by one step of Newton's from a guess of the leading bits."""
        if distance == 0:
            return 0
        a = (1 << 40) // 410 * distance
        bits = 0
        while a >> (bits + 1) > 0:
            bits += 1
        octaves = bits // 3 - 1
        x = (self.guess(a >> (3 * octaves)) << octaves) // 64
        return (2 * x + a // (x * (x - 1))) * 341 // 1024

    def guess(self, m: int) -> int:
        root = m ** (1 / 3)
        root -= (root * root * root - m) / (3 * root * root)
        curve = int(65.4 * root + 3.8)
        if m == 15 or m == 60:
            return curve + 1
        low = m == 8 or m == 11 or m == 16 or m == 18 or 20 <= m <= 22 or m == 24
        if low or 32 <= m <= 35 or m == 45 or m == 46 or m == 49:
            return curve - 1
        return curve

    def on_loss(self, event: Congestion) -> None:
        cwnd = int(self.cwnd)
        self.w_max = cwnd * (1024 + 717) // 2048 if cwnd < self.w_max else cwnd
        self.ssthresh = max(2, cwnd * 717 // 1024)
        self.begun = False
        self.counted = 0

    def on_timeout(self, event: Congestion) -> None:
        self.on_loss(event)
        self.w_max = 0
        self.delay_min = 0
'''
)

RANDOM = (
    HEAD
    + '''
class Random(CongestionControl):
    """Sets whatever it may, at random."""

    pacing_rate: int = 0

    def on_ack(self, ack: Ack) -> None:
        self.cwnd = 1 + 200 * self.random() ** 4
        self.ssthresh = 1 + 100 * self.random() if self.random() < 0.9 else math.inf
        self.pacing_rate = int(1e5 + 1e8 * self.random() ** 3) if self.random() < 0.5 else 0

    def on_loss(self, event: Congestion) -> None:
        self.ssthresh = 1 + 100 * self.random()
'''
)

RANDOM_RATES = RANDOM.replace("Ack, ", "Ack, Delivery, ").replace(
    "def on_ack(self, ack: Ack)", "def on_delivery(self, delivery: Delivery)"
)

DELIVERIES = (
    HEAD.replace("Ack, ", "Delivery, ")
    + '''
class Deliveries(CongestionControl):
    """A window that stays, and what a sample says is checked."""

    window: int = 10
    slowest: int = 0
    before: int = 0

    def on_delivery(self, delivery: Delivery) -> None:
        self.cwnd = float(self.window)
        assert delivery.total_delivered >= self.before + delivery.acked
        self.before = delivery.total_delivered
        assert delivery.repair == 0 and delivery.losses == 0
        assert delivery.inflight <= self.window
        assert delivery.prior_inflight >= delivery.inflight
        if delivery.interval == 0:
            return
        assert delivery.rtt > 40 * MS
        assert delivery.delivered == delivery.total_delivered - delivery.prior_delivered
        assert delivery.delivered <= self.window + 1
        assert delivery.rate == delivery.delivered * delivery.mss * 8 * S // delivery.interval
        assert delivery.rate <= 10000000
        if delivery.now > 2 * S:
            assert delivery.app_limited == 0 and delivery.cwnd_limited == 1
            if delivery.rate < self.slowest:
                raise ValueError("too slow")
'''
)


def acking(body: str, fields: str = "x: int = 0") -> str:
    """Returns a class `Mine` whose `on_ack` has this body."""
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"{HEAD}class Mine(CongestionControl):\n    {fields}\n\n"
        f"    def on_ack(self, ack: Ack) -> None:\n{indented}\n"
    )
