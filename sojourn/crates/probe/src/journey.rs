//! The times of one packet at several places: before a queue, after it, and perhaps at the far end
//! of its wire.
//!
//! Stage 0 adds a row for each packet. A packet seen at a later stage is put into the oldest row
//! with the same key that lacks that stage. So packets with equal keys are assumed to keep their
//! order; they are rare, because a retransmission has another IP identification. A row that still
//! lacks a stage at the end is a packet that was dropped before that stage. A packet seen at a
//! later stage without a row did not pass stage 0, and is counted.
//!
//! Packets of different places are not reported in the order of their times, because each tap
//! delivers whole blocks. So packets of later stages wait until `settle` is called with a time up
//! to which stage 0 is complete.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::tap::{Key, Packet};

/// The packet was not seen at this stage.
pub const NEVER: i64 = -1;
const NONE: u32 = u32::MAX;

/// The rows, column by column.
#[derive(Debug)]
pub struct Journeys {
    /// Times at each stage, in the order in which stage 0 reported the packets; or `NEVER`.
    times: Vec<Vec<i64>>,
    /// The flow's number, chosen by the caller.
    flow: Vec<i32>,
    /// The DS field at stage 0 and at stage 1; the second equals the first until stage 1 is known.
    ds: [Vec<u8>; 2],
    bytes: Vec<u32>,
    stages: Vec<Waiting>,
}

/// Rows and packets of a later stage that wait for each other. The hasher has fixed keys: a run
/// must not depend on the kernel's random numbers.
#[derive(Debug, Default)]
struct Waiting {
    /// Oldest and newest row that lacks this stage, for each key.
    rows: HashMap<Key, (u32, u32), BuildHasherDefault<DefaultHasher>>,
    /// The next younger row of the same key.
    younger: Vec<u32>,
    /// Packets that wait for `settle`.
    held: VecDeque<(Key, i64, u8)>,
    unexpected: u64,
}

/// A row in the order of stage 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time at each stage, `NEVER` if it was not seen there.
    pub times: Vec<i64>,
    /// The flow's number.
    pub flow: i32,
    /// The DS field before and after the queue.
    pub ds: [u8; 2],
    /// Bytes of the IP packet.
    pub bytes: u32,
}

impl Journeys {
    /// Creates an empty table with this number of stages.
    pub fn new(stages: usize) -> Journeys {
        assert!(stages >= 2, "a journey has a beginning and an end");
        Journeys {
            times: vec![Vec::new(); stages],
            flow: Vec::new(),
            ds: [Vec::new(), Vec::new()],
            bytes: Vec::new(),
            stages: (1..stages).map(|_| Waiting::default()).collect(),
        }
    }

    /// Adds a packet at stage 0, seen at `time`.
    pub fn begin(&mut self, packet: &Packet, time: i64, flow: i32) {
        let row = self.flow.len() as u32;
        for (stage, times) in self.times.iter_mut().enumerate() {
            times.push(if stage == 0 { time } else { NEVER });
        }
        self.flow.push(flow);
        self.bytes.push(packet.bytes);
        self.ds.iter_mut().for_each(|ds| ds.push(packet.ds));
        for waiting in &mut self.stages {
            waiting.younger.push(NONE);
            let ends = waiting.rows.entry(packet.key).or_insert((row, row));
            if ends.1 != row {
                waiting.younger[ends.1 as usize] = row;
                ends.1 = row;
            }
        }
    }

    /// Adds a packet at a later stage, seen at `time`.
    pub fn pass(&mut self, stage: usize, packet: &Packet, time: i64) {
        self.stages[stage - 1].held.push_back((packet.key, time, packet.ds));
    }

    /// Stage 0 is complete up to `until`: assigns the packets of later stages up to that time to
    /// their rows.
    pub fn settle(&mut self, until: i64) {
        for stage in 1..=self.stages.len() {
            while let Some(&(key, time, ds)) = self.stages[stage - 1].held.front() {
                if time > until {
                    break;
                }
                self.stages[stage - 1].held.pop_front();
                self.place(stage, key, time, ds);
            }
        }
    }

    fn place(&mut self, stage: usize, key: Key, time: i64, ds: u8) {
        let waiting = &mut self.stages[stage - 1];
        let Some(ends) =
            waiting.rows.get_mut(&key).filter(|ends| self.times[0][ends.0 as usize] <= time)
        else {
            waiting.unexpected += 1;
            return;
        };
        let row = ends.0 as usize;
        ends.0 = waiting.younger[row];
        if ends.0 == NONE {
            waiting.rows.remove(&key);
        }
        self.times[stage][row] = time;
        if stage == 1 {
            self.ds[1][row] = ds;
        }
    }

    /// Returns the number of packets that have a row and were seen at a stage.
    pub fn count(&self, stage: usize) -> u64 {
        self.times[stage].iter().filter(|&&t| stage == 0 || t != NEVER).count() as u64
    }

    /// Returns the number of packets seen at a later stage but not at stage 0.
    pub fn unexpected(&self, stage: usize) -> u64 {
        self.stages[stage - 1].unexpected
    }

    /// Returns the rows in order of their time at stage 0; rows of equal time keep the order of
    /// `begin`.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let mut order: Vec<u32> = (0..self.flow.len() as u32).collect();
        order.sort_by_key(|&row| self.times[0][row as usize]);
        order.into_iter().map(|row| {
            let row = row as usize;
            Row {
                times: self.times.iter().map(|times| times[row]).collect(),
                flow: self.flow[row],
                ds: [self.ds[0][row], self.ds[1][row]],
                bytes: self.bytes[row],
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::{TCP, parse, tests::ipv4, tests::tcp};

    fn packet(ds: u8, id: u16, seq: u32) -> Packet {
        parse(&ipv4(ds, id, 64, TCP, &tcp(seq, 0)), 0).unwrap()
    }

    fn times(journeys: &Journeys) -> Vec<Vec<i64>> {
        journeys.rows().map(|row| row.times).collect()
    }

    #[test]
    fn each_packet_finds_its_own_row_and_the_missing_one_was_dropped() {
        let mut journeys = Journeys::new(3);
        for (id, at) in [(1, 10), (2, 20), (3, 30)] {
            journeys.begin(&packet(0, id, u32::from(id)), at, 0);
        }
        journeys.pass(1, &packet(0, 1, 1), 15);
        journeys.pass(1, &packet(0, 3, 3), 35);
        journeys.pass(2, &packet(0, 1, 1), 25);
        journeys.settle(100);
        assert_eq!(times(&journeys), [[10, 15, 25], [20, NEVER, NEVER], [30, 35, NEVER]]);
        assert_eq!((journeys.count(0), journeys.count(1), journeys.count(2)), (3, 2, 1));
        assert_eq!(journeys.unexpected(1), 0);
    }

    #[test]
    fn a_retransmission_is_not_mistaken_for_the_dropped_packet() {
        let mut journeys = Journeys::new(2);
        journeys.begin(&packet(0, 1, 1000), 10, 0);
        journeys.begin(&packet(0, 9, 1000), 50, 0);
        journeys.pass(1, &packet(0, 9, 1000), 55);
        journeys.settle(100);
        assert_eq!(times(&journeys), [[10, NEVER], [50, 55]]);
    }

    #[test]
    fn packets_with_equal_keys_keep_their_order() {
        let mut journeys = Journeys::new(2);
        for at in [10, 20, 30] {
            journeys.begin(&packet(0, 1, 1), at, 0);
        }
        for at in [40, 50] {
            journeys.pass(1, &packet(0, 1, 1), at);
        }
        journeys.settle(100);
        journeys.begin(&packet(0, 1, 1), 110, 0);
        journeys.pass(1, &packet(0, 1, 1), 120);
        journeys.pass(1, &packet(0, 1, 1), 130);
        journeys.settle(200);
        assert_eq!(times(&journeys), [[10, 40], [20, 50], [30, 120], [110, 130]]);
    }

    #[test]
    fn a_row_has_the_ds_fields_before_and_after_the_queue() {
        let mut journeys = Journeys::new(2);
        journeys.begin(&packet(2, 1, 1), 10, 4);
        journeys.pass(1, &packet(3, 1, 1), 15);
        journeys.settle(20);
        let row = journeys.rows().next().unwrap();
        assert_eq!((row.ds, row.flow, row.bytes), ([2, 3], 4, 48));
    }

    #[test]
    fn an_observation_waits_for_the_earlier_one_of_stage_0() {
        let mut journeys = Journeys::new(2);
        // The later tap's block is reported first.
        journeys.pass(1, &packet(0, 1, 1), 15);
        journeys.settle(12);
        journeys.begin(&packet(0, 1, 1), 10, 0);
        journeys.settle(20);
        assert_eq!(times(&journeys), [[10, 15]]);
    }

    #[test]
    fn packets_that_skipped_stage_0_are_counted() {
        let mut journeys = Journeys::new(2);
        journeys.pass(1, &packet(0, 1, 1), 15);
        // The same key, but later: a packet can't reach stage 1 before stage 0.
        journeys.begin(&packet(0, 1, 1), 20, 0);
        journeys.settle(100);
        assert_eq!(journeys.unexpected(1), 1);
        assert_eq!(times(&journeys), [[20, NEVER]]);
    }

    #[test]
    fn rows_come_in_order_of_time_whatever_the_order_of_the_taps() {
        let mut journeys = Journeys::new(2);
        for (id, at) in [(1, 30), (2, 10), (3, 20)] {
            journeys.begin(&packet(0, id, 1), at, i32::from(id));
        }
        assert_eq!(journeys.rows().map(|row| row.flow).collect::<Vec<_>>(), [2, 3, 1]);
    }
}
