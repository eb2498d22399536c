//! The parts of a run that flows share: plan, agenda, epoll and tables.
//!
//! `run` owns the context and passes it to each flow that has work to do.

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

/// The device of a kernel module that reads connections and discards the data (simread.c).
const READER: &str = "/dev/simread";

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A flow's start, next packet or next transfer is due.
    Next(usize),
    /// A flow stops.
    Stop(usize),
    /// A step of the plan's `events` is due.
    Event(usize),
    /// A program starts.
    Program(usize),
    /// A program is asked to end.
    StopProgram(usize),
    /// A sample of the queues is due.
    SampleQueues,
    /// A sample of the TCP connections is due.
    SampleFlows,
    /// The run ends; packets in flight are still recorded.
    End,
    /// The program stops recording.
    Over,
}

/// Pending tasks, in order of time; tasks of equal time keep the order in which they were added.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(i64, u64, Task)>>,
    entered: u64,
}

impl Agenda {
    /// Adds a task.
    pub fn at(&mut self, time: i64, task: Task) {
        self.entered += 1;
        self.heap.push(Reverse((time, self.entered, task)));
    }

    /// Returns the time of the first task, ns of the run's clock.
    pub fn first(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Removes and returns the first task if it is due, with its due time.
    pub fn due(&mut self, now: i64) -> Option<(i64, Task)> {
        if self.first()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((time, _, task))| (time, task))
    }
}

/// The receiver of an epoll event. An event's token has the receiver's number in its upper 32 bits
/// and an index in its lower 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EventTarget {
    /// The timer.
    Timer,
    /// A flow's listening socket, or the socket that echoes its datagrams.
    Listener,
    /// The sending end of a flow, which also receives replies.
    Sender,
    /// The receiving end of a flow.
    Receiver,
    /// A socket that captures ping requests at the far end.
    EchoListener,
    /// A tap of one queue, `plan.taps[index]`.
    Tap,
    /// The log of the simulated cards.
    Log,
    /// A tap that records headers.
    Headers,
}

impl EventTarget {
    const ALL: [EventTarget; 8] = [
        EventTarget::Timer,
        EventTarget::Listener,
        EventTarget::Sender,
        EventTarget::Receiver,
        EventTarget::EchoListener,
        EventTarget::Tap,
        EventTarget::Log,
        EventTarget::Headers,
    ];

    /// Returns the token for `index` of this kind.
    pub fn token(self, index: usize) -> u64 {
        (self as u64) << 32 | index as u64
    }

    /// Returns the receiver and the index of a token.
    pub fn of(token: u64) -> (EventTarget, usize) {
        (EventTarget::ALL[(token >> 32) as usize], (token & 0xffff_ffff) as usize)
    }
}

/// The parts of a run that flows share.
pub struct Context<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The namespaces.
    pub world: &'a World,
    /// The descriptors to wait for.
    pub epoll: Epoll,
    /// The run's clock.
    pub clock: Clock,
    /// The pending tasks.
    pub agenda: Agenda,
    /// Reads connections inside the kernel, if it can (engine/kernel/linux/simread.c).
    reader: Option<File>,
    /// Receive buffer for datagrams.
    pub batch: Batch,
    /// The tables that flows fill.
    pub tables: Tables,
}

impl<'a> Context<'a> {
    /// Creates a context without tasks; its clock starts now.
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

    /// Makes the kernel read a connection as data arrives, if it can. The program is then woken
    /// only at the end of the stream.
    pub fn read_in_kernel(&mut self, connection: &impl AsRawFd) -> io::Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| {
            reader.write_all(connection.as_raw_fd().to_string().as_bytes())
        })
    }

    /// Adds the plan's events, samples, flows and end to the agenda.
    pub fn enter_plan(&mut self) {
        let plan = self.plan;
        // At equal times, events come first, and samples precede the traffic.
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
        // Starting a program takes time, so the traffic of that instant comes first.
        for (i, program) in plan.programs.iter().enumerate() {
            if let Some(start) = program.start_ns.filter(|&start| start < plan.duration_ns) {
                self.agenda.at(start as i64, Task::Program(i));
            }
            if let Some(stop) = program.stop_ns.filter(|&stop| stop < plan.duration_ns) {
                self.agenda.at(stop as i64, Task::StopProgram(i));
            }
        }
        self.agenda.at(end, Task::End);
        // The kernel delivers the taps' incomplete blocks some time after the end.
        let linger = (plan.linger_ns as i64).max(3 * i64::from(tap::RETIRE_MS) * 1_000_000);
        self.agenda.at(end + linger, Task::Over);
    }

    /// Prints the run's progress on the console, at each hundredth. It prints only if the archive
    /// is written to a file system of the host. Then the console is a file of the host too, and
    /// printing takes no guest time.
    pub fn report_progress(&self, sampled: i64) {
        let hundredth = (self.plan.duration_ns / 100).max(1) as i64;
        let before = sampled - self.plan.sample.queue_ns as i64;
        if self.plan.output.mount.is_some() && sampled / hundredth > before / hundredth {
            // The run goes on without a console.
            let _ = writeln!(io::stdout(), "@AT {sampled}");
        }
    }

    /// Schedules the next of a series of samples, unless the run ends first. Missed samples are
    /// skipped: the next one is after `now`, and a whole number of intervals after `due`.
    pub fn again(&mut self, task: Task, due: i64, now: i64, interval: u64) {
        let interval = interval as i64;
        let missed = (now - due).max(0) / interval;
        let next = due + (missed + 1) * interval;
        // The task `End` takes the last sample.
        if next < self.plan.duration_ns as i64 {
            self.agenda.at(next, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_in_order_of_time_and_then_of_entry() {
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
    fn a_token_is_decoded_as_it_was_encoded() {
        for whom in EventTarget::ALL {
            assert_eq!(EventTarget::of(whom.token(70_000)), (whom, 70_000));
        }
    }
}
