//! A simulated packet: the fields that queues read and those that TCP, UDP and ping need, in 32
//! bytes.
//!
//! A packet stays in one node (`lanes`) from its host to the other. Queues get a slip with the
//! node's number, so that only 24 bytes move from queue to queue. SACK blocks and LEDBAT's one-way
//! delays, which few ACKs have, are in a pool of their own.

use qdisc::{AckView, Body, DsField, Ecn, Packet, ReplayHints};
use tcp::{AccEcnOption, AckSegment, MAX_SACK_BLOCKS, Millis, Segment};
use units::{Time, memory};

/// A packet in the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Data: the sender's clock. ACK and pong: the echo of it.
    pub stamp: Time,
    /// Data: segment number. ACK: next expected segment. UDP and ping: running number.
    pub seq: u32,
    /// Data: the echo of the receiver's clock in the low half, or `NO_ECHO` in the whole field.
    /// ACK: the receiver's clock in the low half, and in the high half the receive window, in units
    /// of 2^scale bytes.
    pub window: u32,
    /// ACK: index of its blocks and its one-way delay in the pool; `NO_SACK` if it has neither.
    /// Data: the index of the acknowledgement that it carries, if data flow both ways.
    pub sack: u32,
    /// The direction: even from the source, odd back to it.
    pub flow: u32,
    /// IP bytes.
    pub size: u32,
    /// The DS field.
    pub ds: DsField,
    /// Which connection of the flow it belongs to (transfers), modulo 256.
    pub epoch: u8,
    /// Links crossed.
    pub hop: u8,
    /// One of `kind` in the low bits, flags above.
    pub kind: u8,
}

/// The part of a packet that a queue gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed)]
pub struct Slip {
    /// The packet's node.
    pub node: u32,
    epoch: u8,
    kind: u8,
    tunnel: u8,
}

/// Payload kinds.
pub mod kind {
    /// TCP data.
    pub const DATA: u8 = 0;
    /// TCP acknowledgement.
    pub const ACK: u8 = 1;
    /// One-way datagram.
    pub const DATAGRAM: u8 = 2;
    /// Echo request.
    pub const PING: u8 = 3;
    /// Echo reply.
    pub const PONG: u8 = 4;
    /// The bits of the kind; the flags are above them.
    pub const MASK: u8 = 0x07;
    /// DATA: without timestamps.
    pub const UNTIMED: u8 = 0x08;
    /// DATAGRAM, PING and PONG: a wire has doubled it.
    pub const TWIN: u8 = 0x08;
    /// DATA: a retransmission. ACK, and packets without data: the lowest bit of ACE (ECN echo).
    pub const FLAG: u8 = 0x10;
    /// DATA: congestion window reduced. ACK, and packets without data: the second bit of ACE.
    pub const CWR: u8 = 0x20;
    /// DATA: pushed. ACK, and packets without data: the third bit of ACE.
    pub const PUSH: u8 = 0x40;
    /// DATA and ACK: part of a handshake.
    pub const SYN: u8 = 0x80;
}

/// No SACK blocks.
pub const NO_SACK: u32 = u32::MAX;
/// The largest window, in units of its scale (RFC 7323, section 2.2).
const WINDOW: u64 = u16::MAX as u64;
pub const NO_ECHO: u32 = u32::MAX;
/// A SYN's options beyond those of every segment, bytes: segment size, window scale, and SACK
/// permitted.
const SYN_OPTIONS: u32 = 8;
/// Bytes of the headers of IP and TCP, and of the timestamps' option with its padding.
const TCP_HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;

impl Parcel {
    /// The kind without its flags.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.kind & kind::MASK
    }

    /// Marks the packet as doubled by a wire. Packets of TCP need no mark, since TCP detects
    /// copies.
    pub fn mark_twin(&mut self) {
        if !matches!(self.kind(), kind::DATA | kind::ACK) {
            self.kind |= kind::TWIN;
        }
    }

    /// The part that a queue gets; `node` is the packet's node, and `tunnel` its tunnel.
    #[inline]
    pub fn slip(&self, node: u32, tunnel: u8) -> Packet<Slip> {
        let body = Slip { node, epoch: self.epoch, kind: self.kind, tunnel };
        Packet { enqueued: Time::ZERO, flow: self.flow, size: self.size, ds: self.ds, body }
    }
}

impl ReplayHints for Slip {}

impl Body for Slip {
    #[inline]
    fn truesize(&self, ip_bytes: u32) -> u64 {
        let syn = self.kind & kind::SYN != 0;
        match self.kind & kind::MASK {
            kind::DATA | kind::ACK if syn => memory::segment(0),
            kind::ACK => memory::BARE_ACK,
            kind::DATA => {
                let options = if self.kind & kind::UNTIMED != 0 { 0 } else { TIMESTAMPS };
                memory::segment(ip_bytes.saturating_sub(TCP_HEADERS + options).into())
            }
            _ => memory::datagram(ip_bytes.into()),
        }
    }

    /// Each of a flow's transfers is a separate connection, with its own ports.
    #[inline]
    fn connection(&self, flow: u32) -> u64 {
        if self.tunnel > 0 {
            // Each direction of a tunnel is a connection, as each direction of a flow is.
            return u64::from(self.tunnel) << 40 | u64::from(flow & 1);
        }
        u64::from(self.epoch) << 32 | u64::from(flow)
    }

    #[inline]
    fn tunnel(&self) -> u8 {
        self.tunnel
    }

    #[inline]
    fn place(&self) -> u32 {
        self.node
    }
}

/// Common fields of all packets of one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The direction: even from the source, odd back to it.
    pub flow: u32,
    /// The DS field; without ECN for TCP's packets.
    pub ds: DsField,
}

impl Envelope {
    /// The envelope of replies: the other direction, the same codepoint.
    #[inline]
    pub fn reply(self) -> Envelope {
        Envelope { flow: self.flow + 1, ..self }
    }

    /// A packet of a program, with the flow's ECN field.
    #[inline]
    pub fn of_program(self, size: u32, kind: u8, seq: u32, stamp: Time) -> Parcel {
        self.packet(size, self.ds.ecn(), kind, seq, stamp)
    }

    /// An empty packet of `size` IP bytes.
    #[inline]
    pub fn packet(self, size: u32, ecn: Ecn, kind: u8, seq: u32, stamp: Time) -> Parcel {
        Parcel {
            stamp,
            seq,
            window: 0,
            sack: NO_SACK,
            flow: self.flow,
            size,
            ds: self.ds.with_ecn(ecn),
            epoch: 0,
            hop: 0,
            kind,
        }
    }
}

/// An acknowledgement with fields that few ACKs have, or in a segment with data.
#[derive(Clone, Copy)]
struct Extra {
    ack: AckSegment,
    /// SND.NXT of the end that sent it, if that end sends data too.
    snd_nxt: u32,
}

/// The acknowledgements in flight that have blocks, a one-way delay or an option, and all those of
/// connections with data both ways.
#[derive(Default)]
pub struct SackPool {
    extras: Vec<Extra>,
    free: Vec<u32>,
}

impl SackPool {
    fn put(&mut self, ack: &AckSegment, snd_nxt: u32) -> u32 {
        if ack.sack_count == 0 && ack.one_way.is_none() && ack.accecn.is_none() && snd_nxt == 0 {
            return NO_SACK;
        }
        self.store(Extra { ack: *ack, snd_nxt })
    }

    #[inline]
    fn store(&mut self, extra: Extra) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.extras[index as usize] = extra;
                index
            }
            None => {
                self.extras.push(extra);
                (self.extras.len() - 1) as u32
            }
        }
    }

    /// Gives the copy of a packet an entry of its own.
    pub fn share(&mut self, copy: &mut Parcel) {
        if copy.sack != NO_SACK {
            let extra = self.extras[copy.sack as usize];
            copy.sack = self.store(extra);
        }
    }

    /// Frees what the pool has of a packet that was dropped or delivered.
    #[inline]
    pub fn release(&mut self, packet: &Parcel) {
        if packet.sack != NO_SACK {
            self.free.push(packet.sack);
        }
    }

    /// The content of a pure ACK, for disciplines that read it; `None`: the packet is not one.
    #[inline]
    pub fn ack_view(&self, packet: &Parcel) -> Option<AckView> {
        let is_ack = packet.kind() == kind::ACK && packet.kind & kind::SYN == 0;
        is_ack.then(|| {
            let empty = ([(0, 0); MAX_SACK_BLOCKS], 0);
            let (sacks, sack_count) = match packet.sack {
                NO_SACK => empty,
                index => {
                    let ack = &self.extras[index as usize].ack;
                    (ack.sacks, ack.sack_count)
                }
            };
            AckView { ack: packet.seq, sacks, sack_count, ece: packet.kind & kind::FLAG != 0 }
        })
    }

    /// The SACK blocks of a packet and its AccECN option.
    pub fn options(&self, packet: &Parcel) -> (&[(u32, u32)], Option<AccEcnOption>) {
        let Some(Extra { ack, .. }) = self.extra(packet) else { return (&[], None) };
        (&ack.sacks[..usize::from(ack.sack_count)], ack.accecn)
    }

    /// The acknowledgement that a segment with data carries, if data flow both ways.
    pub fn carried(&self, packet: &Parcel) -> Option<&AckSegment> {
        self.extra(packet).filter(|_| packet.kind() == kind::DATA).map(|extra| &extra.ack)
    }

    /// SND.NXT of the end that sent an ACK; 0 if that end sends no data.
    pub fn snd_nxt(&self, packet: &Parcel) -> u32 {
        self.extra(packet).map_or(0, |extra| extra.snd_nxt)
    }

    fn extra(&self, packet: &Parcel) -> Option<&Extra> {
        (packet.sack != NO_SACK).then(|| &self.extras[packet.sack as usize])
    }

    /// Blocks in use.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.extras.len() - self.free.len()
    }
}

/// AE, CWR and ECE as flags of a packet without data: they are neighbours, in this order.
#[inline]
fn ace_flags(ace: u8) -> u8 {
    ace << kind::FLAG.trailing_zeros()
}

/// AE, CWR and ECE of a packet without data.
#[inline]
pub fn ace(packet: &Parcel) -> u8 {
    packet.kind >> kind::FLAG.trailing_zeros() & 7
}

/// The packet of a TCP segment.
#[inline]
pub fn pack_segment(segment: &Segment, header_bytes: u32, envelope: Envelope, epoch: u8) -> Parcel {
    let flagged = segment.retransmit | segment.cwr | segment.push | segment.syn;
    let (mut flags, options) = match flagged | (segment.len == 0) {
        false => (kind::DATA, 0),
        true => flags_of(segment),
    };
    let window = segment.echo.map_or(NO_ECHO, |echo| echo.0.into());
    if window == NO_ECHO {
        flags |= kind::UNTIMED;
    }
    let size = segment.len + header_bytes + options;
    let packet = envelope.packet(size, segment.ecn, flags, segment.seq, segment.stamp);
    Parcel { window, epoch, ..packet }
}

/// The flags of a segment that has flags or no data, and the bytes of the options that only a SYN
/// has.
#[inline(never)]
fn flags_of(segment: &Segment) -> (u8, u32) {
    let mut flags = kind::DATA;
    if segment.retransmit {
        flags |= kind::FLAG;
    }
    if segment.cwr {
        flags |= kind::CWR;
    }
    if segment.push {
        flags |= kind::PUSH;
    }
    if segment.len == 0 {
        flags |= ace_flags(segment.ace);
    }
    if segment.syn {
        return (flags | kind::SYN, SYN_OPTIONS);
    }
    (flags, 0)
}

/// The segment in a packet, if it has data and no flag. `unpack_segment` gives the same.
#[inline(always)]
pub fn unpack_plain_segment(packet: &Parcel, header_bytes: u32) -> Option<Segment> {
    let plain = packet.kind & !kind::UNTIMED == kind::DATA && packet.size > header_bytes;
    plain.then(|| Segment {
        seq: packet.seq,
        len: packet.size - header_bytes,
        stamp: packet.stamp,
        retransmit: false,
        cwr: false,
        ace: 0,
        ecn: packet.ds.ecn(),
        syn: false,
        push: false,
        echo: (packet.window != NO_ECHO).then_some(Millis(packet.window as u16)),
    })
}

/// The segment in a packet.
#[inline]
pub fn unpack_segment(packet: &Parcel, header_bytes: u32) -> Segment {
    let syn = packet.kind & kind::SYN != 0;
    let len = if syn { 0 } else { packet.size - header_bytes };
    // Without data the flags are those of ACE, and CWR is one of them.
    let (ace, of_data) = if len == 0 { (ace(packet), 0) } else { (0, packet.kind) };
    Segment {
        seq: packet.seq,
        len,
        stamp: packet.stamp,
        retransmit: of_data & kind::FLAG != 0,
        cwr: of_data & kind::CWR != 0 || syn && packet.kind & kind::CWR != 0,
        ace,
        ecn: packet.ds.ecn(),
        syn,
        push: of_data & kind::PUSH != 0,
        echo: (packet.window != NO_ECHO).then_some(Millis(packet.window as u16)),
    }
}

/// The packet of an ACK. Each SACK block makes it 8 bytes longer, the option itself 4 (RFC 2018,
/// section 3, padded).
#[inline]
pub fn pack_ack(
    ack: &AckSegment,
    scale: u32,
    ack_bytes: u32,
    envelope: Envelope,
    epoch: u8,
    pool: &mut SackPool,
) -> Parcel {
    pack_ack_beside(ack, 0, scale, ack_bytes, envelope, epoch, pool)
}

/// The packet of an ACK of an end that sends data too; its SND.NXT is `snd_nxt`.
#[inline]
pub fn pack_ack_beside(
    ack: &AckSegment,
    snd_nxt: u32,
    scale: u32,
    ack_bytes: u32,
    envelope: Envelope,
    epoch: u8,
    pool: &mut SackPool,
) -> Parcel {
    let mut flags = kind::ACK | ace_flags(ack.ace);
    let mut options = sack_bytes(ack) + ack.accecn.map_or(0, |option| option.size.into());
    if ack.syn {
        flags |= kind::SYN;
        options += SYN_OPTIONS;
    }
    let window = ((ack.window >> scale).min(WINDOW) as u32) << 16 | u32::from(ack.stamp.0);
    let packet = envelope.packet(ack_bytes + options, ack.ecn, flags, ack.ack, ack.echo);
    Parcel { window, sack: pool.put(ack, snd_nxt), epoch, ..packet }
}

/// Bytes of an ACK's SACK option.
#[inline]
fn sack_bytes(ack: &AckSegment) -> u32 {
    if ack.sack_count == 0 { 0 } else { 4 + 8 * u32::from(ack.sack_count) }
}

/// The packet of a segment that carries an acknowledgement.
pub fn pack_carrier(
    segment: &Segment,
    ack: &AckSegment,
    scale: u32,
    header_bytes: u32,
    envelope: Envelope,
    pool: &mut SackPool,
) -> Parcel {
    let packet = pack_segment(segment, header_bytes + sack_bytes(ack), envelope, 0);
    let window = (ack.window >> scale).min(WINDOW) << scale;
    let carried = AckSegment { window, ..*ack };
    Parcel { sack: pool.store(Extra { ack: carried, snd_nxt: segment.seq }), ..packet }
}

/// The segment in a packet and the acknowledgement that it carries; frees its place in the pool.
pub fn unpack_carrier(
    packet: &Parcel,
    header_bytes: u32,
    pool: &mut SackPool,
) -> (Segment, Option<AckSegment>) {
    let carried = pool.carried(packet).copied();
    pool.release(packet);
    let options = carried.as_ref().map_or(0, sack_bytes);
    (unpack_segment(packet, header_bytes + options), carried)
}

/// The ACK in a packet, if it has neither a flag nor blocks. `unpack_ack` gives the same.
#[inline(always)]
pub fn unpack_plain_ack(packet: &Parcel, scale: u32) -> Option<AckSegment> {
    let plain = packet.kind == kind::ACK && packet.sack == NO_SACK;
    plain.then(|| AckSegment {
        ack: packet.seq,
        echo: packet.stamp,
        window: u64::from(packet.window >> 16) << scale,
        sacks: [(0, 0); MAX_SACK_BLOCKS],
        sack_count: 0,
        ace: 0,
        accecn: None,
        ecn: packet.ds.ecn(),
        one_way: None,
        syn: false,
        stamp: Millis(packet.window as u16),
    })
}

/// The ACK in a packet; frees its blocks.
#[inline]
pub fn unpack_ack(packet: &Parcel, scale: u32, pool: &mut SackPool) -> AckSegment {
    let plain = AckSegment {
        ack: packet.seq,
        echo: packet.stamp,
        window: u64::from(packet.window >> 16) << scale,
        sacks: [(0, 0); MAX_SACK_BLOCKS],
        sack_count: 0,
        ace: ace(packet),
        accecn: None,
        ecn: packet.ds.ecn(),
        one_way: None,
        syn: packet.kind & kind::SYN != 0,
        stamp: Millis(packet.window as u16),
    };
    if packet.sack == NO_SACK {
        return plain;
    }
    pool.free.push(packet.sack);
    let AckSegment { sacks, sack_count, accecn, one_way, .. } =
        pool.extras[packet.sack as usize].ack;
    AckSegment { sacks, sack_count, accecn, one_way, ..plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn a_packet_takes_half_a_cache_line_and_its_slip_less() {
        assert_eq!([size_of::<Parcel>(), size_of::<Packet<Slip>>()], [32, 24]);
    }

    #[test]
    fn an_ack_is_unpacked_unchanged_and_frees_its_blocks() {
        let mut pool = SackPool::default();
        let ack = AckSegment {
            ack: 7,
            echo: Time(99),
            window: 1 << 20,
            sacks: [(9, 11), (13, 14), (0, 0), (0, 0)],
            sack_count: 2,
            ace: 5,
            accecn: Some(AccEcnOption { bytes: [1, 2, 3], fields: 3, size: 12 }),
            ecn: Ecn::Ect0,
            one_way: None,
            syn: false,
            stamp: Millis(65_000),
        };
        let envelope = Envelope { flow: 3, ds: DsField(0xb8) };
        let packet = pack_ack(&ack, 7, 52, envelope, 1, &mut pool);
        assert_eq!((packet.flow, packet.ds, packet.size, pool.held()), (3, DsField(0xba), 84, 1));
        assert_eq!(unpack_ack(&packet, 7, &mut pool), ack);
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn a_plain_packet_is_unpacked_as_any_other() {
        let envelope = Envelope { flow: 4, ds: DsField::BEST_EFFORT };
        let mut pool = SackPool::default();
        for flags in 0..=u8::MAX {
            let kind = flags & kind::MASK;
            for (size, sack, window) in [(1500, NO_SACK, 7 << 16 | 9), (52, NO_SACK, NO_ECHO)] {
                let packet = envelope.packet(size, Ecn::Ect0, flags, 5, Time(99));
                let packet = Parcel { window, sack, ..packet };
                if kind == kind::DATA
                    && let Some(plain) = unpack_plain_segment(&packet, 52)
                {
                    assert_eq!(plain, unpack_segment(&packet, 52));
                }
                if let Some(plain) = unpack_plain_ack(&packet, 7) {
                    assert_eq!(plain, unpack_ack(&packet, 7, &mut pool));
                }
            }
        }
        let plain = envelope.packet(1500, Ecn::Ect0, kind::DATA, 5, Time(99));
        assert!(unpack_plain_segment(&plain, 52).is_some());
        let plain = envelope.packet(52, Ecn::Ect0, kind::ACK, 5, Time(99));
        assert!(unpack_plain_ack(&plain, 7).is_some());
    }

    #[test]
    fn a_packet_takes_as_much_memory_as_the_kernel_s() {
        let takes = |kind, ip_bytes| Slip { node: 0, epoch: 0, kind, tunnel: 0 }.truesize(ip_bytes);
        // The numbers of a 6.12 kernel (units::memory).
        assert_eq!(takes(kind::DATA, 1500), 2280);
        assert_eq!(takes(kind::DATA | kind::UNTIMED, 1500), 2292);
        assert_eq!(takes(kind::DATA | kind::FLAG | kind::PUSH, 256), 1036);
        assert_eq!(
            [takes(kind::DATA | kind::SYN | kind::UNTIMED, 60), takes(kind::ACK | kind::SYN, 60)],
            [832; 2]
        );
        assert_eq!(
            [takes(kind::ACK, 52), takes(kind::ACK | kind::FLAG, 80)],
            [2; 2],
            "with blocks, too"
        );
        assert_eq!([takes(kind::DATAGRAM, 1500), takes(kind::PING, 84)], [2304, 832]);
    }

    #[test]
    fn transfers_of_a_flow_have_hashes_of_their_own_and_its_packets_do_not() {
        let of = |epoch| Slip { node: 1, epoch, kind: kind::DATA, tunnel: 0 };
        let again = Slip { node: 7, epoch: 3, kind: kind::DATA | kind::FLAG, tunnel: 0 };
        assert_eq!(of(3).hash(6, 99), again.hash(6, 99));
        assert_ne!(of(3).hash(6, 99), of(4).hash(6, 99));
        assert_ne!(of(3).hash(6, 99), of(3).hash(7, 99), "the directions differ, too");
        assert_eq!(of(0).hash(6, 99), ().hash(6, 99));
        let inside = |epoch, tunnel| Slip { tunnel, ..of(epoch) };
        assert_eq!(
            inside(3, 1).hash(6, 99),
            inside(4, 1).hash(8, 99),
            "a tunnel is one connection"
        );
        assert_ne!(inside(3, 1).hash(6, 99), inside(3, 2).hash(6, 99));
        assert_ne!(inside(3, 1).hash(6, 99), inside(3, 1).hash(7, 99));
    }

    #[test]
    fn a_one_way_delay_travels_in_the_pool_and_takes_no_room_on_the_wire() {
        let mut pool = SackPool::default();
        let ack = AckSegment {
            ack: 7,
            echo: Time(99),
            window: 1 << 20,
            sacks: [(0, 0); MAX_SACK_BLOCKS],
            sack_count: 0,
            ace: 0,
            accecn: None,
            ecn: Ecn::NotEct,
            one_way: Some(Span::from_millis(25)),
            syn: false,
            stamp: Millis(0),
        };
        let envelope = Envelope { flow: 3, ds: DsField(0) };
        let packet = pack_ack(&ack, 7, 52, envelope, 1, &mut pool);
        assert_eq!((packet.size, pool.held()), (52, 1));
        assert_eq!(unpack_ack(&packet, 7, &mut pool), ack);
        assert_eq!(pool.held(), 0);
    }
}
