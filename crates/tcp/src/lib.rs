//! TCP endpoints: a sender and a receiver that are handed segments and the time, and hand back segments.
//!
//! Sequence numbers count segments of one MSS, not bytes: a bulk flow's segments are all alike, and the last one of a
//! transfer is short. cwnd and ssthresh are in segments inside, with fractions, and in bytes to the outside.
//! Neither endpoint knows a queue, a link or the simulator: no I/O, no clock, no global.
//!
//! Drive a `Sender` so: `poll` until it gives `None`, once at the start, after each `on_ack` and after each `on_deadline`; call
//! `on_deadline` when `deadline` is reached. A `Receiver` answers in `on_segment`, or in `on_deadline` when it has waited.
//! docs/tcp.md goes through every parameter and says what is absent.

mod cc;
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

pub use cc::records as congestion;
pub use cc::{Ack, Congestion, CongestionControl, CongestionKind, Signal};
pub use receiver::Receiver;
pub use sender::{Acked, Sender, SenderStats};

use serde::{Deserialize, Serialize};
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

/// A clock in ms that begins anew after 65.536 s: a receiver's timestamps, which tell it the RTT and nothing else.
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

/// The most SACK blocks an acknowledgement carries: three beside a timestamp option (RFC 2018 §3), four without.
pub const MAX_SACK_BLOCKS: usize = 4;

/// An acknowledgement on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSegment {
    /// The next segment expected: all before it have arrived.
    pub ack: u32,
    /// The `stamp` echoed (RFC 7323 §4.3); `Time::NEVER` where there is none to echo.
    pub echo: Time,
    /// Receive window in bytes from `ack` on, a multiple of the window scale (RFC 7323 §2). Less than a segment lets one out.
    pub window: u64,
    /// Half-open ranges of segments held beyond `ack`, most recent first (RFC 2018 §4). If the first lies below `ack` or
    /// within the second it tells of a duplicate (RFC 2883).
    pub sacks: [(u32, u32); MAX_SACK_BLOCKS],
    /// How many of `sacks` are filled.
    pub sack_count: u8,
    /// ECN echo; of a SYN's answer: ECN is agreed on.
    pub ece: bool,
    /// How long the newest segment it answers was under way, by the two clocks (RFC 6817 §2.3); for LEDBAT only.
    pub one_way: Option<Span>,
    /// Answers a SYN.
    pub syn: bool,
    /// The receiver's clock when it was sent; 0 where the receiver doesn't want to hear of it again.
    pub stamp: Millis,
}

/// Everything an endpoint pair can be set to. A profile (`linux`, `ns2`) is a full set of these.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TcpParams {
    /// The congestion control.
    pub congestion: CongestionKind,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// IP and TCP header bytes of a data segment, options included (52 with timestamps, 40 without).
    pub header_bytes: u32,
    /// IP bytes of an acknowledgement without SACK blocks (the same as `header_bytes` in practice).
    pub ack_bytes: u32,
    /// Selective acknowledgements with RFC 6675 recovery; without them NewReno (RFC 6582).
    pub sack: bool,
    /// Proportional rate reduction (RFC 6937, Linux's variant) in a SACK recovery and after an ECN echo; without it cwnd is
    /// set to ssthresh at once.
    pub prr: bool,
    /// The receiver reports duplicates in the first SACK block (RFC 2883).
    pub dsack: bool,
    /// A reduction that stamps or DSACKs prove needless is undone (RFC 4015, RFC 3708).
    pub undo: bool,
    /// F-RTO: after a timeout new data leaves first, to see whether the timeout was spurious (RFC 5682). Undoes it if so.
    pub frto: bool,
    /// With SACK, losses are found by when segments left (RFC 8985), those of copies too; otherwise by how many are SACKed above
    /// (RFC 6675). Not with `packet_counted`.
    pub rack: bool,
    /// With SACK, a probe after two RTTs without an answer, so that a lost tail need not wait for the timer (RFC 8985 §7).
    /// Not with `packet_counted`.
    pub tlp: bool,
    /// Limited transmit: the first two duplicate ACKs let out a new segment each (RFC 3042).
    pub limited_transmit: bool,
    /// Timestamps: every ACK of new data gives an RTT sample, sent twice or not; otherwise one segment at a time is timed.
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Initial ssthresh in segments; `None` is unlimited.
    pub initial_ssthresh: Option<u32>,
    /// An upper bound on the window in segments (ns-2's `window_`); `None` is no bound but the receiver's.
    pub max_window: Option<u32>,
    /// As ns-2's agents: cwnd grows by 1 or 1/cwnd an ACK, however much that acknowledges and whether or not cwnd is the
    /// limit; what is halved is the least of cwnd and `max_window`, at every timeout; NewReno's full ACK leaves ssthresh; with
    /// SACK, Sack1's count of what is in flight, and a timeout forgets SACKs. Otherwise segments acknowledged count (RFC 3465), and a window that is not used doesn't grow.
    pub packet_counted: bool,
    /// Space segments at the pacing rate instead of sending on the ACK clock: 2 × cwnd/srtt below half of ssthresh, 1.2 ×
    /// above (Linux).
    pub pacing: bool,
    /// HyStart in slow start (cubic only).
    pub hystart: bool,
    /// Vegas: the window grows while fewer segments than this are queued.
    pub vegas_alpha: u32,
    /// Vegas: the window shrinks while more segments than this are queued.
    pub vegas_beta: u32,
    /// Vegas: slow start ends with more segments queued than this.
    pub vegas_gamma: u32,
    /// LEDBAT's TARGET: the queueing delay it aims at, ns. RFC 6817: at most 100 ms.
    pub ledbat_target_ns: u64,
    /// LEDBAT's GAIN: segments a round trip that the window grows by where nothing is queued. RFC 6817: at most 1.
    pub ledbat_gain: f64,
    /// The connection begins with a handshake of three; without one it is open at once.
    pub handshake: bool,
    /// RTO before the first sample, ns (RFC 6298 §2.1).
    pub initial_rto_ns: u64,
    /// Lower bound of the RTO, ns.
    pub min_rto_ns: u64,
    /// Upper bound of the RTO, ns.
    pub max_rto_ns: u64,
    /// ns-2's `tcpTick_`, ns: where it is not 1 an RTT sample is the ticks of this clock that began meanwhile, at least one.
    pub tick_ns: u64,
    /// Linux's reading of RFC 6298: the bound applies to the variance term (rto = srtt + max(4·rttvar, min)), not to the sum.
    pub min_rto_on_variance: bool,
    /// Acknowledge every n-th full segment; 1 acknowledges each.
    pub delayed_ack_segments: u32,
    /// How long an acknowledgement is delayed, ns.
    pub delayed_ack_ns: u64,
    /// How long it may be where segments come slowly, ns (Linux's TCP_DELACK_MAX); no more than `delayed_ack_ns`: never longer.
    pub delayed_ack_max_ns: u64,
    /// Acknowledgements sent at once at the start of a flow, after a duplicate and after a pause (Linux's quick ACKs).
    pub quick_acks: u32,
    /// SACKs beyond the third in a row wait for so long at most, and go as one, ns (tcp_comp_sack_delay_ns); 0: each goes at once.
    pub sack_delay_ns: u64,
    /// What the application writes at once, bytes, as soon as the socket takes it (`writer`): the last segment is pushed, and so
    /// acknowledged at once; 0: everything is written from the start.
    pub write_bytes: u32,
    /// The timers' clock, ns: they go off with a tick of it, far ones with every eighth; 1 makes them exact.
    pub timer_tick_ns: u64,
    /// Receive buffer at the start, bytes; the window offered is what fits into its advertisable part.
    pub receive_buffer: u64,
    /// The buffer's upper bound under autotuning, bytes; equal to `receive_buffer` switches autotuning off.
    pub receive_buffer_max: u64,
    /// Part of the receive buffer that may be advertised, as a fraction: how much of what a full segment takes there is data (Linux's scaling_ratio).
    pub receive_window_fraction: f64,
}
