//! CoDel: controlled delay. The least sojourn time in an interval shows a standing queue. If it
//! stays above target for a whole interval, CoDel drops at the head, and then at growing frequency
//! until the sojourn time is below target.
//!
//! Parameters (`CodelParams`), the control law (`Control`) and its state (`Dropping`) are separate,
//! so fq_codel runs the same law on each of its flows. This file has four variants, which differ
//! in:
//!
//! | | linux | linux2012 | rfc | ns3 |
//! |---|---|---|---|---|
//! | clock | ticks of 1024 ns | as linux | ns | ticks of 1024 ns |
//! | 1/sqrt(count) | 16 bits, one Newton step a drop | as linux | exact | as linux |
//! | may drop | after first_above + interval | as linux | at or after it | as linux |
//! | dequeue of an empty queue resets first_above | yes | no | yes | no |
//! | queue too short to act on | backlog <= mtu | as linux | backlog <= mtu | backlog < 1500 bytes |
//! | after a mark | drop_next + gap | as linux | drop_next + gap | now + gap |
//!
//! `linux7.3` is the CoDel of Linux 7.3. In one dequeue it drops at most 256 packets. Then it
//! passes a packet without counting it, and schedules the next drop from now. Two drops are at
//! least a tick apart. `mac80211`, which only fq_codel has, is Linux's CoDel, but a queue is too
//! short to act on only if it is empty.
//!
//! `linux2012` is Linux's CoDel from September 2012 until March 2026 (commit 815980fe6dbb and the
//! stable trees, Debian's 6.12.117 among them). Its first_above outlived an empty queue. So the
//! next packet, an interval later, could be dropped for a queue that had long drained. Under
//! fq_codel sparse flows lost packets this way where one packet takes longer than target to send.
//!
//! If Linux's codel is the device's root, packets may bypass it: see `bypass`.
//!
//! The backlog tested does not include the packet just dequeued. A packet that already carries CE
//! counts as marked and is not marked again.
//!
//! Source: RFC 8289 §5 (rfc, and the names); Nichols and Jacobson, ACM Queue 10(5), 2012; Linux
//! include/net/codel_impl.h for the behaviour of `linux`; ns-3 src/traffic-control for that of
//! `ns3`.
//!
//! Deviations: Linux counts ticks in 32 bits with signed comparison, ns-3 in 32 bits without (it
//! fails after 4398 s). Ticks are u64 here; decisions equal Linux's while compared times are less
//! than 2^31 ticks (2199 s) apart. RFC 8289 only drops; with `ecn` the rfc variant marks where it
//! would drop, one packet per dequeue, as Linux does. Linux may count a second mark (ce_threshold)
//! on a packet it has just marked; here a packet is marked once. ns-3's ce_threshold works only
//! with `ecn`. The limit is in packets in all variants (ns-3's default is 1500 bytes x 1000).

use crate::bypass::Bypass;
use crate::change::drop_down_to;
use crate::ds::mark;
use crate::{Backlog, Cause, Context, DsSelector, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::Time;

/// The algorithm: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodelVariant {
    /// Linux's codel_impl.h.
    Linux,
    /// CoDel of Linux 7.3.
    #[serde(rename = "linux7.3")]
    Linux73,
    /// Linux's codel_impl.h from September 2012 until March 2026.
    Linux2012,
    /// CoDel of mac80211, for the queues of Wi-Fi stations. Only fq_codel has it.
    Mac80211,
    /// RFC 8289.
    Rfc,
    /// ns-3's CoDelQueueDisc.
    Ns3,
}

impl CodelVariant {
    /// Whether this is one of Linux's variants.
    #[inline]
    pub(crate) fn is_linux(self) -> bool {
        matches!(self, CodelVariant::Linux | CodelVariant::Linux73 | CodelVariant::Linux2012)
    }
}

/// `codel limit PACKETS target TIME interval TIME ecn|noecn ce_threshold TIME`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelParams {
    /// The algorithm.
    pub variant: CodelVariant,
    /// The limit, packets.
    pub limit: u64,
    /// The acceptable standing queue delay, ns (5 000 000).
    pub target_ns: u64,
    /// The sliding window in which the least sojourn time must exceed the target, ns (100 000 000).
    pub interval_ns: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark every ECN-capable packet whose sojourn is longer than this, ns; `None`: off.
    pub ce_threshold_ns: Option<u64>,
}

/// The largest number of packets that Linux 7.3 drops in one dequeue.
const LINUX_73_DROPS: u32 = 256;

/// ns-3 does not act on a queue of fewer bytes (MinBytes).
const NS3_MIN_BYTES: u64 = 1500;

/// CoDel's clock in Linux: one tick is 2^10 ns (CODEL_SHIFT).
const TICK_SHIFT: u32 = 10;

/// The queue that the law is applied to.
pub(crate) trait Source<B> {
    /// Removes the oldest packet.
    fn pop(&mut self) -> Option<Packet<B>>;
    /// Bytes left in the queue.
    fn remaining_bytes(&self) -> u64;
}

impl<B> Source<B> for Fifo<B> {
    #[inline]
    fn pop(&mut self) -> Option<Packet<B>> {
        Fifo::pop(self)
    }

    #[inline]
    fn remaining_bytes(&self) -> u64 {
        self.backlog().bytes
    }
}

/// The law with its parameters, in the variant's clock; shared by all flows of an fq_codel.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    variant: CodelVariant,
    shift: u32,
    target: u64,
    interval: u64,
    ecn: bool,
    /// The threshold; u64::MAX means off.
    ce_threshold: u64,
    /// The packets that ce_threshold applies to. Only fq_codel selects some, otherwise all.
    pub(crate) ce_selector: DsSelector,
    /// The law does not drop from a smaller backlog, bytes.
    enough_bytes: u64,
}

/// The law's state for one queue. The names are RFC 8289's; times are in the variant's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dropping {
    /// The time at which the sojourn will have been above target for an interval; 0: it is below
    /// target.
    first_above: u64,
    /// The time of the next drop; 0: there was no drop yet.
    drop_next: u64,
    /// Drops since the dropping state was entered, and the count at its last entry.
    pub(crate) count: u32,
    last_count: u32,
    /// 1/sqrt(count) in units of 2^-16 (linux, ns3).
    rec_inv_sqrt: u16,
    pub(crate) dropping: bool,
    /// The sojourn time of the last packet examined.
    sojourn: u64,
}

impl Control {
    /// The law with these parameters; `mtu` is the largest packet in bytes.
    pub(crate) fn new(
        variant: CodelVariant,
        (target_ns, interval_ns): (u64, u64),
        ecn: bool,
        ce_threshold_ns: Option<u64>,
        mtu: u32,
    ) -> Control {
        let shift = if variant == CodelVariant::Rfc { 0 } else { TICK_SHIFT };
        let ce_threshold = match ce_threshold_ns {
            Some(_) if variant == CodelVariant::Ns3 && !ecn => u64::MAX,
            Some(ns) => ns >> shift,
            None => u64::MAX,
        };
        Control {
            variant,
            shift,
            target: target_ns >> shift,
            interval: interval_ns >> shift,
            ecn,
            ce_threshold,
            ce_selector: DsSelector::default(),
            enough_bytes: match variant {
                CodelVariant::Ns3 => NS3_MIN_BYTES,
                CodelVariant::Mac80211 => 1,
                _ => u64::from(mtu) + 1,
            },
        }
    }

    /// The law with other parameters, of the same variant.
    pub(crate) fn changed(
        &self,
        times: (u64, u64),
        ecn: bool,
        ce_threshold_ns: Option<u64>,
    ) -> Control {
        let enough_bytes = self.enough_bytes;
        Control { enough_bytes, ..Control::new(self.variant, times, ecn, ce_threshold_ns, 0) }
    }

    /// RFC 8289 §5.5 `deque`: drops or marks packets by the law, and returns the next one to send.
    #[inline(always)]
    pub(crate) fn dequeue<B>(
        &self,
        state: &mut Dropping,
        queue: &mut impl Source<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        let Some(packet) = queue.pop() else {
            state.dropping = false;
            if !matches!(self.variant, CodelVariant::Linux2012 | CodelVariant::Ns3) {
                state.first_above = 0;
            }
            return None;
        };
        let ok_to_drop = self.ok_to_drop(state, Some(&packet), queue.remaining_bytes(), now);
        let mut packet = if !ok_to_drop {
            state.dropping = false;
            packet
        } else if !state.dropping {
            self.enter(state, packet, queue, now, verdicts)?
        } else if now.0 >> self.shift >= state.drop_next {
            self.drop_on_schedule(state, packet, queue, now, verdicts)?
        } else {
            packet
        };
        if state.sojourn > self.ce_threshold && self.ce_selector.takes(packet.ds) {
            mark(&mut packet, Cause::CeThreshold, verdicts);
        }
        Some(packet)
    }

    /// RFC 8289 §5.5 `dodequeue`, second half: has the sojourn been above target for an interval?
    #[inline]
    fn ok_to_drop<B>(
        &self,
        state: &mut Dropping,
        packet: Option<&Packet<B>>,
        backlog_bytes: u64,
        now: Time,
    ) -> bool {
        let Some(packet) = packet else {
            state.first_above = 0;
            return false;
        };
        state.sojourn = self.sojourn(packet.enqueued, now);
        if state.sojourn < self.target || backlog_bytes < self.enough_bytes {
            state.first_above = 0;
            return false;
        }
        let now = now.0 >> self.shift;
        if state.first_above == 0 {
            state.first_above = now + self.interval;
            return false;
        }
        if self.variant == CodelVariant::Rfc {
            now >= state.first_above
        } else {
            now > state.first_above
        }
    }

    /// Linux subtracts two truncated times, ns-3 truncates the difference.
    #[inline]
    fn sojourn(&self, enqueued: Time, now: Time) -> u64 {
        match self.variant {
            CodelVariant::Rfc | CodelVariant::Ns3 => now.since(enqueued).0 >> self.shift,
            _ => (now.0 >> self.shift).saturating_sub(enqueued.0 >> self.shift),
        }
    }

    /// Enters the dropping state: drops or marks one packet and sets the drop rate.
    #[cold]
    fn enter<B>(
        &self,
        state: &mut Dropping,
        mut packet: Packet<B>,
        queue: &mut impl Source<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        let survivor = if self.ecn && mark(&mut packet, Cause::Target, verdicts) {
            Some(packet)
        } else {
            verdicts.push(Verdict::Dropped(packet, Cause::Target));
            let next = queue.pop();
            self.ok_to_drop(state, next.as_ref(), queue.remaining_bytes(), now);
            next
        };
        state.dropping = true;
        // RFC 8289 §5.5: soon after the last dropping state, its drop rate is a good first guess.
        let now = now.0 >> self.shift;
        let delta = state.count.wrapping_sub(state.last_count);
        let recent =
            state.drop_next > 0 && now < state.drop_next.saturating_add(16 * self.interval);
        if delta > 1 && recent {
            state.count = delta;
            self.improve_inv_sqrt(state);
        } else {
            state.count = 1;
            state.rec_inv_sqrt = u16::MAX;
        }
        state.last_count = state.count;
        state.drop_next = self.control_law(state, now);
        survivor
    }

    /// In the dropping state, at or after `drop_next`. Several drops may be due at once, hence the
    /// loop.
    #[cold]
    fn drop_on_schedule<B>(
        &self,
        state: &mut Dropping,
        mut packet: Packet<B>,
        queue: &mut impl Source<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        let clock = now.0 >> self.shift;
        let mut dropped = 0;
        while state.dropping && clock >= state.drop_next {
            if dropped == LINUX_73_DROPS && self.variant == CodelVariant::Linux73 {
                state.drop_next = self.control_law(state, clock);
                break;
            }
            state.count = state.count.wrapping_add(1);
            self.improve_inv_sqrt(state);
            if self.ecn && mark(&mut packet, Cause::Target, verdicts) {
                let from = if self.variant == CodelVariant::Ns3 { clock } else { state.drop_next };
                state.drop_next = self.control_law(state, from);
                break;
            }
            verdicts.push(Verdict::Dropped(packet, Cause::Target));
            dropped += 1;
            let next = queue.pop();
            state.dropping = self.ok_to_drop(state, next.as_ref(), queue.remaining_bytes(), now);
            packet = next?;
            if state.dropping {
                state.drop_next = self.control_law(state, state.drop_next);
            }
        }
        Some(packet)
    }

    /// `control_law`: t + interval / sqrt(count).
    fn control_law(&self, state: &Dropping, t: u64) -> u64 {
        let gap = match self.variant {
            CodelVariant::Rfc => {
                (self.interval as f64 / f64::from(state.count).sqrt() + 0.5) as u64
            }
            _ => ((u128::from(self.interval) * u128::from(state.rec_inv_sqrt)) >> 16) as u64,
        };
        let gap = if self.variant == CodelVariant::Linux73 { gap.max(1) } else { gap };
        t.saturating_add(gap)
    }

    /// One Newton step towards 1/sqrt(count): x' = x (3 - count x^2) / 2 in 32-bit fixed point,
    /// kept to 16 bits.
    ///
    /// One step per drop is enough for a count that grows by one. If the count jumps (fq_codel adds
    /// the drops at overflow) the difference may become negative and wraps, as in Linux.
    fn improve_inv_sqrt(&self, state: &mut Dropping) {
        if self.variant == CodelVariant::Rfc {
            return;
        }
        let x = u64::from(state.rec_inv_sqrt) << 16;
        let x_squared = (x * x) >> 32;
        let factor = (3u64 << 32).wrapping_sub(u64::from(state.count) * x_squared) >> 2;
        state.rec_inv_sqrt = (factor.wrapping_mul(x) >> 31 >> 16) as u16;
    }
}

/// One queue under CoDel.
pub struct Codel<B> {
    limit: u64,
    control: Control,
    dropping: Dropping,
    queue: Fifo<B>,
    bypass: Bypass<B>,
}

impl<B> Codel<B> {
    /// An empty queue.
    pub fn new(params: &CodelParams, context: Context) -> Self {
        let times = (params.target_ns, params.interval_ns);
        Codel {
            limit: params.limit,
            control: Control::new(
                params.variant,
                times,
                params.ecn,
                params.ce_threshold_ns,
                context.mtu,
            ),
            dropping: Dropping::default(),
            queue: Fifo::default(),
            bypass: Bypass::new(params.variant.is_linux() && context.root && params.limit > 0),
        }
    }
}

impl<B> Codel<B> {
    /// Sets the parameters, and drops the oldest packets down to the limit (codel_change). The
    /// dropping state stays as it is.
    pub(crate) fn change(&mut self, params: &CodelParams, verdicts: &mut Vec<Verdict<B>>) {
        let times = (params.target_ns, params.interval_ns);
        self.control = self.control.changed(times, params.ecn, params.ce_threshold_ns);
        self.limit = params.limit;
        drop_down_to(self.limit, &mut self.queue, verdicts);
    }
}

impl<B> Qdisc<B> for Codel<B> {
    #[inline(always)]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let Some(packet) = self.bypass.take_past(packet, self.queue.backlog(), now) else {
            return;
        };
        if u64::from(Qdisc::<B>::backlog(self).packets) < self.limit {
            self.queue.push(packet, now);
        } else {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        if let Some(packet) = self.bypass.take_out() {
            return Some(packet);
        }
        self.control.dequeue(&mut self.dropping, &mut self.queue, now, verdicts)
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.bypass.is_open()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bypass.backlog(self.queue.backlog())
    }

    fn state(&self, _now: Time) -> State {
        let count = if self.dropping.dropping { f64::from(self.dropping.count) } else { 0.0 };
        State { limit: Some(self.limit as f64), count: Some(count), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use units::{Rng, Span};

    const MS: u64 = 1_000_000;

    fn params(variant: CodelVariant) -> CodelParams {
        CodelParams {
            variant,
            limit: 1_000_000,
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            ecn: false,
            ce_threshold_ns: None,
        }
    }

    fn codel(params: &CodelParams) -> Codel<()> {
        Codel::new(
            params,
            Context {
                rate: None,
                mtu: 1514,
                header_bytes: 0,
                root: false,
                rng: Rng::new(1, "codel"),
            },
        )
    }

    fn filled(params: &CodelParams, packets: usize, size: u32, ecn: Ecn, now: Time) -> Codel<()> {
        let mut q = codel(params);
        let mut verdicts = Vec::new();
        for _ in 0..packets {
            q.enqueue(
                Packet { enqueued: Time::ZERO, flow: 0, size, ds: ecn.into(), body: () },
                now,
                &mut verdicts,
            );
        }
        assert!(verdicts.is_empty());
        q
    }

    /// Dequeues at `ms`; returns how many packets were dropped or marked by that.
    fn dequeue_at(q: &mut Codel<()>, ms: u64) -> usize {
        let mut verdicts = Vec::new();
        assert!(q.dequeue(Time(ms * MS), &mut verdicts).is_some());
        verdicts.len()
    }

    #[test]
    fn linux_gaps_are_those_of_its_16_bit_square_root() {
        // count, rec_inv_sqrt, gap in ticks of 1024 ns; the second gap is 50 ms, not the 70.7 of
        // theory.
        let table: [(u32, u16, u64); 9] = [
            (1, 0xffff, 97_654),
            (2, 0x8001, 48_829),
            (3, 0x9000, 54_931),
            (4, 0x7ce0, 47_635),
            (5, 0x7107, 43_116),
            (6, 0x6771, 39_459),
            (8, 0x59fd, 34_327),
            (16, 0x3fe8, 24_378),
            (32, 0x2d3c, 17_255),
        ];
        let q = codel(&params(CodelVariant::Linux));
        let mut state = Dropping { count: 1, rec_inv_sqrt: u16::MAX, ..Dropping::default() };
        let mut rows = vec![(1, state.rec_inv_sqrt, q.control.control_law(&state, 0))];
        for count in 2..=32 {
            state.count = count;
            q.control.improve_inv_sqrt(&mut state);
            rows.push((count, state.rec_inv_sqrt, q.control.control_law(&state, 0)));
        }
        for row in table {
            assert_eq!(rows[row.0 as usize - 1], row);
        }
    }

    #[test]
    fn rfc_gaps_are_exact() {
        let q = codel(&params(CodelVariant::Rfc));
        let gap = |count| {
            q.control.control_law(&Dropping { count, ..Dropping::default() }, 0) as f64 / 1e6
        };
        for (count, ms) in
            [(1, 100.0), (2, 70.711), (3, 57.735), (4, 50.0), (5, 44.721), (16, 25.0), (32, 17.678)]
        {
            assert!((gap(count) - ms).abs() < 0.0006, "count {count}: {}", gap(count));
        }
        // To the nearest ns: 57 735 026.9.
        assert_eq!(gap(3), 57.735_027);
    }

    /// Times of the drops after the first, ms, of a queue that is always far above target.
    fn drop_times(variant: CodelVariant) -> Vec<f64> {
        const STEP: u64 = 10_240;
        let mut q = filled(&params(variant), 100_000, 1514, Ecn::NotEct, Time::ZERO);
        let mut verdicts = Vec::new();
        let mut times = Vec::new();
        let mut now = 0;
        while times.len() <= 10 {
            now += STEP;
            q.dequeue(Time(now), &mut verdicts);
            times.extend(verdicts.drain(..).map(|_| now));
        }
        times[1..].iter().map(|t| (t - times[0]) as f64 / 1e6).collect()
    }

    #[test]
    fn a_standing_queue_is_dropped_from_at_the_tabulated_times() {
        let linux = [100.0, 150.0, 206.2, 255.0, 299.2, 339.6, 377.1, 412.3, 445.4, 476.9];
        let rfc = [100.0, 170.7, 228.4, 278.4, 323.2, 364.0, 401.8, 437.1, 470.5, 502.1];
        for (variant, want) in [(CodelVariant::Linux, linux), (CodelVariant::Rfc, rfc)] {
            for (got, want) in drop_times(variant).iter().zip(want) {
                // The table is rounded to 0.1 ms, and the queue is called every 0.01 ms.
                assert!(
                    (-0.051..0.062).contains(&(got - want)),
                    "{variant:?}: {got}, expected {want}"
                );
            }
        }
    }

    #[test]
    fn ns3_basic_drop_case() {
        let mut q = filled(&params(CodelVariant::Ns3), 20, 1000, Ecn::NotEct, Time::ZERO);
        assert_eq!(dequeue_at(&mut q, 10), 0);
        assert_eq!(q.backlog().packets, 19);
        assert_eq!(dequeue_at(&mut q, 210), 1);
        assert_eq!(q.backlog().packets, 17);
        assert_eq!(dequeue_at(&mut q, 210), 0);
        // drop_next is 310 ms; by 420 ms it has moved to 360, 416.2 and 465 ms: three drops.
        assert_eq!(dequeue_at(&mut q, 420), 3);
        assert_eq!(q.state(Time::NEVER).count, Some(4.0));
    }

    #[test]
    fn ns3_overflow_case() {
        let mut q = codel(&CodelParams { limit: 500, ..params(CodelVariant::Ns3) });
        let mut verdicts = Vec::new();
        for _ in 0..503 {
            let packet = Packet {
                enqueued: Time::ZERO,
                flow: 0,
                size: 1000,
                ds: Ecn::NotEct.into(),
                body: (),
            };
            q.enqueue(packet, Time::ZERO, &mut verdicts);
        }
        assert_eq!((q.backlog().packets, verdicts.len()), (500, 3));
    }

    #[test]
    fn ns3_ce_threshold_case() {
        let marking =
            CodelParams { ecn: true, ce_threshold_ns: Some(2 * MS), ..params(CodelVariant::Ns3) };
        let mut q = filled(&marking, 20, 1000, Ecn::Ect0, Time::ZERO);
        let marks: Vec<usize> = [1, 3, 10, 210].map(|ms| dequeue_at(&mut q, ms)).to_vec();
        // At 210 ms both target and threshold apply, and there is one mark.
        assert_eq!(marks, [0, 1, 1, 1]);
        assert_eq!(q.backlog().packets, 16);
    }

    #[test]
    fn marking_keeps_the_schedule_in_linux_and_restarts_it_in_ns3() {
        for (variant, marks_at_420) in [(CodelVariant::Linux, 1), (CodelVariant::Ns3, 0)] {
            let mut q = filled(
                &CodelParams { ecn: true, ..params(variant) },
                50,
                1514,
                Ecn::Ect0,
                Time::ZERO,
            );
            // The dropping state begins at 210 ms, drop_next is 310. At 400 ms there is one mark;
            // the next is at 310 + 50 (linux) or 400 + 50 (ns3).
            let marks: Vec<usize> = [10, 210, 400, 420].map(|ms| dequeue_at(&mut q, ms)).to_vec();
            assert_eq!(marks, [0, 1, 1, marks_at_420], "{variant:?}");
        }
    }

    #[test]
    fn one_packet_behind_the_head_does_not_count_as_a_queue() {
        for (variant, size, acts) in [
            (CodelVariant::Linux, 1514, false),
            (CodelVariant::Linux, 1515, true),
            (CodelVariant::Rfc, 1514, false),
            (CodelVariant::Ns3, 1499, false),
            (CodelVariant::Ns3, 1500, true),
        ] {
            // Sojourns are 50 ms, but there is always exactly one packet of `size` behind the
            // dequeued one.
            let mut q = codel(&params(variant));
            let mut verdicts = Vec::new();
            for i in 0..20 {
                let now = Time(i * 50 * MS);
                let packet = Packet {
                    enqueued: Time::ZERO,
                    flow: 0,
                    size,
                    ds: Ecn::NotEct.into(),
                    body: (),
                };
                q.enqueue(packet, now, &mut verdicts);
                if q.backlog().packets == 2 {
                    q.dequeue(now, &mut verdicts);
                }
            }
            assert_eq!(!verdicts.is_empty(), acts, "{variant:?} {size}");
        }
    }

    #[test]
    fn packets_that_bypass_the_queue_are_not_a_sign_of_one() {
        for (root, above) in [(false, true), (true, false)] {
            let context =
                Context { rate: None, mtu: 1514, header_bytes: 0, root, rng: Rng::new(1, "codel") };
            let mut q =
                Codel::new(&CodelParams { limit: 3, ..params(CodelVariant::Linux) }, context);
            let mut verdicts = Vec::new();
            for _ in 0..4 {
                let packet = Packet {
                    enqueued: Time::ZERO,
                    flow: 0,
                    size: 1514,
                    ds: Ecn::NotEct.into(),
                    body: (),
                };
                q.enqueue(packet, Time::ZERO, &mut verdicts);
            }
            // The bypassing packet counts towards the limit.
            assert_eq!((q.backlog().packets, q.backlog().bytes, verdicts.len()), (3, 3 * 1514, 1));
            // The first packet has waited 20 ms and has two behind it.
            assert!(q.dequeue(Time(20 * MS), &mut verdicts).is_some());
            assert_eq!(q.dropping.first_above > 0, above, "root: {root}");
            assert_eq!(q.backlog().packets, 2);
        }
    }

    #[test]
    fn a_queue_that_is_soon_above_target_again_resumes_near_its_old_drop_rate() {
        let mut q = filled(&params(CodelVariant::Linux), 4000, 1514, Ecn::NotEct, Time::ZERO);
        let mut verdicts = Vec::new();
        let mut now = Time::ZERO;
        while q.dropping.count < 20 {
            now += Span::from_millis(1);
            q.dequeue(now, &mut verdicts);
        }
        // The queue drains and fills again half a second later.
        while q.dequeue(now, &mut verdicts).is_some() {}
        assert_eq!(q.state(Time::NEVER).count, Some(0.0));
        let refill = |q: &mut Codel<()>, now| {
            for _ in 0..200 {
                let packet =
                    Packet { enqueued: now, flow: 0, size: 1514, ds: Ecn::NotEct.into(), body: () };
                q.enqueue(packet, now, &mut Vec::new());
            }
        };
        now += Span::from_millis(500);
        refill(&mut q, now);
        verdicts.clear();
        while verdicts.is_empty() {
            now += Span::from_millis(1);
            q.dequeue(now, &mut verdicts);
        }
        // delta = count - last_count = 20 - 1.
        assert_eq!(q.dropping.count, 19);
        // After 16 intervals the old rate is forgotten.
        while q.dequeue(now, &mut verdicts).is_some() {}
        now += Span::from_millis(2000);
        refill(&mut q, now);
        verdicts.clear();
        while verdicts.is_empty() {
            now += Span::from_millis(1);
            q.dequeue(now, &mut verdicts);
        }
        assert_eq!(q.dropping.count, 1);
    }

    /// The count with which a dropping state begins. The last state made `count` drops and began
    /// with the count `before`; its next drop was due `intervals` and `ticks` ago.
    fn resumed(count: u32, before: u32, intervals: u64, ticks: u64) -> u32 {
        let mut q = filled(&params(CodelVariant::Linux), 10, 1514, Ecn::NotEct, Time::ZERO);
        let drop_next = 1_000_000;
        q.dropping = Dropping {
            first_above: 1,
            drop_next,
            count,
            last_count: before,
            ..Dropping::default()
        };
        let now = drop_next + intervals * q.control.interval + ticks;
        let mut verdicts = Vec::new();
        q.dequeue(Time(now << TICK_SHIFT), &mut verdicts);
        assert_eq!(verdicts.len(), 1);
        q.dropping.count
    }

    #[test]
    fn the_old_drop_rate_is_kept_for_sixteen_intervals_if_there_were_two_drops() {
        assert_eq!(resumed(9, 2, 8, 0), 7);
        assert_eq!(resumed(9, 2, 15, 97_655), 7, "a tick before the end: 100 ms are 97 656 ticks");
        assert_eq!(resumed(9, 2, 16, 0), 1);
        assert_eq!(resumed(3, 1, 1, 0), 2);
        assert_eq!(resumed(2, 1, 1, 0), 1);
    }

    #[test]
    fn a_sojourn_of_the_target_is_not_below_it() {
        // RFC 8289 §5.5: below target is sojourn_time < TARGET.
        for (early, above) in [(1, false), (0, true)] {
            let mut q = filled(&params(CodelVariant::Rfc), 10, 1514, Ecn::NotEct, Time::ZERO);
            q.dequeue(Time(5 * MS - early), &mut Vec::new());
            assert_eq!(q.dropping.first_above > 0, above);
        }
    }

    #[test]
    fn dropping_begins_at_the_end_of_an_interval_by_the_rfc_and_a_tick_later_in_linux() {
        for (variant, at_once) in [(CodelVariant::Rfc, 1), (CodelVariant::Linux, 0)] {
            let mut q = filled(&params(variant), 10, 1514, Ecn::NotEct, Time::ZERO);
            let first_above = q.control.interval;
            q.dropping.first_above = first_above;
            let mut verdicts = Vec::new();
            q.dequeue(Time(first_above << q.control.shift), &mut verdicts);
            assert_eq!(verdicts.len(), at_once);
            q.dequeue(Time((first_above + 1) << q.control.shift), &mut verdicts);
            assert_eq!(verdicts.len(), 1);
        }
    }

    #[test]
    fn the_next_drop_is_due_at_drop_next_itself() {
        for variant in [CodelVariant::Rfc, CodelVariant::Linux] {
            let mut q = filled(&params(variant), 20, 1514, Ecn::NotEct, Time::ZERO);
            let drop_next = 2 * q.control.interval;
            q.dropping = Dropping {
                first_above: 1,
                drop_next,
                count: 1,
                dropping: true,
                ..Dropping::default()
            };
            q.dropping.rec_inv_sqrt = u16::MAX;
            let mut verdicts = Vec::new();
            q.dequeue(Time((drop_next - 1) << q.control.shift), &mut verdicts);
            assert_eq!(verdicts.len(), 0);
            q.dequeue(Time(drop_next << q.control.shift), &mut verdicts);
            assert_eq!(verdicts.len(), 1);
        }
    }

    #[test]
    fn a_sojourn_of_the_ce_threshold_is_not_marked() {
        let marking =
            CodelParams { ecn: true, ce_threshold_ns: Some(2 * MS), ..params(CodelVariant::Rfc) };
        for (late, marks) in [(0, 0), (1, 1)] {
            let mut q = filled(&marking, 20, 1000, Ecn::Ect0, Time::ZERO);
            let mut verdicts = Vec::new();
            q.dequeue(Time(2 * MS + late), &mut verdicts);
            assert_eq!(verdicts.len(), marks);
        }
    }

    #[test]
    fn a_dequeue_from_an_empty_queue_ends_the_dropping_state() {
        // Overflow, not the law, empties a queue of fq_codel.
        let mut q = codel(&params(CodelVariant::Linux));
        q.dropping.dropping = true;
        assert!(q.dequeue(Time(MS), &mut Vec::new()).is_none());
        assert!(!q.dropping.dropping);
    }

    #[test]
    fn decisions_do_not_depend_on_the_time_of_the_start() {
        // 2^32 ticks are 4398 s. Starts that are a whole number of ticks apart give the same
        // verdicts.
        let verdicts_from = |start: u64| {
            let mut q = filled(&params(CodelVariant::Linux), 5000, 1514, Ecn::NotEct, Time(start));
            (1..2000u64)
                .map(|i| {
                    let mut verdicts = Vec::new();
                    q.dequeue(Time(start + i * 500_000), &mut verdicts);
                    verdicts.len()
                })
                .collect::<Vec<_>>()
        };
        let early = verdicts_from(0);
        assert!(early.iter().sum::<usize>() > 20);
        for hours in [1, 2, 1000] {
            assert_eq!(verdicts_from(hours * 3_600_000_000_000 / 1024 * 1024), early);
        }
        // The run crosses the wrap itself.
        assert_eq!(verdicts_from((1 << 42) - 512 * 1024 * 1024), early);
    }

    #[test]
    fn linux_7_3_drops_256_as_one_leaves_and_a_tick_apart_at_least() {
        let due = |variant, interval: u64| {
            let now = Time(10_000 << TICK_SHIFT);
            let q = CodelParams { interval_ns: interval << TICK_SHIFT, ..params(variant) };
            let mut q = filled(&q, 2000, 1000, Ecn::NotEct, Time::ZERO);
            let (first_above, drop_next, count) = (1, 1, 1_000_000);
            let rec_inv_sqrt = 65;
            q.dropping =
                Dropping { first_above, drop_next, count, rec_inv_sqrt, ..Dropping::default() };
            q.dropping.dropping = true;
            let mut verdicts = Vec::new();
            assert!(q.dequeue(now, &mut verdicts).is_some());
            (verdicts.len(), q.dropping.drop_next, q.dropping.dropping)
        };
        // 1024 * 65 >> 16 is one tick: 9999 drops are due, and the queue becomes short first.
        assert_eq!(due(CodelVariant::Linux73, 1024), (256, 10_001, true));
        assert_eq!(due(CodelVariant::Linux, 1024), (1998, 1998, false));
        // With less than a tick between two drops, drop_next does not advance, except in 7.3.
        assert_eq!(due(CodelVariant::Linux73, 100), (256, 10_001, true));
        assert_eq!(due(CodelVariant::Linux, 100), (1998, 1, false));
    }
}
