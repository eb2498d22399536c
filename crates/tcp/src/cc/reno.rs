//! Reno: double the window each RTT up to ssthresh, then one segment an RTT; half of it at each signal of congestion.
//!
//! Source: RFC 5681 §3.1, with RFC 3465's counting of what was acknowledged rather than of ACKs. Under the profile `ns2`
//! ACKs are counted, as ns-2's agents do, so that delayed ACKs halve the growth, and the window that is halved is the one in
//! force (the least of cwnd and `window_`).
//! Deviations: in slow start an ACK may add all it acknowledged (Linux), not at most two segments (RFC 3465's L = 2).

use super::{Ack, Congestion, CongestionControl, Signal};
use crate::TcpParams;

/// State of RFC 5681.
pub struct Reno {
    cwnd: f64,
    ssthresh: f64,
    packet_counted: bool,
    max_window: f64,
}

impl Reno {
    /// At the initial window, in slow start.
    pub fn new(params: &TcpParams) -> Reno {
        Reno {
            cwnd: f64::from(params.initial_window),
            ssthresh: params.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            packet_counted: params.packet_counted,
            max_window: params.max_window.map_or(f64::INFINITY, f64::from),
        }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if self.packet_counted {
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            return;
        }
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = f64::from(ack.acked);
        if self.cwnd < self.ssthresh {
            // Slow start up to ssthresh; what is left of the ACK counts as avoidance.
            let grown = (self.cwnd + acked).min(self.ssthresh);
            acked -= grown - self.cwnd;
            self.cwnd = grown;
        }
        self.cwnd += acked / self.cwnd;
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.ssthresh = (self.cwnd.min(self.max_window) / 2.0).max(2.0);
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }
}
