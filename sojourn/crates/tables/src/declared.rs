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
        /// queued at t_ns
        backlog_packets: Option<u64> | UNSEEN,
        /// queued at t_ns, as the discipline counts bytes
        backlog_bytes: Option<u64> | UNSEEN,
        /// mean sojourn of the packets that left in the interval
        sojourn_mean_ns: Option<f64> | "none left",
        /// largest sojourn in the interval
        sojourn_max_ns: Option<u64> | UNSEEN,
        /// that left the queue in the interval
        sent_packets: Option<u64> | UNSEEN,
        /// that left the queue in the interval
        sent_bytes: Option<u64> | UNSEEN,
        /// in the interval
        dropped_packets: Option<u64> | UNSEEN,
        /// in the interval
        marked_packets: Option<u64> | UNSEEN,
        /// limit in force, packets or bytes as the discipline counts
        limit: Option<f64> | "the discipline has none",
        /// CoDel's count of drops in this dropping state
        count: Option<f64> | "the discipline has none",
        /// RED's maximum probability in force; PIE's probability, DualPI2's p, SFB's mean one
        probability: Option<f64> | "the discipline has none",
        /// RED's average queue; adt's throughput estimate, bit/s
        average: Option<f64> | "the discipline has none",
        /// flows with packets, of fq_codel, fq_pie, fq, and the simulator's cake and sfq
        flows: Option<f64> | "the discipline has none",
        /// dualpi2: how long the oldest packet of its queue C has waited at t_ns
        classic_delay_ns: Option<f64> | "the discipline has no such queue",
        /// dualpi2: how long the oldest packet of its queue L has waited at t_ns
        l4s_delay_ns: Option<f64> | "the discipline has no such queue",
        /// in the driver's ring at t_ns, the one in transmission too
        ring_packets: Option<u64> | NO_RING,
        /// in the driver's ring at t_ns, as the discipline counts bytes
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
        cwnd_bytes: Option<u64> | "not TCP, or a program's",
        /// slow-start threshold
        ssthresh_bytes: Option<u64> | "unlimited, not TCP, or a program's",
        /// smoothed RTT (RFC 6298)
        srtt_ns: Option<u64> | "no sample yet, not TCP, or a program's",
        /// sent, neither acknowledged nor marked lost
        inflight_bytes: Option<u64> | "not TCP, or a program's",
        /// of the application, since the start; of programs, the payload of packets that reached the
        /// far end, repeated bytes too
        delivered_bytes: Option<u64> | UNSEEN,
        /// segments sent again since the start, SYNs too
        retransmits: Option<u64> | "the engine can't observe it, or programs without TCP",
        /// advertised by the receiver
        window_bytes: Option<u64> | "not TCP, or a program's",
        /// largest one-way delay of the datagrams that arrived since the last sample
        delay_max_ns: Option<u64> | "no datagram arrived, or not known, or TCP, or programs",
    }

    /// Each request of each probe.
    probe {
        /// when it was sent
        t_ns: u64,
        /// the ping flow
        probe: FlowId,
        /// its number, from 0
        seq: u64,
        /// from request to reply
        rtt_ns: Option<u64> | "lost",
        /// the one-way part from sender to echoer
        forward_ns: Option<u64> | "lost on the way out, or not known",
    }

    /// Each packet that a queue dropped or marked, or a wire lost.
    drops {
        /// when
        t_ns: u64,
        /// where
        link: LinkId,
        /// whose packet
        flow: FlowId,
        /// limit, target, ce_threshold (and dualpi2's step), early (RED's own), forced (ns-2's and
        /// ns-3's above max, fred's of
        ///  greedy flows), overmemory, wire, blue (BLUE's and COBALT's at random), ack_filter (cake's; Linux's are target), police (a link's
        ///  policer), replay (a tunnel's end, which treats it as repeated)
        cause: CauseId,
        /// 1: the packet was marked and passed; 0: it was dropped
        marked: u8,
        /// its size
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
        /// in this bin, after the warm-up
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
        /// in this bin, after the warm-up
        samples: u64,
    }

    /// Each packet that left a queue; only on request.
    packets {
        /// when it left the queue
        t_ns: u64,
        /// the link
        link: LinkId,
        /// the flow
        flow: FlowId,
        /// from enqueue to dequeue
        sojourn_ns: u64,
        /// its size
        bytes: u32,
    }

    /// The headers of each packet that left a queue; only on request. Sequence numbers count bytes
    /// from 0 for a connection's SYN, so the first byte of data is 1.
    headers {
        /// when it left the queue
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
        /// of the IP packet
        bytes: u32,
        /// behind the headers
        payload_bytes: u32,
        /// DSCP above, ECN below
        ds: u32,
        /// of its first byte; for packets other than TCP's a running number, 0 for a program's
        seq: u32,
        /// next byte expected
        ack: Option<u64> | NOT_TCP,
        /// AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from 256 down
        flags: Option<u64> | NOT_TCP,
        /// receive window as the header has it, before its scale
        window: Option<u64> | "not TCP, or the model has none",
        /// TSval, ms
        tsval: Option<u64> | NO_OPTION,
        /// TSecr, ms
        tsecr: Option<u64> | NO_OPTION,
        /// largest segment, of a SYN
        mss: Option<u64> | NO_OPTION,
        /// power of two of the window's scale, of a SYN
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
        /// offered to the queue, after the warm-up
        arrived_packets: Option<u64> | UNSEEN,
        /// offered to the queue
        arrived_bytes: Option<u64> | UNSEEN,
        /// that left the queue
        sent_packets: Option<u64> | UNSEEN,
        /// that left the queue, as the discipline counts bytes
        sent_bytes: Option<u64> | UNSEEN,
        /// whose transmission began, framing included
        wire_bytes: Option<u64> | UNSEEN,
        /// by the queue
        dropped_packets: Option<u64> | UNSEEN,
        /// by the queue
        marked_packets: Option<u64> | UNSEEN,
        /// by the wire, or by a tunnel's end, after the queue
        lost_packets: Option<u64> | UNSEEN,
        /// over all packets that left
        sojourn_sum_ns: Option<f64> | UNSEEN,
        /// the largest
        sojourn_max_ns: Option<u64> | UNSEEN,
        /// mean over time
        backlog_mean_packets: Option<f64> | UNSEEN,
        /// mean over time
        backlog_mean_bytes: Option<f64> | UNSEEN,
        /// the largest
        backlog_max_packets: Option<u64> | UNSEEN,
        /// the largest
        backlog_max_bytes: Option<u64> | UNSEEN,
        /// time spent transmitting
        busy_ns: Option<u64> | UNSEEN,
        /// the bits that the link could have carried in measured_ns, at the slower of its rate and
        /// its
        ///  shaper's
        capacity_bits: Option<f64> | "unlimited",
        /// duration minus warm-up
        measured_ns: Option<u64> | UNSEEN,
        /// whose last bit left the driver's ring
        ring_sent_packets: Option<u64> | NO_RING,
        /// over them, from the queue to the last bit on the wire
        ring_sojourn_sum_ns: Option<f64> | NO_RING,
        /// the largest
        ring_sojourn_max_ns: Option<u64> | NO_RING,
        /// mean over time of the packets in the ring
        ring_mean_packets: Option<f64> | NO_RING,
        /// the largest
        ring_max_packets: Option<u64> | NO_RING,
        /// BQL's limit at the end
        bql_limit_bytes: Option<u64> | "no BQL",
    }

    /// Totals of each flow: a row each.
    flows {
        /// the flow
        flow: FlowId,
        /// after the warm-up, retransmissions included
        sent_packets: Option<u64> | UNSEEN,
        /// after the warm-up
        sent_bytes: Option<u64> | UNSEEN,
        /// that reached the far end
        received_packets: Option<u64> | UNSEEN,
        /// of the application, after the warm-up; of programs, the payload of packets that reached
        /// the far end, repeated bytes too
        delivered_bytes: Option<u64> | UNSEEN,
        /// data packets that a queue or a wire dropped
        lost_packets: Option<u64> | UNSEEN,
        /// segments sent again, SYNs too
        retransmits: Option<u64> | "the engine can't observe it, or programs without TCP",
        /// retransmission timeouts
        timeouts: Option<u64> | UNSEEN,
        /// entries into fast recovery
        fast_recoveries: Option<u64> | UNSEEN,
        /// over all samples
        rtt_sum_ns: Option<f64> | UNSEEN,
        /// number of samples
        rtt_samples: Option<u64> | UNSEEN,
        /// the least
        rtt_min_ns: Option<u64> | "no sample",
        /// the largest; 0 without a sample
        rtt_max_ns: Option<u64> | UNSEEN,
        /// of a full packet through empty queues, each link at its fastest; or of a shorter packet,
        ///  if less
        base_rtt_ns: Option<u64> | "a link on the path never sends it",
    }

    /// Each transfer that was completed, from its first data to the acknowledgement of its last. Of
    /// requests, from the client's request to the last byte of the answer.
    transfers {
        /// the flow
        flow: FlowId,
        /// first data sent; the request written
        start_ns: u64,
        /// last acknowledgement received; the whole answer received
        end_ns: u64,
        /// of the application; of the answer
        bytes: u64,
    }

    /// The engine's own counts: one row.
    engine {
        /// events that the engine handled: packets that reached a link or a host, timers that
        /// expired
        events: Option<u64> | UNSEEN,
        /// data packets delivered, over the whole run
        packets: Option<u64> | UNSEEN,
        /// most packets in flight or queued at once, as the engine's windows of time count them
        peak_entries: Option<u64> | UNSEEN,
    }
}
