//! A limit on the steps of a computation. It counts work rather than time, so that the result is the same on every
//! machine; memory grows with the steps and is thereby limited too.

/// The remaining steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of this many steps. Ten million take about a second.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// No limit, for work that is bounded otherwise.
    pub(super) fn unlimited() -> Self {
        Self { left: u64::MAX }
    }

    /// The number of remaining steps.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Spends steps. If too few remain, spends all of them and returns false.
    pub fn spend(&mut self, steps: u64) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.left = 0;
                false
            }
        }
    }
}
