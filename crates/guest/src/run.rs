//! The run: one thread, one epoll, one timer, an agenda.
//!
//! Whatever is to be done at a time is in the agenda; the timer is set to its first entry, and
//! nothing is done in between but what sockets ask for. So the program sleeps whenever there is
//! nothing to do: in a guest whose time is virtual, time passes only then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use probe::sys::{Batch, Happened, Interest};
use probe::{Clock, Epoll, Timer, tap};
use serde_json::{Map, Value, json};

use crate::flows::{Flow, Hearers, Tables};
use crate::log::Log;
use crate::plan::Plan;
use crate::results::Archive;
use crate::sample::{self, Queues};
use crate::sys;
use crate::taps::{Flows, Follower};
use crate::watch::{self, Watch};
use crate::world::World;

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

    fn first(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes out the first task if it is due, with the time it was due at.
    fn due(&mut self, now: i64) -> Option<(i64, Task)> {
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
}

impl For {
    const ALL: [For; 7] =
        [For::Timer, For::Listener, For::Sender, For::Receiver, For::Hearer, For::Tap, For::Log];

    /// The token of this one's `index`.
    pub fn token(self, index: usize) -> u64 {
        (self as u64) << 32 | index as u64
    }

    fn of(token: u64) -> (For, usize) {
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

/// A run.
pub struct Run<'a> {
    context: Context<'a>,
    timer: Timer,
    flows: Vec<Flow>,
    hearers: Hearers,
    queues: Queues,
    /// What happened to the packets of each of the plan's taps.
    watched: Vec<Watch>,
    /// Where there are taps.
    followers: Vec<Option<Follower>>,
    /// Where the cards tell.
    log: Option<Log>,
    /// Which flow a packet belongs to.
    kin: Flows,
    processor: [Option<Value>; 2],
    over: bool,
}

impl<'a> Run<'a> {
    /// Opens all sockets but those that connect later. The clock starts `settle_ns` after, with a
    /// tick of the kernel's timers: how they fall among the packets then depends on nothing that
    /// went before.
    pub fn new(plan: &'a Plan, world: &'a World) -> Result<Run<'a>, String> {
        let broken = |e: io::Error| format!("waiting for events: {e}");
        let timer = Timer::new().map_err(broken)?;
        let epoll = Epoll::new().map_err(broken)?;
        epoll.add(&timer, Interest::ReadableEdge, For::Timer.token(0)).map_err(broken)?;
        let mut context = Context {
            plan,
            world,
            epoll,
            clock: Clock::starting_in(0),
            agenda: Agenda::default(),
            reader: File::options().write(true).open(READER).ok(),
            batch: Batch::new(16),
            tables: Tables::default(),
        };
        let mut followers = Vec::new();
        for (index, tap) in plan.taps.iter().enumerate() {
            let follower =
                tap.seen.as_ref().map(|seen| Follower::new(seen, index, world)).transpose()?;
            for tap in follower.iter().flat_map(Follower::taps) {
                context
                    .epoll
                    .add(tap, Interest::Readable, For::Tap.token(index))
                    .map_err(broken)?;
            }
            followers.push(follower);
        }
        let log = Log::open(plan)?;
        if let Some(log) = &log {
            context.epoll.add(log, Interest::Readable, For::Log.token(0)).map_err(broken)?;
        }
        let queues = Queues::new(plan, world)?;
        let mut flows = Vec::new();
        for index in 0..plan.flows.len() {
            let flow = Flow::open(&mut context, index)
                .map_err(|e| format!("flow '{}': {e}", plan.flows[index].name))?;
            flows.push(flow);
        }
        let hearers = Hearers::open(&mut context)?;
        context.enter_plan();
        context.clock = Clock::starting_with_tick(plan.settle_ns as i64).map_err(broken)?;
        Ok(Run {
            context,
            timer,
            flows,
            hearers,
            queues,
            watched: plan.taps.iter().map(|tap| Watch::new(plan, tap)).collect(),
            followers,
            log,
            kin: Flows::new(plan),
            processor: [None, None],
            over: false,
        })
    }

    /// The whole run.
    pub fn go(&mut self) -> Result<(), String> {
        self.processor[0] = sample::processor_time();
        let mut happened = Vec::new();
        let mut set_to = None;
        while !self.over {
            let first = self.context.agenda.first();
            if let Some(time) = first
                && first != set_to
            {
                self.timer
                    .set(self.context.clock.monotonic(time))
                    .map_err(|e| format!("timer: {e}"))?;
                set_to = first;
            }
            happened.clear();
            self.context.epoll.wait(None, &mut happened).map_err(|e| format!("waiting: {e}"))?;
            for event in &happened {
                if For::of(event.token).0 == For::Timer {
                    self.do_what_is_due()?;
                    set_to = None;
                } else {
                    self.take(event)?;
                }
            }
        }
        self.processor[1] = sample::processor_time();
        for (follower, watch) in self.followers.iter_mut().zip(&mut self.watched) {
            if let Some(follower) = follower {
                follower.finish(&self.context.clock, &self.kin, watch);
            }
        }
        self.read_log()?;
        self.watched.iter_mut().for_each(Watch::finish);
        Ok(())
    }

    fn read_log(&mut self) -> Result<(), String> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.drain(&self.context.clock, &self.kin, &mut self.watched)
            .map_err(|e| format!("the cards' log: {e}"))
    }

    /// Packets seen before their queue.
    pub fn watched(&self) -> u64 {
        self.watched.iter().map(Watch::packets).sum()
    }

    fn do_what_is_due(&mut self) -> Result<(), String> {
        let now = self.context.clock.now();
        while let Some((due, task)) = self.context.agenda.due(now) {
            let end = self.context.plan.duration_ns as i64;
            match task {
                Task::Next(flow) if due < end => self.flows[flow].next(&mut self.context, due),
                Task::Next(_) => {}
                Task::Stop(flow) => self.flows[flow].stop(),
                Task::Event(index) => {
                    let step = &self.context.plan.events[index].step;
                    self.context.world.step(step).map_err(|e| format!("events[{index}]: {e}"))?;
                }
                Task::SampleQueues => {
                    self.queues.take(now)?;
                    self.context.tell(due);
                    self.context.again(task, due, now, self.context.plan.sample.queue_ns);
                }
                Task::SampleFlows => {
                    self.sample_flows(now);
                    self.context.again(task, due, now, self.context.plan.sample.flow_ns);
                }
                Task::End => {
                    self.queues.take(now)?;
                    self.sample_flows(now);
                    self.flows.iter_mut().for_each(Flow::stop);
                }
                Task::Over => self.over = true,
            }
        }
        Ok(())
    }

    fn sample_flows(&mut self, now: i64) {
        for flow in &mut self.flows {
            flow.sample(&mut self.context.tables, now);
        }
    }

    fn take(&mut self, event: &Happened) -> Result<(), String> {
        let (whom, index) = For::of(event.token);
        match whom {
            For::Timer => {}
            For::Listener => self.flows[index].on_listener(&mut self.context),
            For::Sender => self.flows[index].on_sender(&mut self.context, event.closed),
            For::Receiver => self.flows[index].on_receiver(&mut self.context, event.closed),
            For::Hearer => self.hearers.hear(index, &mut self.context, &mut self.flows),
            For::Tap => {
                let now = self.context.clock.now();
                if let Some(follower) = &mut self.followers[index] {
                    follower.drain(&self.context.clock, now, &self.kin);
                }
            }
            For::Log => self.read_log()?,
        }
        Ok(())
    }

    /// Writes the tables; the rest goes into the index.
    pub fn write<W: Write>(self, archive: &mut Archive<W>) -> io::Result<Map<String, Value>> {
        let stepped = self.context.clock.stepped();
        let mut flows = Vec::new();
        let mut tables = self.context.tables;
        for flow in self.flows {
            flows.push(flow.finish(&mut tables));
        }
        tables.write(archive)?;
        let kinds = self.queues.write(archive)?;
        let mut taps = Vec::new();
        let end = self.context.plan.duration_ns as i64;
        for ((spec, follower), watch) in
            self.context.plan.taps.iter().zip(self.followers).zip(&self.watched)
        {
            let stages = match (follower, &self.log) {
                (Some(mut follower), _) => follower.about(end)?,
                (None, Some(log)) => log.about(watch),
                (None, None) => json!([]),
            };
            taps.push(json!({"link": spec.link, "stages": stages}));
        }
        watch::write(self.watched, archive)?;
        if let Some(log) = &self.log {
            log.write(archive)?;
        }
        let [start, end] = self.processor;
        let index = json!({
            "format": 2,
            "program": env!("CARGO_PKG_VERSION"),
            "seed": self.context.plan.seed,
            "duration_ns": self.context.plan.duration_ns,
            "zero_of_day_ns": self.context.clock.zero_of_day(),
            "zero_monotonic_ns": self.context.clock.monotonic(0),
            "clock_stepped_ns": stepped,
            "processor": {"ticks_per_second": sys::ticks_per_second(), "start": start, "end": end},
            "qdisc_kinds": kinds,
            "devices": self.context.plan.devices.iter().map(|d| json!({
                "link": d.link, "namespace": d.namespace, "name": d.name, "gauges": d.gauges,
            })).collect::<Vec<_>>(),
            "flows": flows,
            "taps": taps,
        });
        match index {
            Value::Object(map) => Ok(map),
            _ => unreachable!("an object was written above"),
        }
    }
}

const READER: &str = "/dev/simread";

impl Context<'_> {
    /// Lets the kernel read a connection as it comes, where it can: whoever waits for it hears of
    /// its end only.
    pub fn read_in_kernel(&mut self, connection: &impl AsRawFd) -> io::Result<()> {
        self.reader.as_mut().map_or(Ok(()), |reader| {
            reader.write_all(connection.as_raw_fd().to_string().as_bytes())
        })
    }

    /// Enters into the agenda what the plan says.
    fn enter_plan(&mut self) {
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
    fn tell(&self, sampled: i64) {
        let hundredth = (self.plan.duration_ns / 100).max(1) as i64;
        let before = sampled - self.plan.sample.queue_ns as i64;
        if self.plan.output.mount.is_some() && sampled / hundredth > before / hundredth {
            // A console that is gone is no reason to stop.
            let _ = writeln!(io::stdout(), "@AT {sampled}");
        }
    }

    /// Enters the next of a series of samples: at the next multiple that has not passed, before the
    /// end.
    fn again(&mut self, task: Task, due: i64, now: i64, interval: u64) {
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
