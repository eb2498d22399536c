//! Rng: one seeded random stream per component, so that a new flow does not change the draws of
//! another flow.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), its state filled by SplitMix64 from
//! the run's seed and an FNV-1a hash of the component's name. Both are fixed here rather than taken
//! from a crate because the stream is part of every result: a dependency's new version must not
//! change a Run.

/// A random stream owned by one component.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of the component `name` in the run with this `seed`.
    pub fn new(seed: u64, name: &str) -> Rng {
        let mut x = Rng::key(seed, name);
        Rng { state: std::array::from_fn(|_| splitmix64(&mut x)) }
    }

    /// The key that its stream depends on. The card of the kernel's guest (simnic) fills its state
    /// from the key in the same way, so that the same packets are lost.
    pub fn key(seed: u64, name: &str) -> u64 {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100_0000_01b3));
        seed ^ hash
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A real number in [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A whole number in [0, bound), almost without bias (multiply-shift: off by at most bound /
    /// 2^64).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True with the given probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// A standard normal number (Box and Muller; the second of the pair is discarded to keep
    /// streams simple).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

fn splitmix64(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_xoshiro256_plus_plus() {
        // The reference implementation's first outputs from the state {1, 2, 3, 4}.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn streams_of_different_names_differ_and_repeat() {
        let draw = |seed, name| Rng::new(seed, name).next_u64();
        assert_eq!(draw(1, "red"), draw(1, "red"));
        assert_ne!(draw(1, "red"), draw(1, "loss"));
        assert_ne!(draw(1, "red"), draw(2, "red"));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = Rng::new(7, "moments");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / n as f64;
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.003);
        assert!((mean(&mut || rng.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!(mean(&mut || rng.normal()).abs() < 0.01);
    }
}
