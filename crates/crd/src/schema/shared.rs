//! A per-thread cache of parsed values: one comparison asks for the same rules and patterns thousands of times. Parsing
//! is pure, so the cache affects only the time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

/// Number of cached values; the cache is cleared when it is full.
const MOST: usize = 2048;

/// Parsed values by their source.
#[derive(Debug)]
pub(super) struct Shared<K, V>(RefCell<HashMap<K, V>>);

impl<K: Eq + Hash, V: Clone> Shared<K, V> {
    pub(super) fn new() -> Self {
        Self(RefCell::new(HashMap::new()))
    }

    /// The parsed value of `key`, from the cache if possible.
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
