//! The wire: its delay and the variation of it, loss, reordering, duplication, slots.
//!
//! The words and the arithmetic are those of netem (tc-netem(8)): correlated numbers of 32 bits,
//! tables of distributions in 8192ths of a standard deviation, and the counter of `gap`. A packet
//! that is both lost and doubled arrives once, also as in netem. Each law draws from its own
//! stream, so that none changes another's draws, and the card of the kernel's guest (simnic) draws
//! the same numbers.
//!
//! Deviations from netem: packets keep their order under jitter unless they may `overtake`. The
//! packets of a `slot` are delivered together when it opens. The first packet after a slot opens
//! the next one; netem chooses the next slot when it looks at its queue.

use crate::loss::{Loss, LossLaw};
use qdisc::{DsField, Ecn};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use units::{Rng, Span, Time};

/// Impairments besides a delay that is the same for all packets. Probabilities and correlations are
/// in units of 2^-32.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Impairments {
    /// The delay differs from packet to packet.
    pub jitter: Option<DelayJitter>,
    /// Some packets have no delay.
    pub reorder: Option<Reordering>,
    /// Some packets arrive twice.
    pub duplicate: Option<Duplication>,
    /// Packets are collected and delivered together.
    pub slot: Option<Slots>,
    /// Steps of the delay, the first at 0; empty: the link's `delay_ns`.
    pub delay_steps: Vec<DelayStep>,
    /// The steps repeat after this many ns.
    pub delay_period_ns: Option<u64>,
    /// A packet with a shorter delay may arrive before an earlier packet. Otherwise it arrives at
    /// the same time, after it.
    pub overtake: bool,
    /// The action on the ECN field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnRemark>,
}

/// A change that a box on the path makes to ECN fields. No box should make one (RFC 9331, section
/// 5.4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum EcnRemark {
    /// Every field becomes Not-ECT.
    Bleach,
    /// ECT(1) becomes ECT(0).
    Ect1ToEct0,
    /// Every field becomes CE, Not-ECT too.
    Ce,
}

impl EcnRemark {
    /// Every action with its name.
    pub const ALL: [(&str, EcnRemark); 3] = [
        ("bleach", EcnRemark::Bleach),
        ("ect1 to ect0", EcnRemark::Ect1ToEct0),
        ("ce", EcnRemark::Ce),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        EcnRemark::ALL.iter().find(|(_, remark)| *remark == self).map_or("", |(name, _)| name)
    }

    /// The field after the action.
    pub fn of(self, ecn: Ecn) -> Ecn {
        match (self, ecn) {
            (EcnRemark::Bleach, _) => Ecn::NotEct,
            (EcnRemark::Ce, _) => Ecn::Ce,
            (EcnRemark::Ect1ToEct0, Ecn::Ect1) => Ecn::Ect0,
            (EcnRemark::Ect1ToEct0, other) => other,
        }
    }
}

/// The delay of packets from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Time of the step, ns.
    pub at_ns: u64,
    /// One-way propagation from then on, ns.
    pub delay_ns: u64,
}

/// The delay's part that differs from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DelayJitter {
    /// ns: for `uniform` the greatest deviation in either direction, for others the standard
    /// deviation.
    pub scale_ns: u64,
    /// The correlation with the preceding packet's draw.
    pub correlation: u32,
    /// The distribution.
    pub distribution: Distribution,
}

/// netem's distributions. The last three have the moments of their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Uniform from the scale below the delay to the scale above it.
    Uniform,
    /// Normal, cut at four standard deviations.
    Normal,
    /// Pareto with a tail exponent of 3, minus its mean, cut at four standard deviations.
    Pareto,
    /// A quarter of the quantile of Normal plus three quarters of the same quantile of Pareto.
    ParetoNormal,
}

/// A packet with a position in the `gap` has no delay, with this probability, and so overtakes
/// packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// In units of 2^-32.
    pub probability: u64,
    /// The correlation with the preceding draw.
    pub correlation: u32,
    /// At least `gap - 1` packets are delayed between two that aren't.
    pub gap: u32,
}

/// A packet arrives twice, with this probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Duplication {
    /// In units of 2^-32.
    pub probability: u64,
    /// The correlation with the preceding draw.
    pub correlation: u32,
}

/// Packets are delivered in slots, as if stations took turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Slots {
    /// The least time from the first packet after a slot until the next slot opens, ns.
    pub min_ns: u64,
    /// The greatest such time, ns.
    pub max_ns: u64,
    /// The most packets of a slot; `None`: no limit.
    pub packets: Option<u32>,
    /// The IP bytes after which a slot is full.
    pub bytes: Option<u32>,
}

/// Entries of a distribution's table.
pub const TABLE_ENTRIES: usize = 4096;
/// Units of a standard deviation.
const TABLE_SCALE: i64 = 8192;

impl Distribution {
    /// Every distribution with netem's word.
    pub const ALL: [(Distribution, &'static str); 4] = [
        (Distribution::Uniform, "uniform"),
        (Distribution::Normal, "normal"),
        (Distribution::Pareto, "pareto"),
        (Distribution::ParetoNormal, "paretonormal"),
    ];

    /// netem's word for it.
    pub fn word(self) -> &'static str {
        Distribution::ALL[self as usize].1
    }

    /// Its quantiles in 8192ths of a standard deviation: computed values of the tables that
    /// iproute2 ships. `None`: it has no table.
    pub fn table(self) -> Option<&'static [i16; TABLE_ENTRIES]> {
        static TABLES: [OnceLock<[i16; TABLE_ENTRIES]>; 4] = [const { OnceLock::new() }; 4];
        (self != Distribution::Uniform)
            .then(|| TABLES[self as usize].get_or_init(|| std::array::from_fn(|i| self.entry(i))))
    }

    fn entry(self, index: usize) -> i16 {
        let normal = || scaled(normal_quantile((index as f64 + 0.125) / TABLE_ENTRIES as f64));
        let pareto = || {
            let above = 1.0 - index as f64 / TABLE_ENTRIES as f64;
            // The mean is 3/2 and the variance 3/4, by which iproute2's table is divided.
            cut(scaled((libm::pow(above, -1.0 / 3.0) - 1.5) / 0.75))
        };
        let value = match self {
            Distribution::Uniform => 0.0,
            Distribution::Normal => normal(),
            Distribution::Pareto => pareto(),
            Distribution::ParetoNormal => 0.25 * normal() + 0.75 * pareto(),
        };
        libm::rint(cut(value)) as i16
    }

    /// The least value for a scale in ns; zero or below.
    fn least_ns(self, scale_ns: u64) -> i64 {
        self.table().map_or(-(scale_ns as i64), |table| {
            let least = table.iter().min().expect("a table has entries");
            times_table(scale_ns, *least)
        })
    }
}

fn scaled(deviations: f64) -> f64 {
    deviations * TABLE_SCALE as f64
}

fn cut(value: f64) -> f64 {
    value.clamp(i16::MIN.into(), i16::MAX.into())
}

/// The quantile of the standard normal distribution; by bisection.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..48 {
        let middle = 0.5 * (low + high);
        let below = 0.5 * libm::erfc(-middle * std::f64::consts::FRAC_1_SQRT_2);
        if below < probability { low = middle } else { high = middle }
    }
    low
}

/// The scale times a table's entry, rounded to the nearest, halves away from zero.
fn times_table(scale_ns: u64, entry: i16) -> i64 {
    let product = scale_ns as i64 * i64::from(entry);
    (product + product.signum() * (TABLE_SCALE / 2)) / TABLE_SCALE
}

impl Impairments {
    /// Whether the wire has only a constant delay.
    pub fn is_none(&self) -> bool {
        let Impairments { jitter, reorder, duplicate, slot, delay_steps, ecn, .. } = self;
        jitter.is_none()
            && ecn.is_none()
            && reorder.is_none()
            && duplicate.is_none()
            && slot.is_none()
            && delay_steps.len() <= 1
    }

    /// Whether packets may arrive in another order than they left.
    pub fn reorders(&self) -> bool {
        let varies = self.jitter.is_some() || self.delay_steps.len() > 1;
        self.reorder.is_some() || (self.overtake && varies)
    }

    /// The least time that a packet is on the wire of a link with this delay.
    pub fn least_delay(&self, delay_ns: u64) -> Span {
        if self.reorder.is_some() {
            return Span::ZERO;
        }
        let steps = self.delay_steps.iter().map(|step| step.delay_ns).min();
        let jitter = self.jitter.map_or(0, |j| j.distribution.least_ns(j.scale_ns));
        // A packet that arrives as a slot opens does not wait.
        Span(steps.unwrap_or(delay_ns).saturating_add_signed(jitter))
    }
}

/// Numbers of 32 bits, each correlated with its predecessor (netem's get_crandom).
#[derive(Clone, Debug)]
struct Correlated {
    rho: u32,
    latest: u64,
    rng: Rng,
}

impl Correlated {
    fn new(rho: u32, mut rng: Rng) -> Correlated {
        let latest = if rho > 0 { rng.next_u64() >> 32 } else { 0 };
        Correlated { rho, latest, rng }
    }

    fn draw(&mut self) -> u64 {
        let drawn = self.rng.next_u64() >> 32;
        if self.rho == 0 {
            return drawn;
        }
        let rho = u64::from(self.rho) + 1;
        self.latest = (drawn * ((1 << 32) - rho) + self.latest * rho) >> 32;
        self.latest
    }
}

/// `most` times a fraction of 32 bits.
fn fraction(most: u64, bits: u64) -> u64 {
    ((u128::from(most) * u128::from(bits)) >> 32) as u64
}

/// The result for a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    pub lost: bool,
    /// The time at which it arrives; undefined if it is lost.
    pub arrives: Time,
    /// The time at which it arrives a second time.
    pub again: Option<Time>,
}

/// A wire with its generators.
#[derive(Clone, Debug)]
pub struct Propagation {
    delay: Span,
    law: Option<Box<Law>>,
}

#[derive(Clone, Debug)]
struct Law {
    loss: LossLaw,
    impairments: Impairments,
    jitter: Correlated,
    reorder: Correlated,
    duplicate: Correlated,
    slot: Rng,
    /// Packets delayed since the last one without delay.
    delayed: u32,
    /// The latest arrival of the packets that keep their order.
    in_order: Time,
    /// The time at which the last or next slot opens, and its remaining room.
    slot_opens: Time,
    slot_packets: u64,
    slot_bytes: i64,
}

impl Propagation {
    /// A wire with this delay and these laws; `rng` returns the stream of a law by its name.
    pub fn new(
        delay: Span,
        loss: &Loss,
        impairments: &Impairments,
        rng: impl Fn(&str) -> Rng,
    ) -> Propagation {
        let plain = *loss == Loss::None && impairments.is_none();
        let Impairments { jitter, reorder, duplicate, .. } = impairments;
        let law = (!plain).then(|| {
            Box::new(Law {
                loss: LossLaw::new(loss.clone(), rng("loss")),
                jitter: Correlated::new(jitter.map_or(0, |j| j.correlation), rng("jitter")),
                reorder: Correlated::new(reorder.map_or(0, |r| r.correlation), rng("reorder")),
                duplicate: Correlated::new(
                    duplicate.map_or(0, |d| d.correlation),
                    rng("duplicate"),
                ),
                slot: rng("slot"),
                impairments: impairments.clone(),
                delayed: 0,
                in_order: Time::ZERO,
                slot_opens: Time::ZERO,
                slot_packets: 0,
                slot_bytes: 0,
            })
        });
        Propagation { delay, law }
    }

    /// Whether it delays every packet alike and does nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        self.law.is_none()
    }

    /// The delay of a wire without steps.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// A packet of `ip_bytes` crosses; its last bit leaves at `finished`.
    #[inline]
    pub(crate) fn cross(&mut self, ip_bytes: u32, ds: &mut DsField, finished: Time) -> Crossing {
        match &mut self.law {
            None => Crossing { lost: false, arrives: finished + self.delay, again: None },
            Some(law) => {
                if let Some(remark) = law.impairments.ecn {
                    *ds = ds.with_ecn(remark.of(ds.ecn()));
                }
                law.cross(self.delay, ip_bytes, finished)
            }
        }
    }
}

impl Law {
    #[inline]
    fn cross(&mut self, delay: Span, ip_bytes: u32, finished: Time) -> Crossing {
        let doubled = self
            .impairments
            .duplicate
            .is_some_and(|duplicate| self.duplicate.draw() < duplicate.probability);
        let lost = self.loss.loses(finished);
        if lost && !doubled {
            return Crossing { lost: true, arrives: finished + delay, again: None };
        }
        let arrives = self.arrives(delay, ip_bytes, finished);
        let again = (doubled && !lost).then(|| self.arrives(delay, ip_bytes, finished));
        Crossing { lost: false, arrives, again }
    }

    fn arrives(&mut self, delay: Span, ip_bytes: u32, finished: Time) -> Time {
        if self.skips_delay() {
            return finished;
        }
        let arrives = finished + self.delay_of_one(self.delay_at(delay, finished));
        if self.impairments.overtake {
            return arrives;
        }
        let arrives = arrives.max(self.in_order);
        self.in_order = self.in_slot(ip_bytes, arrives);
        self.in_order
    }

    fn skips_delay(&mut self) -> bool {
        let Some(reorder) = self.impairments.reorder else { return false };
        let skips = self.delayed + 1 >= reorder.gap && self.reorder.draw() < reorder.probability;
        self.delayed = if skips { 0 } else { self.delayed.saturating_add(1) };
        skips
    }

    fn delay_at(&self, delay: Span, now: Time) -> Span {
        let steps = &self.impairments.delay_steps;
        if steps.is_empty() {
            return delay;
        }
        let into = self.impairments.delay_period_ns.map_or(now.0, |period| now.0 % period);
        let index = steps.partition_point(|step| step.at_ns <= into) - 1;
        Span(steps[index].delay_ns)
    }

    fn delay_of_one(&mut self, delay: Span) -> Span {
        let Some(DelayJitter { scale_ns, distribution, .. }) = self.impairments.jitter else {
            return delay;
        };
        let drawn = self.jitter.draw();
        let by = match distribution.table() {
            Some(table) => times_table(scale_ns, table[drawn as usize % TABLE_ENTRIES]),
            None => fraction(2 * scale_ns, drawn) as i64 - scale_ns as i64,
        };
        Span(delay.0.saturating_add_signed(by))
    }

    fn in_slot(&mut self, ip_bytes: u32, arrives: Time) -> Time {
        let Some(slot) = self.impairments.slot else { return arrives };
        let after = if self.slot_opens < arrives {
            Some(arrives)
        } else if self.slot_packets == 0 || self.slot_bytes <= 0 {
            Some(self.slot_opens)
        } else {
            None
        };
        if let Some(after) = after {
            let more = fraction(slot.max_ns - slot.min_ns, self.slot.next_u64() >> 32);
            self.slot_opens = after + Span(slot.min_ns + more);
            self.slot_packets = slot.packets.map_or(u64::MAX, u64::from);
            self.slot_bytes = slot.bytes.map_or(i64::MAX, i64::from);
        }
        self.slot_packets -= 1;
        self.slot_bytes -= i64::from(ip_bytes);
        self.slot_opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wire(impairments: Impairments) -> Propagation {
        Propagation::new(Span(20 * MS), &Loss::None, &impairments, |name| Rng::new(7, name))
    }

    /// The crossings of `packets` full packets that leave each `gap_ns`.
    fn crossings(impairments: Impairments, packets: u64, gap_ns: u64) -> Vec<Crossing> {
        let mut wire = wire(impairments);
        (0..packets).map(|i| wire.cross(1500, &mut DsField::default(), Time(i * gap_ns))).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, var.sqrt())
    }

    fn jitter(scale_ns: u64, correlation: u32, distribution: Distribution) -> Impairments {
        let jitter = Some(DelayJitter { scale_ns, correlation, distribution });
        Impairments { jitter, overtake: true, ..Impairments::default() }
    }

    #[test]
    fn ecn_fields_are_changed_and_the_class_is_not() {
        let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        let after = |remark| {
            let law = Impairments { ecn: Some(remark), ..Impairments::default() };
            let mut wire =
                Propagation::new(Span::ZERO, &Loss::None, &law, |name| Rng::new(1, name));
            fields.map(|ecn| {
                let mut ds = DsField(46 << 2).with_ecn(ecn);
                wire.cross(100, &mut ds, Time::ZERO);
                assert_eq!(ds.with_ecn(Ecn::NotEct), DsField(46 << 2));
                ds.ecn()
            })
        };
        assert_eq!(after(EcnRemark::Bleach), [Ecn::NotEct; 4]);
        assert_eq!(after(EcnRemark::Ce), [Ecn::Ce; 4]);
        let one_to_zero = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ce];
        assert_eq!(after(EcnRemark::Ect1ToEct0), one_to_zero);
    }

    #[test]
    fn the_tables_are_iproute2_s() {
        // From its files: the first, the second, the 1001st, the middle and the last but one.
        let at = [0, 1, 1000, 2048, 4094];
        let of = |law: Distribution| at.map(|i| law.table().expect("it has one")[i]);
        let near = |have: [i16; 5], want: [i16; 5]| {
            assert!(have.iter().zip(want).all(|(h, w)| (h - w).abs() <= 1), "{have:?} {want:?}");
        };
        near(of(Distribution::Normal), [-32768, -28307, -5677, 0, 27159]);
        assert_eq!(of(Distribution::Pareto), [-5461, -5460, -4393, -2622, 32767]);
        near(of(Distribution::ParetoNormal), [-12305, -11171, -4714, -1966, 31365]);
    }

    #[test]
    fn each_distribution_has_the_moments_of_its_words() {
        // Uniform: half the width over the root of 3. Pareto's tables are divided by the variance,
        // 3/4, rather than its root, and cut at four.
        let expected = [
            (Distribution::Uniform, 0.0, 1.0 / 3f64.sqrt()),
            (Distribution::Normal, 0.0, 1.0),
            (Distribution::Pareto, -0.0335, 0.8197),
            (Distribution::ParetoNormal, -0.0253, 0.8339),
        ];
        for (law, mean, deviation) in expected {
            let crossed = crossings(jitter(2 * MS, 0, law), 200_000, 0);
            let values: Vec<f64> =
                crossed.iter().map(|c| (c.arrives.0 as f64 / MS as f64 - 20.0) / 2.0).collect();
            let (m, d) = moments(&values);
            assert!((m - mean).abs() < 0.01 && (d - deviation).abs() < 0.01, "{law:?}: {m} {d}");
        }
    }

    #[test]
    fn without_overtaking_packets_keep_their_order_and_with_it_they_don_t() {
        let law = jitter(15 * MS, 0, Distribution::Normal);
        let sorted = |crossed: &[Crossing]| crossed.is_sorted_by_key(|c| c.arrives);
        assert!(!sorted(&crossings(law.clone(), 1000, MS)));
        assert!(law.reorders());
        let ordered = Impairments { overtake: false, ..law };
        assert!(sorted(&crossings(ordered.clone(), 1000, MS)));
        assert!(!ordered.reorders());
        let least = ordered.least_delay(20 * MS);
        assert!(crossings(ordered, 1000, 0).iter().all(|c| c.arrives.0 >= least.0));
    }

    #[test]
    fn correlated_delays_follow_the_one_before() {
        let correlation = |rho: f64| {
            let law = jitter(2 * MS, (rho * f64::from(u32::MAX)) as u32, Distribution::Uniform);
            let v: Vec<f64> =
                crossings(law, 100_000, 0).iter().map(|c| c.arrives.0 as f64).collect();
            let (mean, deviation) = moments(&v);
            let cov = v.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
            cov / v.len() as f64 / deviation.powi(2)
        };
        assert!(correlation(0.0).abs() < 0.02);
        assert!((correlation(0.5) - 0.5).abs() < 0.02, "{}", correlation(0.5));
    }

    #[test]
    fn of_a_gap_of_five_every_fifth_packet_takes_no_time() {
        let reorder = Some(Reordering { probability: 1 << 32, correlation: 0, gap: 5 });
        let crossed = crossings(Impairments { reorder, ..Impairments::default() }, 20, MS);
        let quick: Vec<usize> =
            (0..20).filter(|i| crossed[*i].arrives == Time(*i as u64 * MS)).collect();
        assert_eq!(quick, [4, 9, 14, 19]);
        let some = Some(Reordering { probability: 1 << 30, correlation: 0, gap: 1 });
        let crossed =
            crossings(Impairments { reorder: some, ..Impairments::default() }, 40_000, MS);
        let quick =
            crossed.iter().enumerate().filter(|(i, c)| c.arrives.0 == *i as u64 * MS).count();
        assert!((quick as f64 / 40_000.0 - 0.25).abs() < 0.01, "{quick}");
    }

    #[test]
    fn a_packet_that_is_duplicated_and_lost_arrives_once() {
        let duplicate = Some(Duplication { probability: 1 << 31, correlation: 0 });
        let law = Impairments { duplicate, ..Impairments::default() };
        let half = Loss::Random { probability: 0.5 };
        let mut wire = Propagation::new(Span(0), &half, &law, |name| Rng::new(3, name));
        let crossed: Vec<Crossing> =
            (0..40_000).map(|_| wire.cross(1500, &mut DsField::default(), Time::ZERO)).collect();
        let share = |of: fn(&Crossing) -> bool| {
            crossed.iter().filter(|c| of(c)).count() as f64 / crossed.len() as f64
        };
        assert!((share(|c| c.lost) - 0.25).abs() < 0.01);
        assert!((share(|c| c.again.is_some()) - 0.25).abs() < 0.01);
    }

    #[test]
    fn a_slot_delivers_earlier_packets_up_to_its_limits_of_packets_and_bytes() {
        let slot = Slots { min_ns: 5 * MS, max_ns: 5 * MS, packets: Some(2), bytes: None };
        let law = |slot| Impairments { slot: Some(slot), ..Impairments::default() };
        let arrivals = |slot, gap| -> Vec<u64> {
            crossings(law(slot), 6, gap).iter().map(|c| c.arrives.0 / MS).collect()
        };
        // After the delay of 20 ms; two packets to a slot.
        assert_eq!(arrivals(slot, 0), [25, 25, 30, 30, 35, 35]);
        let all = Slots { packets: None, ..slot };
        assert_eq!(arrivals(all, 2 * MS), [25, 25, 25, 31, 31, 31]);
        let bytes = Slots { packets: None, bytes: Some(1501), ..slot };
        assert_eq!(arrivals(bytes, 0), [25, 25, 30, 30, 35, 35]);
    }

    #[test]
    fn the_delay_is_that_of_the_step_in_which_the_last_bit_left() {
        let step = |at_ns, delay_ns| DelayStep { at_ns, delay_ns };
        let delay_steps = vec![step(0, 50 * MS), step(10 * MS, 5 * MS)];
        let law =
            Impairments { delay_steps, delay_period_ns: Some(20 * MS), ..Impairments::default() };
        let at = |law: &Impairments, times: [u64; 4]| {
            let mut wire = wire(law.clone());
            times.map(|t| wire.cross(100, &mut DsField::default(), Time(t * MS)).arrives.0 / MS)
        };
        let over = Impairments { overtake: true, ..law.clone() };
        assert_eq!(at(&over, [0, 9, 10, 20]), [50, 59, 15, 70]);
        assert_eq!(at(&law, [0, 9, 10, 20]), [50, 59, 59, 70], "nobody overtakes");
        assert_eq!(law.least_delay(0), Span(5 * MS));
    }
}
