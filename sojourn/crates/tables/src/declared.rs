//! The declaration of every table.
//!
//! A new column is added here; the compiler then reports the engines that have to fill it. `python
//! docs/generate.py` makes docs/tables.md from it.

use crate::declare::{declared_null, tables};
use crate::{CauseId, FlowId, LinkId};

const UNSEEN: &str = "the engine can't observe it";
const NO_RING: &str = "no ring";
const NOT_TCP: &str = "not TCP";
const NO_OPTION: &str = "no such option, or not TCP";

tables! {
    /// A time line of each queue: a row for each interval.
    queue {
        /// end of the interval
        t_ns: u64,
        /// the link
        link: LinkId,
        /// packets queued at t_ns
        backlog_packets: Option<u64> | UNSEEN,
        /// bytes queued at t_ns, as the discipline counts them
        backlog_bytes: Option<u64> | UNSEEN,
        /// mean sojourn of the packets that left in the interval
        sojourn_mean_ns: Option<f64> | "no packet left",
        /// largest sojourn in the interval
        sojourn_max_ns: Option<u64> | UNSEEN,
        /// packets that left the queue in the interval
        sent_packets: Option<u64> | UNSEEN,
        /// bytes of the packets that left the queue in the interval
        sent_bytes: Option<u64> | UNSEEN,
        /// packets dropped in the interval
        dropped_packets: Option<u64> | UNSEEN,
        /// packets marked in the interval
        marked_packets: Option<u64> | UNSEEN,
        /// limit in force, packets or bytes as the discipline counts
        limit: Option<f64> | "the discipline has none",
        /// CoDel's count of drops in this dropping state
        count: Option<f64> | "the discipline has none",
        /// RED's maximum probability in force; PIE's probability; DualPI2's p; the mean of SFB's
        /// probabilities
        probability: Option<f64> | "the discipline has none",
        /// RED's average queue; adt's throughput estimate, bit/s
        average: Option<f64> | "the discipline has none",
        /// flows with packets queued; for fq_codel, fq_pie, fq, and the simulator's cake and sfq
        flows: Option<f64> | "the discipline has none",
        /// dualpi2: how long the oldest packet of its queue C has waited at t_ns
        classic_delay_ns: Option<f64> | "the discipline has no such queue",
        /// dualpi2: how long the oldest packet of its queue L has waited at t_ns
        l4s_delay_ns: Option<f64> | "the discipline has no such queue",
        /// packets in the driver's ring at t_ns, including the one in transmission
        ring_packets: Option<u64> | NO_RING,
        /// bytes in the driver's ring at t_ns, as the discipline counts them
        ring_bytes: Option<u64> | NO_RING,
        /// BQL's limit at t_ns
        bql_limit_bytes: Option<u64> | "no BQL",
    }

    /// A time line of each flow that is not a probe: a row for each sample.
    flow {
        /// time of the sample
        t_ns: u64,
        /// the flow
        flow: FlowId,
        /// congestion window
        cwnd_bytes: Option<u64> | "not TCP, or a flow of programs",
        /// slow-start threshold
        ssthresh_bytes: Option<u64> | "unlimited, not TCP, or a flow of programs",
        /// smoothed RTT (RFC 6298)
        srtt_ns: Option<u64> | "no sample yet, not TCP, or a flow of programs",
        /// bytes sent, but neither acknowledged nor marked as lost
        inflight_bytes: Option<u64> | "not TCP, or a flow of programs",
        /// bytes delivered to the application since the start; for programs, the payload of packets
        /// that reached the far end, including repeated bytes
        delivered_bytes: Option<u64> | UNSEEN,
        /// segments retransmitted since the start, including SYNs
        retransmits: Option<u64> | "the engine can't observe it, or programs without TCP",
        /// window that the receiver advertises
        window_bytes: Option<u64> | "not TCP, or a flow of programs",
        /// largest one-way delay of the datagrams that arrived since the last sample
        delay_max_ns: Option<u64> | "no datagram arrived, not known, TCP, or a flow of programs",
    }

    /// Each request of each probe.
    probe {
        /// time at which the request was sent
        t_ns: u64,
        /// the ping flow
        probe: FlowId,
        /// number of the request, from 0
        seq: u64,
        /// time from request to reply
        rtt_ns: Option<u64> | "lost",
        /// one-way delay from the sender to the host that echoes
        forward_ns: Option<u64> | "lost on the way out, or not known",
    }

    /// Each packet that a queue dropped or marked, or a wire lost.
    drops {
        /// time of the drop or mark
        t_ns: u64,
        /// the link
        link: LinkId,
        /// the flow of the packet
        flow: FlowId,
        /// limit, target, ce_threshold (also dualpi2's step), early (RED's random drops), forced
        /// (above max in ns-2's and ns-3's RED; of greedy flows in fred), overmemory, wire, blue
        /// (random drops of BLUE and COBALT), ack_filter (cake's; on Linux these are target),
        /// police (a link's policer), replay (a tunnel's end, which takes the packet for a
        /// repeated one)
        cause: CauseId,
        /// 1: the packet was marked and passed; 0: it was dropped
        marked: u8,
        /// size of the packet
        bytes: u32,
    }

    /// Sojourn times, as a log-linear histogram of each link.
    sojourn {
        /// the link
        link: LinkId,
        /// least sojourn of this bin
        lower_ns: u64,
        /// start of the next bin
        upper_ns: u64,
        /// packets in this bin, after the warm-up
        packets: u64,
    }

    /// TCP's RTT samples (for UDP and video one-way delays; for programs the samples of TCP at the
    /// flow's source), as a log-linear histogram of each flow.
    rtt {
        /// the flow; flows of one entry of the scenario may share a histogram
        flow: FlowId,
        /// least RTT of this bin
        lower_ns: u64,
        /// start of the next bin
        upper_ns: u64,
        /// samples in this bin, after the warm-up
        samples: u64,
    }

    /// Each packet that left a queue; only on request.
    packets {
        /// time at which the packet left the queue
        t_ns: u64,
        /// the link
        link: LinkId,
        /// the flow
        flow: FlowId,
        /// time from enqueue to dequeue
        sojourn_ns: u64,
        /// size of the packet
        bytes: u32,
    }

    /// The headers of each packet that left a queue; only on request. Sequence numbers count bytes
    /// from 0 for a connection's SYN, so the first byte of data is 1.
    headers {
        /// time at which the packet left the queue
        t_ns: u64,
        /// the link
        link: LinkId,
        /// the flow
        flow: FlowId,
        /// 1 for packets back to the flow's source
        reply: u32,
        /// the flow's connection, modulo 256
        connection: u32,
        /// IP's protocol number: 1 ICMP, 6 TCP, 17 UDP
        protocol: u32,
        /// size of the IP packet
        bytes: u32,
        /// bytes behind the headers
        payload_bytes: u32,
        /// DS field: the DSCP in the upper six bits, ECN in the lower two
        ds: u32,
        /// sequence number of the first byte; for packets other than TCP's a running number, 0 for
        /// a program's
        seq: u32,
        /// sequence number of the next byte expected
        ack: Option<u64> | NOT_TCP,
        /// sum of the flags: AE 256, CWR 128, ECE 64, URG 32, ACK 16, PSH 8, RST 4, SYN 2, FIN 1
        flags: Option<u64> | NOT_TCP,
        /// receive window in the header, before scaling
        window: Option<u64> | "not TCP, or the model has none",
        /// TSval, ms
        tsval: Option<u64> | NO_OPTION,
        /// TSecr, ms
        tsecr: Option<u64> | NO_OPTION,
        /// in a SYN: the largest segment
        mss: Option<u64> | NO_OPTION,
        /// in a SYN: the shift of the window scale option
        scale: Option<u64> | NO_OPTION,
        /// 1 in a SYN that permits SACKs
        sack_permitted: Option<u64> | NO_OPTION,
        /// SACK: first byte of the first block
        sack1_left: Option<u64> | NO_OPTION,
        /// SACK: behind its last byte
        sack1_right: Option<u64> | NO_OPTION,
        /// of the second block
        sack2_left: Option<u64> | NO_OPTION,
        /// of the second block
        sack2_right: Option<u64> | NO_OPTION,
        /// of the third block
        sack3_left: Option<u64> | NO_OPTION,
        /// of the third block
        sack3_right: Option<u64> | NO_OPTION,
        /// of the fourth block
        sack4_left: Option<u64> | NO_OPTION,
        /// of the fourth block
        sack4_right: Option<u64> | NO_OPTION,
        /// AccECN: bytes received with ECT(1), plus 1
        accecn_e1b: Option<u64> | NO_OPTION,
        /// AccECN: bytes received with CE
        accecn_ceb: Option<u64> | NO_OPTION,
        /// AccECN: bytes received with ECT(0), plus 1
        accecn_e0b: Option<u64> | NO_OPTION,
    }

    /// Totals of each link: a row each.
    links {
        /// the link
        link: LinkId,
        /// packets that arrived at the queue, after the warm-up
        arrived_packets: Option<u64> | UNSEEN,
        /// bytes of the packets that arrived at the queue
        arrived_bytes: Option<u64> | UNSEEN,
        /// packets that left the queue
        sent_packets: Option<u64> | UNSEEN,
        /// bytes that left the queue, as the discipline counts them
        sent_bytes: Option<u64> | UNSEEN,
        /// bytes whose transmission began, including framing
        wire_bytes: Option<u64> | UNSEEN,
        /// packets dropped by the queue
        dropped_packets: Option<u64> | UNSEEN,
        /// packets marked by the queue
        marked_packets: Option<u64> | UNSEEN,
        /// packets lost after the queue, on the wire or at a tunnel's end
        lost_packets: Option<u64> | UNSEEN,
        /// sum of the sojourn times of all packets that left
        sojourn_sum_ns: Option<f64> | UNSEEN,
        /// largest sojourn time
        sojourn_max_ns: Option<u64> | UNSEEN,
        /// backlog, mean over time
        backlog_mean_packets: Option<f64> | UNSEEN,
        /// backlog, mean over time
        backlog_mean_bytes: Option<f64> | UNSEEN,
        /// largest backlog
        backlog_max_packets: Option<u64> | UNSEEN,
        /// largest backlog
        backlog_max_bytes: Option<u64> | UNSEEN,
        /// time spent transmitting
        busy_ns: Option<u64> | UNSEEN,
        /// bits that the link could have carried in measured_ns, at the slower of its rate and its
        /// shaper's
        capacity_bits: Option<f64> | "unlimited",
        /// duration minus warm-up
        measured_ns: Option<u64> | UNSEEN,
        /// packets whose last bit left the driver's ring
        ring_sent_packets: Option<u64> | NO_RING,
        /// sum over these packets of the time from leaving the queue to the last bit on the wire
        ring_sojourn_sum_ns: Option<f64> | NO_RING,
        /// largest such time
        ring_sojourn_max_ns: Option<u64> | NO_RING,
        /// packets in the ring, mean over time
        ring_mean_packets: Option<f64> | NO_RING,
        /// most packets in the ring
        ring_max_packets: Option<u64> | NO_RING,
        /// BQL's limit at the end
        bql_limit_bytes: Option<u64> | "no BQL",
    }

    /// Totals of each flow: a row each.
    flows {
        /// the flow
        flow: FlowId,
        /// packets sent after the warm-up, including retransmissions
        sent_packets: Option<u64> | UNSEEN,
        /// bytes of these packets
        sent_bytes: Option<u64> | UNSEEN,
        /// packets that reached the far end
        received_packets: Option<u64> | UNSEEN,
        /// bytes delivered to the application after the warm-up; for programs, the payload of
        /// packets that reached the far end, including repeated bytes
        delivered_bytes: Option<u64> | UNSEEN,
        /// data packets that a queue or a wire dropped
        lost_packets: Option<u64> | UNSEEN,
        /// retransmitted segments, including SYNs
        retransmits: Option<u64> | "the engine can't observe it, or programs without TCP",
        /// retransmission timeouts
        timeouts: Option<u64> | UNSEEN,
        /// entries into fast recovery
        fast_recoveries: Option<u64> | UNSEEN,
        /// sum of all samples
        rtt_sum_ns: Option<f64> | UNSEEN,
        /// number of samples
        rtt_samples: Option<u64> | UNSEEN,
        /// least sample
        rtt_min_ns: Option<u64> | "no sample",
        /// largest sample; 0 if there is none
        rtt_max_ns: Option<u64> | UNSEEN,
        /// RTT of a full packet through empty queues, each link at its fastest; or of a shorter
        /// packet, if that is less
        base_rtt_ns: Option<u64> | "a link on the path never sends it",
    }

    /// Each transfer that was completed, from its first data to the acknowledgement of its last. Of
    /// requests, from the client's request to the last byte of the answer.
    transfers {
        /// the flow
        flow: FlowId,
        /// time at which the first data were sent; for requests, at which the request was written
        start_ns: u64,
        /// time of the last acknowledgement; for requests, of the last byte of the answer
        end_ns: u64,
        /// bytes of the application; for requests, of the answer
        bytes: u64,
    }

    /// The engine's own counts: one row.
    engine {
        /// events that the engine handled: packets that reached a link or a host, timers that
        /// expired
        events: Option<u64> | UNSEEN,
        /// data packets delivered, over the whole run
        packets: Option<u64> | UNSEEN,
        /// most packets in flight or queued at once, counted at the engine's windows of time
        peak_entries: Option<u64> | UNSEEN,
    }
}
