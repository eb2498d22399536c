//! TCP endpoints: a sender and a receiver that are handed segments and the time, and hand back
//! segments.
//!
//! Sequence numbers count segments of one MSS, not bytes: a bulk flow's segments are all alike, and
//! the last one of a transfer is short. cwnd and ssthresh are in segments inside, with fractions,
//! and in bytes to the outside. Neither endpoint knows a queue, a link or the simulator: no I/O, no
//! clock, no global.
//!
//! Drive a `Sender` so: `poll` until it gives `None`, once at the start, after each `on_ack` and
//! after each `on_deadline`; call `on_deadline` when `deadline` is reached. A `Receiver` answers in
//! `on_segment`, or in `on_deadline` when it has waited. docs/tcp.md goes through every parameter
//! and says what is absent.

mod cc;
pub mod congestion;
pub mod params;
mod rack;
mod reassembly;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod sent;
mod timer;
mod undo;
mod window;
mod writer;

pub use cc::{Ack, Congestion, CongestionControl, Signal};
pub use congestion::CongestionKind;
pub use params::TcpParams;
pub use receiver::Receiver;
pub use sender::{Acked, Sender, SenderStats};

use units::{Span, Time};

/// A data segment on its way from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the segment in the stream: segment n carries bytes n*mss .. n*mss+len.
    pub seq: u32,
    /// Payload bytes: mss, or less for the last segment of a transfer.
    pub len: u32,
    /// The sender's clock when it was sent (the timestamp option, RFC 7323, in ns).
    pub stamp: Time,
    /// Sent before.
    pub retransmit: bool,
    /// Congestion window reduced (RFC 3168 §6.1.2); of a SYN: ECN is asked for (§6.1.1).
    pub cwr: bool,
    /// Goes out as ECN-capable transport (retransmissions don't, RFC 3168 §6.1.5).
    pub ect: bool,
    /// Opens the connection: no data. Neither SYN nor data is the ACK that ends the handshake.
    pub syn: bool,
    /// Pushed (RFC 9293 §3.9.1.2): the application had written no more.
    pub push: bool,
    /// The `stamp` of the last ACK that the sender heard; the first segments answer none.
    pub echo: Option<Millis>,
}

/// A clock in ms that begins anew after 65.536 s: a receiver's timestamps, which tell it the RTT
/// and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Millis(pub u16);

impl Millis {
    /// What the clock shows at `now`.
    #[inline]
    pub fn at(now: Time) -> Millis {
        Millis((now.0 / 1_000_000) as u16)
    }

    /// How long ago it showed `earlier`, if that is less than a turn.
    #[inline]
    pub fn since(self, earlier: Millis) -> Span {
        Span::from_millis(self.0.wrapping_sub(earlier.0).into())
    }
}

/// The most SACK blocks an acknowledgement carries: three beside a timestamp option (RFC 2018 §3),
/// four without.
pub const MAX_SACK_BLOCKS: usize = 4;

/// An acknowledgement on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSegment {
    /// The next segment expected: all before it have arrived.
    pub ack: u32,
    /// The `stamp` echoed (RFC 7323 §4.3); `Time::NEVER` where there is none to echo.
    pub echo: Time,
    /// Receive window in bytes from `ack` on, a multiple of the window scale (RFC 7323 §2). Less
    /// than a segment lets one out.
    pub window: u64,
    /// Half-open ranges of segments held beyond `ack`, most recent first (RFC 2018 §4). If the
    /// first lies below `ack` or within the second it tells of a duplicate (RFC 2883).
    pub sacks: [(u32, u32); MAX_SACK_BLOCKS],
    /// How many of `sacks` are filled.
    pub sack_count: u8,
    /// ECN echo; of a SYN's answer: ECN is agreed on.
    pub ece: bool,
    /// How long the newest segment it answers was under way, by the two clocks (RFC 6817 §2.3); for
    /// LEDBAT only.
    pub one_way: Option<Span>,
    /// Answers a SYN.
    pub syn: bool,
    /// The receiver's clock when it was sent; 0 where the receiver doesn't want to hear of it
    /// again.
    pub stamp: Millis,
}
