//! The handshake: SYN, its answer, and the ACK that ends it.

#[path = "common/linux.rs"]
mod profile;

use profile::linux;
use tcp::{AckSegment, CongestionKind, Millis, Receiver, Segment, Sender, TcpParams};
use units::{Ecn, Span, Time};

const WAY: Span = Span::from_millis(40);

fn params() -> TcpParams {
    linux().with(|p| p.handshake = true)
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn burst(sender: &mut Sender, now: Time) -> Vec<Segment> {
    std::iter::from_fn(|| sender.poll(now)).collect()
}

/// The answer to a SYN that has just left.
fn greeting(receiver: &mut Receiver, syn: &Segment, now: Time) -> AckSegment {
    receiver.on_segment(syn, now + WAY).expect("a SYN is answered")
}

#[test]
fn data_follow_the_ack_that_ends_the_handshake() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    let [syn] = burst(&mut sender, at(7))[..] else { panic!("a SYN alone") };
    assert!(syn.syn && syn.len == 0 && syn.echo.is_none());
    let answer = greeting(&mut receiver, &syn, at(7));
    assert!(answer.syn && answer.ack == 0 && answer.stamp == Millis(47));
    assert!(burst(&mut sender, at(50)).is_empty());

    sender.on_ack(&answer, at(87));
    assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
    let sent = burst(&mut sender, at(87));
    assert!(!sent[0].syn && sent[0].len == 0 && receiver.on_segment(&sent[0], at(127)).is_none());
    assert_eq!(
        sent[1..].iter().map(|segment| segment.seq).collect::<Vec<_>>(),
        (0..10).collect::<Vec<_>>()
    );
    assert!(sent.iter().all(|segment| segment.echo == Some(Millis(47))));
    let ack = receiver.on_segment(&sent[1], at(127)).expect("the first is acknowledged at once");
    assert!(!ack.syn && ack.ack == 1);
}

#[test]
fn a_lost_syn_is_retransmitted_each_second_and_then_with_backoff() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    burst(&mut sender, at(0));
    for (due, tries) in
        [(1000, 1), (2000, 2), (3000, 3), (4000, 4), (5000, 5), (7000, 6), (11_000, 7)]
    {
        assert_eq!(sender.deadline(), Some(at(due)));
        sender.on_deadline(at(due));
        let [syn] = burst(&mut sender, at(due))[..] else { panic!("a SYN alone") };
        assert!(syn.syn && sender.stats().timeouts == tries);
        assert_eq!(sender.stats().retransmits, tries, "as tcpi_total_retrans");
        if tries == 7 {
            // An answer to either SYN counts. Data starts with one segment, since more than one SYN
            // was lost (RFC 5681 §3.1). The echo shows which SYN was answered, in whole ms.
            let answered = at(due + 80) + Span(700_000);
            sender.on_ack(&greeting(&mut receiver, &syn, at(due)), answered);
            assert_eq!(burst(&mut sender, answered).len(), 1 + 1);
            assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
        }
    }
}

/// Opens a connection whose first `lost` SYNs are lost. Returns whether its first segments are ECT.
fn opened(asks: bool, agrees: bool, lost: u64) -> bool {
    let mut sender = Sender::new(&params().with(|p| p.ecn = asks), None);
    let mut receiver = Receiver::new(&params().with(|p| p.ecn = agrees));
    for second in 0..lost {
        burst(&mut sender, at(1000 * second));
        sender.on_deadline(at(1000 * (second + 1)));
    }
    let now = at(1000 * lost);
    let syn = burst(&mut sender, now)[0];
    assert_eq!(syn.cwr, asks && lost == 0);
    assert!(syn.ecn == Ecn::NotEct, "a SYN itself is not ECN-capable");
    let answer = greeting(&mut receiver, &syn, now);
    assert_eq!(answer.ece(), asks && agrees && lost == 0);
    sender.on_ack(&answer, now + WAY + WAY);
    let sent = burst(&mut sender, now + WAY + WAY);
    assert!(!sent[0].cwr, "the handshake is over");
    receiver
        .on_segment(&Segment { ecn: Ecn::Ce, ..sent[1] }, now + WAY + WAY + WAY)
        .is_some_and(|ack| ack.ece())
        && sent[1].ecn == Ecn::Ect0
}

#[test]
fn ecn_is_used_only_if_both_ends_agree() {
    assert!(opened(true, true, 0));
    assert!(!opened(true, false, 0));
    assert!(!opened(false, true, 0));
}

#[test]
fn a_lost_syn_is_retransmitted_without_ecn() {
    assert!(!opened(true, true, 1));
    assert!(!opened(true, true, 3));
}

#[test]
fn a_lost_syn_ack_does_not_change_the_agreement_of_the_first_syn() {
    let params = params().with(|p| p.ecn = true);
    let (mut sender, mut receiver) = (Sender::new(&params, None), Receiver::new(&params));
    let first = burst(&mut sender, at(0))[0];
    greeting(&mut receiver, &first, at(0));
    sender.on_deadline(at(1000));
    let second = burst(&mut sender, at(1000))[0];
    assert!(first.cwr && !second.cwr);
    sender.on_ack(&greeting(&mut receiver, &second, at(1000)), at(1080));
    assert!(burst(&mut sender, at(1080))[1].ecn == Ecn::Ect0);
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_and_has_no_other_effect() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    sender.on_ack(&answer, at(80));
    burst(&mut sender, at(80));
    sender.on_ack(&answer, at(90));
    let [ack] = burst(&mut sender, at(90))[..] else { panic!("an ACK alone") };
    assert!(!ack.syn && ack.len == 0);
    assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
}

#[test]
fn a_syn_ack_without_a_reply_is_retransmitted_with_backoff() {
    let params = params().with(|p| p.timers.timer_tick_ns = 4_000_000);
    let (mut sender, mut receiver) = (Sender::new(&params, None), Receiver::new(&params));
    let syn = burst(&mut sender, at(0))[0];
    greeting(&mut receiver, &syn, at(0));
    // Linux's timers of a second expire at every eighth tick of 4 ms.
    for due in [1056, 3072] {
        assert_eq!(receiver.on_deadline(at(due - 1)), None);
        let again =
            receiver.on_deadline(receiver.deadline().expect("it waits")).expect("a retransmission");
        assert!(again.syn && again.echo == at(0));
    }
    // Another SYN arrives in the meantime: the first SYN's stamp is echoed, so the RTT counts from
    // the first.
    let second = Segment { stamp: at(3080), ..syn };
    assert_eq!(greeting(&mut receiver, &second, at(3080)).echo, at(0));
    sender.on_ack(&greeting(&mut receiver, &second, at(3080)), at(3200));
    assert_eq!(sender.srtt(), Some(Span::from_millis(3200)));
    for segment in burst(&mut sender, at(3200)) {
        receiver.on_segment(&segment, at(3240));
    }
    assert!(receiver.deadline().is_none_or(|due| due < at(3500)));
}

/// Whether a segment after a pause is acknowledged at once. With `again`, the SYN-ACK was
/// retransmitted after a second, and its ACK arrived 80 ms later.
fn is_quick_after(pause_ms: u64, again: bool) -> bool {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    sender.on_ack(&answer, at(80));
    let sent = burst(&mut sender, at(80));
    let mut now = 120;
    if again {
        // The answer to the first SYN-ACK is lost. Its answer to the second echoes the first
        // SYN-ACK's stamp.
        let second = receiver.on_deadline(at(1040)).expect("a retransmission");
        assert!(second.syn && second.stamp == Millis(1040));
        now = 1120;
    }
    assert!(receiver.on_segment(&sent[0], at(now)).is_none());
    let mut segment = |seq, now| {
        let next = Segment { seq, stamp: at(now - 40), ..sent[1] };
        let ack = receiver.on_segment(&next, at(now));
        while let Some(due) = receiver.deadline().filter(|_| ack.is_none()) {
            receiver.on_deadline(due);
        }
        ack.is_some()
    };
    // The quick ACKs of a new connection end.
    let first = (0..100).find(|seq| !segment(*seq, now + 20 * u64::from(*seq))).expect("they end");
    segment(first + 1, now + 20 * u64::from(first) + pause_ms)
}

#[test]
fn the_rtt_of_a_repeated_syn_ack_comes_from_its_echo() {
    // An RTT of 80 ms gives an RTO of 280 ms. After a retransmission the echo is the first
    // SYN-ACK's, so the RTT is 1080 ms and the RTO 3240 ms.
    let quick = |again| [250, 300, 3200, 3300].map(|pause| is_quick_after(pause, again));
    assert_eq!(quick(false), [false, true, true, true]);
    assert_eq!(quick(true), [false, false, false, true]);
}

#[test]
fn without_a_handshake_data_leave_at_once() {
    let mut sender = Sender::new(&params().with(|p| p.handshake = false), None);
    assert!(burst(&mut sender, at(0)).iter().all(|segment| segment.len > 0));
}

fn accecn() -> TcpParams {
    params().with(|p| {
        p.ecn = true;
        p.accecn = true;
    })
}

/// The path changes the SYN's ECN field to this one, and the answer arrives with CE. Returns the
/// reflection and the ECN field of data.
fn reflected(params: &TcpParams, syn_ecn: Ecn) -> (u8, Ecn) {
    let (mut sender, mut receiver) = (Sender::new(params, None), Receiver::new(params));
    let syn = Segment { ecn: syn_ecn, ..burst(&mut sender, at(0))[0] };
    assert_eq!((syn.ace, syn.cwr), (0b111, true));
    let answer = AckSegment { ecn: Ecn::Ce, ..greeting(&mut receiver, &syn, at(0)) };
    sender.on_ack(&answer, at(80));
    (answer.ace, burst(&mut sender, at(80))[1].ecn)
}

#[test]
fn an_accecn_syn_ack_reflects_the_syn_s_field() {
    // Changes that no queue makes turn ECN off (tcp_accecn_validate_syn_feedback).
    assert_eq!(reflected(&accecn(), Ecn::NotEct), (0b010, Ecn::Ect0));
    assert_eq!(reflected(&accecn(), Ecn::Ect1), (0b011, Ecn::NotEct));
    assert_eq!(reflected(&accecn(), Ecn::Ce), (0b110, Ecn::NotEct));
    let dctcp = accecn().with(|p| p.congestion = CongestionKind::Dctcp);
    assert_eq!(reflected(&dctcp, Ecn::Ect0), (0b100, Ecn::Ect0));
    assert_eq!(reflected(&dctcp, Ecn::Ce), (0b110, Ecn::Ect0));
    assert_eq!(reflected(&dctcp, Ecn::NotEct), (0b010, Ecn::NotEct));
    let prague = accecn().with(|p| p.congestion = CongestionKind::Prague);
    assert_eq!(reflected(&prague, Ecn::Ect1), (0b011, Ecn::Ect1));
    assert_eq!(reflected(&prague, Ecn::Ect0), (0b100, Ecn::Ect1), "which Linux accepts");
    assert_eq!(reflected(&prague, Ecn::NotEct), (0b010, Ecn::NotEct), "bleached");
}

/// The ECN field of a server's first ACK, after the last ACK of the handshake has arrived with this
/// ACE. The SYN-ACK was ECT(0).
fn first_ack(ace: u8) -> Ecn {
    let dctcp = accecn().with(|p| p.congestion = CongestionKind::Dctcp);
    let (mut sender, mut receiver) = (Sender::new(&dctcp, None), Receiver::new(&dctcp));
    let syn = burst(&mut sender, at(0))[0];
    sender.on_ack(&greeting(&mut receiver, &syn, at(0)), at(80));
    let sent = burst(&mut sender, at(80));
    assert_eq!(sent[0].ace, 0b100);
    receiver.on_segment(&Segment { ace, ..sent[0] }, at(120));
    receiver.on_segment(&sent[1], at(120)).expect("the first is acknowledged at once").ecn
}

#[test]
fn a_last_ack_that_reports_a_bleached_syn_ack_or_nothing_ends_ect() {
    // tcp_accecn_third_ack; RFC 9768 §3.2.2.2 and table 4.
    assert_eq!([0b100, 0b011, 0b110].map(first_ack), [Ecn::Ect0; 3]);
    assert_eq!([0b010, 0].map(first_ack), [Ecn::NotEct; 2]);
    assert_eq!([0b001, 0b101, 0b111].map(first_ack), [Ecn::Ect0; 3], "unused, but legal");
}

#[test]
fn the_last_ack_reflects_the_syn_ack_s_field_and_the_option_has_initial_counters() {
    for (ecn, reflection) in
        [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)]
    {
        let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
        let syn = burst(&mut sender, at(0))[0];
        let answer = greeting(&mut receiver, &syn, at(0));
        assert_eq!(answer.accecn.map(|option| (option.bytes, option.size)), Some(([1, 0, 1], 12)));
        sender.on_ack(&AckSegment { ecn, ..answer }, at(80));
        let sent = burst(&mut sender, at(80));
        assert_eq!((sent[0].ace, sent[0].ecn, sent[1].ace), (reflection, Ecn::Ect0, 0));
    }
}

#[test]
fn a_mark_on_the_last_ack_of_the_handshake_counts() {
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    sender.on_ack(&greeting(&mut receiver, &syn, at(0)), at(80));
    let sent = burst(&mut sender, at(80));
    receiver.on_segment(&Segment { ecn: Ecn::Ce, ..sent[0] }, at(120));
    let ack = receiver.on_segment(&sent[1], at(120)).expect("the first is acknowledged at once");
    assert_eq!(ack.ace, 6);
}

#[test]
fn a_second_syn_ack_is_answered_with_its_own_field() {
    // synack_rexmit, 3rd_ack_after_synack_rxmt.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    sender.on_ack(&answer, at(80));
    assert_eq!(burst(&mut sender, at(80))[0].ace, 0b010);
    sender.on_ack(&AckSegment { ecn: Ecn::Ce, ..answer }, at(90));
    assert_eq!(burst(&mut sender, at(90))[0].ace, 0b110);
}

#[test]
fn an_unmarked_syn_ack_does_not_reveal_a_bleached_syn() {
    // Linux 7.3's behaviour. RFC 9768 §3.2.2.2 would make data Not-ECT.
    let prague = accecn().with(|p| p.congestion = CongestionKind::Prague);
    let (mut sender, mut receiver) = (Sender::new(&prague, None), Receiver::new(&prague));
    let bleached = Segment { ecn: Ecn::NotEct, ..burst(&mut sender, at(0))[0] };
    let answer = greeting(&mut receiver, &bleached, at(0));
    assert_eq!((answer.ace, answer.ecn), (0b010, Ecn::Ect1));
    sender.on_ack(&answer, at(80));
    assert_eq!(burst(&mut sender, at(80))[1].ecn, Ecn::Ect1);
}

#[test]
fn a_mark_on_the_syn_is_reflected_and_counts_at_neither_end() {
    let dctcp = accecn().with(|p| p.congestion = CongestionKind::Dctcp);
    let (mut sender, mut receiver) = (Sender::new(&dctcp, None), Receiver::new(&dctcp));
    let syn = Segment { ecn: Ecn::Ce, ..burst(&mut sender, at(0))[0] };
    sender.on_ack(&greeting(&mut receiver, &syn, at(0)), at(80));
    assert_eq!(sender.ce_reported().map(|ce| ce.segments), Some(0));
    let sent = burst(&mut sender, at(80));
    receiver.on_segment(&sent[0], at(120));
    assert_eq!(receiver.on_segment(&sent[1], at(120)).expect("at once").ace, 5);
}

/// ACE of the ACK for the first data, which is marked. The last ACK of the handshake has arrived
/// `last_acks` times before it.
fn ace_after(last_acks: usize) -> u8 {
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    sender.on_ack(&greeting(&mut receiver, &syn, at(0)), at(80));
    let sent = burst(&mut sender, at(80));
    for _ in 0..last_acks {
        receiver.on_segment(&sent[0], at(120));
    }
    let data = Segment { ecn: Ecn::Ce, ..sent[1] };
    receiver.on_segment(&data, at(120)).expect("the first is acknowledged at once").ace
}

#[test]
fn data_complete_the_handshake_whose_last_ack_is_lost_or_comes_twice_and_their_mark_counts() {
    // 3rd_ack_lost_data_ce, 3rd_dups.
    assert_eq!([0, 1, 2, 3].map(ace_after), [6; 4]);
}

#[test]
fn the_second_syn_requests_accecn_too_and_the_third_nothing() {
    let mut sender = Sender::new(&accecn(), None);
    let aces = [0, 1000, 2000, 3000].map(|ms| {
        if ms > 0 {
            sender.on_deadline(at(ms));
        }
        burst(&mut sender, at(ms))[0].ace
    });
    assert_eq!(aces, [0b111, 0b111, 0, 0]);
}

#[test]
fn the_syn_ack_of_a_server_without_accecn_is_classic() {
    // accecn_to_rfc3168, serverside_ecn_disabled, serverside_broken.
    for (ace, ecn, cwr) in
        [(0b001, Ecn::Ect0, true), (0, Ecn::NotEct, false), (7, Ecn::NotEct, false)]
    {
        let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
        let syn = burst(&mut sender, at(0))[0];
        let answer = greeting(&mut receiver, &syn, at(0));
        sender.on_ack(&AckSegment { ace, accecn: None, ..answer }, at(80));
        let sent = burst(&mut sender, at(80));
        assert_eq!((sent[0].ace, sent[1].ecn), (0, ecn));
        sender.on_ack(&AckSegment { ack: 1, ace: 1, syn: false, ..answer }, at(160));
        assert_eq!(burst(&mut sender, at(160))[0].cwr, cwr, "only RFC 3168 has CWR");
    }
}

#[test]
fn an_accecn_syn_ack_to_a_plain_syn_counts() {
    // syn_ace_flags_acked_after_retransmit.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    for (due, ace) in [(1000, 0b111), (2000, 0)] {
        sender.on_deadline(at(due));
        assert_eq!(burst(&mut sender, at(due))[0].ace, ace);
    }
    sender.on_ack(&answer, at(2100));
    let sent = burst(&mut sender, at(2100));
    assert_eq!((sent[0].ace, sent[0].ecn), (0b010, Ecn::Ect0));
}

#[test]
fn a_last_ack_with_ace_after_a_plain_syn_ack_counts() {
    // syn_ack_ace_flags_acked_after_retransmit.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    let again = [1, 2].map(|_| {
        let due = receiver.deadline().expect("it waits");
        receiver.on_deadline(due).expect("a retransmission")
    });
    assert_eq!(again.map(|answer| (answer.ace, answer.accecn)), [(0b010, None), (0, None)]);
    sender.on_ack(&answer, at(3500));
    let sent = burst(&mut sender, at(3500));
    receiver.on_segment(&sent[0], at(3600));
    let ack = receiver.on_segment(&Segment { ecn: Ecn::Ce, ..sent[1] }, at(3600)).expect("at once");
    assert_eq!((ack.ace, ack.ecn), (6, Ecn::Ect0));
}

#[test]
fn a_plain_syn_after_one_with_accecn_keeps_accecn_and_ends_ect() {
    // accecn_then_notecn_syn.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    let first = greeting(&mut receiver, &Segment { ecn: Ecn::Ect0, ..syn }, at(0));
    let plain = Segment { ace: 0, cwr: false, ecn: Ecn::NotEct, ..syn };
    let second = greeting(&mut receiver, &plain, at(100));
    assert_eq!((first.ace, second.ace, second.accecn), (0b100, 0b010, None));
    sender.on_ack(&second, at(200));
    let sent = burst(&mut sender, at(200));
    receiver.on_segment(&sent[0], at(240));
    let ack = receiver.on_segment(&sent[1], at(240)).expect("at once");
    assert_eq!((ack.ace, ack.ecn), (5, Ecn::NotEct));
}

#[test]
fn data_out_of_order_complete_the_handshake_and_their_marks_count() {
    // 2nd_data_as_first: the last ACK and the first data are lost.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    sender.on_ack(&greeting(&mut receiver, &syn, at(0)), at(80));
    let sent = burst(&mut sender, at(80));
    let mut ace = |data: usize, ms| {
        let marked = Segment { ecn: Ecn::Ce, ..sent[data] };
        let ack = receiver.on_segment(&marked, at(ms)).expect("acknowledged at once");
        (ack.ack, ack.sack_count, ack.ace, ack.ecn)
    };
    assert_eq!(ace(2, 120), (0, 1, 6, Ecn::Ect0));
    assert_eq!(ace(1, 320), (2, 0, 7, Ecn::Ect0));
    assert_eq!(ace(3, 330), (3, 0, 0, Ecn::Ect0));
}

#[test]
fn a_syn_ack_with_the_reserved_code_means_accecn() {
    // serverside_accecn_disabled1.
    let (mut sender, mut receiver) = (Sender::new(&accecn(), None), Receiver::new(&accecn()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    let (ace, ecn) = (0b101, Ecn::NotEct);
    sender.on_ack(&AckSegment { ace, ecn, accecn: None, ..answer }, at(80));
    let sent = burst(&mut sender, at(80));
    assert_eq!((sent[0].ace, sent[0].ecn, sent[1].ecn), (0b010, Ecn::Ect0, Ecn::Ect0));
    sender.on_ack(&AckSegment { ack: 1, ace: 6, syn: false, ..answer }, at(160));
    assert_eq!(sender.ce_reported().map(|ce| ce.segments), Some(1));
}

#[test]
fn without_accecn_prague_is_reno_without_ecn_and_without_a_pace() {
    // TCP_CONG_NO_FALLBACK_RFC3168: RFC 3168's feedback counts as none, too.
    let prague = accecn().with(|p| p.congestion = CongestionKind::Prague);
    for ace in [0b001, 0] {
        let (mut sender, mut receiver) = (Sender::new(&prague, None), Receiver::new(&prague));
        let syn = burst(&mut sender, at(0))[0];
        let answer = greeting(&mut receiver, &syn, at(0));
        sender.on_ack(&AckSegment { ace, accecn: None, ..answer }, at(80));
        let sent = burst(&mut sender, at(80));
        assert_eq!(sent.len(), 11, "the ACK and ten segments at once");
        assert!(sent[1..].iter().all(|segment| segment.ecn == Ecn::NotEct));
        let sacks = [(1, 5), (0, 0), (0, 0), (0, 0)];
        let ack = AckSegment { ack: 0, ace: 1, syn: false, sacks, sack_count: 1, ..answer };
        sender.on_ack(&ack, at(160));
        let mss = u64::from(prague.mss);
        assert_eq!((sender.ssthresh_bytes(), sender.stats().fast_recoveries), (Some(5 * mss), 1));
    }
    let syn = burst(&mut Sender::new(&prague.with(|p| p.accecn = false), None), at(0))[0];
    assert!(!syn.cwr, "it does not ask for RFC 3168 either");
}

/// The behaviour of Linux 7.3 at either end (recordings/accecn-linux-7.3.txt, made by
/// tests/kernel/accecn.c).
mod recorded {
    use super::*;
    use tcp::AccEcnOption;

    const LINES: &str = include_str!("recordings/accecn-linux-7.3.txt");

    fn field(number: i32) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][number as usize]
    }

    fn number(ecn: Ecn) -> i32 {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].iter().position(|at| *at == ecn).unwrap()
            as i32
    }

    fn fields(option: Option<AccEcnOption>) -> i32 {
        option.map_or(-1, |option| option.fields.into())
    }

    fn params(control: &str) -> TcpParams {
        let kinds = [CongestionKind::Cubic, CongestionKind::Dctcp, CongestionKind::Prague];
        let congestion = *kinds.iter().find(|kind| kind.name() == control).expect("one of these");
        accecn().with(|p| p.congestion = congestion)
    }

    /// A server's answers to a SYN, a last ACK and data.
    fn server(params: &TcpParams, played: [i32; 5]) -> Vec<i32> {
        let [syn_ace, syn_ecn, last_ace, last_ecn, _] = played;
        let (mut sender, mut receiver) = (Sender::new(params, None), Receiver::new(params));
        let bare = burst(&mut sender, at(0))[0];
        // An ACE of 3 (CWR and ECE) is RFC 3168's request.
        let (ace, cwr) = (if syn_ace == 3 { 0 } else { syn_ace as u8 }, syn_ace > 0);
        let syn = Segment { ace, cwr, ecn: field(syn_ecn), ..bare };
        let answer = greeting(&mut receiver, &syn, at(0));
        sender.on_ack(&answer, at(80));
        let sent = burst(&mut sender, at(80));
        let last = Segment { ace: last_ace as u8, ecn: field(last_ecn), ..sent[0] };
        receiver.on_segment(&last, at(120));
        let data = Segment { ecn: Ecn::Ect0, ..sent[1] };
        let ack = receiver.on_segment(&data, at(120)).expect("the first is acknowledged at once");
        vec![
            answer.ace.into(),
            number(answer.ecn),
            fields(answer.accecn),
            ack.ace.into(),
            number(ack.ecn),
            fields(ack.accecn),
        ]
    }

    /// A client's SYN, last ACK and data, and the effect of an ACK.
    fn client(params: &TcpParams, played: [i32; 5]) -> Vec<i32> {
        let [ace, ecn, option, ack_ace, ack_ce] = played;
        let (mut sender, mut receiver) = (Sender::new(params, None), Receiver::new(params));
        let syn = burst(&mut sender, at(0))[0];
        let answer = greeting(&mut receiver, &syn, at(0));
        let counters = |ce: u32| AccEcnOption { bytes: [1, ce, 2001 - ce], fields: 3, size: 12 };
        let begin = AccEcnOption { bytes: [1, 0, 1], fields: 3, size: 12 };
        let accecn = (option == 1).then_some(begin);
        sender.on_ack(&AckSegment { ace: ace as u8, ecn: field(ecn), accecn, ..answer }, at(80));
        let sent = burst(&mut sender, at(80));
        let reported = |sender: &Sender| sender.ce_reported().map_or(0, |ce| ce.segments as i32);
        let before = reported(&sender);
        let accecn = (ack_ce >= 0).then(|| counters(1000 * ack_ce as u32));
        let (ack, ace) = (2, ack_ace as u8);
        let ecn = Ecn::NotEct;
        sender.on_ack(&AckSegment { ack, ace, ecn, accecn, syn: false, ..answer }, at(160));
        let after = reported(&sender);
        let next = burst(&mut sender, at(200));
        vec![
            syn.ace.into(),
            number(syn.ecn),
            sent[0].ace.into(),
            number(sent[0].ecn),
            number(sent[1].ecn),
            before,
            after,
            next.first().map_or(-1, |next| number(next.ecn)),
        ]
    }

    /// Inputs that our endpoints never send: those of a client with AccECN but without its option;
    /// and for Prague those of a client with RFC 3168's request, which Linux's server would grant.
    fn is_impossible(control: &str, is_client: bool, played: [i32; 5]) -> bool {
        let [syn_ace, _, last_ace, _, option] = played;
        let stripped = syn_ace == 7 && last_ace > 0 && option == 0;
        !is_client && (stripped || (control == "prague" && syn_ace == 3))
    }

    /// The answer to an ACK without the option from a client whose request differs from ours (1, 2,
    /// 4, 5 or 6). Linux answers without the option, too.
    fn without_option(is_client: bool, played: [i32; 5], mut answers: Vec<i32>) -> Vec<i32> {
        if !is_client && !matches!(played[0], 0 | 3 | 7) {
            answers.pop();
        }
        answers
    }

    #[test]
    fn handshakes_are_those_of_linux_7_3() {
        let mut parted = Vec::new();
        for line in LINES.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Vec<i32> =
                words[2..].iter().filter_map(|word| word.parse().ok()).collect();
            let (played, linux) = numbers.split_first_chunk::<5>().expect("a line has five inputs");
            let (params, is_client) = (params(words[1]), words[0] == "client");
            if is_impossible(words[1], is_client, *played) {
                continue;
            }
            let (ours, linux) = if is_client {
                // Our segments with data have no ACE, so Linux's is left out: only ACKs have it
                // here.
                let linux: Vec<i32> =
                    linux.iter().enumerate().filter(|(at, _)| *at != 4).map(|(_, n)| *n).collect();
                (client(&params, *played), linux)
            } else {
                (server(&params, *played), linux.to_vec())
            };
            let [ours, linux] =
                [ours, linux].map(|answers| without_option(is_client, *played, answers));
            if ours != linux {
                parted.push(format!("{line}: ours {ours:?}"));
            }
        }
        assert!(
            parted.is_empty(),
            "{} of {}:\n{}",
            parted.len(),
            LINES.lines().count(),
            parted.join("\n")
        );
    }
}
