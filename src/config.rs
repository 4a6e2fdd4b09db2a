//! Config documents: policy, ordering, rebase and wait rules; parsed strictly, with positions.

pub mod defaults;
pub mod mask;
pub mod matcher;
pub mod ordering;
pub mod parse;
pub mod path;
pub mod rebase;
#[cfg(test)]
mod testing;
mod version;

use std::time::Duration;

use pushback_preflight::Position;
use pushback_preflight::loosened::Loosening;
use serde_json::Value;

/// All Config documents of a run, merged: built-in defaults first, then the user's in input order.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `minimumRequiredVersion`, the highest of all documents.
    pub minimum_required_version: Option<String>,
    /// `preflightRules`; `None` where no document has the key.
    pub preflight_rules: Option<Vec<PreflightRule>>,
    /// Where the first `preflightRules` stands.
    pub preflight_rules_at: Option<Position>,
    /// `policyLoosening`, the strictest of all documents, and where it stands.
    pub policy_loosening: Option<(Loosening, Position)>,
    /// `preflightWaivers`.
    pub preflight_waivers: Vec<PreflightWaiver>,
    /// `changeGroupBindings`.
    pub change_group_bindings: Vec<ChangeGroupBinding>,
    /// `changeRuleBindings`.
    pub change_rule_bindings: Vec<ChangeRuleBinding>,
    /// `rebaseRules`.
    pub rebase_rules: Vec<RebaseRule>,
    /// `diffMaskRules`.
    pub diff_mask_rules: Vec<PathRule>,
    /// `waitRules`; the first that matches wins.
    pub wait_rules: Vec<WaitRule>,
    /// `additionalLabels`, in document order.
    pub additional_labels: Vec<(String, String)>,
    /// `ownershipLabelRules`.
    pub ownership_label_rules: Vec<PathRule>,
    /// `labelScopingRules`.
    pub label_scoping_rules: Vec<LabelScopingRule>,
}

impl Config {
    /// Joins two sets of rules, `defaults` first: lists are concatenated, a label set twice keeps its place and takes
    /// the later value.
    #[must_use]
    pub fn merge(mut defaults: Self, user: Self) -> Self {
        defaults.extend(user);
        defaults
    }

    fn extend(&mut self, later: Self) {
        let minimum = self.minimum_required_version.take();
        self.minimum_required_version = version::higher(minimum, later.minimum_required_version);
        if let Some(rules) = later.preflight_rules {
            self.preflight_rules.get_or_insert_default().extend(rules);
        }
        self.preflight_rules_at = self.preflight_rules_at.take().or(later.preflight_rules_at);
        let stricter =
            |(word, _): &(Loosening, Position)| self.policy_loosening.as_ref().is_none_or(|(other, _)| word > other);
        if let Some(loosening) = later.policy_loosening.filter(stricter) {
            self.policy_loosening = Some(loosening);
        }
        self.preflight_waivers.extend(later.preflight_waivers);
        self.change_group_bindings.extend(later.change_group_bindings);
        self.change_rule_bindings.extend(later.change_rule_bindings);
        self.rebase_rules.extend(later.rebase_rules);
        self.diff_mask_rules.extend(later.diff_mask_rules);
        self.wait_rules.extend(later.wait_rules);
        for (key, value) in later.additional_labels {
            match self.additional_labels.iter_mut().find(|(known, _)| *known == key) {
                Some(label) => label.1 = value,
                None => self.additional_labels.push((key, value)),
            }
        }
        self.ownership_label_rules.extend(later.ownership_label_rules);
        self.label_scoping_rules.extend(later.label_scoping_rules);
    }
}

/// One entry of `preflightRules`.
#[derive(Clone, Debug)]
pub struct PreflightRule {
    /// Rule name.
    pub name: String,
    /// `config` as written; an empty map where absent.
    pub config: Value,
    /// Where the entry stands.
    pub position: Position,
    /// Places inside `config`, for errors about a setting: paths start at the entry (`config`, `mode`).
    pub places: EntryPlaces,
}

/// Finds places below one entry of a Config document.
#[derive(Clone, Debug, Default)]
pub struct EntryPlaces {
    /// The document's places.
    pub positions: std::sync::Arc<pushback_preflight::Positions>,
    /// The path of the entry in it.
    pub prefix: Vec<pushback_preflight::PathSegment>,
}

/// One entry of `preflightWaivers`.
#[derive(Clone, Debug)]
pub struct PreflightWaiver {
    /// Rule.
    pub rule: String,
    /// Check.
    pub check: Option<String>,
    /// `Kind name` or `Kind namespace/name`; `*` in any part.
    pub object: Option<String>,
    /// Field path.
    pub path: Option<String>,
    /// Fingerprint.
    pub fingerprint: Option<String>,
    /// Why; never empty.
    pub reason: String,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Last day that it holds, `2026-12-31`.
    pub expires: Option<String>,
    /// So many objects may be affected.
    pub affected: Option<u64>,
    /// Where the entry stands.
    pub position: Position,
}

/// `changeGroupBindings`.
#[derive(Clone, Debug)]
pub struct ChangeGroupBinding {
    /// Group name, placeholders not yet filled in.
    pub name: String,
    /// Which objects.
    pub matchers: Vec<Matcher>,
    /// Where the entry stands; `None` for built-in ones.
    pub position: Option<Position>,
}

/// `changeRuleBindings`.
#[derive(Clone, Debug)]
pub struct ChangeRuleBinding {
    /// `upsert after upserting group`, placeholders not yet filled in.
    pub rules: Vec<String>,
    /// A rule that would close a cycle is dropped.
    pub ignore_if_cyclical: bool,
    /// Which objects.
    pub matchers: Vec<Matcher>,
    /// Where the entry stands; `None` for built-in ones.
    pub position: Option<Position>,
}

/// `rebaseRules`.
#[derive(Clone, Debug)]
pub struct RebaseRule {
    /// Paths.
    pub paths: Vec<Path>,
    /// What is done there.
    pub action: RebaseAction,
    /// Which objects.
    pub matchers: Vec<Matcher>,
}

/// What a rebase rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseAction {
    /// Takes the value of the first source that has one.
    Copy(Vec<RebaseSource>),
    /// Leaves the field out.
    Remove,
}

/// Where a rebase rule copies from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebaseSource {
    /// The manifest.
    New,
    /// The live object.
    Existing,
}

/// A path and which objects it is for.
#[derive(Clone, Debug)]
pub struct PathRule {
    /// Path.
    pub path: Path,
    /// Which objects.
    pub matchers: Vec<Matcher>,
}

/// `labelScopingRules`.
#[derive(Clone, Debug)]
pub struct LabelScopingRule {
    /// Path of a selector map.
    pub path: Path,
    /// Switched off by `--default-label-scoping-rules=false`.
    pub is_default: bool,
    /// Which objects.
    pub matchers: Vec<Matcher>,
}

/// `waitRules`.
#[derive(Clone, Debug)]
pub struct WaitRule {
    /// Wait until `status.observedGeneration` has caught up first.
    pub supports_observed_generation: bool,
    /// Conditions; failures are looked at before successes.
    pub condition_matchers: Vec<ConditionMatcher>,
    /// Which objects.
    pub matchers: Vec<Matcher>,
}

/// One condition of a wait rule.
#[derive(Clone, Debug)]
pub struct ConditionMatcher {
    /// Condition type.
    pub type_: String,
    /// Condition status.
    pub status: String,
    /// It means failure.
    pub failure: bool,
    /// It means success.
    pub success: bool,
    /// Dependents may go on although the object itself is waited for.
    pub unblock_changes: bool,
    /// The condition's own `observedGeneration` must have caught up.
    pub supports_observed_generation: bool,
    /// Fails when the condition has held for longer.
    pub timeout: Option<Duration>,
}

/// Which objects a rule is for. A list of matchers means any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// `allMatcher`.
    All,
    /// `anyMatcher`.
    Any(Vec<Matcher>),
    /// `andMatcher`.
    And(Vec<Matcher>),
    /// `notMatcher`.
    Not(Box<Matcher>),
    /// `apiGroupKindMatcher`.
    ApiGroupKind { api_group: String, kind: String },
    /// `apiVersionKindMatcher`.
    ApiVersionKind { api_version: String, kind: String },
    /// `kindNamespaceNameMatcher`.
    KindNamespaceName { kind: String, namespace: String, name: String },
    /// `hasAnnotationMatcher`: all keys.
    HasAnnotation { keys: Vec<String> },
    /// `hasNamespaceMatcher`: any namespace, or one of these.
    HasNamespace { names: Vec<String> },
    /// `customResourceMatcher`.
    CustomResource,
    /// `emptyFieldMatcher`.
    EmptyField { path: Path },
}

/// A path as Config writes it.
pub type Path = Vec<PathPart>;

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// A map key.
    Key(String),
    /// An array element.
    Index(usize),
    /// All array elements.
    AllIndexes,
    /// All map keys that match a regular expression (kept as text; checked when parsed).
    Regex(String),
}
