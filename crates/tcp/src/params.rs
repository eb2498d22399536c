//! What a pair of endpoints is set to: parameters in groups, and two profiles.
//!
//! A parameter is a field here, with its value in each profile. The scenario language writes each
//! by its field's name without the unit: `min_rto = "1 s"`. docs/tcp.md has the reasons for the
//! values.
//!
//! Sources: Linux Documentation/networking/ip-sysctl.rst and tcp(7); ns-2.35's ns-default.tcl.
//! Deviations: ns-2's `window_` of 20 segments is not in the profile, since every paper sets its
//! own (`max_window`).

use crate::CongestionKind;
use serde::{Deserialize, Serialize};

/// IP bytes of a full segment.
pub const MTU: u32 = 1500;

/// Everything an endpoint pair can be set to. A profile is a full set of these. Serialised, the
/// groups are one flat table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TcpParams {
    /// The congestion control.
    pub congestion: CongestionKind,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// IP and TCP header bytes of a data segment, options included.
    pub header_bytes: u32,
    /// IP bytes of an acknowledgement without SACK blocks (the same as `header_bytes` in practice).
    pub ack_bytes: u32,
    /// Timestamps (RFC 7323): every ACK of new data gives an RTT sample, sent twice or not;
    /// otherwise one segment at a time is timed.
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// The connection begins with a three-way handshake; without one it is open at once.
    pub handshake: bool,
    /// How losses are found and repaired.
    #[serde(flatten)]
    pub recovery: LossRecovery,
    /// How the window begins and grows.
    #[serde(flatten)]
    pub growth: Growth,
    /// What ns-2's agents do otherwise.
    #[serde(rename = "packet_counted")]
    pub ns2: Ns2Mode,
    /// The sender's timers.
    #[serde(flatten)]
    pub timers: Timers,
    /// When the receiver acknowledges.
    #[serde(flatten)]
    pub acks: Acknowledging,
    /// Both sockets' buffers.
    #[serde(flatten)]
    pub buffers: Buffers,
}

/// How losses are found and repaired, and how a reduction that was needless is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LossRecovery {
    /// Selective acknowledgements with RFC 6675 recovery; without them NewReno (RFC 6582).
    pub sack: bool,
    /// Proportional rate reduction (RFC 6937, Linux's variant) in a SACK recovery and after an ECN
    /// echo; without it cwnd is set to ssthresh at once.
    pub prr: bool,
    /// The receiver reports duplicates in the first SACK block (RFC 2883).
    pub dsack: bool,
    /// A reduction that timestamps or DSACKs prove needless is undone (RFC 4015, RFC 3708).
    pub undo: bool,
    /// F-RTO (RFC 5682): after a timeout new data leaves first, to see whether the timeout was
    /// spurious. If so it is undone.
    pub frto: bool,
    /// With SACK, losses of originals and retransmissions are found by when segments left (RFC
    /// 8985); otherwise by how many segments are SACKed above (RFC 6675). Not with `sack1_pipe`.
    pub rack: bool,
    /// With SACK, a tail loss probe (RFC 8985 §7) after two RTTs without an answer, before the
    /// retransmission timeout. Not with `sack1_pipe`.
    pub tlp: bool,
    /// Limited transmit (RFC 3042): the first two duplicate ACKs let out a new segment each.
    pub limited_transmit: bool,
}

/// How the window begins and grows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Growth {
    /// Initial window in segments.
    pub initial_window: u32,
    /// Initial ssthresh in segments; `None` is unlimited.
    pub initial_ssthresh: Option<u32>,
    /// An upper bound on the window in segments (ns-2's `window_`); `None` is no bound but the
    /// receiver's.
    pub max_window: Option<u32>,
    /// Space segments at the pacing rate instead of sending on the ACK clock: 2 × cwnd/srtt below
    /// half of ssthresh, 1.2 × above (Linux).
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
    /// LEDBAT's GAIN: segments a round trip that the window grows by where nothing is queued. RFC
    /// 6817: at most 1.
    pub ledbat_gain: f64,
}

/// What ns-2.35's agents do otherwise than the RFCs and Linux, each on its own. A scenario's
/// `packet_counted` sets all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ns2Mode {
    /// Reno's cwnd grows by 1 or 1/cwnd for each ACK, however much that acknowledges (opencwnd(),
    /// `windowOption_` 1). Otherwise by what is newly acknowledged (RFC 3465).
    pub growth_per_ack: bool,
    /// Reno's cwnd grows while `window_` or the application is the limit (`control_increase_` 0).
    /// Otherwise a window that is not used does not grow (RFC 7661).
    pub growth_unvalidated: bool,
    /// Half of an odd window has a fraction (`cwnd_` is real). Otherwise it is rounded down
    /// (Linux).
    pub fractional_ssthresh: bool,
    /// ssthresh follows from the cwnd in force at each timeout. Otherwise the same data reduces it
    /// once (RFC 5681 §3.1), and a timeout in a recovery takes cwnd from before that.
    pub reduces_at_each_timeout: bool,
    /// NewReno's full ACK leaves cwnd at ssthresh, burst or not: RFC 6582 §3.2 step 3, option 2
    /// (`exit_recovery_fix_` 0). Otherwise option 1.
    pub newreno_exit_at_ssthresh: bool,
    /// And then cwnd grows by that ACK. Otherwise it does not (RFC 6582 §3.2 step 3).
    pub newreno_full_ack_grows: bool,
    /// With SACK, cwnd does not grow by the ACK that ends a recovery (Sack1). Otherwise it does.
    pub sack_full_ack_stands: bool,
    /// With SACK, what is lost counts as in flight until it is acknowledged, and its retransmission
    /// as well (Sack1's `pipe_`). Otherwise RFC 6675's pipe. RACK and TLP are off.
    pub sack1_pipe: bool,
    /// With SACK, no fast retransmit of what was sent before a timeout (`bugFix_`). Otherwise SACKs
    /// alone decide.
    pub sack_bug_fix: bool,
    /// A timeout forgets what was SACKed (Sack1's ClearScoreBoard(); RFC 2018 §8). Otherwise the
    /// scoreboard stays.
    pub timeout_forgets_sacks: bool,
    /// Vegas is the paper's algorithm. Otherwise Linux's.
    pub vegas_of_paper: bool,
}

impl Ns2Mode {
    /// None of them.
    pub const OFF: Ns2Mode = Ns2Mode {
        growth_per_ack: false,
        growth_unvalidated: false,
        fractional_ssthresh: false,
        reduces_at_each_timeout: false,
        newreno_exit_at_ssthresh: false,
        newreno_full_ack_grows: false,
        sack_full_ack_stands: false,
        sack1_pipe: false,
        sack_bug_fix: false,
        timeout_forgets_sacks: false,
        vegas_of_paper: false,
    };

    /// All of them.
    pub const ON: Ns2Mode = Ns2Mode {
        growth_per_ack: true,
        growth_unvalidated: true,
        fractional_ssthresh: true,
        reduces_at_each_timeout: true,
        newreno_exit_at_ssthresh: true,
        newreno_full_ack_grows: true,
        sack_full_ack_stands: true,
        sack1_pipe: true,
        sack_bug_fix: true,
        timeout_forgets_sacks: true,
        vegas_of_paper: true,
    };
}

impl From<bool> for Ns2Mode {
    fn from(packet_counted: bool) -> Ns2Mode {
        if packet_counted { Ns2Mode::ON } else { Ns2Mode::OFF }
    }
}

/// The retransmission timeout (RFC 6298) and the clock that timers expire by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Timers {
    /// RTO before the first sample, ns (RFC 6298 §2.1).
    pub initial_rto_ns: u64,
    /// Lower bound of the RTO, ns.
    pub min_rto_ns: u64,
    /// Upper bound of the RTO, ns.
    pub max_rto_ns: u64,
    /// ns-2's `tcpTick_`, ns: where it is not 1 an RTT sample is the ticks of this clock that began
    /// meanwhile, at least one.
    pub tick_ns: u64,
    /// Linux's reading of RFC 6298: the bound applies to the variance term
    /// (rto = srtt + max(4·rttvar, min)), not to the sum.
    pub min_rto_on_variance: bool,
    /// Timers expire with a tick of this length, ns (the kernel's jiffy, 1/HZ), far ones with every
    /// eighth; 1 makes them exact. Of the receiver's timers, too.
    pub timer_tick_ns: u64,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Acknowledging {
    /// Acknowledge every n-th full segment; 1 acknowledges each.
    pub delayed_ack_segments: u32,
    /// How long an acknowledgement is delayed, ns (Linux's TCP_DELACK_MIN, `icsk_ack.ato` at
    /// first).
    pub delayed_ack_ns: u64,
    /// How long it may be delayed where segments come slowly, ns (Linux's TCP_DELACK_MAX); no more
    /// than `delayed_ack_ns`: never longer.
    pub delayed_ack_max_ns: u64,
    /// Acknowledgements sent at once at the start of a flow, after a duplicate and after a pause
    /// (Linux's TCP_MAX_QUICKACKS).
    pub quick_acks: u32,
    /// SACKs beyond the third in a row wait for so long at most, and leave as one, ns
    /// (tcp_comp_sack_delay_ns); 0: each leaves at once.
    pub sack_delay_ns: u64,
}

/// Both sockets' buffers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Buffers {
    /// What the application writes at once, bytes, as soon as the socket takes it (`writer`): the
    /// last segment is pushed, and so acknowledged at once; 0: everything is written from the
    /// start.
    pub write_bytes: u32,
    /// Receive buffer at the start, bytes (tcp_rmem's default); the window offered is what fits
    /// into its advertisable part.
    pub receive_buffer: u64,
    /// The buffer's upper bound under autotuning, bytes (tcp_rmem's maximum); equal to
    /// `receive_buffer` switches autotuning off.
    pub receive_buffer_max: u64,
    /// Part of the receive buffer that may be advertised, as a fraction: how much of what a full
    /// segment takes there is data (Linux's scaling_ratio).
    pub receive_window_fraction: f64,
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// IP and TCP headers take 20 bytes each, the timestamp option 12 with its padding.
pub const fn header_bytes(timestamps: bool) -> u32 {
    if timestamps { 52 } else { 40 }
}

impl AsRef<TcpParams> for TcpParams {
    fn as_ref(&self) -> &TcpParams {
        self
    }
}

impl TcpParams {
    /// What a Linux host of today does by default.
    pub const LINUX: TcpParams = TcpParams {
        congestion: CongestionKind::Cubic,
        mss: MTU - header_bytes(true),
        header_bytes: header_bytes(true),
        ack_bytes: header_bytes(true),
        timestamps: true,
        ecn: false,
        handshake: true,
        recovery: LossRecovery {
            sack: true,
            prr: true,
            dsack: true,
            undo: true,
            frto: true,
            rack: true,
            tlp: true,
            limited_transmit: true,
        },
        growth: Growth {
            initial_window: 10,
            initial_ssthresh: None,
            max_window: None,
            pacing: false,
            hystart: true,
            vegas_alpha: 2,
            vegas_beta: 4,
            vegas_gamma: 1,
            ledbat_target_ns: 100 * MS,
            ledbat_gain: 1.0,
        },
        ns2: Ns2Mode::OFF,
        timers: Timers {
            initial_rto_ns: S,
            min_rto_ns: 200 * MS,
            max_rto_ns: 120 * S,
            tick_ns: 1,
            min_rto_on_variance: true,
            // HZ 250, as Debian and Ubuntu have it.
            timer_tick_ns: 4 * MS,
        },
        acks: Acknowledging {
            delayed_ack_segments: 2,
            delayed_ack_ns: 40 * MS,
            delayed_ack_max_ns: 200 * MS,
            quick_acks: 16,
            sack_delay_ns: MS,
        },
        buffers: Buffers {
            write_bytes: 65536,
            receive_buffer: 131_072,
            receive_buffer_max: 6_291_456,
            // Of what a full segment takes, 2280 bytes, 1448 are data, in parts of 256.
            receive_window_fraction: 162.0 / 256.0,
        },
    };

    /// ns-2.35's one-way agents: TCP/Newreno with a plain sink.
    pub const NS2: TcpParams = TcpParams {
        congestion: CongestionKind::Reno,
        mss: MTU - header_bytes(false),
        header_bytes: header_bytes(false),
        ack_bytes: header_bytes(false),
        timestamps: false,
        ecn: false,
        handshake: false,
        recovery: LossRecovery {
            sack: false,
            prr: false,
            dsack: false,
            undo: false,
            frto: false,
            rack: false,
            tlp: false,
            limited_transmit: true,
        },
        growth: Growth {
            initial_window: 2,
            initial_ssthresh: None,
            max_window: None,
            pacing: false,
            hystart: false,
            vegas_alpha: 1,
            vegas_beta: 3,
            vegas_gamma: 1,
            ledbat_target_ns: 100 * MS,
            ledbat_gain: 1.0,
        },
        ns2: Ns2Mode::ON,
        timers: Timers {
            initial_rto_ns: 3 * S,
            min_rto_ns: 200 * MS,
            max_rto_ns: 60 * S,
            tick_ns: 10 * MS,
            min_rto_on_variance: false,
            timer_tick_ns: 1,
        },
        acks: Acknowledging {
            delayed_ack_segments: 1,
            delayed_ack_ns: 100 * MS,
            delayed_ack_max_ns: 100 * MS,
            quick_acks: 0,
            sack_delay_ns: 0,
        },
        buffers: Buffers {
            write_bytes: 0,
            // ns-2's sink advertises no window.
            receive_buffer: 1 << 30,
            receive_buffer_max: 1 << 30,
            receive_window_fraction: 1.0,
        },
    };

    /// The profiles by name.
    pub const PROFILES: [(&str, &TcpParams); 2] =
        [("linux", &TcpParams::LINUX), ("ns2", &TcpParams::NS2)];

    /// These, but for what `change` sets.
    pub fn with(&self, change: impl FnOnce(&mut TcpParams)) -> TcpParams {
        let mut params = self.clone();
        change(&mut params);
        params
    }
}
