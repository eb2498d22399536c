//! The handshake: SYN, its answer, and the ACK that ends it.

#[path = "common/linux.rs"]
mod profile;

use profile::linux;
use tcp::{AckSegment, Millis, Receiver, Segment, Sender, TcpParams};
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
fn data_follow_the_ack_that_ends_it() {
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
fn a_syn_that_is_lost_is_sent_again_each_second_and_then_ever_later() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    burst(&mut sender, at(0));
    for (due, tries) in
        [(1000, 1), (2000, 2), (3000, 3), (4000, 4), (5000, 5), (7000, 6), (11_000, 7)]
    {
        assert_eq!(sender.deadline(), Some(at(due)));
        sender.on_deadline(at(due));
        let [syn] = burst(&mut sender, at(due))[..] else { panic!("a SYN alone") };
        assert!(syn.syn && sender.stats().timeouts == tries);
        if tries == 7 {
            // An answer to either is an answer; data begin with one segment, since more than one
            // was lost (RFC 5681 §3.1).
            sender.on_ack(&greeting(&mut receiver, &syn, at(due)), at(due + 80));
            assert_eq!(burst(&mut sender, at(due + 80)).len(), 1 + 1);
            assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
        }
    }
}

/// A connection of which the first `lost` SYNs are lost, and its first segments' ECT.
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
fn ecn_is_for_those_that_agree_on_it() {
    assert!(opened(true, true, 0));
    assert!(!opened(true, false, 0));
    assert!(!opened(false, true, 0));
}

#[test]
fn a_syn_that_was_lost_goes_again_without_asking_for_ecn() {
    assert!(!opened(true, true, 1));
    assert!(!opened(true, true, 3));
}

#[test]
fn an_answer_that_was_lost_leaves_what_the_first_syn_agreed_on() {
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
fn a_second_answer_is_acknowledged_and_means_nothing_else() {
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
fn an_answer_that_nothing_follows_is_sent_again_ever_later() {
    let params = params().with(|p| p.timers.timer_tick_ns = 4_000_000);
    let (mut sender, mut receiver) = (Sender::new(&params, None), Receiver::new(&params));
    let syn = burst(&mut sender, at(0))[0];
    greeting(&mut receiver, &syn, at(0));
    // Linux's timers of a second go off with every eighth tick of 4 ms.
    for due in [1056, 3072] {
        assert_eq!(receiver.on_deadline(at(due - 1)), None);
        let again =
            receiver.on_deadline(receiver.deadline().expect("it waits")).expect("it goes again");
        assert!(again.syn && again.echo == at(0));
    }
    // A SYN again in the meantime: the first one's stamp is echoed, so that this RTT counts from
    // there.
    let second = Segment { stamp: at(3080), ..syn };
    assert_eq!(greeting(&mut receiver, &second, at(3080)).echo, at(0));
    sender.on_ack(&greeting(&mut receiver, &second, at(3080)), at(3200));
    assert_eq!(sender.srtt(), Some(Span::from_millis(3200)));
    for segment in burst(&mut sender, at(3200)) {
        receiver.on_segment(&segment, at(3240));
    }
    assert!(receiver.deadline().is_none_or(|due| due < at(3500)));
}

#[test]
fn without_it_data_leave_at_once() {
    let mut sender = Sender::new(&params().with(|p| p.handshake = false), None);
    assert!(burst(&mut sender, at(0)).iter().all(|segment| segment.len > 0));
}
