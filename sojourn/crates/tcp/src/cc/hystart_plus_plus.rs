//! HyStart++: slow start ends if a round's least RTT rises and stays high for five rounds of slower
//! growth.
//!
//! A rise of the RTT by an eighth, bounded to 4 to 16 ms, starts *conservative slow start* (CSS),
//! in which the window grows a quarter as fast. If the RTT falls below its value at the start of
//! CSS, the rise was jitter, and slow start continues. After five rounds congestion avoidance
//! begins. Unlike HyStart, HyStart++ ignores trains of ACKs.
//!
//! Source: RFC 9406; §4.2 has the algorithm, §4.3 the constants. As the RFC recommends, it applies
//! only to the initial slow start. A round's samples are the RTTs of ACKs; an ACK without a sample
//! is ignored.

use super::Ack;
use crate::TcpParams;
use units::Span;

const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// The largest growth of cwnd by one ACK without pacing, segments (L).
const L: u32 = 8;

const NO_RTT: Span = Span(u64::MAX);

/// The state, until the first slow start has ended.
#[derive(Clone)]
pub struct HystartPlusPlus {
    most: u32,
    window_end: u32,
    last_round_min_rtt: Span,
    current_round_min_rtt: Span,
    rtt_sample_count: u32,
    css: Option<Css>,
    /// The remainder of the division in CSS.
    rest: u32,
}

#[derive(Clone)]
struct Css {
    baseline_min_rtt: Span,
    rounds: u32,
}

impl HystartPlusPlus {
    /// The state before the first ACK, if the parameters choose HyStart++.
    pub fn new(params: &TcpParams) -> Option<Box<HystartPlusPlus>> {
        params.growth.hystart_plus_plus.then(|| {
            Box::new(HystartPlusPlus {
                most: if params.growth.pacing { u32::MAX } else { L },
                window_end: 0,
                last_round_min_rtt: NO_RTT,
                current_round_min_rtt: NO_RTT,
                rtt_sample_count: 0,
                css: None,
                rest: 0,
            })
        })
    }

    /// The growth of cwnd for `acked` segments.
    pub fn growth(&mut self, acked: u32) -> u32 {
        let growth = acked.min(self.most);
        if self.css.is_none() {
            return growth;
        }
        let all = self.rest + growth;
        self.rest = all % CSS_GROWTH_DIVISOR;
        all / CSS_GROWTH_DIVISOR
    }

    /// An ACK in slow start, after cwnd has grown. Returns whether it ends slow start.
    pub fn ends(&mut self, ack: &Ack) -> bool {
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
            self.rtt_sample_count += 1;
            self.update_css();
        }
        if ack.una < self.window_end {
            return false;
        }
        self.window_end = ack.nxt;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = NO_RTT;
        self.rtt_sample_count = 0;
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1;
        css.rounds >= CSS_ROUNDS
    }

    /// Enters CSS, or returns to slow start.
    fn update_css(&mut self) {
        if self.rtt_sample_count < N_RTT_SAMPLE || self.last_round_min_rtt == NO_RTT {
            return;
        }
        let (current, last) = (self.current_round_min_rtt, self.last_round_min_rtt);
        match &self.css {
            Some(css) if current < css.baseline_min_rtt => self.css = None,
            Some(_) => {}
            None => {
                let thresh = (last / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if current >= last + thresh {
                    self.css = Some(Css { baseline_min_rtt: current, rounds: 0 });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn plus() -> HystartPlusPlus {
        let params = TcpParams::LINUX.with(|p| p.growth.hystart_plus_plus = true);
        *HystartPlusPlus::new(&params).expect("it is chosen")
    }

    /// A round of ten ACKs with these RTTs. Its window begins at `una`. Returns whether slow start
    /// ended.
    fn round(plus: &mut HystartPlusPlus, una: u32, rtts_ms: [u64; 10]) -> bool {
        let acks = rtts_ms.iter().zip(1..);
        acks.map(|(&ms, index)| {
            plus.ends(&Ack {
                now: Time::ZERO,
                acked: 1,
                rtt: Some(Span::from_millis(ms)),
                one_way: None,
                srtt: None.into(),
                una: una + index,
                nxt: una + 10 + index,
                cwnd_limited: true,
                ca_open: true,
            })
        })
        .fold(false, |ended, ends| ended | ends)
    }

    fn rounds(plus: &mut HystartPlusPlus, ms: &[u64]) -> Vec<(bool, bool)> {
        let mut una = 0;
        ms.iter()
            .map(|&ms| {
                let ended = round(plus, una, [ms; 10]);
                una += 10;
                (plus.css.is_some(), ended)
            })
            .collect()
    }

    #[test]
    fn a_rise_by_an_eighth_begins_css_and_five_rounds_of_it_end_slow_start() {
        let states = rounds(&mut plus(), &[80, 80, 89, 91, 105, 105, 105, 105, 105, 105]);
        assert!(!states[2].0, "9 ms are less than 80/8");
        let css = states.iter().position(|(css, _)| *css).expect("it begins");
        let end = states.iter().position(|(_, ended)| *ended).expect("it ends");
        // A round ends with the first ACK of the next one.
        assert_eq!((css, end), (4, 9), "five rounds, with that in which it began");
    }

    #[test]
    fn the_threshold_is_4_to_16_ms() {
        for (last, rises) in [(10, 4), (64, 8), (300, 16)] {
            let begins = |ms| rounds(&mut plus(), &[last, last, ms, ms])[3].0;
            assert!(!begins(last + rises - 1), "{last} + {rises} - 1 ms");
            assert!(begins(last + rises), "{last} + {rises} ms");
        }
    }

    #[test]
    fn an_rtt_below_that_at_the_start_of_css_resumes_slow_start() {
        let states = rounds(&mut plus(), &[50, 50, 60, 60, 59, 59]);
        assert_eq!(
            states.iter().map(|(css, _)| *css).collect::<Vec<_>>()[3..],
            [true, false, false]
        );
    }

    #[test]
    fn seven_samples_of_a_round_are_too_few() {
        let mut plus = plus();
        rounds(&mut plus, &[50, 50]);
        plus.rtt_sample_count = 0;
        let ack = |plus: &mut HystartPlusPlus| {
            plus.current_round_min_rtt = Span::from_millis(90);
            plus.rtt_sample_count += 1;
            plus.update_css();
            plus.css.is_some()
        };
        assert_eq!(
            (0..8).map(|_| ack(&mut plus)).collect::<Vec<_>>(),
            [[false; 7].as_slice(), &[true]].concat()
        );
    }

    #[test]
    fn growth_is_a_quarter_in_css_and_an_ack_counts_for_at_most_eight_segments() {
        let mut plus = plus();
        assert_eq!([3, 8, 20].map(|acked| plus.growth(acked)), [3, 8, 8]);
        plus.css = Some(Css { baseline_min_rtt: NO_RTT, rounds: 0 });
        assert_eq!([3, 2, 8, 7].map(|acked| plus.growth(acked)), [0, 1, 2, 2], "of 20");
        let paced = TcpParams::LINUX.with(|p| {
            (p.growth.hystart_plus_plus, p.growth.pacing) = (true, true);
        });
        assert_eq!(HystartPlusPlus::new(&paced).expect("it is chosen").growth(20), 20);
    }
}
