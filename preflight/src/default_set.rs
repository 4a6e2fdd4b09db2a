//! The default set of rules, and what a list of rules leaves out of it.

use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// Whether there is a default set of rules, which `default` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultSet {
    /// There is a default set.
    #[default]
    Exists,
    /// There is none, as in kapp.
    Absent,
}

/// The rules of the default set that a list of rules leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// The list: `preflightRules` or `--preflight`.
    pub list: String,
    /// Names of the rules.
    pub rules: Vec<String>,
}

impl LeftOut {
    /// Compares the running rules with the default set; `None` if no default rule is missing.
    pub(crate) fn find(all: &[&'static dyn Rule], running: &[&str], list: &str) -> Option<Self> {
        let metas = all.iter().map(|rule| rule.meta());
        let missing = metas.filter(|meta| meta.default && !running.contains(&meta.name));
        let rules: Vec<String> = missing.map(|meta| meta.name.to_owned()).collect();
        (!rules.is_empty()).then(|| Self { list: list.to_owned(), rules })
    }
}
