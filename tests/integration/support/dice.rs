//! Numbers that look random and are the same in every run.

/// A generator (splitmix64); its seed is its first value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns a number below `sides`.
    pub(crate) fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Returns true once in `sides` throws, on average.
    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.throw(sides) == 0
    }

    /// Returns a place in a list of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.throw(length as u64)).unwrap_or_default()
    }
}
