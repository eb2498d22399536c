//! The tables that flows fill during a run: connections, transfers, datagrams, probes.
//!
//! engine/kernel/observed reads the tables by these names. Times are on the run's clock.

use std::io::{self, Write};

use crate::results::{Archive, rows};

rows! {
    /// Samples of TCP_INFO. Momentary values are -1 while no connection is open; counters count
    /// from the flow's start.
    tcp {
        t_ns,
        flow,
        state,
        ca_state,
        cwnd_segments,
        ssthresh_segments,
        snd_mss_bytes,
        srtt_us,
        rttvar_us,
        min_rtt_us,
        rto_us,
        unacked_segments,
        sacked_segments,
        lost_segments,
        retrans_segments,
        reordering_segments,
        inflight_bytes,
        pacing_rate_bytes_s,
        delivery_rate_bytes_s,
        notsent_bytes,
        snd_wnd_bytes,
        busy_us,
        rwnd_limited_us,
        sndbuf_limited_us,
        rcv_space_bytes,
        total_retrans_segments,
        bytes_acked,
        bytes_sent,
        bytes_retrans,
        data_segs_out,
        delivered_segments,
        delivered_ce_segments,
        timeouts,
        received_bytes,
        completed,
    }
    /// Completed transfers; the end is the time at which the last byte is acknowledged.
    transfers {
        flow,
        start_ns,
        end_ns,
        bytes,
    }
    /// Every datagram: receive time (-1: not received), bytes of the IP packet, frame (-1: none).
    datagrams {
        flow,
        seq,
        sent_ns,
        received_ns,
        bytes,
        frame,
    }
    /// What reached the second host of a flow of programs, by intervals of the time line that end
    /// at `t_ns`: payload of packets. Segments of TCP that the first host sent again, -1: no TCP.
    carried {
        flow,
        t_ns,
        payload_bytes,
        retransmits,
    }
    /// Every probe: its arrival time at the far end, and the arrival time of its reply (-1: none).
    probes {
        flow,
        seq,
        sent_ns,
        turned_ns,
        received_ns,
    }
}

/// The tables that flows fill.
#[derive(Default)]
pub struct Tables {
    /// Samples of connections.
    pub tcp: tcp::Rows,
    /// Completed transfers.
    pub transfers: transfers::Rows,
    /// Every datagram.
    pub datagrams: datagrams::Rows,
    /// What the packets of programs carried.
    pub carried: carried::Rows,
    /// Every probe.
    pub probes: probes::Rows,
}

impl Tables {
    /// Writes the tables.
    pub fn write<W: Write>(self, archive: &mut Archive<W>) -> io::Result<()> {
        archive.table("tcp", self.tcp.columns())?;
        archive.table("transfers", self.transfers.columns())?;
        archive.table("datagrams", self.datagrams.columns())?;
        archive.table("carried", self.carried.columns())?;
        archive.table("probes", self.probes.columns())
    }
}
