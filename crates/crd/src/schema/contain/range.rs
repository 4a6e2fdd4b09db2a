//! The allowed count of something: characters, items or fields.

use crate::schema::model::Window;

/// A count from `least` to `most`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub(super) least: i64,
    pub(super) most: Option<i64>,
}

impl Range {
    pub(super) fn narrow(&mut self, window: Window) {
        self.least = self.least.max(window.least.unwrap_or(0));
        if let Some(most) = window.most {
            self.most = Some(self.most.map_or(most, |known| known.min(most)));
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.most.is_some_and(|most| most < self.least)
    }

    pub(super) fn holds(self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }
}
