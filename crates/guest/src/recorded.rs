//! The tables that flows fill during a run: connections, transfers, datagrams, probes.

use std::io::{self, Write};

use crate::results::{Archive, Rows};

/// What flows record.
pub struct Tables {
    /// Samples of connections.
    pub tcp: Rows<{ TCP_COLUMNS }>,
    /// Completed transfers: flow, start, end (the last byte is acknowledged), bytes.
    pub transfers: Rows<4>,
    /// Every datagram: flow, sequence, sent, received (or -1), bytes of the IP packet, frame (or
    /// -1).
    pub datagrams: Rows<6>,
    /// Every probe: flow, sequence, sent, turned round at the far end (or -1), received (or -1).
    pub probes: Rows<5>,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            tcp: tcp_rows(),
            transfers: Rows::new(["flow", "start_ns", "end_ns", "bytes"]),
            datagrams: Rows::new(["flow", "seq", "sent_ns", "received_ns", "bytes", "frame"]),
            probes: Rows::new(["flow", "seq", "sent_ns", "turned_ns", "received_ns"]),
        }
    }
}

impl Tables {
    /// Writes them.
    pub fn write<W: Write>(self, archive: &mut Archive<W>) -> io::Result<()> {
        archive.table("tcp", self.tcp.columns())?;
        archive.table("transfers", self.transfers.columns())?;
        archive.table("datagrams", self.datagrams.columns())?;
        archive.table("probes", self.probes.columns())
    }
}

/// Columns of the table `tcp`.
const TCP_COLUMNS: usize = 35;

/// The table `tcp`. What the moment has is -1 while no connection is open; what is counted is so
/// since the flow's start.
fn tcp_rows() -> Rows<TCP_COLUMNS> {
    Rows::new([
        "t_ns",
        "flow",
        "state",
        "ca_state",
        "cwnd_segments",
        "ssthresh_segments",
        "snd_mss_bytes",
        "srtt_us",
        "rttvar_us",
        "min_rtt_us",
        "rto_us",
        "unacked_segments",
        "sacked_segments",
        "lost_segments",
        "retrans_segments",
        "reordering_segments",
        "inflight_bytes",
        "pacing_rate_bytes_s",
        "delivery_rate_bytes_s",
        "notsent_bytes",
        "snd_wnd_bytes",
        "busy_us",
        "rwnd_limited_us",
        "sndbuf_limited_us",
        "rcv_space_bytes",
        "total_retrans_segments",
        "bytes_acked",
        "bytes_sent",
        "bytes_retrans",
        "data_segs_out",
        "delivered_segments",
        "delivered_ce_segments",
        "timeouts",
        "received_bytes",
        "completed",
    ])
}
