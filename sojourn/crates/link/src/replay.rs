//! The far end of a tunnel with anti-replay, as in IPsec: it never accepts a packet twice.
//!
//! The near end numbers a tunnel's packets as they arrive at the link's queue. The far end stores
//! the highest number that has arrived, and drops each packet that is a window or more below it. It
//! can't tell whether such a packet is a repeated one. So a queue that reorders loses packets that
//! a window of others has overtaken. A copy that the wire makes is dropped, too.
//!
//! Source: RFC 4303, section 3.4.3 and appendix A2, without its bitmap: here only a wire that
//! doubles packets sends a number twice. The packets keep their size: no header is added.

use qdisc::{Body, Packet};

/// Both ends of the tunnels over one link.
#[derive(Clone, Debug)]
pub struct Replay {
    window: u64,
    /// The numbers of each tunnel, by its index.
    tunnels: Vec<Numbers>,
    /// The number of each packet in the queue, by its place (`Body::place`).
    of_place: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    given: u64,
    highest: u64,
}

impl Replay {
    /// The state before the first packet.
    pub fn new(window: u32) -> Replay {
        assert!(window > 0, "a window has a packet");
        Replay { window: window.into(), tunnels: Vec::new(), of_place: Vec::new() }
    }

    fn numbers(&mut self, tunnel: u8) -> &mut Numbers {
        let index = usize::from(tunnel);
        if self.tunnels.len() <= index {
            self.tunnels.resize(index + 1, Numbers::default());
        }
        &mut self.tunnels[index]
    }

    /// A packet arrives at the queue and gets a number.
    pub fn number<B: Body>(&mut self, packet: &Packet<B>) {
        let (tunnel, place) = (packet.body.tunnel(), packet.body.place() as usize);
        if tunnel == 0 {
            return;
        }
        let numbers = self.numbers(tunnel);
        numbers.given += 1;
        let number = numbers.given;
        if self.of_place.len() <= place {
            self.of_place.resize(place + 1, 0);
        }
        self.of_place[place] = number;
    }

    /// Whether the far end drops a packet as a repeated one.
    pub fn refuses<B: Body>(&mut self, packet: &Packet<B>) -> bool {
        let (tunnel, place) = (packet.body.tunnel(), packet.body.place() as usize);
        if tunnel == 0 {
            return false;
        }
        let (number, window) = (self.of_place[place], self.window);
        let numbers = self.numbers(tunnel);
        numbers.highest = numbers.highest.max(number);
        numbers.highest - number >= window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdisc::{DsField, ReplayHints};
    use units::Time;

    /// A packet of a tunnel in a place.
    #[derive(Clone, Copy)]
    struct In(u8, u32);

    impl ReplayHints for In {}

    impl Body for In {
        fn tunnel(&self) -> u8 {
            self.0
        }

        fn place(&self) -> u32 {
            self.1
        }
    }

    fn packet(tunnel: u8, place: u32) -> Packet<In> {
        let body = In(tunnel, place);
        Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds: DsField::BEST_EFFORT, body }
    }

    #[test]
    fn a_packet_below_the_replay_window_is_refused() {
        let mut replay = Replay::new(3);
        (0..5).for_each(|place| replay.number(&packet(1, place)));
        // The second of five arrives after the fourth: two below it. The first is three below.
        let refused = [3, 1, 0, 4, 2].map(|place| replay.refuses(&packet(1, place)));
        assert_eq!(refused, [false, false, true, false, false]);
    }

    #[test]
    fn each_tunnel_numbers_its_own_packets_and_others_have_no_number() {
        let mut replay = Replay::new(1);
        for (tunnel, place) in [(1, 0), (2, 1), (0, 2), (1, 3)] {
            replay.number(&packet(tunnel, place));
        }
        assert!(!replay.refuses(&packet(1, 3)));
        assert!(replay.refuses(&packet(1, 0)));
        assert!(!replay.refuses(&packet(2, 1)));
        assert!(!replay.refuses(&packet(0, 2)));
    }

    #[test]
    fn a_freed_place_is_reused() {
        let mut replay = Replay::new(2);
        for _ in 0..10 {
            replay.number(&packet(1, 7));
            assert!(!replay.refuses(&packet(1, 7)));
        }
    }
}
