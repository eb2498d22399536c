//! DCTCP: Reno that reduces cwnd for marks in proportion to the share of marked packets.
//!
//! alpha is a moving average, over windows, of the share of marked packets, in 1024ths. An ECN echo
//! reduces cwnd by alpha/2, once a window. A loss halves cwnd. Growth, slow start and timeouts are
//! Reno's. The receiver's part is `receiver::Exact`.
//!
//! Source: RFC 8257 as in Linux (net/ipv4/tcp_dctcp.c), in its whole numbers: dctcp_shift_g 4,
//! dctcp_alpha_on_init 1024. Deviations: none known. PLB's path changes (tcp_plb_enabled) are
//! absent, and are off in Linux.

use super::{
    Ack, AckEvent, Congestion, CongestionControl, CwndCnt, Delivered, MarkBased, Paced, Signal,
    reno_cong_avoid,
};
use crate::TcpParams;

/// alpha if every packet is marked (DCTCP_MAX_ALPHA).
const MAX_ALPHA: u32 = 1024;
/// The weight of a window is 2^-SHIFT_G (dctcp_shift_g).
const SHIFT_G: u32 = 4;

/// State of RFC 8257 §3.3.
pub struct Dctcp {
    cwnd: f64,
    ssthresh: f64,
    cwnd_cnt: CwndCnt,
    /// The share of marks, in 1024ths (dctcp_alpha).
    alpha: u32,
    /// One past the window whose marks are counted (next_seq).
    next_seq: u32,
    /// The counts at the start of that window.
    before: Delivered,
}

impl Dctcp {
    /// The initial window, in slow start, with alpha as if all packets were marked.
    pub fn new(params: &TcpParams) -> Dctcp {
        Dctcp {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            cwnd_cnt: CwndCnt::default(),
            alpha: MAX_ALPHA,
            next_seq: 0,
            before: Delivered::default(),
        }
    }

    /// RFC 8257 §3.3 step 5. The steps of alpha are rounded to whole numbers, so that a few marks
    /// can vanish. An alpha below 16 falls to 0.
    fn update_alpha(&mut self, packets: u32, marked: u32) {
        self.alpha -= match self.alpha >> SHIFT_G {
            0 => self.alpha,
            fall => fall,
        };
        let rise = (u64::from(marked) << (10 - SHIFT_G)) / u64::from(packets.max(1));
        self.alpha = MAX_ALPHA.min(self.alpha + rise.min(MAX_ALPHA.into()) as u32);
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.cwnd_limited {
            self.cwnd = reno_cong_avoid(self.cwnd, self.ssthresh, ack.acked, &mut self.cwnd_cnt);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let cwnd = self.cwnd as u32;
        let reduced = match event.signal {
            Signal::Timeout => cwnd / 2,
            // A probe that repaired a loss reduces cwnd as marks do (tcp_process_tlp_ack). A
            // recovery halves cwnd when it begins.
            Signal::Ecn | Signal::Loss => {
                cwnd - (u64::from(cwnd) * u64::from(self.alpha) / 2048) as u32
            }
        };
        self.ssthresh = f64::from(reduced.max(2));
        self.cwnd_cnt = CwndCnt::default();
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    window_accessors!();
}

impl MarkBased for Dctcp {
    fn in_ack_event(&mut self, event: &AckEvent) {
        let &AckEvent { delivered, una, nxt, .. } = event;
        if una >= self.next_seq {
            let packets = delivered.packets.wrapping_sub(self.before.packets);
            self.update_alpha(packets, delivered.ce.wrapping_sub(self.before.ce));
            (self.next_seq, self.before) = (nxt, delivered);
        }
    }

    /// dctcp_react_to_loss. It overrides a reduction for marks that is under way.
    fn on_recovery(&mut self) {
        self.ssthresh = f64::from((self.cwnd as u32 / 2).max(2));
    }
}

/// DCTCP has no pacing rate of its own.
impl Paced for Dctcp {}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn dctcp(cwnd: u32, alpha: u32) -> Dctcp {
        let mut dctcp = Dctcp::new(&TcpParams::LINUX);
        (dctcp.cwnd, dctcp.alpha) = (f64::from(cwnd), alpha);
        dctcp
    }

    /// alpha after `windows` windows, each with `packets` packets and `marked` marks.
    fn alpha_after(alpha: u32, windows: u32, packets: u32, marked: u32) -> u32 {
        let mut dctcp = dctcp(10, alpha);
        for _ in 0..windows {
            dctcp.update_alpha(packets, marked);
        }
        dctcp.alpha
    }

    #[test]
    fn without_marks_alpha_reaches_zero_after_75_windows() {
        let falls: Vec<u32> = (1..=10).map(|windows| alpha_after(1024, windows, 10, 0)).collect();
        assert_eq!(falls, [960, 900, 844, 792, 743, 697, 654, 614, 576, 540]);
        assert_eq!([73, 74, 75, 76].map(|w| alpha_after(1024, w, 10, 0)), [16, 15, 0, 0]);
    }

    #[test]
    fn with_every_packet_marked_alpha_rises_by_a_sixteenth_of_what_is_left() {
        let rises: Vec<u32> = (1..=10).map(|windows| alpha_after(0, windows, 10, 10)).collect();
        assert_eq!(rises, [64, 124, 181, 234, 284, 331, 375, 416, 454, 490]);
    }

    #[test]
    fn the_final_alpha_depends_on_the_initial_one() {
        let rest = |alpha, packets, marked| alpha_after(alpha, 2000, packets, marked);
        assert_eq!([rest(1024, 10, 1), rest(0, 10, 1)], [111, 6], "a tenth is 102.4");
        assert_eq!([rest(1024, 2, 1), rest(0, 2, 1)], [527, 512]);
        assert_eq!([rest(1024, 100, 1), rest(0, 100, 1)], [0, 0]);
        assert_eq!([rest(1024, 100, 2), rest(0, 100, 2)], [31, 1]);
    }

    #[test]
    fn marks_reduce_by_half_of_alpha_and_losses_by_half() {
        let congestion = |signal| Congestion { now: Time::ZERO, signal, inflight: 0 };
        for (cwnd, alpha, ssthresh) in [
            (10, 1024, 5),
            (100, 1024, 50),
            (100, 102, 96),
            (100, 16, 100),
            (33, 512, 25),
            (3, 1024, 2),
        ] {
            let mut marked = dctcp(cwnd, alpha);
            marked.on_congestion(&congestion(Signal::Ecn));
            assert_eq!(marked.ssthresh(), f64::from(ssthresh), "cwnd {cwnd}, alpha {alpha}");
        }
        let mut lossy = dctcp(33, 16);
        lossy.on_congestion(&congestion(Signal::Loss));
        lossy.on_recovery();
        assert_eq!(lossy.ssthresh(), 16.0);
        let mut timed_out = dctcp(33, 16);
        timed_out.on_congestion(&congestion(Signal::Timeout));
        assert_eq!((timed_out.ssthresh(), timed_out.cwnd()), (16.0, 1.0));
    }

    #[test]
    fn a_window_ends_with_the_ack_of_the_last_data_sent_before_it() {
        let mut dctcp = dctcp(10, 0);
        let event = |packets, ce, una, nxt| AckEvent {
            delivered: Delivered { packets, ce },
            una,
            nxt,
            now: Time::ZERO,
            srtt: None,
            in_flight: 0,
            cwnd_limited: true,
            lossless: true,
        };
        dctcp.in_ack_event(&event(0, 0, 2, 12));
        dctcp.in_ack_event(&event(9, 9, 11, 21));
        assert_eq!(dctcp.alpha, 0);
        dctcp.in_ack_event(&event(10, 10, 12, 22));
        assert_eq!(dctcp.alpha, 64);
    }
}
