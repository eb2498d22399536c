//! Prague: a scalable congestion control for L4S. Flows with an RTT below 25 ms grow as if it were
//! 25 ms.
//!
//! The window has fractions. Each round trip it grows by one segment less the marked share. Marks
//! reduce it by alpha/2, once a round trip, where alpha is a moving average of the marked share. So
//! the mean window is 2 (1 - p)/p segments. Growth continues during a reduction. Below 25 ms growth
//! and alpha follow a virtual RTT of 25 ms.
//!
//! Three descriptions have the name, and differ: `tcp_prague` is Linux's module, `prague_draft` the
//! internet draft, `udp_prague` the L4STeam's reference for UDP. RFC 9331 §4.3 has the
//! requirements.

mod prague_draft;
mod tcp_prague;
mod udp_prague;

use super::{
    Ack, AckEvent, Congestion, CongestionControl, Delivered, MarkBased, Needs, Paced, Reno,
};
use crate::TcpParams;
use crate::params::PragueVariant;
use crate::rate::Totals;
use prague_draft::PragueDraft;
use tcp_prague::TcpPrague;
use udp_prague::UdpPrague;
use units::forward;

/// The state of Prague.
pub struct Prague {
    variant: Variant,
    /// The control without AccECN.
    fallback: Reno,
}

enum Variant {
    Linux(TcpPrague),
    Draft(PragueDraft),
    Udp(UdpPrague),
}

impl Prague {
    /// The initial window, in slow start if the variant has one.
    pub fn new(params: &TcpParams) -> Prague {
        let variant = match params.growth.prague_variant {
            PragueVariant::Linux => Variant::Linux(TcpPrague::new(params)),
            PragueVariant::Draft => Variant::Draft(PragueDraft::new(params)),
            PragueVariant::Udp => Variant::Udp(UdpPrague::new(params)),
        };
        Prague { variant, fallback: Reno::new(params) }
    }

    /// The Reno of the same host, in its initial state.
    pub fn fallback(&self) -> &Reno {
        &self.fallback
    }
}

impl Needs {
    /// The needs of each variant: `cong_control` moves the window.
    const PRAGUE: Needs = Needs { acks: false, sets_cwnd: true, paced: true, ..Needs::ACKS };
}

/// The segments delivered since `before`, and those of them that were marked.
fn since(before: Delivered, now: Delivered) -> Delivered {
    Delivered {
        packets: now.packets.wrapping_sub(before.packets),
        ce: now.ce.wrapping_sub(before.ce),
    }
}

macro_rules! each_variant {
    ($self:expr, $variant:ident => $body:expr) => {
        match $self {
            Prague { variant: Variant::Linux($variant), .. } => $body,
            Prague { variant: Variant::Draft($variant), .. } => $body,
            Prague { variant: Variant::Udp($variant), .. } => $body,
        }
    };
}

impl CongestionControl for Prague {
    forward! { each_variant:
        fn needs(&self) -> Needs;
        fn on_ack(&mut self, ack: &Ack);
        fn on_congestion(&mut self, event: &Congestion);
        fn undo(&mut self, prior_cwnd: f64, totals: Totals);
        #[inline]
        fn cwnd(&self) -> f64;
        fn set_cwnd(&mut self, cwnd: f64);
        #[inline]
        fn ssthresh(&self) -> f64;
        fn set_ssthresh(&mut self, ssthresh: f64);
    }
}

impl MarkBased for Prague {
    forward! { each_variant:
        fn cong_control(&mut self, event: &AckEvent);
    }
}

impl Paced for Prague {
    forward! { each_variant:
        #[inline]
        fn rate(&self) -> Option<u64>;
        #[inline]
        fn burst(&self) -> u32;
        fn payload(&self) -> u32;
    }
}

/// Flows over a small path, for the tests of the variants.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Signal;
    use units::{Span, Time};

    const VARIANTS: [PragueVariant; 3] =
        [PragueVariant::Linux, PragueVariant::Draft, PragueVariant::Udp];

    fn prague(variant: PragueVariant) -> Prague {
        Prague::new(&crate::cc::test::params().with(|p| p.growth.prague_variant = variant))
    }

    /// A flow without a queue. In each round trip its window is delivered segment by segment.
    struct Flow {
        prague: Prague,
        rtt: Span,
        now: Time,
        una: u32,
        all: Delivered,
        /// One segment in `one_in` is marked; 0: none.
        one_in: u32,
        /// The sender reduces for marks (TCP_CA_CWR) until this segment is acknowledged.
        recover: u32,
    }

    impl Flow {
        fn new(variant: PragueVariant, rtt: Span, one_in: u32) -> Flow {
            let (now, all) = (Time::ZERO, Delivered::default());
            Flow { prague: prague(variant), rtt, now, una: 0, all, one_in, recover: 0 }
        }

        fn round(&mut self) {
            let (begun, window) = (self.now, self.prague.cwnd() as u32);
            let nxt = self.una + window;
            for index in 0..window {
                self.now = begun + self.rtt * u64::from(index + 1) / u64::from(window);
                self.una += 1;
                self.all.packets += 1;
                let ce = self.one_in > 0 && self.all.packets.is_multiple_of(self.one_in);
                self.all.ce += u32::from(ce);
                if ce && self.una > self.recover {
                    self.recover = nxt + index;
                    let signal = Signal::Ecn;
                    self.prague.on_congestion(&Congestion { now: self.now, signal, inflight: 0 });
                }
                self.prague.cong_control(&AckEvent {
                    delivered: self.all,
                    una: self.una,
                    nxt: nxt + index,
                    now: self.now,
                    srtt: Some(self.rtt),
                    in_flight: window,
                    cwnd_limited: true,
                    lossless: true,
                });
            }
        }

        /// Segments delivered a second, over `rounds` round trips after as many others.
        fn rate(&mut self, rounds: u32) -> f64 {
            (0..rounds).for_each(|_| self.round());
            let (packets, begun) = (self.all.packets, self.now);
            (0..rounds).for_each(|_| self.round());
            f64::from(self.all.packets - packets) / self.now.since(begun).as_secs_f64()
        }
    }

    /// All three follow one law: the rate is 2 (1 - p)/p segments a virtual RTT. Two of these
    /// segments are marked, so a mark arrives every half virtual RTT. A reduction waits for a
    /// virtual RTT after the last one, and then for a mark. So up to one and a half virtual RTTs
    /// pass between two reductions, and the rate is up to one half higher. Below 25 ms it is higher
    /// still with `Linux`, which checks once a round trip.
    #[test]
    fn each_variant_s_rate_follows_its_formula_of_the_share_of_marks() {
        for (variant, one_in, ms) in [
            (PragueVariant::Linux, 20, 40),
            (PragueVariant::Draft, 20, 40),
            (PragueVariant::Udp, 20, 40),
            (PragueVariant::Draft, 50, 5),
            (PragueVariant::Linux, 50, 5),
            (PragueVariant::Udp, 50, 5),
        ] {
            let mut flow = Flow::new(variant, Span::from_millis(ms), one_in);
            let rate = flow.rate(4000);
            let p = 1.0 / f64::from(one_in);
            let wanted = 2.0 * (1.0 - p) / p * 1000.0 / ms.max(25) as f64;
            let off = rate / wanted - 1.0;
            assert!((-0.1..0.8).contains(&off), "{variant:?}, 1 in {one_in}, {ms} ms: {off:+.2}");
        }
    }

    #[test]
    fn without_marks_two_of_the_three_variants_double_each_round_trip() {
        let after = VARIANTS.map(|variant| {
            let mut flow = Flow::new(variant, Span::from_millis(40), 0);
            (0..4).for_each(|_| flow.round());
            flow.prague.cwnd()
        });
        assert_eq!(after[..2], [160.0, 160.0]);
        assert!(after[2] < 10.0, "udp_prague has no slow start: {}", after[2]);
    }
}
