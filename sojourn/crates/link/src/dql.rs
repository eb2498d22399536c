//! Byte queue limits (BQL): the limit of bytes in a driver's ring, learnt from its completions.
//!
//! The ring should contain just enough bytes that the transmitter never runs dry between two
//! completions. The discipline can no longer control packets in the ring. The limit grows by the
//! shortage when the ring ran empty while packets were held back. While the ring stays busy, once a
//! second the limit falls by the least slack (bytes that were not needed) of that second. The host
//! may queue while the queued bytes are at most the limit, so one packet overshoots.
//!
//! Source: T. Herbert, "bql: Byte Queue Limits" (2011), as in Linux lib/dynamic_queue_limits.c
//! (dql_completed; hold time 1 s, least limit 0, first limit 0; its clock counts jiffies, here
//! Debian's of 4 ms). Deviation: totals never wrap.

use units::{Span, Time};

/// The kernel's jiffy with HZ 250.
const TICK: Span = Span::from_millis(4);
/// The slack is subtracted after more than this many jiffies (slack_hold_time, 1 s).
const HOLD_TICKS: u64 = 250;
/// Linux's `DQL_MAX_LIMIT`, bytes.
const MOST: u64 = 1_879_048_192;

/// The limit of one ring. All amounts are bytes as the discipline counts them.
#[derive(Clone, Debug, Default)]
pub struct Dql {
    limit: u64,
    /// Bytes queued to the ring since the start (num_queued).
    queued: u64,
    /// Bytes completed since the start (num_completed).
    completed: u64,
    /// Bytes of the packet queued last (last_obj_cnt).
    last_packet: u64,
    /// The queue is stopped until a completion makes room.
    stopped: bool,
    previous: Previous,
    /// The least slack since `slack_since` (lowest_slack); `None`: none seen.
    least_slack: Option<u64>,
    slack_since: Time,
}

/// The state at the previous completion.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    queued: u64,
    /// Bytes in the ring above the limit (prev_ovlimit).
    over: u64,
    last_packet: u64,
}

impl Dql {
    /// The most bytes in the ring; one packet may exceed it.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether packets must wait for a completion.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// A packet enters the ring.
    #[inline]
    pub fn queued(&mut self, bytes: u64) {
        self.queued += bytes;
        self.last_packet = bytes;
        self.stopped = self.is_over();
    }

    /// The driver reports at `now` that `bytes` more are sent.
    pub fn completed(&mut self, bytes: u64, now: Time) {
        let completed = self.completed + bytes;
        let over = (self.queued - self.completed).saturating_sub(self.limit);
        let busy = self.queued > completed;
        let previous = self.previous;
        let before_done = completed >= previous.queued;

        let mut limit = self.limit;
        if (over > 0 && !busy) || (previous.over > 0 && before_done) {
            // Starved: packets were held back, and the ring ran empty, or at least all bytes that
            // it contained at the previous completion are sent.
            limit += completed.saturating_sub(previous.queued) + previous.over;
            self.forget_slack(now);
        } else if busy && !before_done {
            // Busy all the time: bytes beyond twice this completion were not needed.
            let unneeded = (limit + previous.over).saturating_sub(2 * bytes);
            // Of the packet that overshot, only the bytes within the limit count.
            let within = if previous.over > 0 {
                previous.last_packet.saturating_sub(previous.over)
            } else {
                0
            };
            let slack = unneeded.max(within);
            let least = self.least_slack.map_or(slack, |least| least.min(slack));
            self.least_slack = Some(least);
            if now.0 / TICK.0 > self.slack_since.0 / TICK.0 + HOLD_TICKS {
                limit = limit.saturating_sub(least);
                self.forget_slack(now);
            }
        }
        limit = limit.min(MOST);

        let over = if limit == self.limit { over } else { 0 };
        self.previous = Previous { queued: self.queued, over, last_packet: self.last_packet };
        self.limit = limit;
        self.completed = completed;
        // A smaller limit alone does not stop the queue: only a packet that is queued does.
        self.stopped &= self.is_over();
    }

    fn is_over(&self) -> bool {
        self.queued - self.completed > self.limit
    }

    fn forget_slack(&mut self, now: Time) {
        self.least_slack = None;
        self.slack_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Keeps a link busy from a queue that is never empty, for `packets` packets of `bytes`, each
    /// of which takes 1.2 ms.
    fn saturated(dql: &mut Dql, bytes: u64, packets: u64, from: Time) -> Time {
        let mut now = from;
        for _ in 0..packets {
            while !dql.is_stopped() {
                dql.queued(bytes);
            }
            now += Span(MS * 6 / 5);
            dql.completed(bytes, now);
        }
        now
    }

    #[test]
    fn the_first_packet_stops_the_queue_and_its_completion_teaches_its_size() {
        let mut dql = Dql::default();
        dql.queued(1514);
        assert!(dql.is_stopped(), "0 bytes are the limit, one packet overshoots");
        dql.completed(1514, Time(MS));
        assert_eq!((dql.limit(), dql.is_stopped()), (1514, false));
    }

    #[test]
    fn a_saturated_link_settles_at_two_packets() {
        // As in Linux: 3028 bytes at any rate, if each completion is reported separately. With two
        // packets inside, the third may still enter: 3028 bytes are not more than the limit.
        let mut dql = Dql::default();
        saturated(&mut dql, 1514, 10_000, Time::ZERO);
        assert_eq!(dql.limit(), 2 * 1514);
    }

    #[test]
    fn slack_is_subtracted_after_a_busy_second() {
        let mut dql = Dql { limit: 100_000, ..Dql::default() };
        let almost = saturated(&mut dql, 1514, 830, Time::ZERO);
        assert_eq!((dql.limit(), almost < Time(1000 * MS)), (100_000, true));
        saturated(&mut dql, 1514, 10_000, almost);
        assert!(dql.limit() <= 2 * 1514, "{}", dql.limit());
    }

    #[test]
    fn the_second_is_counted_in_ticks() {
        for (at, limit) in [(1003, 100_000), (1004, 98_562)] {
            let previous = Previous { queued: 101_438, over: 0, last_packet: 0 };
            let mut dql = Dql { limit: 100_000, queued: 101_438, previous, ..Dql::default() };
            dql.completed(49_281, Time(at * MS));
            assert_eq!(dql.limit(), limit, "at {at} ms");
        }
    }

    #[test]
    fn slack_is_what_neither_two_completions_nor_the_last_packet_needed() {
        // 67 packets are 1438 bytes more than the limit; two completions of one packet each are
        // 3028 bytes.
        let mut dql = Dql { limit: 100_000, ..Dql::default() };
        let mut now = saturated(&mut dql, 1514, 830, Time::ZERO);
        while dql.limit() == 100_000 {
            now = saturated(&mut dql, 1514, 1, now);
        }
        assert_eq!(dql.limit(), 100_000 - (100_000 + 1438 - 3028));
        // Twice a completion of 1100 bytes is all the bytes there were; of the last packet 1400
        // bytes were within the limit.
        let previous = Previous { queued: 2100, over: 100, last_packet: 1500 };
        let mut dql =
            Dql { limit: 2000, queued: 2100, last_packet: 1500, previous, ..Dql::default() };
        dql.completed(1100, Time(1004 * MS));
        assert_eq!(dql.limit(), 600);
    }

    #[test]
    fn a_limit_that_shrinks_stops_nothing_by_itself() {
        let previous = Previous { queued: 9000, over: 0, last_packet: 1500 };
        let mut dql = Dql { limit: 9000, queued: 9000, previous, ..Dql::default() };
        dql.completed(1500, Time(1004 * MS));
        assert_eq!((dql.limit(), dql.is_stopped()), (3000, false), "7500 bytes are inside");
        dql.queued(100);
        assert!(dql.is_stopped());
    }

    #[test]
    fn a_queue_that_holds_nothing_back_keeps_its_limit() {
        // Fewer bytes than the limit at a time, and an empty ring in between: neither starved nor
        // busy.
        let mut dql = Dql { limit: 5000, ..Dql::default() };
        for i in 0..10_000 {
            dql.queued(1514);
            dql.completed(1514, Time(i * MS));
        }
        assert_eq!(dql.limit(), 5000);
    }
}
