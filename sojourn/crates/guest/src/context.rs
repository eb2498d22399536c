//! What flows need of the run they are in: its plan, its agenda, its epoll, its tables.
//!
//! `run` owns the context and hands it to each flow that has something to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use probe::sys::Batch;
use probe::{Clock, Epoll, tap};

use crate::plan::Plan;
use crate::recorded::Tables;
use crate::world::World;

/// The device that reads connections inside the guest's kernel.
const READER: &str = "/dev/simread";

/// What is done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A flow's start, next packet or next transfer is due.
    Next(usize),
    /// A flow stops.
    Stop(usize),
    /// A step of the plan's `events`.
    Event(usize),
    /// Queues are sampled.
    SampleQueues,
    /// TCP connections are sampled.
    SampleFlows,
    /// The run ends; what is in flight goes on.
    End,
    /// Everything ends.
    Over,
}

/// What is to be done, in order of time; at one time in the order in which it was entered.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(i64, u64, Task)>>,
    entered: u64,
}

impl Agenda {
    /// Enters a task.
    pub fn at(&mut self, time: i64, task: Task) {
        self.entered += 1;
        self.heap.push(Reverse((time, self.entered, task)));
    }

    /// When its first task is due, ns of the run's clock.
    pub fn first(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes out the first task if it is due, with the time it was due at.
    pub fn due(&mut self, now: i64) -> Option<(i64, Task)> {
        if self.first()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((time, _, task))| (time, task))
    }
}

/// Whom an event of the epoll is for, above 32 bits of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum For {
    /// The timer.
    Timer,
    /// A flow's socket that waits for connections, or turns datagrams round.
    Listener,
    /// The sending end of a flow, or where its replies come in.
    Sender,
    /// The receiving end of a flow.
    Receiver,
    /// Those who hear pings.
    Hearer,
    /// A tap of `taps[index]`.
    Tap,
    /// The cards' log.
    Log,
    /// A tap that keeps headers.
    Headers,
}

impl For {
    const ALL: [For; 8] = [
        For::Timer,
        For::Listener,
        For::Sender,
        For::Receiver,
        For::Hearer,
        For::Tap,
        For::Log,
        For::Headers,
    ];

    /// The token of this one's `index`.
    pub fn token(self, index: usize) -> u64 {
        (self as u64) << 32 | index as u64
    }

    /// Whom a token is for, and the index.
    pub fn of(token: u64) -> (For, usize) {
        (For::ALL[(token >> 32) as usize], (token & 0xffff_ffff) as usize)
    }
}

/// What flows need of the run they are in.
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The namespaces.
    pub world: &'a World,
    /// What waits.
    pub epoll: Epoll,
    /// The run's clock.
    pub clock: Clock,
    /// What is to be done.
    pub agenda: Agenda,
    /// Reads connections inside the kernel, where that can (engine/kernel/linux/simread.c).
    reader: Option<File>,
    /// Room for datagrams.
    pub batch: Batch,
    /// What flows record.
    pub tables: Tables,
}

impl<'a> Context<'a> {
    /// A context without tasks; its clock starts now.
    pub fn new(plan: &'a Plan, world: &'a World) -> io::Result<Context<'a>> {
        Ok(Context {
            plan,
            world,
            epoll: Epoll::new()?,
            clock: Clock::starting_in(0),
            agenda: Agenda::default(),
            reader: File::options().write(true).open(READER).ok(),
            batch: Batch::new(16),
            tables: Tables::default(),
        })
    }

    /// Lets the kernel read a connection as it comes, where it can: whoever waits for it hears of
    /// its end only.
    pub fn read_in_kernel(&mut self, connection: &impl AsRawFd) -> io::Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| {
            reader.write_all(connection.as_raw_fd().to_string().as_bytes())
        })
    }

    /// Enters into the agenda what the plan says.
    pub fn enter_plan(&mut self) {
        let plan = self.plan;
        // Events come first at their time, samples see what is before the traffic of their time.
        for (i, event) in plan.events.iter().enumerate() {
            self.agenda.at(event.at_ns as i64, Task::Event(i));
        }
        for (interval, task) in
            [(plan.sample.queue_ns, Task::SampleQueues), (plan.sample.flow_ns, Task::SampleFlows)]
        {
            if interval > 0 {
                self.agenda.at(0, task);
            }
        }
        let end = plan.duration_ns as i64;
        for (i, flow) in plan.flows.iter().enumerate() {
            if flow.start_ns < plan.duration_ns {
                self.agenda.at(flow.start_ns as i64, Task::Next(i));
            }
            if let Some(stop) = flow.stop_ns.filter(|&stop| stop < plan.duration_ns) {
                self.agenda.at(stop as i64, Task::Stop(i));
            }
        }
        self.agenda.at(end, Task::End);
        // Blocks of the taps that are not full are handed over some time after.
        let linger = (plan.linger_ns as i64).max(3 * i64::from(tap::RETIRE_MS) * 1_000_000);
        self.agenda.at(end + linger, Task::Over);
    }

    /// Says on the console how far the run is, at each hundredth of it: where the archive is a file
    /// of the host's, the console is one, too, and takes none of the guest's time.
    pub fn tell(&self, sampled: i64) {
        let hundredth = (self.plan.duration_ns / 100).max(1) as i64;
        let before = sampled - self.plan.sample.queue_ns as i64;
        if self.plan.output.mount.is_some() && sampled / hundredth > before / hundredth {
            // A console that is gone is no reason to stop.
            let _ = writeln!(io::stdout(), "@AT {sampled}");
        }
    }

    /// Enters the next of a series of samples: at the next multiple that has not passed, before the
    /// end.
    pub fn again(&mut self, task: Task, due: i64, now: i64, interval: u64) {
        let interval = interval as i64;
        let missed = (now - due).max(0) / interval;
        let next = due + (missed + 1) * interval;
        // The end takes a sample of its own.
        if next < self.plan.duration_ns as i64 {
            self.agenda.at(next, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_by_time_and_then_as_entered() {
        let mut agenda = Agenda::default();
        for (time, task) in
            [(20, Task::End), (10, Task::Next(2)), (10, Task::Next(1)), (5, Task::Over)]
        {
            agenda.at(time, task);
        }
        let mut order = Vec::new();
        while let Some((time, task)) = agenda.due(10) {
            order.push((time, task));
        }
        assert_eq!(order, [(5, Task::Over), (10, Task::Next(2)), (10, Task::Next(1))]);
        assert_eq!(agenda.first(), Some(20));
    }

    #[test]
    fn a_token_is_read_as_it_was_made() {
        for whom in For::ALL {
            assert_eq!(For::of(whom.token(70_000)), (whom, 70_000));
        }
    }
}
