//! A run: one thread, one epoll, one timer, one agenda.
//!
//! All timed work is in the agenda, and the timer is set to its first task. In between, only
//! sockets cause work. So the program sleeps whenever it has nothing to do: in a guest with virtual
//! time, time passes only then.

use std::io::{self, Write};

use probe::sys::{Event, Interest};
use probe::{Clock, Timer};
use serde_json::{Map, Value, json};

use crate::context::{Context, EventTarget, Task};
use crate::flows::{EchoListeners, Flow};
use crate::headers::Headers;
use crate::log::Log;
use crate::plan::Plan;
use crate::programs::Programs;
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
    echo_listeners: EchoListeners,
    queues: Queues,
    /// Events of the packets at each of the plan's taps.
    watched: Vec<Watch>,
    /// One for each of the plan's taps; `None` if a card logs its packets.
    followers: Vec<Option<Follower>>,
    /// The log, if the cards write one.
    log: Option<Log>,
    /// The captured headers.
    headers: Headers,
    /// Finds the flow of a packet.
    flow_finder: Flows,
    programs: Programs,
    processor: [Option<Value>; 2],
    over: bool,
}

impl<'a> Run<'a> {
    /// Opens all sockets except those that connect later. The clock starts after `settle_ns`, at a
    /// tick of the kernel's timers. So the ticks' positions relative to the packets do not depend
    /// on what happened before.
    pub fn new(plan: &'a Plan, world: &'a World) -> Result<Run<'a>, String> {
        let broken = |e: io::Error| format!("waiting for events: {e}");
        let timer = Timer::new().map_err(broken)?;
        let mut context = Context::new(plan, world).map_err(broken)?;
        context
            .epoll
            .add(&timer, Interest::ReadableEdge, EventTarget::Timer.token(0))
            .map_err(broken)?;
        let mut followers = Vec::new();
        for (index, tap) in plan.taps.iter().enumerate() {
            let follower =
                tap.seen.as_ref().map(|stages| Follower::new(stages, index, world)).transpose()?;
            for tap in follower.iter().flat_map(Follower::taps) {
                context
                    .epoll
                    .add(tap, Interest::Readable, EventTarget::Tap.token(index))
                    .map_err(broken)?;
            }
            followers.push(follower);
        }
        let log = Log::open(plan)?;
        if let Some(log) = &log {
            context
                .epoll
                .add(log, Interest::Readable, EventTarget::Log.token(0))
                .map_err(broken)?;
        }
        let headers = Headers::open(plan, world)?;
        for (index, tap) in headers.taps().enumerate() {
            context
                .epoll
                .add(tap, Interest::Readable, EventTarget::Headers.token(index))
                .map_err(broken)?;
        }
        let queues = Queues::new(plan, world)?;
        let mut programs = Programs::prepare(plan)?;
        let mut flows = Vec::new();
        for index in 0..plan.flows.len() {
            let flow = Flow::open(&mut context, index)
                .map_err(|e| format!("flow '{}': {e}", plan.flows[index].name))?;
            flows.push(flow);
        }
        let echo_listeners = EchoListeners::open(&mut context)?;
        programs.start_early(&context)?;
        context.enter_plan();
        context.clock = Clock::starting_with_tick(plan.settle_ns as i64).map_err(broken)?;
        Ok(Run {
            context,
            timer,
            flows,
            echo_listeners,
            queues,
            watched: plan.taps.iter().map(|tap| Watch::new(plan, tap)).collect(),
            followers,
            log,
            headers,
            flow_finder: Flows::new(plan),
            programs,
            processor: [None, None],
            over: false,
        })
    }

    /// Does the run.
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
                if EventTarget::of(event.token).0 == EventTarget::Timer {
                    self.do_what_is_due()?;
                    set_to = None;
                } else {
                    self.take(event)?;
                }
            }
        }
        self.programs.kill().map_err(|e| format!("programs: {e}"))?;
        self.processor[1] = sample::processor_time();
        for (follower, watch) in self.followers.iter_mut().zip(&mut self.watched) {
            if let Some(follower) = follower {
                follower.finish(&self.context.clock, &self.flow_finder, watch);
            }
        }
        self.headers.finish(&self.context.clock, &self.flow_finder);
        self.flows.iter_mut().for_each(|flow| flow.conclude(&self.context.clock));
        self.read_log()?;
        self.watched.iter_mut().for_each(Watch::finish);
        Ok(())
    }

    fn read_log(&mut self) -> Result<(), String> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.drain(&self.context.clock, &self.flow_finder, &mut self.watched)
            .map_err(|e| format!("the cards' log: {e}"))
    }

    /// Returns the number of packets seen before their queue.
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
                Task::Program(index) => self.programs.start(&self.context, index)?,
                Task::StopProgram(index) => {
                    self.programs.stop(index).map_err(|e| format!("programs: {e}"))?;
                }
                Task::SampleQueues => {
                    self.queues.take(now)?;
                    self.context.report_progress(due);
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
                    self.programs.stop_all().map_err(|e| format!("programs: {e}"))?;
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

    fn take(&mut self, event: &Event) -> Result<(), String> {
        let (whom, index) = EventTarget::of(event.token);
        match whom {
            EventTarget::Timer => {}
            EventTarget::Listener => self.flows[index].on_listener(&mut self.context),
            EventTarget::Sender => self.flows[index].on_sender(&mut self.context, event),
            EventTarget::Receiver => self.flows[index].on_receiver(&mut self.context, event),
            EventTarget::EchoListener => {
                self.echo_listeners.receive(index, &mut self.context, &mut self.flows)
            }
            EventTarget::Tap => {
                let now = self.context.clock.now();
                if let Some(follower) = &mut self.followers[index] {
                    follower.drain(&self.context.clock, now, &self.flow_finder);
                }
            }
            EventTarget::Log => self.read_log()?,
            EventTarget::Headers => {
                self.headers.drain(index, &self.context.clock, &self.flow_finder)
            }
        }
        Ok(())
    }

    /// Writes the tables and returns the index.
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
        let programs = match self.context.plan.program_root {
            Some(_) => {
                let zero = self.context.clock.monotonic(0);
                Some(self.programs.write(self.context.plan, zero, archive)?)
            }
            None => None,
        };
        let [start, end] = self.processor;
        let mut index = json!({
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
        if let Some(programs) = programs {
            index["programs"] = programs;
        }
        match index {
            Value::Object(map) => Ok(map),
            _ => unreachable!("an object was written above"),
        }
    }
}
