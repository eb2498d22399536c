//! The handshake: SYN, its answer, and the ACK that ends it.

#[path = "common/linux.rs"]
mod profile;

use profile::linux;
use tcp::{AckSegment, CongestionKind, Millis, Receiver, Segment, Sender, TcpParams};
use units::{Span, Time};

const WAY: Span = Span::from_millis(40);

fn params() -> TcpParams {
    TcpParams { handshake: true, ..linux() }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn burst(sender: &mut Sender, now: Time) -> Vec<Segment> {
    std::iter::from_fn(|| sender.poll(now)).collect()
}

/// The answer to a SYN that has just left.
fn greeting(receiver: &mut Receiver, syn: &Segment, now: Time) -> AckSegment {
    receiver.on_segment(syn, false, now + WAY).expect("a SYN is answered")
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
    assert!(!sent[0].syn && sent[0].len == 0 && receiver.on_segment(&sent[0], false, at(127)).is_none());
    assert_eq!(sent[1..].iter().map(|segment| segment.seq).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert!(sent.iter().all(|segment| segment.echo == Some(Millis(47))));
    let ack = receiver.on_segment(&sent[1], false, at(127)).expect("the first is acknowledged at once");
    assert!(!ack.syn && ack.ack == 1);
}

#[test]
fn a_syn_that_is_lost_is_sent_again_after_a_second_and_two() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    burst(&mut sender, at(0));
    for (due, tries) in [(1000, 1), (3000, 2)] {
        assert_eq!(sender.deadline(), Some(at(due)));
        sender.on_deadline(at(due));
        let [syn] = burst(&mut sender, at(due))[..] else { panic!("a SYN alone") };
        assert!(syn.syn && sender.stats().timeouts == tries);
        if tries == 2 {
            // An answer to either is an answer; data begin with one segment, since more than one was lost (RFC 5681 §3.1).
            sender.on_ack(&greeting(&mut receiver, &syn, at(3000)), at(3080));
            assert_eq!(burst(&mut sender, at(3080)).len(), 1 + 1);
            assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
        }
    }
}

#[test]
fn a_second_answer_is_none() {
    let (mut sender, mut receiver) = (Sender::new(&params(), None), Receiver::new(&params()));
    let syn = burst(&mut sender, at(0))[0];
    let answer = greeting(&mut receiver, &syn, at(0));
    sender.on_ack(&answer, at(80));
    burst(&mut sender, at(80));
    sender.on_ack(&answer, at(90));
    assert!(burst(&mut sender, at(90)).is_empty());
    assert_eq!(sender.srtt(), Some(Span::from_millis(80)));
}

#[test]
fn without_it_data_leave_at_once() {
    let mut sender = Sender::new(&TcpParams { handshake: false, ..params() }, None);
    assert!(burst(&mut sender, at(0)).iter().all(|segment| segment.len > 0));
}
