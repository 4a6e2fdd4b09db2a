//! A number of steps that a question may take. It counts work, not time, so that the answer is the same on every
//! machine; memory grows with the steps taken and is limited by them too.

/// Steps that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of so many steps. Ten million take about a second.
    #[must_use]
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    /// For work that is bounded otherwise.
    pub(super) fn unlimited() -> Self {
        Self { left: u64::MAX }
    }

    /// The steps that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes steps off; false, and nothing is left, where there are not so many.
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
