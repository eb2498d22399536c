//! TCP endpoints: a sender and a receiver. They take segments and the time, and return segments.
//!
//! Sequence numbers count segments of one MSS, not bytes. All segments of a bulk flow are alike,
//! and only the last segment of a transfer is short. Internally cwnd and ssthresh are in segments
//! with fractions; in the public functions they are in bytes. Neither endpoint knows a queue, a
//! link or the simulator: no I/O, no clock, no global.
//!
//! To drive a `Sender`, call `poll` until it returns `None`: at the start, after each `on_ack`, and
//! after each `on_deadline`. Call `on_deadline` when `deadline` is reached. A `Receiver` answers in
//! `on_segment`, or in `on_deadline` when its ACK was delayed. Every parameter, and what is absent,
//! is described in docs/tcp.md.
//!
//! # Examples
//!
//! A transfer of 100 000 bytes over a path with 10 ms in each direction:
//!
//! ```rust
//! use tcp::{Receiver, Sender, TcpParams};
//! use units::{Span, Time};
//!
//! let params = &TcpParams::LINUX;
//! let mut sender = Sender::new(params, Some(100_000));
//! let mut receiver = Receiver::new(params);
//! let (mut now, mut complete) = (Time::ZERO, false);
//! for _round_trip in 0..20 {
//!     let segments: Vec<_> = std::iter::from_fn(|| sender.poll(now)).collect();
//!     now = now + Span::from_millis(10);
//!     let mut acks: Vec<_> = segments.iter().filter_map(|s| receiver.on_segment(s, now)).collect();
//!     acks.extend(receiver.on_deadline(now));
//!     now = now + Span::from_millis(10);
//!     for ack in acks {
//!         complete |= sender.on_ack(&ack, now).complete;
//!     }
//! }
//! assert!(complete && receiver.delivered_bytes() == 100_000);
//! ```

mod cc;
pub mod congestion;
mod endpoint;
pub mod own;
pub mod params;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod timer;
mod undo;
mod writer;
mod xmit;

pub use cc::{Ack, Congestion, CongestionControl, Signal};
pub use congestion::CongestionKind;
pub use endpoint::{Endpoint, Outgoing};
pub use params::TcpParams;
pub use rate::{LostSegment, RateSample, Repair, Sample, Totals};
pub use receiver::Receiver;
pub use rtt::Srtt;
pub use sender::{Acked, Sender, SenderStats};

use units::{Ecn, Span, Time};

/// A data segment on its way from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the segment in the stream. Segment n carries bytes n*mss .. n*mss+len, unless an
    /// earlier segment was shorter than the MSS (`Sender::first_byte`).
    pub seq: u32,
    /// Payload bytes: the MSS, or less for the last segment of a transfer and where the congestion
    /// control makes segments shorter.
    pub len: u32,
    /// TSval, the sender's clock when the segment was sent, ns (RFC 7323 §3).
    pub stamp: Time,
    /// This is a retransmission.
    pub retransmit: bool,
    /// CWR, congestion window reduced (RFC 3168 §6.1.2). On a SYN it asks for ECN (§6.1.1).
    pub cwr: bool,
    /// The field ACE (RFC 9768 §3.1) of a handshake's segments with AccECN. 7 asks for AccECN; the
    /// last ACK reflects the SYN-ACK's ECN field.
    pub ace: u8,
    /// The ECN field of the IP header. For a receiver it is the field on arrival.
    pub ecn: Ecn,
    /// A SYN, without data. A segment with neither SYN nor data is the last ACK of the handshake.
    pub syn: bool,
    /// PSH (RFC 9293 §3.9.1.2): the application has written no more.
    pub push: bool,
    /// TSecr, the `stamp` of the last ACK that the sender received; `None` before the first.
    pub echo: Option<Millis>,
}

/// A timestamp clock in ms that wraps after 65.536 s. Receivers use it only to measure the RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Millis(pub u16);

impl Millis {
    /// The clock at `now`.
    #[inline]
    pub fn at(now: Time) -> Millis {
        Millis((now.0 / 1_000_000) as u16)
    }

    /// The time since `earlier`, modulo 65.536 s.
    #[inline]
    pub fn since(self, earlier: Millis) -> Span {
        Span::from_millis(self.0.wrapping_sub(earlier.0).into())
    }
}

/// The option of AccECN: counters of the bytes that arrived with ECT(1), CE and ECT(0), modulo
/// 2^24, with the counters' initial offsets (order 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcnOption {
    /// EE1B, ECEB, EE0B.
    pub bytes: [u32; 3],
    /// The number of counters that the option contains.
    pub fields: u8,
    /// The option's length with padding, bytes.
    pub size: u8,
}

/// A count of CE marks: those that a receiver counted, or those that feedback has reported to a
/// sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeCount {
    /// Segments, modulo 2^32. With AccECN pure ACKs count too.
    pub segments: u32,
    /// Payload bytes, modulo 2^32. Only AccECN counts them.
    pub bytes: u32,
}

impl AckSegment {
    /// ECE, the lowest bit.
    #[inline]
    pub fn ece(&self) -> bool {
        self.ace & 1 != 0
    }
}

/// The most SACK blocks in an acknowledgement: three with a timestamp option (RFC 2018 §3), four
/// without.
pub const MAX_SACK_BLOCKS: usize = 4;

/// An acknowledgement on its way from receiver to sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSegment {
    /// RCV.NXT: all segments before it have arrived.
    pub ack: u32,
    /// TSecr, the `stamp` echoed (RFC 7323 §4.3); `Time::NEVER` if there is none.
    pub echo: Time,
    /// Receive window in bytes from `ack` on, a multiple of the window scale (RFC 7323 §2). A
    /// window of less than a segment allows one.
    pub window: u64,
    /// SACK blocks: half-open ranges of segments beyond `ack`, most recent first (RFC 2018 §4). A
    /// first block below `ack` or within the second is a DSACK (RFC 2883).
    pub sacks: [(u32, u32); MAX_SACK_BLOCKS],
    /// The number of valid entries in `sacks`.
    pub sack_count: u8,
    /// The flags AE, CWR and ECE as a number. With RFC 3168 it is ECE alone: the ECN echo (§6.1.3),
    /// or on a SYN-ACK the agreement to use ECN. With AccECN it is the field ACE (RFC 9768 §3.2.2).
    pub ace: u8,
    /// The option of AccECN (RFC 9768 §3.2.3).
    pub accecn: Option<AccEcnOption>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// One-way delay of the newest segment that the ACK answers, by the two hosts' clocks (RFC 6817
    /// §2.3). For LEDBAT only.
    pub one_way: Option<Span>,
    /// This is a SYN-ACK.
    pub syn: bool,
    /// TSval, the receiver's clock when the ACK was sent; 0 if the receiver needs no echo of it.
    pub stamp: Millis,
}
