//! Congestion control: how much may be in flight.
//!
//! The sender tells it what each ACK brought and when congestion was signalled; it answers with
//! cwnd and ssthresh. How cwnd comes down during recovery (PRR, window inflation) is the sender's
//! business, the same for all of them. Windows are in segments here, with fractions; the public
//! face of the sender gives bytes.

mod cubic;
mod ledbat;
mod reno;
mod vegas;

pub use cubic::Cubic;
pub use ledbat::Ledbat;
pub use reno::Reno;
pub use vegas::Vegas;

use crate::{CongestionKind, TcpParams};
use units::{Span, Time};

/// What an ACK of new data tells.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Now.
    pub now: Time,
    /// Segments it newly acknowledged: cumulatively or by SACK, none twice.
    pub acked: u32,
    /// The RTT it measured, if it did.
    pub rtt: Option<Span>,
    /// How long the newest segment it answers was under way one way, where the receiver tells.
    pub one_way: Option<Span>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Option<Span>,
    /// The least RTT of the connection.
    pub min_rtt: Option<Span>,
    /// The first segment not acknowledged, after this ACK.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub nxt: u32,
    /// The window, not the application or the receiver, held the sender back: only then may it grow
    /// (RFC 7661).
    pub cwnd_limited: bool,
    /// No congestion is being dealt with, and no segment is SACKed beyond a gap (Linux:
    /// TCP_CA_Open).
    pub orderly: bool,
}

/// How congestion was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// ECN echo.
    Ecn,
    /// Fast retransmit.
    Loss,
    /// Retransmission timeout.
    Timeout,
}

/// A congestion signal, at most one a window of data.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Now.
    pub now: Time,
    /// How it was signalled.
    pub signal: Signal,
    /// Segments outstanding.
    pub inflight: u32,
}

/// A congestion control algorithm.
pub trait CongestionControl {
    /// An ACK of new data outside recovery: the window may grow.
    fn on_ack(&mut self, ack: &Ack);

    /// Congestion: sets ssthresh, and cwnd to 1 on a timeout. In fast recovery the sender brings
    /// cwnd to ssthresh.
    fn on_congestion(&mut self, event: &Congestion);

    /// An ACK, in a recovery too, tells of segments of which the last left at `sent`, and once: the
    /// last that it SACKs, or else acknowledges. Told before `on_ack`.
    fn on_arrival(&mut self, _sent: Time, _now: Time) {}

    /// A segment is about to leave and nothing is in flight: at the start, after a pause, and when
    /// a timeout has given up all that was. `nxt`: the next segment to be sent for the first time.
    fn on_start(&mut self, _nxt: u32) {}

    /// The window, segments.
    fn cwnd(&self) -> f64;

    /// Sets the window: the sender in recovery and at its end.
    fn set_cwnd(&mut self, cwnd: f64);

    /// The slow-start threshold, segments; infinite at first.
    fn ssthresh(&self) -> f64;

    /// Sets the threshold: the sender, when it gives back what it took for nothing. What else a
    /// reduction changed stays.
    fn set_ssthresh(&mut self, ssthresh: f64);

    /// Pacing rate over cwnd/srtt: as Linux, twice in slow start, 1.2 times after, and already in
    /// the last round trip of slow start, which would otherwise overshoot.
    fn pacing_gain(&self) -> f64 {
        if self.cwnd() < self.ssthresh() / 2.0 { 2.0 } else { 1.2 }
    }
}

/// Growth of whole segments: what is acknowledged is saved until it has earned one (Linux).
#[derive(Clone, Copy, Default)]
struct Credit(u32);

impl Credit {
    /// Takes in what was acknowledged; gives the segments of growth that it pays for at this price.
    #[inline]
    fn earn(&mut self, acked: u32, price: u32) -> u32 {
        // Where growth has become cheaper than what was saved for it, that buys one segment and not
        // several.
        let cheaper = self.0 >= price;
        let saved = if cheaper { acked } else { self.0 + acked };
        self.0 = saved % price;
        saved / price + u32::from(cheaper)
    }
}

/// RFC 5681's window in whole segments, after so many were acknowledged: slow start up to ssthresh,
/// avoidance with what is left of them.
#[inline]
fn grown(cwnd: f64, ssthresh: f64, acked: u32, credit: &mut Credit) -> f64 {
    let (mut cwnd, mut left) = (cwnd, acked);
    if cwnd < ssthresh {
        let grown = (cwnd + f64::from(left)).min(ssthresh);
        left -= (grown - cwnd) as u32;
        cwnd = grown;
    }
    if left > 0 {
        cwnd += f64::from(credit.earn(left, cwnd as u32));
    }
    cwnd
}

/// Declares each congestion control's state, and how it is made.
macro_rules! controls {
    ($($(#[$doc:meta])* $Kind:ident($State:ty): $make:expr;)*) => {
        /// A congestion control, dispatched by a branch.
        pub enum Control {
            $($(#[$doc])* $Kind($State),)*
        }

        impl Control {
            /// The congestion control of `params.congestion`.
            pub fn new(params: &TcpParams) -> Control {
                match params.congestion {
                    $(CongestionKind::$Kind => Control::$Kind(($make)(params)),)*
                }
            }
        }

        macro_rules! each {
            ($self:expr, $c:ident => $body:expr) => {
                match $self {
                    $(Control::$Kind($c) => $body,)*
                }
            };
        }
    };
}

controls! {
    /// See `Reno`.
    Reno(Reno): Reno::new;
    /// See `Cubic`.
    Cubic(Cubic): Cubic::new;
    /// See `Vegas`.
    Vegas(Vegas): Vegas::new;
    /// See `Ledbat`. Its delay histories are large, so they are on the heap and `Control` stays
    /// small.
    Ledbat(Box<Ledbat>): |params| Box::new(Ledbat::new(params));
}

impl CongestionControl for Control {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        each!(self, c => c.on_ack(ack))
    }

    #[inline]
    fn on_arrival(&mut self, sent: Time, now: Time) {
        each!(self, c => c.on_arrival(sent, now))
    }

    fn on_start(&mut self, nxt: u32) {
        each!(self, c => c.on_start(nxt))
    }

    fn on_congestion(&mut self, event: &Congestion) {
        each!(self, c => c.on_congestion(event))
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        each!(self, c => c.cwnd())
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        each!(self, c => c.set_cwnd(cwnd))
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        each!(self, c => c.ssthresh())
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        each!(self, c => c.set_ssthresh(ssthresh))
    }

    #[inline]
    fn pacing_gain(&self) -> f64 {
        each!(self, c => c.pacing_gain())
    }
}

#[cfg(test)]
#[path = "../../tests/common/linux.rs"]
mod linux;

/// Parameters for the tests of this crate.
#[cfg(test)]
pub(crate) mod test {
    use crate::TcpParams;

    /// A Linux host that acknowledges every second segment from the first on.
    pub fn params() -> TcpParams {
        super::linux::linux().with(|p| {
            p.timers.max_rto_ns = 60_000_000_000;
            p.acks.quick_acks = 0;
            p.buffers.receive_buffer = 1 << 20;
            p.buffers.receive_buffer_max = 1 << 20;
        })
    }
}
