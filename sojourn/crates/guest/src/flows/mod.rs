//! Flows: the kinds of traffic and their records.
//!
//! Listening sockets are opened before the run, connecting sockets when the flow starts. A flow
//! that fails (connection refused, no route) records the error in the results and does not end the
//! run.

mod conversation;
mod datagrams;
mod probes;
mod requests;
mod tcp;

use std::io;
use std::net::SocketAddr;

use probe::Clock;
use probe::icmp::EchoListener;
use probe::sys::{Event, Interest};
use serde_json::{Value, json};
use units::Rng;

use crate::context::{Context, EventTarget, Task};
use crate::plan::{self, Plan, Traffic};
use crate::recorded::Tables;

use conversation::Conversation;
use datagrams::Datagrams;
use probes::Probes;
use requests::Requests;
use tcp::Tcp;

/// A flow in a run.
pub struct Flow {
    index: usize,
    name: String,
    stopped: bool,
    /// The first error, and the number of errors.
    error: Option<String>,
    errors: u64,
    jitter: Option<Jitter>,
    kind: Kind,
}

/// Random delay below `most` ns that keeps the order of packets.
struct Jitter {
    most: u64,
    rng: Rng,
    last: i64,
    /// Due time of the next packet.
    due: Option<i64>,
}

impl Jitter {
    /// Returns the time at which a packet due at `due` is sent.
    fn leaves(&mut self, due: i64) -> i64 {
        self.due = Some(due);
        self.last = self.last.max(due + self.rng.below(self.most) as i64);
        self.last
    }
}

enum Kind {
    Tcp(Box<Tcp>),
    Requests(Box<Requests>),
    Datagrams(Box<Datagrams>),
    Probes(Box<Probes>),
    Conversation(Box<Conversation>),
}

impl Flow {
    /// Opens the listening sockets.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Flow> {
        let spec = &context.plan.flows[index];
        let kind = match &spec.traffic {
            Traffic::Bulk { .. } | Traffic::Transfers { .. } => {
                Kind::Tcp(Box::new(Tcp::open(context, index)?))
            }
            Traffic::Requests { .. } => Kind::Requests(Box::new(Requests::open(context, index)?)),
            Traffic::Udp { .. } | Traffic::Video { .. } => {
                Kind::Datagrams(Box::new(Datagrams::open(context, index)?))
            }
            Traffic::Ping { .. } | Traffic::Echo { .. } => {
                Kind::Probes(Box::new(Probes::open(context, index)?))
            }
            Traffic::Program { .. } => {
                Kind::Conversation(Box::new(Conversation::open(context, index)?))
            }
        };
        let jitter = (spec.jitter_ns > 0).then(|| Jitter {
            most: spec.jitter_ns,
            rng: Rng::new(context.plan.seed, &format!("{}/jitter", spec.name)),
            last: 0,
            due: None,
        });
        Ok(Flow {
            index,
            name: spec.name.clone(),
            stopped: false,
            error: None,
            errors: 0,
            jitter,
            kind,
        })
    }

    /// Does what was due at `due`: the start, the next packet or the next connection.
    pub fn next(&mut self, context: &mut Context, due: i64) {
        if self.stopped {
            return;
        }
        let due = match &mut self.jitter {
            None => due,
            Some(jitter) => match jitter.due {
                Some(due) => due,
                // The start was due; the first packet is sent later.
                None => {
                    let first = jitter.leaves(due);
                    return context.agenda.at(first, Task::Next(self.index));
                }
            },
        };
        let (result, next) = match &mut self.kind {
            Kind::Tcp(tcp) => {
                let result = tcp.next(context, due);
                if result.is_err() {
                    tcp.rest(context, AFTER_FAILURE);
                }
                (result, None)
            }
            Kind::Requests(requests) => (requests.next(context), None),
            Kind::Datagrams(datagrams) => {
                let (result, next) = datagrams.send(context, due);
                (result, Some(next))
            }
            Kind::Probes(probes) => {
                let (result, next) = probes.send(context, due);
                (result, Some(next))
            }
            // Its programs send.
            Kind::Conversation(_) => (Ok(()), None),
        };
        if let Some(next) = next {
            let next = self.jitter.as_mut().map_or(next, |jitter| jitter.leaves(next));
            context.agenda.at(next, Task::Next(self.index));
        }
        self.note(result);
    }

    /// Stops the flow: it sends no new data.
    pub fn stop(&mut self) {
        self.stopped = true;
        if let Kind::Tcp(tcp) = &mut self.kind {
            let result = tcp.stop();
            self.note(result);
        }
    }

    /// Takes a sample of the connection.
    pub fn sample(&mut self, tables: &mut Tables, now: i64) {
        let result = match &mut self.kind {
            Kind::Tcp(tcp) => tcp.sample(tables, now),
            Kind::Requests(requests) => requests.sample(tables, now),
            Kind::Datagrams(_) | Kind::Probes(_) | Kind::Conversation(_) => return,
        };
        self.note(result);
    }

    /// Handles an event of the listening socket.
    pub fn on_listener(&mut self, context: &mut Context) {
        let result = match &mut self.kind {
            Kind::Tcp(tcp) => tcp.accept(context),
            Kind::Requests(requests) => requests.accept(context),
            Kind::Probes(probes) => probes.turn_round(context),
            Kind::Datagrams(_) | Kind::Conversation(_) => Ok(()),
        };
        self.note(result);
    }

    /// Handles an event of the sending end.
    pub fn on_sender(&mut self, context: &mut Context, event: &Event) {
        let result = match &mut self.kind {
            Kind::Tcp(tcp) => match tcp.on_sender(context, event.closed) {
                Ok(true) if !self.stopped => {
                    tcp.rest(context, 0);
                    Ok(())
                }
                Ok(_) => Ok(()),
                Err(error) => {
                    // Further transfers continue after the usual pause.
                    if !self.stopped {
                        tcp.rest(context, AFTER_FAILURE);
                    }
                    Err(error)
                }
            },
            Kind::Requests(requests) => requests.on_server(event),
            Kind::Probes(probes) => probes.on_replies(context),
            Kind::Conversation(conversation) => {
                conversation.drain_leaving(&context.clock);
                Ok(())
            }
            Kind::Datagrams(_) => Ok(()),
        };
        self.note(result);
    }

    /// Handles an event of the receiving end.
    pub fn on_receiver(&mut self, context: &mut Context, event: &Event) {
        let result = match &mut self.kind {
            Kind::Tcp(tcp) => tcp.on_receiver(event.closed),
            Kind::Requests(requests) => requests.on_client(context, event),
            Kind::Datagrams(datagrams) => datagrams.receive(context),
            Kind::Conversation(conversation) => {
                conversation.drain_reaching(&context.clock);
                Ok(())
            }
            Kind::Probes(_) => Ok(()),
        };
        self.note(result);
    }

    /// The request with this sequence number has reached the far end.
    fn request_arrived(&mut self, sequence: u16, time: i64) {
        if let Kind::Probes(probes) = &mut self.kind {
            probes.request_arrived(sequence, time);
        }
    }

    /// Reads the packets that its taps have captured last.
    pub fn conclude(&mut self, clock: &Clock) {
        if let Kind::Conversation(conversation) = &mut self.kind {
            let result = conversation.conclude(clock);
            self.note(result);
        }
    }

    /// Adds its rows to the tables and returns its summary.
    pub fn finish(self, tables: &mut Tables) -> Value {
        let mut summary = match self.kind {
            Kind::Tcp(tcp) => tcp.finish(),
            Kind::Requests(requests) => requests.finish(),
            Kind::Datagrams(datagrams) => datagrams.finish(tables),
            Kind::Probes(probes) => probes.finish(tables),
            Kind::Conversation(conversation) => conversation.finish(tables),
        };
        summary["name"] = self.name.into();
        summary["error"] = self.error.into();
        summary["errors"] = self.errors.into();
        summary
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.errors += 1;
            self.error.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Shortest pause after a failed connection, ns. It limits a flow that fails at once to 100
/// attempts per second.
const AFTER_FAILURE: i64 = 10_000_000;

/// Returns the flow's far address and port.
fn far_end(flow: &plan::Flow) -> SocketAddr {
    SocketAddr::new(flow.to.address, flow.port)
}

/// Memory limit of a datagram socket, bytes. Packets in a queue of the sender's own host count
/// against it, and a queue under study must reach its own limit first.
const SOCKET_MEMORY: i32 = 64 << 20;

/// Sets the limit `SOCKET_MEMORY`; without the privilege, the largest limit that is permitted.
fn allow_memory(fd: &impl std::os::fd::AsRawFd) -> io::Result<()> {
    for (forced, plain) in
        [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)]
    {
        probe::sys::set_option(fd, libc::SOL_SOCKET, forced, SOCKET_MEMORY)
            .or_else(|_| probe::sys::set_option(fd, libc::SOL_SOCKET, plain, SOCKET_MEMORY))?;
    }
    Ok(())
}

/// Sockets that capture ping requests at the far ends: one per address, so a host with a thousand
/// pings receives each request once.
pub struct EchoListeners {
    listeners: Vec<EchoListener>,
    /// The flow of each ICMP identifier.
    flows: std::collections::HashMap<u16, usize>,
}

impl EchoListeners {
    /// Opens the sockets.
    pub fn open(context: &mut Context) -> Result<EchoListeners, String> {
        let mut ends: Vec<&plan::End> = Vec::new();
        let mut flows = std::collections::HashMap::new();
        let plan: &Plan = context.plan;
        for (i, flow) in plan.flows.iter().enumerate() {
            if matches!(flow.traffic, Traffic::Ping { .. }) {
                flows.insert(flow.port, i);
                if !ends.contains(&&flow.to) {
                    ends.push(&flow.to);
                }
            }
        }
        let mut listeners = Vec::new();
        for (i, end) in ends.into_iter().enumerate() {
            let open = || {
                let listener = EchoListener::new(end.address)?;
                allow_memory(&listener)?;
                Ok(listener)
            };
            let listener = context
                .world
                .inside(Some(&end.namespace), open)
                .and_then(|listener| {
                    context.epoll.add(
                        &listener,
                        Interest::Readable,
                        EventTarget::EchoListener.token(i),
                    )?;
                    Ok(listener)
                })
                .map_err(|e| {
                    format!("receiving pings at {} in {}: {e}", end.address, end.namespace)
                })?;
            listeners.push(listener);
        }
        Ok(EchoListeners { listeners, flows })
    }

    /// Reads the requests that have reached one of the sockets.
    pub fn receive(&mut self, index: usize, context: &mut Context, flows: &mut [Flow]) {
        let listener = &self.listeners[index];
        if context.batch.receive(listener).is_err() {
            return;
        }
        for datagram in context.batch.datagrams() {
            let (Some((identifier, sequence)), Some(stamp)) =
                (listener.request(datagram.bytes), datagram.stamp)
            else {
                continue;
            };
            if let Some(&flow) = self.flows.get(&identifier) {
                flows[flow].request_arrived(sequence, context.clock.stamp(stamp));
            }
        }
    }
}

/// Returns the packet counts of a flow of datagrams or probes.
fn counted(sent: usize, received: &[i64]) -> Value {
    let arrived = received.iter().filter(|&&t| t >= 0).count();
    json!({"sent_packets": sent, "received_packets": arrived})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_delays_by_less_than_its_most_and_keeps_the_order() {
        let mut jitter = Jitter { most: 1000, rng: Rng::new(1, "f/jitter"), last: 0, due: None };
        let leaving: Vec<i64> = (0..500).map(|i| jitter.leaves(300 * i)).collect();
        assert!(leaving.is_sorted());
        assert!(leaving.iter().zip(0..).all(|(&at, i)| (300 * i..300 * i + 1000).contains(&at)));
        let later = leaving.iter().zip(0..).map(|(&at, i)| at - 300 * i).sum::<i64>() / 500;
        assert!(later > 400, "the mean delay is half of 1000 ns, or more: {later}");
    }
}
