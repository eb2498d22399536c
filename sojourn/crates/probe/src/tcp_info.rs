//! The kernel's state of a TCP connection: the struct that getsockopt(TCP_INFO) returns.
//!
//! New kernels have appended fields to the struct and have never changed the earlier ones. So the
//! fields are read by offset from the bytes that the kernel returned. The part up to the send
//! window (Linux 5.4) is required; later fields are `None` on a kernel that lacks them. Fields have
//! the kernel's names and units, with the unit in the name.

use std::io;
use std::os::fd::AsRawFd;

use crate::sys;

/// The current state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State of the connection: 1 is established.
    pub state: u8,
    /// State of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Bits: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN, 16 ECN seen.
    pub options: u8,
    /// Retransmission timeout, µs.
    pub rto_us: u32,
    /// Largest segment sent, bytes.
    pub snd_mss_bytes: u32,
    /// Segments sent and not yet cumulatively acknowledged.
    pub unacked_segments: u32,
    /// Unacknowledged segments that SACK reports as received.
    pub sacked_segments: u32,
    /// Unacknowledged segments that are considered lost.
    pub lost_segments: u32,
    /// Unacknowledged segments that were retransmitted.
    pub retrans_segments: u32,
    /// Smoothed RTT, µs.
    pub srtt_us: u32,
    /// Mean deviation of the RTT, µs.
    pub rttvar_us: u32,
    /// Slow-start threshold, segments; 0x7fffffff: none.
    pub ssthresh_segments: u32,
    /// Congestion window, segments.
    pub cwnd_segments: u32,
    /// Degree of reordering that is tolerated, segments.
    pub reordering_segments: u32,
    /// Receive buffer space that the kernel's tuning has reached, bytes.
    pub rcv_space_bytes: u32,
    /// Retransmissions since the start.
    pub total_retrans_segments: u32,
    /// Pacing rate, bytes/s; all ones: none.
    pub pacing_rate_bytes_s: u64,
    /// Bytes acknowledged since the start; SYN and FIN count as one byte each.
    pub bytes_acked: u64,
    /// Bytes received since the start.
    pub bytes_received: u64,
    /// Segments sent since the start, including those without data.
    pub segs_out: u32,
    /// Bytes that the application has written and the kernel has not sent yet.
    pub notsent_bytes: u32,
    /// Smallest RTT in the kernel's window, µs.
    pub min_rtt_us: u32,
    /// Segments with data sent since the start.
    pub data_segs_out: u32,
    /// Latest delivery rate, bytes/s.
    pub delivery_rate_bytes_s: u64,
    /// Time with data outstanding, µs.
    pub busy_us: u64,
    /// Part of `busy_us` in which the receiver's window was the limit, µs.
    pub rwnd_limited_us: u64,
    /// Part of `busy_us` in which the send buffer was the limit, µs.
    pub sndbuf_limited_us: u64,
    /// Segments known to be delivered.
    pub delivered_segments: u32,
    /// Delivered segments that were acknowledged with ECE.
    pub delivered_ce_segments: u32,
    /// Bytes sent since the start, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes retransmitted since the start.
    pub bytes_retrans: u64,
    /// The window that the other end advertises, bytes.
    pub snd_wnd_bytes: u32,
    /// The window that this end advertises, bytes (Linux 6.2).
    pub rcv_wnd_bytes: Option<u32>,
    /// Timeouts since the start (Linux 6.7).
    pub total_rto: Option<u16>,
}

/// Size of the struct in Linux 6.12.
const BYTES: usize = 248;
/// Size up to and including the send window.
const REQUIRED: usize = 232;

impl TcpInfo {
    /// Reads the state of a connection from the kernel.
    pub fn of(fd: &impl AsRawFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; BYTES];
        let length = sys::option_bytes(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        TcpInfo::parse(&bytes[..length]).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's TCP_INFO is older than Linux 5.4's",
            )
        })
    }

    /// Parses the kernel's bytes; `None` if they end before the send window.
    pub fn parse(given: &[u8]) -> Option<TcpInfo> {
        if given.len() < REQUIRED {
            return None;
        }
        let mut bytes = [0; BYTES];
        let length = given.len().min(BYTES);
        bytes[..length].copy_from_slice(&given[..length]);
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(TcpInfo {
            state: bytes[0],
            ca_state: bytes[1],
            options: bytes[5],
            rto_us: word(8),
            snd_mss_bytes: word(16),
            unacked_segments: word(24),
            sacked_segments: word(28),
            lost_segments: word(32),
            retrans_segments: word(36),
            srtt_us: word(68),
            rttvar_us: word(72),
            ssthresh_segments: word(76),
            cwnd_segments: word(80),
            reordering_segments: word(88),
            rcv_space_bytes: word(96),
            total_retrans_segments: word(100),
            pacing_rate_bytes_s: long(104),
            bytes_acked: long(120),
            bytes_received: long(128),
            segs_out: word(136),
            notsent_bytes: word(144),
            min_rtt_us: word(148),
            data_segs_out: word(156),
            delivery_rate_bytes_s: long(160),
            busy_us: long(168),
            rwnd_limited_us: long(176),
            sndbuf_limited_us: long(184),
            delivered_segments: word(192),
            delivered_ce_segments: word(196),
            bytes_sent: long(200),
            bytes_retrans: long(208),
            snd_wnd_bytes: word(228),
            rcv_wnd_bytes: (length >= 236).then(|| word(232)),
            total_rto: (length >= 242).then(|| u16::from_ne_bytes([bytes[240], bytes[241]])),
        })
    }

    /// Returns the bytes in flight, as the kernel counts them: sent minus received or lost, plus
    /// retransmitted.
    pub fn inflight_bytes(&self) -> u64 {
        let left_network = self.sacked_segments + self.lost_segments;
        let segments = (self.unacked_segments + self.retrans_segments).saturating_sub(left_network);
        u64::from(segments) * u64::from(self.snd_mss_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a struct: each u32 is 1000 + its offset, each u64 is 1 000 000 + its offset, except
    /// for the few set below.
    fn bytes() -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..BYTES / 4).flat_map(|i| (1000 + 4 * i as u32).to_ne_bytes()).collect();
        for at in (104..136).chain(160..192).chain(200..216).step_by(8) {
            bytes[at..at + 8].copy_from_slice(&(1_000_000 + at as u64).to_ne_bytes());
        }
        bytes[..8].copy_from_slice(&[1, 3, 0, 0, 0, 7, 0, 0]);
        bytes[240..242].copy_from_slice(&9u16.to_ne_bytes());
        bytes
    }

    #[test]
    fn fields_lie_where_the_kernel_puts_them() {
        let info = TcpInfo::parse(&bytes()).unwrap();
        assert_eq!((info.state, info.ca_state, info.options), (1, 3, 7));
        assert_eq!((info.snd_mss_bytes, info.unacked_segments, info.srtt_us), (1016, 1024, 1068));
        assert_eq!((info.ssthresh_segments, info.cwnd_segments), (1076, 1080));
        assert_eq!((info.pacing_rate_bytes_s, info.bytes_acked), (1_000_104, 1_000_120));
        assert_eq!((info.notsent_bytes, info.min_rtt_us), (1144, 1148));
        assert_eq!((info.delivery_rate_bytes_s, info.sndbuf_limited_us), (1_000_160, 1_000_184));
        assert_eq!(
            (info.delivered_segments, info.bytes_sent, info.snd_wnd_bytes),
            (1192, 1_000_200, 1228)
        );
        assert_eq!((info.rcv_wnd_bytes, info.total_rto), (Some(1232), Some(9)));
    }

    #[test]
    fn an_older_kernel_lacks_the_end_and_one_too_old_is_refused() {
        let complete = TcpInfo::parse(&bytes()).unwrap();
        let of_6_2 = TcpInfo::parse(&bytes()[..240]).unwrap();
        assert_eq!(of_6_2, TcpInfo { total_rto: None, ..complete });
        let of_5_4 = TcpInfo::parse(&bytes()[..232]).unwrap();
        assert_eq!(of_5_4, TcpInfo { rcv_wnd_bytes: None, total_rto: None, ..complete });
        assert_eq!(TcpInfo::parse(&bytes()[..231]), None);
    }

    #[test]
    fn inflight_leaves_out_what_arrived_or_is_lost() {
        let info = TcpInfo {
            snd_mss_bytes: 1448,
            unacked_segments: 20,
            sacked_segments: 6,
            lost_segments: 4,
            retrans_segments: 3,
            ..TcpInfo::default()
        };
        assert_eq!(info.inflight_bytes(), 13 * 1448);
    }
}
