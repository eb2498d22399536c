//! The run: one thread, one epoll, one timer, an agenda.
//!
//! Whatever is to be done at a time is in the agenda; the timer is set to its first entry, and
//! nothing is done in between but what sockets ask for. So the program sleeps whenever there is
//! nothing to do: in a guest whose time is virtual, time passes only then.

use std::io::{self, Write};

use probe::sys::{Happened, Interest};
use probe::{Clock, Timer};
use serde_json::{Map, Value, json};

use crate::context::{Context, For, Task};
use crate::flows::{Flow, Hearers};
use crate::headers::Headers;
use crate::log::Log;
use crate::plan::Plan;
use crate::results::Archive;
use crate::sample::{self, Queues};
use crate::sys;
use crate::taps::{Flows, Follower};
use crate::watch::{self, Watch};
use crate::world::World;

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
    /// What packets say.
    headers: Headers,
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
        let mut context = Context::new(plan, world).map_err(broken)?;
        context.epoll.add(&timer, Interest::ReadableEdge, For::Timer.token(0)).map_err(broken)?;
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
        let headers = Headers::open(plan, world)?;
        for (index, tap) in headers.taps().enumerate() {
            context
                .epoll
                .add(tap, Interest::Readable, For::Headers.token(index))
                .map_err(broken)?;
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
            headers,
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
        self.headers.finish(&self.context.clock, &self.kin);
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
            For::Headers => self.headers.drain(index, &self.context.clock, &self.kin),
        }
        Ok(())
    }

    /// Writes the tables; the rest goes into the index.
    pub fn write<W: Write>(mut self, archive: &mut Archive<W>) -> io::Result<Map<String, Value>> {
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
        let lost_headers = self.headers.lost()?;
        if !self.context.plan.headers.is_empty() {
            self.headers.write(self.context.plan, archive)?;
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
            "lost_headers": lost_headers,
        });
        match index {
            Value::Object(map) => Ok(map),
            _ => unreachable!("an object was written above"),
        }
    }
}
