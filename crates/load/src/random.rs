//! Numbers that look random and come again with the same seed: SplitMix64 (Steele, Lea and Flood, 2014). Not for secrets.

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Begins a sequence; `number` tells the sequences of one seed apart.
    pub fn new(seed: u64, number: u64) -> Random {
        let mut mixed = Random(seed);
        let mixed = Random(mixed.next().wrapping_add(number));
        Random(mixed.clone().next())
    }

    /// 64 bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is above 0. The bias is under `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// In (0, 1]: never 0, so that it has a logarithm.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        let mut random = Random(1_234_567);
        let got = [random.next(), random.next(), random.next()];
        assert_eq!(
            got,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn sequences_of_one_seed_differ() {
        let first = |seed, number| Random::new(seed, number).next();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(1, 1);
        for _ in 0..10_000 {
            assert!(random.below(3) < 3);
            let unit = random.unit();
            assert!(unit > 0.0 && unit <= 1.0);
        }
    }
}
