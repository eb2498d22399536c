//! TCP flows: one connection, or sequential transfers.
//!
//! The sender connects, whatever the direction of the data; its listener is open from the
//! beginning. A connection's counters are summed over all connections of a flow, so the tables show
//! one flow. Sizes and pauses are drawn as in the simulator: size, pause, size, ... from the stream
//! `<flow>/traffic`.

use std::io;

use probe::bulk::{Listener, Options, Receiver, Sender, State};
use probe::sys::Interest;
use probe::tcp_info::TcpInfo;
use serde_json::{Value, json};
use traffic::{Draw, Pace, PacedWriter};
use units::{Rng, Time};

use super::far_end;
use crate::context::{Context, EventTarget, Task};
use crate::plan::{self, Traffic};
use crate::recorded::{Tables, tcp, transfers};

/// A flow of TCP.
pub struct Tcp {
    index: usize,
    options: Options,
    listener: Listener,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// Size of the current or next connection.
    bytes: Option<u64>,
    /// Sizes and pauses of further transfers.
    series: Option<(Draw, Draw)>,
    pace: Option<Pace>,
    /// The application of the connection, if it has a pace.
    writer: Option<PacedWriter>,
    rng: Rng,
    began: i64,
    stopped: bool,
    connections: u64,
    completed: u64,
    received: u64,
    past: Totals,
    last: TcpInfo,
}

/// Counters of the connections that have ended.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    retrans_segments: i64,
    bytes_acked: i64,
    bytes_sent: i64,
    bytes_retrans: i64,
    data_segs_out: i64,
    delivered_segments: i64,
    delivered_ce_segments: i64,
    timeouts: i64,
}

impl Totals {
    pub fn with(self, info: &TcpInfo) -> Totals {
        Totals {
            retrans_segments: self.retrans_segments + i64::from(info.total_retrans_segments),
            bytes_acked: self.bytes_acked + info.bytes_acked as i64,
            bytes_sent: self.bytes_sent + info.bytes_sent as i64,
            bytes_retrans: self.bytes_retrans + info.bytes_retrans as i64,
            data_segs_out: self.data_segs_out + i64::from(info.data_segs_out),
            delivered_segments: self.delivered_segments + i64::from(info.delivered_segments),
            delivered_ce_segments: self.delivered_ce_segments
                + i64::from(info.delivered_ce_segments),
            timeouts: self.timeouts + info.total_rto.map_or(0, i64::from),
        }
    }
}

impl Tcp {
    /// Listens at the far end.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Tcp> {
        let spec = &context.plan.flows[index];
        let mut rng = Rng::new(context.plan.seed, &format!("{}/traffic", spec.name));
        let (tcp, bytes, series, pace) = match &spec.traffic {
            Traffic::Transfers { bytes, pause_ns, tcp } => {
                let first = bytes.next(&mut rng).max(1);
                (tcp, Some(first), Some((bytes.clone(), pause_ns.clone())), None)
            }
            Traffic::Bulk { bytes, pace, tcp } => (tcp, *bytes, None, pace.clone()),
            _ => unreachable!("only TCP traffic is opened here"),
        };
        let options = options(tcp, spec.ds);
        // DCTCP's receiver reports each mark separately. With another receiver, a DCTCP sender
        // would halve its window as Reno does.
        let both = options.congestion.clone().filter(|name| name == "dctcp" || name == "prague");
        let listen =
            || Listener::new(far_end(spec), &Options { congestion: both, ..options.clone() });
        let listener = context.world.inside(Some(&spec.to.namespace), listen)?;
        context.epoll.add(&listener, Interest::Readable, EventTarget::Listener.token(index))?;
        // A missing congestion control is reported before the run, not during it.
        if let Some(name) = &options.congestion {
            context.world.inside(Some(&spec.from.namespace), || known(name, spec))?;
        }
        Ok(Tcp {
            index,
            options,
            listener,
            sender: None,
            receiver: None,
            bytes,
            series,
            pace,
            writer: None,
            rng,
            began: 0,
            stopped: false,
            connections: 0,
            completed: 0,
            received: 0,
            past: Totals::default(),
            last: TcpInfo::default(),
        })
    }

    /// Begins the next connection, or writes what the application of the present one has produced
    /// at `due`.
    pub fn next(&mut self, context: &mut Context, due: i64) -> io::Result<()> {
        if self.writer.is_none() {
            self.connect(context)?;
            self.writer = self.pace.clone().map(|pace| PacedWriter::new(pace, Time(due as u64)));
            if let (Some(pace), Some(sender)) = (&self.pace, &mut self.sender) {
                sender.write_in_units_of(pace.write_bytes as usize);
            }
        }
        let (Some(writer), Some(sender)) = (&mut self.writer, &mut self.sender) else {
            return Ok(());
        };
        let now = Time(context.clock.now() as u64);
        sender.allow(writer.produce(now, sender.written()))?;
        if writer.next() != Time::NEVER {
            context.agenda.at(writer.next().0 as i64, Task::Next(self.index));
        }
        Ok(())
    }

    fn connect(&mut self, context: &mut Context) -> io::Result<()> {
        let spec = &context.plan.flows[self.index];
        let connect =
            || Sender::connect(spec.from.address, far_end(spec), self.bytes, &self.options);
        self.began = context.clock.now();
        self.connections += 1;
        let sender = context.world.inside(Some(&spec.from.namespace), connect)?;
        context.epoll.add(
            &sender,
            Interest::WritableEdge,
            EventTarget::Sender.token(self.index),
        )?;
        self.sender = Some(sender);
        Ok(())
    }

    /// Accepts waiting connections. A new connection replaces an open one, because the sender has
    /// given that one up.
    pub fn accept(&mut self, context: &mut Context) -> io::Result<()> {
        while let Some(receiver) = self.listener.accept()? {
            context.read_in_kernel(&receiver)?;
            context.epoll.add(
                &receiver,
                Interest::ReadableEdge,
                EventTarget::Receiver.token(self.index),
            )?;
            self.receiver = Some(receiver);
        }
        Ok(())
    }

    /// The sender is writable, or its connection is done or broken. Returns true if a connection
    /// has ended.
    pub fn on_sender(&mut self, context: &mut Context, closed: bool) -> io::Result<bool> {
        let Some(sender) = &mut self.sender else {
            return Ok(false);
        };
        match sender.on_ready(closed) {
            Ok(State::Done) => {
                let bytes = sender.written() as i64;
                self.close();
                if !self.stopped {
                    self.completed += 1;
                    context.tables.transfers.push(transfers::Row {
                        flow: self.index as i64,
                        start_ns: self.began,
                        end_ns: context.clock.now(),
                        bytes,
                    });
                }
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) => {
                self.close();
                Err(error)
            }
        }
    }

    /// The receiver is readable.
    pub fn on_receiver(&mut self, closed: bool) -> io::Result<()> {
        let Some(receiver) = &mut self.receiver else {
            return Ok(());
        };
        let result = receiver.on_ready(closed);
        if receiver.ended() || result.is_err() {
            let info = TcpInfo::of(receiver);
            self.receiver = None;
            self.received += received(&info?);
        }
        result.map(drop)
    }

    /// Schedules the next transfer, if there is one, after a pause of at least `least` ns.
    pub fn rest(&mut self, context: &mut Context, least: i64) {
        if let Some((sizes, pauses)) = &self.series {
            let pause = (pauses.next(&mut self.rng) as i64).max(least);
            self.bytes = Some(sizes.next(&mut self.rng).max(1));
            context.agenda.at(context.clock.now() + pause, Task::Next(self.index));
        }
    }

    /// Stops: writes no more data.
    pub fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        self.sender.as_mut().map_or(Ok(()), Sender::stop)
    }

    fn close(&mut self) {
        if let Some(sender) = self.sender.take()
            && let Ok(info) = TcpInfo::of(&sender)
        {
            self.past = self.past.with(&info);
            self.last = info;
        }
    }

    /// Adds a row to the table `tcp`.
    pub fn sample(&mut self, tables: &mut Tables, now: i64) -> io::Result<()> {
        let info = self.sender.as_ref().map(TcpInfo::of).transpose()?;
        let far = self.receiver.as_ref().map(TcpInfo::of).transpose()?;
        tables.tcp.push(tcp::Row {
            t_ns: now,
            flow: self.index as i64,
            completed: self.completed as i64,
            ..row([info.as_ref(), far.as_ref()], self.past, self.received)
        });
        if let Some(info) = info {
            self.last = info;
        }
        Ok(())
    }

    /// Returns its summary.
    pub fn finish(self) -> Value {
        summary(&self.options, self.connections, &self.last)
    }
}

/// The summary of a flow, of whose sender `last` is the latest state.
pub(super) fn summary(options: &Options, connections: u64, last: &TcpInfo) -> Value {
    json!({
        "kind": "tcp",
        "congestion": options.congestion,
        "connections": connections,
        "ecn": last.options & 8 != 0,
        "snd_mss_bytes": last.snd_mss_bytes,
        "timeouts_known": last.total_rto.is_some(),
    })
}

/// A row of the present connection: its sender and the far end. Earlier connections have the
/// counters `past` and have delivered `before` bytes.
pub(super) fn row([info, far]: [Option<&TcpInfo>; 2], past: Totals, before: u64) -> tcp::Row {
    let totals = info.map_or(past, |info| past.with(info));
    let moment = |of: fn(&TcpInfo) -> u64| info.map_or(-1, |info| of(info) as i64);
    let received = before + far.map_or(0, received);
    tcp::Row {
        t_ns: 0,
        flow: 0,
        state: moment(|i| i.state.into()),
        ca_state: moment(|i| i.ca_state.into()),
        cwnd_segments: moment(|i| i.cwnd_segments.into()),
        ssthresh_segments: moment(|i| i.ssthresh_segments.into()),
        snd_mss_bytes: moment(|i| i.snd_mss_bytes.into()),
        srtt_us: moment(|i| i.srtt_us.into()),
        rttvar_us: moment(|i| i.rttvar_us.into()),
        min_rtt_us: moment(|i| i.min_rtt_us.into()),
        rto_us: moment(|i| i.rto_us.into()),
        unacked_segments: moment(|i| i.unacked_segments.into()),
        sacked_segments: moment(|i| i.sacked_segments.into()),
        lost_segments: moment(|i| i.lost_segments.into()),
        retrans_segments: moment(|i| i.retrans_segments.into()),
        reordering_segments: moment(|i| i.reordering_segments.into()),
        inflight_bytes: moment(|i| i.inflight_bytes()),
        pacing_rate_bytes_s: moment(|i| i.pacing_rate_bytes_s),
        delivery_rate_bytes_s: moment(|i| i.delivery_rate_bytes_s),
        notsent_bytes: moment(|i| i.notsent_bytes.into()),
        snd_wnd_bytes: moment(|i| i.snd_wnd_bytes.into()),
        busy_us: moment(|i| i.busy_us),
        rwnd_limited_us: moment(|i| i.rwnd_limited_us),
        sndbuf_limited_us: moment(|i| i.sndbuf_limited_us),
        rcv_space_bytes: far.map_or(-1, |far| i64::from(far.rcv_space_bytes)),
        total_retrans_segments: totals.retrans_segments,
        bytes_acked: totals.bytes_acked,
        bytes_sent: totals.bytes_sent,
        bytes_retrans: totals.bytes_retrans,
        data_segs_out: totals.data_segs_out,
        delivered_segments: totals.delivered_segments,
        delivered_ce_segments: totals.delivered_ce_segments,
        timeouts: totals.timeouts,
        received_bytes: received as i64,
        completed: 0,
    }
}

/// Returns the bytes received in order, whether this program or the kernel module reads them. The
/// kernel counts the FIN as one more.
fn received(info: &TcpInfo) -> u64 {
    info.bytes_received - u64::from(ENDED.contains(&info.state))
}

/// States in which the far end has sent a FIN: TIME_WAIT, CLOSE_WAIT, LAST_ACK, CLOSING.
const ENDED: [u8; 4] = [6, 8, 9, 11];

pub(super) fn options(tcp: &plan::Tcp, ds: u8) -> Options {
    let tcp = tcp.clone();
    Options { congestion: tcp.congestion, mss: tcp.mss, window_bytes: tcp.window_bytes, ds }
}

/// Fails if this kernel does not have a congestion control.
pub(super) fn known(name: &str, flow: &plan::Flow) -> io::Result<()> {
    let options = Options { congestion: Some(name.to_string()), ..Options::default() };
    // Listening at port 0 of a local address always works; the socket is closed at once.
    Listener::new(std::net::SocketAddr::new(flow.from.address, 0), &options).map(drop)
}
