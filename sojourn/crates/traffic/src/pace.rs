//! The pace of an application that writes to a TCP connection.
//!
//! The application produces data at a rate that changes in steps. It writes one full segment as
//! soon as it has produced that much, and the first one at once. What its socket does not accept
//! waits in the application and is written later, so a live stream that fell behind catches up.
//! Between writes the connection has nothing to send.
//!
//! The simulator and the program in a kernel guest use the same source, so both write at the same
//! times.

use serde::{Deserialize, Serialize};
use units::{Span, Time};

/// The pace of an application.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// (ns from the flow's start, bit/s of payload from then on), in rising order from 0 on. `None`:
    /// the application always has more to write.
    pub steps: Vec<(u64, Option<u64>)>,
    /// Bytes of a write.
    pub write_bytes: u64,
}

impl Pace {
    /// The mean rate over the first `span_ns`, bit/s; infinite if a step is unlimited.
    pub fn mean_bps(&self, span_ns: u64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([u64::MAX]);
        let bits: f64 = self
            .steps
            .iter()
            .zip(ends)
            .map(|(&(at, bps), end)| (end.min(span_ns).saturating_sub(at), bps))
            .filter(|&(length, _)| length > 0)
            .map(|(length, bps)| bps.map_or(f64::INFINITY, |bps| bps as f64 * length as f64))
            .sum();
        bits / span_ns.max(1) as f64
    }
}

/// Bits times this are a credit: a rate in bit/s times a time in ns.
const NS: u128 = 1_000_000_000;

/// An application that writes at its pace.
#[derive(Clone, Debug)]
pub struct PacedWriter {
    pace: Pace,
    start: Time,
    step: usize,
    /// The time up to which production is counted, ns from the start.
    at: u64,
    /// Production towards the next write, bit/s times ns.
    credit: u128,
    /// Bytes to write since the start.
    bytes: u64,
}

impl PacedWriter {
    /// An application that starts at `start`.
    pub fn new(pace: Pace, start: Time) -> PacedWriter {
        let credit = u128::from(pace.write_bytes) * 8 * NS;
        PacedWriter { pace, start, step: 0, at: 0, credit, bytes: 0 }
    }

    /// The time at which the application has more to write, or changes its rate. NEVER: it never
    /// does.
    pub fn next(&self) -> Time {
        let at = self.step_end().min(self.next_write().unwrap_or(u64::MAX));
        if at == u64::MAX { Time::NEVER } else { self.start + Span(at) }
    }

    /// Advances to `now`. Returns the bytes that the application has had to write since the start;
    /// `u64::MAX` if it always has more. Its socket has accepted `written` bytes.
    pub fn produce(&mut self, now: Time, written: u64) -> u64 {
        let now = now.since(self.start).0;
        loop {
            let end = self.step_end();
            if self.rate().is_none() {
                if now < end {
                    return u64::MAX;
                }
                // What was not written by then is not written later either.
                (self.bytes, self.credit) = (written, 0);
                (self.at, self.step) = (end, self.step + 1);
                continue;
            }
            let write = self.next_write().filter(|&at| at <= now.min(end));
            let until = write.unwrap_or(now.min(end));
            self.credit += u128::from(self.rate().unwrap_or(0)) * u128::from(until - self.at);
            self.at = until;
            if write.is_some() {
                self.credit -= u128::from(self.pace.write_bytes) * 8 * NS;
                self.bytes += self.pace.write_bytes;
            } else if until == end {
                self.step += 1;
            } else {
                return self.bytes;
            }
        }
    }

    fn rate(&self) -> Option<u64> {
        self.pace.steps[self.step].1
    }

    fn step_end(&self) -> u64 {
        self.pace.steps.get(self.step + 1).map_or(u64::MAX, |step| step.0)
    }

    /// The time of the next write if the rate stays; `None`: the rate is 0 or unlimited.
    fn next_write(&self) -> Option<u64> {
        let bps = self.rate().filter(|&bps| bps > 0)?;
        let lacking = (u128::from(self.pace.write_bytes) * 8 * NS).saturating_sub(self.credit);
        Some(self.at + lacking.div_ceil(bps.into()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(steps: &[(u64, Option<u64>)]) -> PacedWriter {
        PacedWriter::new(Pace { steps: steps.to_vec(), write_bytes: 1000 }, Time(5))
    }

    /// The times of writes and steps up to `until`, with the bytes to write by then.
    fn produced(mut writer: PacedWriter, until: u64, written: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while writer.next() <= Time(until) {
            let now = writer.next();
            all.push((now.0, writer.produce(now, written)));
        }
        all
    }

    #[test]
    fn a_rate_is_kept_and_the_first_write_is_at_the_start() {
        // 1000 bytes at 3 Mbit/s: 2666666.67 ns each.
        let writes = produced(writer(&[(0, Some(3_000_000))]), 8_000_000, 0);
        assert_eq!(writes, [(5, 1000), (2_666_672, 2000), (5_333_339, 3000)]);
        let last = produced(writer(&[(0, Some(3_000_000))]), 8_000_000_005, 0);
        assert_eq!(last.last(), Some(&(8_000_000_005, 3_001_000)));
    }

    #[test]
    fn a_write_that_a_step_interrupts_is_completed_at_the_new_rate() {
        // Half of a write at 8 Mbit/s takes 500 µs; the other half, at 1 Mbit/s, 4 ms.
        let steps = [(0, Some(8_000_000)), (1_500_000, Some(0)), (2_000_000, Some(1_000_000))];
        let writes = produced(writer(&steps), 7_000_000, 0);
        let ms = |us: u64| 5 + 1000 * us;
        let expected = [(ms(0), 1000), (ms(1000), 2000), (ms(1500), 2000), (ms(2000), 2000)];
        assert_eq!(writes[..4], expected);
        assert_eq!(writes[4], (ms(6000), 3000));
    }

    #[test]
    fn after_a_time_without_a_limit_the_rate_continues_from_the_written_bytes() {
        let steps = [(0, None), (1_000_000, Some(8_000_000)), (2_500_000, None)];
        let mut unlimited = writer(&steps);
        assert_eq!(unlimited.produce(Time(5), 0), u64::MAX);
        assert_eq!(unlimited.next(), Time(1_000_005));
        let writes = produced(unlimited, 3_000_000, 70_000);
        let expected = [(1_000_005, 70_000), (2_000_005, 71_000), (2_500_005, u64::MAX)];
        assert_eq!(writes, expected);
    }

    #[test]
    fn a_late_call_changes_nothing() {
        let steps = [(0, Some(8_000_000)), (3_500_000, Some(0)), (9_000_000, Some(4_000_000))];
        let mut late = writer(&steps);
        let by = |until| produced(writer(&steps), until, 0).last().map(|last| last.1);
        for now in [5, 2_000_700, 9_500_000, 30_000_000] {
            assert_eq!(Some(late.produce(Time(now), 0)), by(now));
        }
    }

    #[test]
    fn the_mean_is_over_the_time_that_is_asked_for() {
        let pace = |steps: &[_]| Pace { steps: steps.to_vec(), write_bytes: 1000 };
        let stepped = pace(&[(0, Some(4)), (10, Some(8)), (20, None)]);
        assert_eq!(stepped.mean_bps(10), 4.0);
        assert_eq!(stepped.mean_bps(20), 6.0);
        assert_eq!(stepped.mean_bps(21), f64::INFINITY);
    }
}
