//! The parts that all kinds of flows share: the network as an end sees it, a flow's counts, its
//! transfers, and the common parts of its headers.

use crate::payload::Parcel;
use tcp::{Receiver, Sender, TcpParams};
use units::Time;

/// The network as an end of a flow sees it.
pub trait Path {
    /// The time at which the next packet arrives; NEVER: none is in flight.
    fn first_arrives(&self) -> Time;

    /// Takes the packet that arrives next.
    fn receive(&mut self) -> Parcel;

    /// Sends a packet.
    fn send(&mut self, packet: Parcel, now: Time);
}

/// A flow's counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Data packets its source has sent, retransmissions included.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Data packets that reached the far end.
    pub received_packets: u64,
    /// Application bytes delivered: TCP in order, datagrams as they arrive.
    pub delivered_bytes: u64,
    /// Data packets that a queue or a wire dropped; a lost ACK is not a lost segment.
    pub lost_packets: u64,
    /// TCP retransmissions, timeouts, fast recoveries.
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
}

/// A completed transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub start: Time,
    pub end: Time,
    pub bytes: u64,
}

/// Common parts of the headers of a TCP flow's packets.
pub struct TcpHeaders<'a> {
    /// Bytes of a full segment.
    pub mss: u32,
    /// IP bytes of a segment without its data.
    pub bytes: u32,
    pub timestamps: bool,
    pub sack: bool,
    /// The receive window's scale, as a power of two.
    pub scale: u32,
    /// The window that a SYN-ACK offers, bytes.
    pub syn_window: u16,
    /// Bytes of the connection; `None`: without end.
    pub stream_bytes: Option<u64>,
    /// The sender of the data that the packet has or acknowledges; `None`: a later connection has
    /// begun, and all segments count as full.
    pub sender: Option<&'a Sender>,
    /// The sender of the other direction's data; `None`: data flow one way.
    pub other: Option<&'a Sender>,
}

impl TcpHeaders<'_> {
    /// The offset of a segment's first byte in the stream. A segment after the last one is at the
    /// end.
    pub fn first_byte(&self, segment: u32) -> u64 {
        let full = u64::from(segment) * u64::from(self.mss);
        let at = self.sender.map_or(full, |sender| sender.first_byte(segment));
        self.stream_bytes.map_or(at, |end| at.min(end))
    }

    /// The offset of a segment's first byte in the other direction's stream.
    pub fn other_byte(&self, segment: u32) -> u64 {
        self.other.map_or(0, |sender| sender.first_byte(segment))
    }
}

impl<'a> TcpHeaders<'a> {
    /// The headers of a connection with data both ways. The packet carries or acknowledges data of
    /// the first of `senders`.
    pub fn both_ways(params: &TcpParams, receiver: &Receiver, senders: [&'a Sender; 2]) -> Self {
        let [sender, other] = senders;
        TcpHeaders {
            mss: params.mss,
            bytes: params.header_bytes,
            timestamps: params.timestamps,
            sack: params.recovery.sack,
            scale: receiver.window_scale(),
            syn_window: receiver.syn_window(),
            stream_bytes: None,
            sender: Some(sender),
            other: Some(other),
        }
    }
}
