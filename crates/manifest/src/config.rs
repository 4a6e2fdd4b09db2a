//! Config documents: policy, ordering, rebase and wait rules; parsed strictly, with positions.

pub mod cel;
pub mod custom;
pub mod defaults;
pub mod json_schema;
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

use pushback_conversion::GivenPlan;
use pushback_crd::schema::cel::admission::Expression;
use pushback_objects::Position;
use pushback_objects::source::Document;
use pushback_preflight::custom::Definition;
use pushback_preflight::loosened::Loosening;
use serde_json::Value;

/// All Config documents of a run, merged: built-in defaults first, then the user's in input order.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `minimumRequiredVersion`, the highest of all documents.
    pub minimum_required_version: Option<String>,
    /// `preflightRules`; `None` if no document has the key.
    pub preflight_rules: Option<Vec<PreflightRule>>,
    /// Position of the first `preflightRules`.
    pub preflight_rules_at: Option<Position>,
    /// `policyLoosening`, the strictest of all documents, and its position.
    pub policy_loosening: Option<(Loosening, Position)>,
    /// `preflightWaivers`.
    pub preflight_waivers: Vec<PreflightWaiver>,
    /// `admissionExemptions`, which count in a file of `serve-admission --config` alone.
    pub admission_exemptions: Vec<AdmissionExemption>,
    /// `conversionPlans`.
    pub conversion_plans: Vec<GivenPlan>,
    /// `changeGroupBindings`.
    pub change_group_bindings: Vec<ChangeGroupBinding>,
    /// `changeRuleBindings`.
    pub change_rule_bindings: Vec<ChangeRuleBinding>,
    /// `rebaseRules`.
    pub rebase_rules: Vec<RebaseRule>,
    /// `diffMaskRules`.
    pub diff_mask_rules: Vec<PathRule>,
    /// Those of `diff_mask_rules` that rules and waivers are judged by: the built-in ones and those of a policy source.
    pub policy_mask_rules: Vec<PathRule>,
    /// The others, of the Config among the manifests: they change only what is displayed.
    pub release_mask_rules: Vec<PathRule>,
    /// `waitRules`; the first that matches wins.
    pub wait_rules: Vec<WaitRule>,
    /// `additionalLabels`, in document order.
    pub additional_labels: Vec<(String, String)>,
    /// `ownershipLabelRules`.
    pub ownership_label_rules: Vec<PathRule>,
    /// `deleteStrategyRules`: objects that are left where they are when they go from the app.
    pub orphaned: Vec<Matcher>,
    /// `fieldOwnershipRules`: fields that nobody else is to own.
    pub exclusive_fields: Vec<PathRule>,
    /// `labelScopingRules`.
    pub label_scoping_rules: Vec<LabelScopingRule>,
    /// `templateRules`.
    pub template_rules: Vec<TemplateRule>,
    /// `diffAgainstLastAppliedFieldExclusionRules`: only kapp's own notes depend on it.
    pub last_applied_exclusions: Vec<PathRule>,
}

impl Config {
    /// Joins two sets of rules, `defaults` first: lists are concatenated; a label set twice keeps its position and gets
    /// the later value.
    #[must_use]
    pub fn merge(mut defaults: Self, user: Self) -> Self {
        defaults.extend(user);
        defaults
    }

    /// The wait rule for an object: the first that matches.
    #[must_use]
    pub fn wait_rule(&self, object: &Value) -> Option<&WaitRule> {
        self.wait_rules.iter().find(|rule| matcher::matches_any(&rule.matchers, object))
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
        self.admission_exemptions.extend(later.admission_exemptions);
        self.conversion_plans.extend(later.conversion_plans);
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
        self.orphaned.extend(later.orphaned);
        self.exclusive_fields.extend(later.exclusive_fields);
        self.label_scoping_rules.extend(later.label_scoping_rules);
        self.template_rules.extend(later.template_rules);
        self.last_applied_exclusions.extend(later.last_applied_exclusions);
    }
}

/// One entry of `preflightRules`.
#[derive(Clone, Debug)]
pub struct PreflightRule {
    /// Name of the rule.
    pub name: String,
    /// `config` as written; an empty map if absent.
    pub config: Document,
    /// The rule, if the entry defines one, and the objects that it judges.
    pub custom: Option<(Definition, Vec<Matcher>)>,
    /// Position of the entry.
    pub position: Position,
}

/// One entry of `admissionExemptions`.
#[derive(Clone, Debug)]
pub struct AdmissionExemption {
    /// A user or a group of users.
    pub subject: ExemptSubject,
    /// Reason of the exemption.
    pub reason: String,
}

/// The subject of an exemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExemptSubject {
    /// Name of a user.
    User(String),
    /// Name of a group.
    Group(String),
}

/// One entry of `preflightWaivers`.
#[derive(Clone, Debug)]
pub struct PreflightWaiver {
    /// Name of the rule.
    pub rule: String,
    /// Name of the check; any if absent.
    pub check: Option<String>,
    /// `Kind name` or `Kind namespace/name`; any part may be `*`.
    pub object: Option<String>,
    /// Path of the field; any if absent.
    pub path: Option<String>,
    /// Fingerprint of the finding.
    pub fingerprint: Option<String>,
    /// Fingerprint of a cause.
    pub cause: Option<String>,
    /// Fingerprints of the cause's findings that are accepted.
    pub members: Vec<String>,
    /// Justification; never empty.
    pub reason: String,
    /// Person or team responsible for the waiver.
    pub owner: Option<String>,
    /// Last day on which the waiver holds, `2026-12-31`.
    pub expires: Option<String>,
    /// Maximum number of affected objects.
    pub affected: Option<u64>,
    /// Position of the entry.
    pub position: Position,
}

/// One entry of `changeGroupBindings`.
#[derive(Clone, Debug)]
pub struct ChangeGroupBinding {
    /// Group name, placeholders not yet filled in.
    pub name: String,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
    /// Position of the entry; `None` for built-in ones.
    pub position: Option<Position>,
}

/// One entry of `changeRuleBindings`.
#[derive(Clone, Debug)]
pub struct ChangeRuleBinding {
    /// `upsert after upserting group`, placeholders not yet filled in.
    pub rules: Vec<String>,
    /// Drop a rule that would close a cycle.
    pub ignore_if_cyclical: bool,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
    /// Position of the entry; `None` for built-in ones.
    pub position: Option<Position>,
}

/// One entry of `rebaseRules`.
#[derive(Clone, Debug)]
pub struct RebaseRule {
    /// Paths of the fields.
    pub paths: Vec<Path>,
    /// The action on these fields.
    pub action: RebaseAction,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
}

/// The action of a rebase rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebaseAction {
    /// Copies the value of the first source that has one.
    Copy(Vec<RebaseSource>),
    /// Removes the field.
    Remove,
    /// Sets the value that the expression gives: null removes the field, an optional without a value leaves it alone.
    Compute(Expression),
}

/// The source that a rebase rule copies from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebaseSource {
    /// The manifest.
    New,
    /// The live object.
    Existing,
}

/// A path, and the objects that it applies to.
#[derive(Clone, Debug)]
pub struct PathRule {
    /// Path of the field.
    pub path: Path,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
}

/// One entry of `labelScopingRules`.
#[derive(Clone, Debug)]
pub struct LabelScopingRule {
    /// Path of a selector map.
    pub path: Path,
    /// Whether `--default-label-scoping-rules=false` disables it.
    pub is_default: bool,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
}

/// One entry of `templateRules`: where objects refer to versioned ones by name.
#[derive(Clone, Debug)]
pub struct TemplateRule {
    /// Selects the versioned objects.
    pub matchers: Vec<Matcher>,
    /// References to them.
    pub references: Vec<ObjectReference>,
}

/// One entry of `objectReferences`.
#[derive(Clone, Debug)]
pub struct ObjectReference {
    /// Path of the map that has the name.
    pub path: Path,
    /// Key of the name in that map.
    pub name_key: String,
    /// Selects the objects that refer.
    pub matchers: Vec<Matcher>,
}

/// One entry of `waitRules`.
#[derive(Clone, Debug)]
pub struct WaitRule {
    /// First wait until `status.observedGeneration` has caught up.
    pub supports_observed_generation: bool,
    /// Expressions that decide instead of conditions.
    pub cel: Option<cel::Outcomes>,
    /// Conditions; failures are checked before successes.
    pub condition_matchers: Vec<ConditionMatcher>,
    /// Selects the objects.
    pub matchers: Vec<Matcher>,
}

/// One condition of a wait rule.
#[derive(Clone, Debug)]
pub struct ConditionMatcher {
    /// Type of the condition.
    pub type_: String,
    /// Status of the condition.
    pub status: String,
    /// Whether it means failure.
    pub failure: bool,
    /// Whether it means success.
    pub success: bool,
    /// Whether dependents may proceed while the object is still waited for.
    pub unblock_changes: bool,
    /// Whether the condition's own `observedGeneration` must have caught up.
    pub supports_observed_generation: bool,
    /// Fail once the condition has held for longer than this.
    pub timeout: Option<Duration>,
}

/// Selects the objects that a rule applies to. In a list, any matcher may match.
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

/// A path as written in Config.
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
    /// All map keys that match a regular expression, kept as text and checked when parsed.
    Regex(String),
}
