//! The memory of a packet in a Linux host: its `truesize`, which receive buffers and fq_codel's
//! memory_limit count.
//!
//! Every packet has a record of its own, and shared information about its pages behind its bytes.
//! The layout of its bytes depends on the sender. TCP uses a small head for the headers and pages
//! for the data. A datagram is one piece with its headers: in a small head, or else in the next
//! power of two. A bare ACK is charged almost nothing, so that ACKs don't count in a sender's
//! limits. A packet keeps its sender's charge between hosts of one machine (veth, network
//! namespaces). A real card's driver allocates received packets anew, and charges the buffers of
//! its ring: half a page to a page for a full packet.
//!
//! Source: Linux net/core/skbuff.c, net/ipv4/tcp_output.c (tcp_stream_alloc_skb,
//! skb_set_tcp_pure_ack) and ip_output.c; read off a 6.12 kernel on x86-64 for segments, ACKs,
//! SYNs, pings, and datagrams of 64 to 1500 bytes.

/// The packet's record, bytes.
pub const RECORD: u64 = 256;
/// The shared information about its pages, behind its bytes.
pub const SHARED: u64 = 320;
/// Room for headers in a small head.
pub const HEADERS: u64 = 256;
/// An acknowledgement without data that is not a SYN.
pub const BARE_ACK: u64 = 2;
/// Room before and behind a datagram for its device.
const MARGIN: u64 = 31;
/// The bytes of a piece are rounded up to whole cache lines.
const CACHE_LINE: u64 = 64;

/// A TCP segment with this payload, or a SYN.
pub const fn segment(payload: u64) -> u64 {
    RECORD + SHARED + HEADERS + payload
}

/// A datagram or an echo of `ip_bytes`.
pub const fn datagram(ip_bytes: u64) -> u64 {
    let bytes = (ip_bytes + MARGIN).next_multiple_of(CACHE_LINE);
    let piece =
        if bytes <= HEADERS { HEADERS + SHARED } else { (bytes + SHARED).next_power_of_two() };
    RECORD + piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_charged_as_in_a_6_12_kernel() {
        // A full segment with timestamps and without, one of 204 bytes, a SYN.
        assert_eq!([1448, 1460, 204, 0].map(segment), [2280, 2292, 1036, 832]);
    }

    #[test]
    fn datagrams_lie_in_a_small_head_or_the_next_power_of_two() {
        let kernel = [
            (64, 832),
            (84, 832),
            (225, 832),
            (226, 1280),
            (673, 1280),
            (674, 2304),
            (1200, 2304),
            (1500, 2304),
        ];
        for (ip_bytes, truesize) in kernel {
            assert_eq!(datagram(ip_bytes), truesize, "{ip_bytes} bytes");
        }
    }
}
