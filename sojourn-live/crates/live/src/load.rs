//! The connections of one load, at either end. One end only sends, the other only receives.
//!
//! The owner has the event loop: it adds each connection's `fd` to its `Epoll` with `interest`,
//! calls `on_ready` on its events, and calls `sample` when a sample is due. Nothing here blocks. A
//! broken connection ends; the others continue.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use probe::bulk::{Receiver, Sender};
use probe::sys::Interest;
use probe::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

/// Largest amount that a sender writes before other connections are served: some 200 µs on
/// loopback.
const TURN: u64 = 1 << 20;
/// The kernel's value for "no slow-start threshold", segments.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// A sample of one connection; -1 is a value that this end does not know. Counters start with the
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<i64>", into = "Vec<i64>")]
pub struct Row {
    /// The connection's number in its load.
    pub stream: i64,
    /// Time, ns, on the clock of the end that took the sample.
    pub t: i64,
    /// Bytes that the receiver has read.
    pub received: i64,
    /// The sender's congestion window, bytes.
    pub cwnd: i64,
    /// The sender's slow-start threshold, bytes; -1 also means none.
    pub ssthresh: i64,
    /// The sender's smoothed RTT, ns; -1 also before the first RTT sample.
    pub srtt: i64,
    /// Bytes in flight, as the sender counts them.
    pub inflight: i64,
    /// Bytes acknowledged.
    pub acked: i64,
    /// Retransmitted segments.
    pub retransmits: i64,
    /// The window that the receiver advertises, bytes.
    pub window: i64,
    /// The smallest RTT, ns.
    pub min_rtt: i64,
    /// Segments sent with data.
    pub segments: i64,
    /// Bytes sent, including retransmissions.
    pub sent: i64,
    /// Segments delivered.
    pub delivered: i64,
    /// Retransmission timeouts.
    pub timeouts: i64,
    /// Whether the connection negotiated ECN: 1 or 0. This field and the next are present only on
    /// request.
    pub ecn: i64,
    /// Segments acknowledged with ECE.
    pub marked: i64,
}

/// Number of values in a row; the last two concern ECN.
const VALUES: usize = 17;
const WITHOUT_ECN: usize = 15;
/// TCPI_OPT_ECN in TCP_INFO's options.
const AGREED: u8 = 8;

impl TryFrom<Vec<i64>> for Row {
    type Error = String;

    fn try_from(given: Vec<i64>) -> Result<Row, String> {
        let mut values = [-1; VALUES];
        if given.len() != WITHOUT_ECN && given.len() != VALUES {
            return Err(format!("a sample of {} values", given.len()));
        }
        values[..given.len()].copy_from_slice(&given);
        Ok(values.into())
    }
}

impl From<Row> for Vec<i64> {
    fn from(row: Row) -> Vec<i64> {
        let values = <[i64; VALUES]>::from(row);
        let known = values[WITHOUT_ECN..].iter().any(|&value| value >= 0);
        values[..if known { VALUES } else { WITHOUT_ECN }].to_vec()
    }
}

impl From<[i64; VALUES]> for Row {
    fn from(values: [i64; VALUES]) -> Row {
        let [
            stream,
            t,
            received,
            cwnd,
            ssthresh,
            srtt,
            inflight,
            acked,
            retransmits,
            window,
            min_rtt,
            segments,
            sent,
            delivered,
            timeouts,
            ecn,
            marked,
        ] = values;
        Row {
            stream,
            t,
            received,
            cwnd,
            ssthresh,
            srtt,
            inflight,
            acked,
            retransmits,
            window,
            min_rtt,
            segments,
            sent,
            delivered,
            timeouts,
            ecn,
            marked,
        }
    }
}

impl From<Row> for [i64; VALUES] {
    fn from(row: Row) -> [i64; VALUES] {
        [
            row.stream,
            row.t,
            row.received,
            row.cwnd,
            row.ssthresh,
            row.srtt,
            row.inflight,
            row.acked,
            row.retransmits,
            row.window,
            row.min_rtt,
            row.segments,
            row.sent,
            row.delivered,
            row.timeouts,
            row.ecn,
            row.marked,
        ]
    }
}

impl Row {
    /// Creates the sample of a receiving end.
    fn receiver(stream: usize, t: i64, received: u64) -> Row {
        let mut values = [-1; VALUES];
        values[..3].copy_from_slice(&[stream as i64, t, received as i64]);
        values.into()
    }

    /// Creates the sample of a sending end.
    fn sender(stream: usize, t: i64, info: &TcpInfo, ecn: bool) -> Row {
        let mss = i64::from(info.snd_mss_bytes);
        let us = |value: u32| if value == 0 { -1 } else { i64::from(value) * 1000 };
        Row {
            stream: stream as i64,
            t,
            received: -1,
            cwnd: i64::from(info.cwnd_segments) * mss,
            ssthresh: match info.ssthresh_segments {
                NO_THRESHOLD.. => -1,
                segments => i64::from(segments) * mss,
            },
            srtt: us(info.srtt_us),
            inflight: info.inflight_bytes() as i64,
            // The SYN counts as one byte.
            acked: info.bytes_acked.saturating_sub(1) as i64,
            retransmits: i64::from(info.total_retrans_segments),
            window: i64::from(info.snd_wnd_bytes),
            min_rtt: if info.min_rtt_us == u32::MAX { -1 } else { us(info.min_rtt_us) },
            segments: i64::from(info.data_segs_out),
            sent: info.bytes_sent as i64,
            delivered: i64::from(info.delivered_segments),
            timeouts: info.total_rto.map_or(-1, i64::from),
            ecn: if ecn { i64::from(info.options & AGREED != 0) } else { -1 },
            marked: if ecn { i64::from(info.delivered_ce_segments) } else { -1 },
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
enum End {
    /// The connection is not established yet.
    Absent,
    /// It will send after `go`.
    Waiting(OwnedFd),
    Sending(Sender),
    Receiving(Receiver),
    Over,
}

/// The connections of a load.
#[derive(Debug)]
pub struct Load {
    sends: bool,
    /// Whether samples contain ECN's values.
    ecn: bool,
    ends: Vec<End>,
    rows: Vec<Row>,
    /// Bytes of each connection that were read together with its first line.
    early: Vec<u64>,
    moved: u64,
    broken: Option<String>,
}

impl Load {
    /// Creates a load of `streams` connections, none of them established yet. This end sends or
    /// receives on all of them.
    pub fn new(sends: bool, streams: usize) -> Load {
        Load {
            sends,
            ecn: false,
            ends: (0..streams).map(|_| End::Absent).collect(),
            rows: Vec::new(),
            early: vec![0; streams],
            moved: 0,
            broken: None,
        }
    }

    /// Turns ECN's values in samples on or off.
    pub fn with_ecn(self, ecn: bool) -> Load {
        Load { ecn, ..self }
    }

    /// Returns the epoll events to wait for: on receivers from `add` on, on senders from `go` on.
    pub fn interest(&self) -> Interest {
        if self.sends { Interest::Writable } else { Interest::Readable }
    }

    /// Whether this end sends.
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// Adds an established connection; returns false if the number does not exist or is taken.
    /// `early` is the number of bytes already read.
    pub fn add(&mut self, stream: usize, fd: OwnedFd, early: u64) -> bool {
        let Some(end @ End::Absent) = self.ends.get_mut(stream) else {
            return false;
        };
        *end = if self.sends { End::Waiting(fd) } else { End::Receiving(Receiver::over(fd)) };
        self.early[stream] = early;
        self.moved += early;
        true
    }

    /// Whether this number exists and its connection is still missing.
    pub fn lacks(&self, stream: usize) -> bool {
        matches!(self.ends.get(stream), Some(End::Absent))
    }

    /// Returns the number of missing connections.
    pub fn absent(&self) -> usize {
        self.ends.iter().filter(|end| matches!(end, End::Absent)).count()
    }

    /// Begins to send, if this end sends. Returns the connections that the owner must wait for from
    /// now on: (number, descriptor).
    pub fn go(&mut self) -> io::Result<Vec<(usize, RawFd)>> {
        let mut begun = Vec::new();
        for (stream, end) in self.ends.iter_mut().enumerate() {
            match std::mem::replace(end, End::Over) {
                End::Waiting(fd) => {
                    begun.push((stream, fd.as_raw_fd()));
                    *end = End::Sending(Sender::over(fd, TURN)?);
                }
                other => *end = other,
            }
        }
        Ok(begun)
    }

    /// Handles an event of a connection.
    pub fn on_ready(&mut self, stream: usize, closed: bool) {
        let Some(end) = self.ends.get_mut(stream) else {
            return;
        };
        let result = match end {
            End::Sending(sender) => {
                let before = sender.written();
                let result = sender.on_ready(closed).map(drop);
                self.moved += sender.written() - before;
                // The receiver has closed. A level-triggered event would repeat for ever.
                if closed && result.is_ok() {
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                } else {
                    result
                }
            }
            End::Receiving(receiver) => match receiver.on_ready(closed) {
                Ok(got) => {
                    self.moved += got;
                    if receiver.ended() {
                        self.early[stream] += receiver.received();
                        *end = End::Over;
                    }
                    Ok(())
                }
                Err(error) => {
                    // A sender that stops resets its connection: this is the normal end of a load.
                    self.early[stream] += receiver.received();
                    *end = End::Over;
                    if error.kind() == io::ErrorKind::ConnectionReset { Ok(()) } else { Err(error) }
                }
            },
            End::Absent | End::Waiting(_) | End::Over => Ok(()),
        };
        if let Err(error) = result {
            *end = End::Over;
            self.broken.get_or_insert(format!("stream {stream}: {error}"));
        }
    }

    /// Adds a sample of each established connection.
    pub fn sample(&mut self, now: i64) {
        for (stream, end) in self.ends.iter().enumerate() {
            match end {
                End::Receiving(receiver) => {
                    let received = self.early[stream] + receiver.received();
                    self.rows.push(Row::receiver(stream, now, received));
                }
                End::Over if !self.sends => {
                    self.rows.push(Row::receiver(stream, now, self.early[stream]))
                }
                End::Sending(sender) => {
                    // The kernel may have no TCP_INFO any more.
                    if let Ok(info) = TcpInfo::of(sender) {
                        self.rows.push(Row::sender(stream, now, &info, self.ecn));
                    }
                }
                End::Absent | End::Waiting(_) | End::Over => {}
            }
        }
    }

    /// Ends all sending connections at once. Receiving connections end when the far end does, or
    /// with `close`.
    pub fn stop(&mut self) {
        for end in &mut self.ends {
            match std::mem::replace(end, End::Over) {
                // If the reset fails, dropping the socket closes it normally.
                End::Sending(sender) => drop(sender.abort()),
                other @ End::Receiving(_) => *end = other,
                End::Absent | End::Waiting(_) | End::Over => {}
            }
        }
    }

    /// Closes all connections.
    pub fn close(&mut self) {
        self.stop();
        self.ends.iter_mut().for_each(|end| *end = End::Over);
    }

    /// Whether all connections have ended.
    pub fn is_over(&self) -> bool {
        self.ends.iter().all(|end| matches!(end, End::Over))
    }

    /// Returns the bytes written or read, over all connections.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Returns the first connection that broke before its end, in words.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Returns and removes the samples so far.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (OwnedFd, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        for stream in [&near, &far] {
            stream.set_nonblocking(true).unwrap();
        }
        (near.into(), far.into())
    }

    #[test]
    fn both_ends_count_the_bytes_of_a_transfer() {
        let (mut from, mut to) = (Load::new(true, 2), Load::new(false, 2));
        for stream in 0..2 {
            let (near, far) = pair();
            assert!(from.add(stream, near, 0));
            assert!(to.add(stream, far, 7));
        }
        assert_eq!((from.absent(), to.absent()), (0, 0));
        assert!(!from.add(0, pair().0, 0) && !from.add(2, pair().0, 0));
        assert_eq!(from.go().unwrap().len(), 2);
        assert!(to.go().unwrap().is_empty());
        for stream in 0..2 {
            from.on_ready(stream, false);
        }
        assert!(from.moved() > 0);
        from.sample(5);
        from.stop();
        assert!(from.is_over() && from.broken().is_none());
        while !to.is_over() {
            (0..2).for_each(|stream| to.on_ready(stream, false));
        }
        to.sample(9);
        let (sent, received) = (from.take_rows(), to.take_rows());
        assert_eq!((sent.len(), received.len()), (2, 2));
        assert!(sent.iter().all(|row| row.t == 5 && row.cwnd > 0 && row.received == -1));
        assert_eq!(received.iter().map(|row| row.received).sum::<i64>() as u64, to.moved());
        // Written but unsent bytes were discarded; 7 bytes of each connection came with the first
        // line.
        assert!((14..=from.moved() + 14).contains(&to.moved()));
        assert!(received.iter().all(|row| (row.t, row.cwnd) == (9, -1)));
    }

    #[test]
    fn a_receiver_that_disconnects_ends_only_its_own_stream() {
        let mut from = Load::new(true, 2);
        let (near, far) = pair();
        let (other, _kept) = pair();
        from.add(0, near, 0);
        from.add(1, other, 0);
        from.go().unwrap();
        drop(far);
        from.on_ready(0, true);
        assert!(from.broken().is_some() && !from.is_over());
        from.on_ready(1, false);
        from.sample(1);
        assert_eq!(from.take_rows().iter().map(|row| row.stream).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_row_is_decoded_as_it_was_encoded() {
        let row = Row::from(std::array::from_fn::<i64, VALUES, _>(|i| i as i64));
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(text, "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]");
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
        // An older version neither sends nor expects ECN's values.
        let old = Row { ecn: -1, marked: -1, ..row };
        let text = serde_json::to_string(&old).unwrap();
        assert_eq!(text, "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]");
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), old);
        assert!(serde_json::from_str::<Row>("[1,2]").is_err());
    }
}
