//! The offset of the server's clock, from exchanges. Each exchange has its send time and the
//! arrival of its reply here, and the time at which the server answered.
//!
//! If an exchange had no queueing delay, the server's time is in the middle of ours (RFC 5905,
//! section 8). Otherwise the error is half the difference of its two delays. So only the quickest
//! exchange of each second counts (RFC 5905, section 10, the clock filter), and only if it was
//! nearly as quick as the quickest of all. The line through these exchanges is Theil and Sen's: the
//! median slope of all pairs. The error has two parts: half the smallest round trip, because the
//! two directions may differ, and the median distance of the samples from the line.

const SECOND: i64 = 1_000_000_000;
/// An exchange is nearly as quick as the quickest within this margin, ns, or within a tenth.
const NEARLY: i64 = 200_000;
/// Only exchanges at least this far apart give a slope. Quartz clocks differ by less than 100 ppm:
/// over a shorter time they drift less than 0.5 ms apart.
const APART: i64 = 5 * SECOND;
/// Largest drift: quartz clocks, disciplined or not, do not differ by more.
const MOST_DRIFT: f64 = 500e-6;

/// One exchange with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Send time, ns, on our clock.
    pub sent: i64,
    /// Its round trip, ns.
    pub rtt: i64,
    /// Time at which the server answered, ns, on the server's clock.
    pub turned: i64,
}

impl Exchange {
    /// Returns the server's clock minus ours, assuming equal delays in both directions.
    fn offset(&self) -> f64 {
        self.turned.wrapping_sub(self.sent) as f64 - self.rtt as f64 / 2.0
    }

    fn middle(&self) -> f64 {
        self.sent as f64 + self.rtt as f64 / 2.0
    }
}

/// The server's clock minus ours: a line over our time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// Offset at our time 0, ns.
    pub at_zero: f64,
    /// Growth per nanosecond.
    pub drift: f64,
    /// Largest likely error, ns.
    pub error: f64,
    /// Number of exchanges used.
    pub samples: usize,
}

impl Offset {
    /// Fits the line to exchanges in any order; `None` if there are none.
    pub fn fit(exchanges: &[Exchange]) -> Option<Offset> {
        let best = exchanges.iter().map(|e| e.rtt).min()?;
        let mut quickest: std::collections::BTreeMap<i64, Exchange> = Default::default();
        for exchange in exchanges {
            let of_second = quickest.entry(exchange.sent.div_euclid(SECOND)).or_insert(*exchange);
            if exchange.rtt < of_second.rtt {
                *of_second = *exchange;
            }
        }
        let good: Vec<Exchange> =
            quickest.into_values().filter(|e| e.rtt <= best + NEARLY.max(best / 10)).collect();
        let mut slopes = Vec::new();
        for (i, one) in good.iter().enumerate() {
            for other in &good[i + 1..] {
                let apart = other.middle() - one.middle();
                if apart >= APART as f64 {
                    slopes.push((other.offset() - one.offset()) / apart);
                }
            }
        }
        let drift = median(&mut slopes).filter(|drift| drift.abs() <= MOST_DRIFT).unwrap_or(0.0);
        let mut zeros: Vec<f64> = good.iter().map(|e| e.offset() - drift * e.middle()).collect();
        let at_zero = median(&mut zeros)?;
        let mut distances: Vec<f64> = zeros.iter().map(|zero| (zero - at_zero).abs()).collect();
        let error = best as f64 / 2.0 + median(&mut distances)?;
        Some(Offset { at_zero, drift, error, samples: good.len() })
    }

    /// Converts a time of the server's clock to ours.
    pub fn ours(&self, theirs: i64) -> i64 {
        ((theirs as f64 - self.at_zero) / (1.0 + self.drift)).round() as i64
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const ZERO: i64 = 77 * SECOND;

    /// An exchange at `sent` with these one-way delays, and a clock that gains 50 ppm.
    fn exchange(sent: i64, forward: i64, backward: i64) -> Exchange {
        let there = sent + forward;
        Exchange { sent, rtt: forward + backward, turned: ZERO + there + there / 20_000 }
    }

    #[test]
    fn offset_and_drift_are_found_below_a_queue() {
        // 20 per second for a minute; from second 10 to 50 up to 300 ms of queueing delay in one
        // direction or the other.
        let all: Vec<Exchange> = (0..1200)
            .map(|i| {
                let (sent, queue) = (i * 50 * MS, (i * 37 % 300) * MS);
                match sent / SECOND {
                    10..30 => exchange(sent, 5 * MS + queue, 5 * MS),
                    30..50 => exchange(sent, 5 * MS, 5 * MS + queue),
                    _ => exchange(sent, 5 * MS + i % 7 * 1000, 5 * MS),
                }
            })
            .collect();
        let offset = Offset::fit(&all).unwrap();
        assert!((offset.drift - 50e-6).abs() < 1e-6, "{offset:?}");
        assert!((offset.at_zero - ZERO as f64).abs() < 20_000.0, "{offset:?}");
        assert!((5e6..5.2e6).contains(&offset.error), "{offset:?}");
        let there = ZERO + 60 * SECOND + 3 * MS;
        assert!((offset.ours(there) - 60 * SECOND).abs() < 30_000, "{}", offset.ours(there));
    }

    #[test]
    fn a_path_that_is_longer_one_way_is_within_the_error() {
        let all: Vec<Exchange> = (0..100).map(|i| exchange(i * 100 * MS, 9 * MS, MS)).collect();
        let offset = Offset::fit(&all).unwrap();
        assert!((offset.at_zero - ZERO as f64).abs() <= offset.error, "{offset:?}");
    }

    #[test]
    fn few_exchanges_give_an_offset_but_no_drift() {
        assert_eq!(Offset::fit(&[]), None);
        let offset = Offset::fit(&[exchange(SECOND, MS, MS)]).unwrap();
        assert_eq!((offset.drift, offset.samples), (0.0, 1));
        assert!((offset.ours(ZERO + SECOND) - SECOND).abs() < MS);
    }

    #[test]
    fn an_exchange_counts_up_to_a_tenth_or_a_fifth_of_a_millisecond_above_the_quickest() {
        let counted = |quickest: i64, slower: i64| {
            let rtts = [quickest, slower].into_iter().zip(0..);
            let both: Vec<_> =
                rtts.map(|(us, s)| exchange(s * SECOND, us * 500, us * 500)).collect();
            Offset::fit(&both).expect("there are two").samples
        };
        assert_eq!([11_000, 11_001].map(|us| counted(10_000, us)), [2, 1]);
        assert_eq!([1_200, 1_201].map(|us| counted(1_000, us)), [2, 1]);
    }

    #[test]
    fn a_drift_is_estimated_from_five_seconds_on_and_bounded_like_a_quartz_clock_s() {
        let drift = |later: Exchange| Offset::fit(&[exchange(0, MS, MS), later]).unwrap().drift;
        assert_eq!(drift(exchange(5 * SECOND - 1, MS, MS)), 0.0);
        assert!((drift(exchange(5 * SECOND, MS, MS)) - 50e-6).abs() < 1e-9);
        // The server's clock was stepped by 10 ms in ten seconds.
        let even = exchange(10 * SECOND, MS, MS);
        assert_eq!(drift(Exchange { turned: even.turned + 10 * MS, ..even }), 0.0);
    }
}
