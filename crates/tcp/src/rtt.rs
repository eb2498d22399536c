//! The retransmission timeout: smoothed RTT, its variation, and exponential backoff.
//!
//! Source: RFC 6298 (Jacobson and Karels, SIGCOMM 1988). srtt moves by 1/8 of the error, rttvar by 1/4 of its size,
//! RTO = srtt + 4 · rttvar, bounded; doubled at each timeout until new data is acknowledged by a segment sent once.
//! Deviations, by parameter: Linux applies the lower bound to the variance term (`min_rto_on_variance`); ns-2 measures
//! in ticks of its clock (`tick_ns`), counting those that began while the segment was under way.

use crate::TcpParams;
use units::{Span, Time};

/// State of RFC 6298.
#[derive(Debug)]
pub struct RttEstimator {
    /// ns; 0 before the first sample.
    srtt: f64,
    rttvar: f64,
    rto: Span,
    backoff: u32,
    min_rtt: Span,
    tick: u64,
    min: f64,
    max: f64,
    on_variance: bool,
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new(params: &TcpParams) -> RttEstimator {
        RttEstimator {
            srtt: 0.0,
            rttvar: 0.0,
            rto: Span(params.initial_rto_ns),
            backoff: 0,
            min_rtt: Span(u64::MAX),
            tick: params.tick_ns.max(1),
            min: params.min_rto_ns as f64,
            max: params.max_rto_ns as f64,
            on_variance: params.min_rto_on_variance,
        }
    }

    /// A segment that left at `sent` and was not sent again is acknowledged.
    #[inline]
    pub fn sample(&mut self, sent: Time, now: Time) -> Span {
        let rtt = now.since(sent);
        self.min_rtt = self.min_rtt.min(rtt);
        let r = if self.tick == 1 {
            rtt.0.max(1) as f64
        } else {
            // Ticks of the clock that began while it was under way, at least one.
            ((now.0 / self.tick - sent.0 / self.tick).max(1) * self.tick) as f64
        };
        if self.srtt == 0.0 {
            self.srtt = r;
            self.rttvar = r / 2.0;
        } else {
            let error = r - self.srtt;
            self.srtt += error * 0.125;
            self.rttvar += (error.abs() - self.rttvar) * 0.25;
        }
        let variance = 4.0 * self.rttvar;
        let rto = if self.on_variance { self.srtt + variance.max(self.min) } else { (self.srtt + variance).max(self.min) };
        self.rto = Span(rto.min(self.max) as u64);
        self.backoff = 0;
        rtt
    }

    /// The timeout in force.
    #[inline]
    pub fn rto(&self) -> Span {
        if self.backoff == 0 {
            return self.rto;
        }
        (self.rto * (1 << self.backoff)).min(Span(self.max as u64))
    }

    /// The timer went off: twice as long the next time, up to the upper bound.
    pub fn back_off(&mut self) {
        if self.rto().0 < self.max as u64 && self.backoff < u64::BITS - 1 {
            self.backoff += 1;
        }
    }

    /// Smoothed RTT.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        (self.srtt > 0.0).then_some(Span(self.srtt as u64))
    }

    /// The least RTT so far.
    #[inline]
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.0 != u64::MAX).then_some(self.min_rtt)
    }
}
