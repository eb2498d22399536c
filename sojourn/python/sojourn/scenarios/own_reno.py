"""Reno as a user-defined congestion control: RFC 5681 in whole segments, as in Linux. docs/own.md
explains the methods."""

import math

from sojourn.own import Ack, Congestion, CongestionControl


class Reno(CongestionControl):
    beta: float = 0.5
    counted: int = 0

    def on_ack(self, ack: Ack) -> None:
        if not ack.cwnd_limited:
            return
        left = ack.acked
        if self.cwnd < self.ssthresh:  # slow start
            grown = min(self.cwnd + left, self.ssthresh)
            left -= int(grown - self.cwnd)
            self.cwnd = grown
        if left > 0:  # congestion avoidance: a segment more once a window is acknowledged
            window = int(self.cwnd)
            if self.counted >= window:
                self.cwnd += 1
                self.counted = 0
            self.counted += left
            self.cwnd += self.counted // window
            self.counted %= window

    def on_loss(self, event: Congestion) -> None:
        self.ssthresh = max(2, math.floor(self.cwnd * self.beta))
        self.counted = 0
