//! The parameters of a pair of endpoints, in groups, and three profiles.
//!
//! Each parameter is a field, with its value in each profile. The scenario language uses the
//! field's name without the unit: `min_rto = "1 s"`. docs/tcp.md has the source of each value.
//!
//! Sources: Linux Documentation/networking/ip-sysctl.rst and tcp(7); ns-2.35's ns-default.tcl.
//! Deviations: ns-2's `window_` of 20 segments is not in the profile, since every paper sets its
//! own (`max_window`).

use crate::CongestionKind;
use crate::own::OwnControl;
use serde::{Deserialize, Serialize};

/// IP bytes of a full segment.
pub const MTU: u32 = 1500;

/// All parameters of a pair of endpoints; a profile is a value of this type. Serialised, the groups
/// form one flat table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TcpParams {
    /// The congestion control.
    pub congestion: CongestionKind,
    /// A user-defined control, which replaces `congestion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<OwnControl>>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// IP and TCP header bytes of a data segment, options included.
    pub header_bytes: u32,
    /// IP bytes of an acknowledgement without SACK blocks (the same as `header_bytes` in practice).
    pub ack_bytes: u32,
    /// Timestamps (RFC 7323): every ACK that advances SND.UNA is an RTT sample, retransmission or
    /// not. Without them one segment at a time is timed.
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Accurate feedback on marks (AccECN, RFC 9768). It needs `ecn`.
    pub accecn: bool,
    /// The connection begins with a three-way handshake (RFC 9293 §3.5). Without one it is
    /// established at once.
    pub handshake: bool,
    /// How losses are detected and repaired.
    #[serde(flatten)]
    pub recovery: LossRecovery,
    /// How cwnd begins and grows.
    #[serde(flatten)]
    pub growth: Growth,
    /// The differences of ns-2's agents.
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

/// The reaction to three duplicate ACKs without SACK. One segment is retransmitted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FastRecovery {
    /// RFC 6582: the recovery ends once all data outstanding at its start is acknowledged. It
    /// repairs one hole each round trip.
    NewReno,
    /// Reno: the recovery ends at the first new ACK. Further losses of that window wait for the
    /// timer, since a window of data reduces cwnd once.
    Reno,
    /// Tahoe: there is no recovery. cwnd falls to one segment, and slow start sends all outstanding
    /// data again.
    Tahoe,
}

impl FastRecovery {
    /// The names of all variants.
    pub const NAMES: &[&str] = &["newreno", "reno", "tahoe"];
}

impl From<&str> for FastRecovery {
    /// The variant with this name, which must be in `NAMES`.
    fn from(name: &str) -> FastRecovery {
        match name {
            "newreno" => FastRecovery::NewReno,
            "reno" => FastRecovery::Reno,
            "tahoe" => FastRecovery::Tahoe,
            _ => unreachable!("{name} is checked when read"),
        }
    }
}

/// How losses are detected and repaired, and how a needless reduction is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LossRecovery {
    /// Selective acknowledgements with RFC 6675 recovery; without them `fast_recovery`.
    pub sack: bool,
    /// The reaction to three duplicate ACKs without SACK.
    pub fast_recovery: FastRecovery,
    /// Proportional rate reduction (RFC 6937, Linux's variant) in a SACK recovery and after an ECN
    /// echo. Without it cwnd becomes ssthresh at once.
    pub prr: bool,
    /// The receiver reports duplicates in the first SACK block (RFC 2883).
    pub dsack: bool,
    /// A reduction is undone if timestamps (RFC 3522, RFC 4015) or DSACKs (RFC 3708) prove it
    /// needless.
    pub undo: bool,
    /// F-RTO (RFC 5682): after a timeout new data leaves first, which shows whether the timeout was
    /// spurious. A spurious timeout is undone.
    pub frto: bool,
    /// With SACK: losses of originals and retransmissions are detected by their times of sending
    /// (RFC 8985). Without RACK, by the number of segments SACKed above (RFC 6675). Off with
    /// `sack1_pipe` or `timeout_forgets_sacks`.
    pub rack: bool,
    /// With SACK: a tail loss probe (RFC 8985 §7) after two RTTs without an ACK, before the
    /// retransmission timeout. Off with `sack1_pipe` or `timeout_forgets_sacks`.
    pub tlp: bool,
    /// Limited transmit (RFC 3042): the first two duplicate ACKs allow a new segment each.
    pub limited_transmit: bool,
}

/// The description of Prague that a flow follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PragueVariant {
    /// Linux's tcp_prague 0.7.
    Linux,
    /// draft-briscoe-iccrg-prague-congestion-control.
    Draft,
    /// The L4STeam's udp_prague.
    Udp,
}

impl PragueVariant {
    /// The names of all variants.
    pub const NAMES: &[&str] = &["linux", "draft", "udp"];
}

impl From<&str> for PragueVariant {
    /// The variant with this name, which must be in `NAMES`.
    fn from(name: &str) -> PragueVariant {
        match name {
            "linux" => PragueVariant::Linux,
            "draft" => PragueVariant::Draft,
            "udp" => PragueVariant::Udp,
            _ => unreachable!("{name} is checked when read"),
        }
    }
}

/// How cwnd starts and grows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Growth {
    /// Initial window in segments.
    pub initial_window: u32,
    /// Initial ssthresh in segments; `None` is unlimited.
    pub initial_ssthresh: Option<u32>,
    /// An upper bound of cwnd in segments (ns-2's `window_`). With `None` only the receive window
    /// bounds cwnd.
    pub max_window: Option<u32>,
    /// If nothing is sent for longer than an RTO, cwnd is halved for each RTO that passed, down to
    /// the initial window (RFC 2861, RFC 5681 §4.1; Linux's sysctl of this name).
    pub slow_start_after_idle: bool,
    /// Segments are paced, at 2 × cwnd/srtt below half of ssthresh and 1.2 × above (Linux).
    pub pacing: bool,
    /// HyStart in slow start (cubic only).
    pub hystart: bool,
    /// HyStart++ in the first slow start (RFC 9406), in place of HyStart (reno and cubic only).
    pub hystart_plus_plus: bool,
    /// Vegas: cwnd grows while fewer segments than this are queued.
    pub vegas_alpha: u32,
    /// Vegas: cwnd shrinks while more segments than this are queued.
    pub vegas_beta: u32,
    /// Vegas: slow start ends with more segments queued than this.
    pub vegas_gamma: u32,
    /// LEDBAT's TARGET: the queueing delay that it keeps, ns. RFC 6817: at most 100 ms.
    pub ledbat_target_ns: u64,
    /// LEDBAT's GAIN: the growth of cwnd in a round trip with an empty queue, segments. RFC 6817:
    /// at most 1.
    pub ledbat_gain: f64,
    /// An ECN echo reduces cwnd to this share (RFC 8511: 0.8 for reno, 0.85 for cubic). With `None`
    /// it reduces cwnd as a loss does.
    pub beta_ecn: Option<f64>,
    /// Prague: a flow with a shorter RTT grows as if this were its RTT, ns. 0: each flow grows by
    /// its own RTT.
    pub prague_virtual_rtt_ns: u64,
    /// Prague: the description that the flow follows.
    pub prague_variant: PragueVariant,
}

/// The differences of ns-2.35's agents from the RFCs and Linux, each a parameter of its own. A
/// scenario's `packet_counted` sets all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ns2Mode {
    /// Reno's cwnd grows by 1 or 1/cwnd for each ACK, however much the ACK acknowledges
    /// (opencwnd(), `windowOption_` 1). Otherwise it grows by the newly acknowledged segments (RFC
    /// 3465).
    pub growth_per_ack: bool,
    /// Reno's cwnd grows even while `window_` or the application is the limit (`control_increase_`
    /// 0). Otherwise an unused cwnd does not grow (RFC 7661).
    pub growth_unvalidated: bool,
    /// Half of an odd window has a fraction (`cwnd_` is real). Otherwise half is rounded down
    /// (Linux).
    pub fractional_ssthresh: bool,
    /// Each timeout sets ssthresh from the current cwnd. Otherwise the same data reduces ssthresh
    /// once (RFC 5681 §3.1), and a timeout in a recovery uses the cwnd from before that recovery.
    pub reduces_at_each_timeout: bool,
    /// NewReno's full ACK leaves cwnd at ssthresh, even if a burst follows: RFC 6582 §3.2 step 3,
    /// option 2 (`exit_recovery_fix_` 0). Otherwise option 1 applies.
    pub newreno_exit_at_ssthresh: bool,
    /// NewReno's full ACK grows cwnd as well. Otherwise it does not grow cwnd (RFC 6582 §3.2 step
    /// 3).
    pub newreno_full_ack_grows: bool,
    /// An ECN echo reduces cwnd only after all data sent before the last reduction is acknowledged
    /// (ecn(), `recover_`). Otherwise it does whenever no reduction is under way (Linux).
    pub ecn_once_a_window: bool,
    /// With SACK, the ACK that ends a recovery does not grow cwnd (Sack1). Otherwise it does.
    pub sack_full_ack_stands: bool,
    /// With SACK: lost segments and their retransmissions count as in flight until acknowledged
    /// (Sack1's `pipe_`). Otherwise RFC 6675's pipe applies. RACK and TLP are off.
    pub sack1_pipe: bool,
    /// With SACK: data sent before a timeout causes no fast retransmit (`bugFix_`). Otherwise only
    /// the SACKs decide.
    pub sack_bug_fix: bool,
    /// A timeout clears all SACK information (Sack1's ClearScoreBoard(); RFC 2018 §8). Otherwise
    /// the scoreboard stays. RACK and TLP are off.
    pub timeout_forgets_sacks: bool,
    /// Vegas follows the paper. Otherwise it follows Linux.
    pub vegas_of_paper: bool,
}

impl Ns2Mode {
    /// All off.
    pub const OFF: Ns2Mode = Ns2Mode {
        growth_per_ack: false,
        growth_unvalidated: false,
        fractional_ssthresh: false,
        reduces_at_each_timeout: false,
        newreno_exit_at_ssthresh: false,
        newreno_full_ack_grows: false,
        ecn_once_a_window: false,
        sack_full_ack_stands: false,
        sack1_pipe: false,
        sack_bug_fix: false,
        timeout_forgets_sacks: false,
        vegas_of_paper: false,
    };

    /// All on.
    pub const ON: Ns2Mode = Ns2Mode {
        growth_per_ack: true,
        growth_unvalidated: true,
        fractional_ssthresh: true,
        reduces_at_each_timeout: true,
        newreno_exit_at_ssthresh: true,
        newreno_full_ack_grows: true,
        ecn_once_a_window: true,
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

/// The retransmission timeout (RFC 6298), and the clocks for RTT samples and timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Timers {
    /// RTO before the first sample, ns (RFC 6298 §2.1).
    pub initial_rto_ns: u64,
    /// Lower bound of the RTO, ns.
    pub min_rto_ns: u64,
    /// Upper bound of the RTO, ns.
    pub max_rto_ns: u64,
    /// ns-2's `tcpTick_`, ns. Unless it is 1, an RTT sample is the number of ticks of this clock
    /// that began between sending and ACK, at least one tick.
    pub tick_ns: u64,
    /// Linux's tcp_rtt_estimator: the lower bound applies to the variance term, RTO = srtt +
    /// max(4·rttvar, min), not to the sum.
    pub min_rto_on_variance: bool,
    /// Length of a timer tick, ns (the kernel's jiffy, 1/HZ). Timers expire at ticks, far ones at
    /// every eighth tick; 1: timers are exact. The receiver's timers use it too.
    pub timer_tick_ns: u64,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Acknowledging {
    /// Every n-th full segment is acknowledged; 1 acknowledges each segment.
    pub delayed_ack_segments: u32,
    /// The delay of an acknowledgement, ns (Linux's TCP_DELACK_MIN, the initial `icsk_ack.ato`).
    pub delayed_ack_ns: u64,
    /// The longest delay, for segments that arrive slowly, ns (Linux's TCP_DELACK_MAX). If it is at
    /// most `delayed_ack_ns`, the delay never grows.
    pub delayed_ack_max_ns: u64,
    /// Quick ACKs: the number of ACKs sent at once at the start of a flow, after a duplicate and
    /// after a pause (Linux's TCP_MAX_QUICKACKS).
    pub quick_acks: u32,
    /// The longest delay of a compressed SACK, ns (tcp_comp_sack_delay_ns). From the fourth SACK in
    /// a row on, SACKs wait at most this long and leave as one. 0: each leaves at once.
    pub sack_delay_ns: u64,
    /// The longest delay of a compressed SACK as a share of the RTT, percent
    /// (tcp_comp_sack_rtt_percent).
    pub sack_rtt_percent: u32,
    /// The additional lateness of compressed SACKs, ns: the slack that Linux allows their timer
    /// (tcp_comp_sack_slack_ns).
    pub sack_slack_ns: u64,
    /// A compressed SACK's timestamp is the arrival time of the latest segment, because its timer
    /// reads no clock (tcp_compressed_ack_kick).
    pub sack_stamp_is_late: bool,
}

/// The version of Linux's dynamic right-sizing that tunes a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RightSizing {
    /// Linux up to 6.17: room for 16 segments more than the next RTT may bring.
    #[serde(rename = "linux-6.12")]
    Linux612,
    /// Linux after 6.17: no such extra room. Data beyond a gap counts, and RTTs below a millisecond
    /// need less.
    #[serde(rename = "linux-7.3")]
    Linux73,
}

/// Both sockets' buffers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Buffers {
    /// Bytes of one write by the application (`writer`), which writes as soon as the socket is
    /// writable. The last segment before it stops has PSH, so the receiver acknowledges it at once.
    /// 0: the application writes everything at the start.
    pub write_bytes: u32,
    /// Initial receive buffer, bytes (tcp_rmem's default). The window is the part of the buffer
    /// that may be advertised.
    pub receive_buffer: u64,
    /// Upper bound of the buffer under autotuning, bytes (tcp_rmem's maximum). If it equals
    /// `receive_buffer`, autotuning is off.
    pub receive_buffer_max: u64,
    /// The rule of autotuning.
    pub right_sizing: RightSizing,
    /// The fraction of the receive buffer that may be advertised: the share of data in a full
    /// segment's truesize (Linux's scaling_ratio).
    pub receive_window_fraction: f64,
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// IP and TCP headers take 20 bytes each, the timestamp option 12 with its padding.
pub const fn header_bytes(timestamps: bool) -> u32 {
    if timestamps { 52 } else { 40 }
}

/// The length of AccECN's option with three counters and its padding.
pub const ACCECN_BYTES: u32 = 12;

impl AsRef<TcpParams> for TcpParams {
    fn as_ref(&self) -> &TcpParams {
        self
    }
}

impl TcpParams {
    /// Payload of a full segment without AccECN's option, bytes. Linux's `mss_cache` and `advmss`
    /// ignore this option because not every segment carries it.
    pub fn mss_without_options(&self) -> u32 {
        self.mss + if self.accecn { ACCECN_BYTES } else { 0 }
    }

    /// The defaults of a current Linux host: Linux 6.12.
    pub const LINUX: TcpParams = TcpParams {
        congestion: CongestionKind::Cubic,
        own: None,
        mss: MTU - header_bytes(true),
        header_bytes: header_bytes(true),
        ack_bytes: header_bytes(true),
        timestamps: true,
        ecn: false,
        accecn: false,
        handshake: true,
        recovery: LossRecovery {
            sack: true,
            fast_recovery: FastRecovery::NewReno,
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
            slow_start_after_idle: true,
            pacing: false,
            hystart: true,
            hystart_plus_plus: false,
            vegas_alpha: 2,
            vegas_beta: 4,
            vegas_gamma: 1,
            ledbat_target_ns: 100 * MS,
            ledbat_gain: 1.0,
            beta_ecn: None,
            prague_virtual_rtt_ns: 25 * MS,
            prague_variant: PragueVariant::Linux,
        },
        ns2: Ns2Mode::OFF,
        timers: Timers {
            initial_rto_ns: S,
            min_rto_ns: 200 * MS,
            max_rto_ns: 120 * S,
            tick_ns: 1,
            min_rto_on_variance: true,
            // HZ 250, the value of Debian and Ubuntu.
            timer_tick_ns: 4 * MS,
        },
        acks: Acknowledging {
            delayed_ack_segments: 2,
            delayed_ack_ns: 40 * MS,
            delayed_ack_max_ns: 200 * MS,
            quick_acks: 16,
            sack_delay_ns: MS,
            sack_rtt_percent: 5,
            sack_slack_ns: MS / 10,
            sack_stamp_is_late: true,
        },
        buffers: Buffers {
            write_bytes: 65536,
            receive_buffer: 131_072,
            receive_buffer_max: 6_291_456,
            right_sizing: RightSizing::Linux612,
            // A full segment takes 2280 bytes, of which 1448 are data: 162/256, rounded down.
            receive_window_fraction: 162.0 / 256.0,
        },
    };

    /// The defaults of Linux 7.3.
    pub const LINUX_7_3: TcpParams = TcpParams {
        acks: Acknowledging {
            sack_rtt_percent: 33,
            sack_slack_ns: MS / 100,
            sack_stamp_is_late: false,
            ..TcpParams::LINUX.acks
        },
        buffers: Buffers { right_sizing: RightSizing::Linux73, ..TcpParams::LINUX.buffers },
        ..TcpParams::LINUX
    };

    /// ns-2.35's one-way agents: TCP/Newreno with a plain sink.
    pub const NS2: TcpParams = TcpParams {
        congestion: CongestionKind::Reno,
        own: None,
        mss: MTU - header_bytes(false),
        header_bytes: header_bytes(false),
        ack_bytes: header_bytes(false),
        timestamps: false,
        ecn: false,
        accecn: false,
        handshake: false,
        recovery: LossRecovery {
            sack: false,
            fast_recovery: FastRecovery::NewReno,
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
            slow_start_after_idle: false,
            pacing: false,
            hystart: false,
            hystart_plus_plus: false,
            vegas_alpha: 1,
            vegas_beta: 3,
            vegas_gamma: 1,
            ledbat_target_ns: 100 * MS,
            ledbat_gain: 1.0,
            beta_ecn: None,
            prague_virtual_rtt_ns: 25 * MS,
            prague_variant: PragueVariant::Linux,
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
            sack_rtt_percent: 5,
            sack_slack_ns: MS / 10,
            sack_stamp_is_late: false,
        },
        buffers: Buffers {
            write_bytes: 0,
            // ns-2's sink advertises no window.
            receive_buffer: 1 << 30,
            receive_buffer_max: 1 << 30,
            right_sizing: RightSizing::Linux612,
            receive_window_fraction: 1.0,
        },
    };

    /// The profiles by name.
    pub const PROFILES: [(&str, &TcpParams); 3] = [
        ("linux", &TcpParams::LINUX),
        ("ns2", &TcpParams::NS2),
        ("linux-7.3", &TcpParams::LINUX_7_3),
    ];

    /// A copy that `change` has modified.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use tcp::{CongestionKind, TcpParams};
    ///
    /// let params = TcpParams::LINUX.with(|p| p.congestion = CongestionKind::Reno);
    /// assert_eq!(params.congestion.name(), "reno");
    /// assert_eq!(TcpParams::LINUX.congestion.name(), "cubic");
    /// ```
    pub fn with(&self, change: impl FnOnce(&mut TcpParams)) -> TcpParams {
        let mut params = self.clone();
        change(&mut params);
        params
    }
}
