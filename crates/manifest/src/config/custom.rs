//! The objects that a rule of a policy judges, by its `resourceMatchers`, and what of them is secret, by the
//! `diffMaskRules`.

use pushback_preflight::custom::Scope;
use serde_json::Value;

use super::Matcher;
use super::mask::{MaskNumbers, Masker};
use super::matcher::matches_any;

/// The scope of one rule.
#[derive(Clone, Debug)]
pub struct RuleScope {
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
    /// Finds what is secret.
    pub masker: Masker,
}

impl Scope for RuleScope {
    fn covers(&self, object: &Value) -> bool {
        matches_any(&self.matchers, object)
    }

    fn masked(&self, object: &Value) -> Option<Value> {
        if self.masker.masked_paths(object).is_empty() {
            return None;
        }
        let mut masked = object.clone();
        self.masker.mask(&mut masked, &mut MaskNumbers::default());
        Some(masked)
    }
}
