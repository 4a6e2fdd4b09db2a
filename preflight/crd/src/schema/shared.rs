//! What was read once and is asked for again and again, kept for the thread: one comparison asks the same rules and
//! patterns thousands of times. Reading is pure, so that nothing but time depends on what is kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

/// Readings that are kept; beyond, all are let go of.
const MOST: usize = 2048;

/// Readings by what was read.
#[derive(Debug)]
pub(super) struct Shared<K, V>(RefCell<HashMap<K, V>>);

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    pub(super) fn new() -> Self {
        Self(RefCell::new(HashMap::new()))
    }

    /// The reading of `key`.
    pub(super) fn get(&self, key: K, read: impl FnOnce(&K) -> V) -> V {
        if let Some(known) = self.0.borrow().get(&key) {
            return known.clone();
        }
        let value = read(&key);
        let mut kept = self.0.borrow_mut();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(key, value.clone());
        value
    }
}
