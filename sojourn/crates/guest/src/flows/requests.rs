//! Requests and answers over one kept connection.
//!
//! The far end is the client: it connects and writes a request. The source is the server, which
//! listens from the beginning: it reads the whole request and writes the answer. The client reads
//! the whole answer, pauses, and writes the next request. Sizes and pauses are drawn as in the
//! simulator (crates/sim, `exchange.rs`): request, answer, pause, from the stream `<flow>/traffic`.
//!
//! Both ends disable Nagle's algorithm, as programs that ask and answer do.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use probe::bulk::{Listener, Options, Receiver, Sender};
use probe::sys::{Event, Interest};
use probe::tcp_info::TcpInfo;
use serde_json::Value;
use traffic::Draw;
use units::Rng;

use super::tcp::{Totals, known, options, row, summary};
use crate::context::{Context, EventTarget, Task};
use crate::plan::{self, Traffic};
use crate::recorded::{Tables, tcp, transfers};

/// A flow of requests.
pub struct Requests {
    index: usize,
    options: Options,
    write_bytes: usize,
    listener: Listener,
    client: Option<End>,
    server: Option<End>,
    /// Laws of the requests' bytes, the answers' bytes and the pauses.
    draws: [Draw; 3],
    rng: Rng,
    /// Bytes of all requests so far, and of their answers.
    asked: u64,
    owed: u64,
    /// The start of the present request, and the bytes of its answer.
    present: Option<(i64, u64)>,
    /// For each request that has not arrived: bytes of all requests up to it, and of its answer.
    due: VecDeque<(u64, u64)>,
    /// Bytes of all answers so far.
    answered: u64,
    completed: u64,
    last: TcpInfo,
}

/// An end of the connection.
struct End {
    sender: Sender,
    receiver: Receiver,
}

impl End {
    fn new(mut sender: Sender, receiver: Receiver, write_bytes: usize) -> io::Result<End> {
        sender.write_in_units_of(write_bytes);
        probe::sys::set_option(&sender, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        Ok(End { sender, receiver })
    }

    /// Writes what waits and reads what has arrived.
    fn on_event(&mut self, event: &Event) -> io::Result<()> {
        self.sender.on_ready(event.closed)?;
        if event.readable {
            self.receiver.on_ready(event.closed)?;
        }
        Ok(())
    }
}

impl Requests {
    /// Listens at the source.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Requests> {
        let spec = &context.plan.flows[index];
        let Traffic::Requests { request_bytes, bytes, pause_ns, write_bytes, tcp } = &spec.traffic
        else {
            unreachable!("only requests are opened here")
        };
        let options = options(tcp, spec.ds);
        let listen = || Listener::new(SocketAddr::new(spec.from.address, spec.port), &options);
        let listener = context.world.inside(Some(&spec.from.namespace), listen)?;
        context.epoll.add(&listener, Interest::Readable, EventTarget::Listener.token(index))?;
        if let Some(name) = &options.congestion {
            context.world.inside(Some(&spec.from.namespace), || known(name, spec))?;
        }
        Ok(Requests {
            index,
            write_bytes: *write_bytes as usize,
            listener,
            client: None,
            server: None,
            draws: [request_bytes.clone(), bytes.clone(), pause_ns.clone()],
            rng: Rng::new(context.plan.seed, &format!("{}/traffic", spec.name)),
            options,
            asked: 0,
            owed: 0,
            present: None,
            due: VecDeque::new(),
            answered: 0,
            completed: 0,
            last: TcpInfo::default(),
        })
    }

    /// Asks; the first time it connects.
    pub fn next(&mut self, context: &mut Context) -> io::Result<()> {
        if self.client.is_none() {
            self.client = Some(self.connect(context)?);
        }
        let [request, answer, _] = &self.draws;
        self.asked += request.next(&mut self.rng).max(1);
        let bytes = answer.next(&mut self.rng).max(1);
        self.owed += bytes;
        self.present = Some((context.clock.now(), bytes));
        self.due.push_back((self.asked, bytes));
        self.client.as_mut().map_or(Ok(()), |client| client.sender.allow(self.asked))
    }

    fn connect(&mut self, context: &mut Context) -> io::Result<End> {
        let spec: &plan::Flow = &context.plan.flows[self.index];
        let server = SocketAddr::new(spec.from.address, spec.port);
        let connect = || Sender::connect(spec.to.address, server, None, &self.options);
        let mut sender = context.world.inside(Some(&spec.to.namespace), connect)?;
        sender.allow(0)?;
        let token = EventTarget::Receiver.token(self.index);
        context.epoll.add(&sender, Interest::BothEdges, token)?;
        let receiver = sender.receiver()?;
        End::new(sender, receiver, self.write_bytes)
    }

    /// Accepts the client's connection.
    pub fn accept(&mut self, context: &mut Context) -> io::Result<()> {
        while let Some(receiver) = self.listener.accept()? {
            let sender = receiver.sender()?;
            let token = EventTarget::Sender.token(self.index);
            context.epoll.add(&sender, Interest::BothEdges, token)?;
            self.server = Some(End::new(sender, receiver, self.write_bytes)?);
        }
        Ok(())
    }

    /// An event of the server's socket.
    pub fn on_server(&mut self, event: &Event) -> io::Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        server.on_event(event)?;
        while let Some(&(asked, bytes)) = self.due.front()
            && asked <= server.receiver.received()
        {
            self.due.pop_front();
            self.answered += bytes;
            server.sender.allow(self.answered)?;
        }
        Ok(())
    }

    /// An event of the client's socket.
    pub fn on_client(&mut self, context: &mut Context, event: &Event) -> io::Result<()> {
        let Some(client) = &mut self.client else { return Ok(()) };
        client.on_event(event)?;
        let now = context.clock.now();
        if client.receiver.received() < self.owed || now > context.plan.duration_ns as i64 {
            return Ok(());
        }
        let Some((start_ns, bytes)) = self.present.take() else { return Ok(()) };
        self.completed += 1;
        context.tables.transfers.push(transfers::Row {
            flow: self.index as i64,
            start_ns,
            end_ns: now,
            bytes: bytes as i64,
        });
        let pause = self.draws[2].next(&mut self.rng) as i64;
        context.agenda.at(now + pause, Task::Next(self.index));
        Ok(())
    }

    /// Adds a row to the table `tcp`: the server is the sender.
    pub fn sample(&mut self, tables: &mut Tables, now: i64) -> io::Result<()> {
        let info = |end: &Option<End>| end.as_ref().map(|end| TcpInfo::of(&end.sender)).transpose();
        let (near, far) = (info(&self.server)?, info(&self.client)?);
        tables.tcp.push(tcp::Row {
            t_ns: now,
            flow: self.index as i64,
            completed: self.completed as i64,
            ..row([near.as_ref(), far.as_ref()], Totals::default(), 0)
        });
        if let Some(info) = near {
            self.last = info;
        }
        Ok(())
    }

    /// Returns its summary.
    pub fn finish(self) -> Value {
        summary(&self.options, u64::from(self.server.is_some()), &self.last)
    }
}
