//! Every key that a Config document may have, and the keys of kapp that are refused.
//! The example file is tested against this list, so a new key cannot stay undocumented.

/// The keys of a map.
pub(super) type Keys = &'static [&'static str];

/// The document itself.
pub(super) const CONFIG: Keys = &[
    "apiVersion",
    "kind",
    "metadata",
    "minimumRequiredVersion",
    "preflightRules",
    "preflightWaivers",
    "policyLoosening",
    "admissionExemptions",
    "conversionPlans",
    "changeGroupBindings",
    "changeRuleBindings",
    "rebaseRules",
    "diffMaskRules",
    "waitRules",
    "additionalLabels",
    "ownershipLabelRules",
    "deleteStrategyRules",
    "fieldOwnershipRules",
    "labelScopingRules",
    "templateRules",
    "diffAgainstLastAppliedFieldExclusionRules",
    "diffAgainstExistingFieldExclusionRules",
];

/// Keys of the document that say what is judged, and how.
pub(super) const POLICY: Keys = &["preflightRules", "preflightWaivers", "policyLoosening"];

/// Keys of kapp in a rule that are not supported.
pub(super) const RULE_LATER: Keys = &["ytt"];

/// An entry of `preflightRules`.
pub(super) const PREFLIGHT_RULE: Keys = &[
    "name",
    "config",
    "description",
    "cel",
    "message",
    "messageExpression",
    "exec",
    "params",
    "operations",
    "resourceMatchers",
];

/// An entry of `preflightWaivers`.
pub(super) const PREFLIGHT_WAIVER: Keys =
    &["rule", "check", "object", "path", "fingerprint", "cause", "members", "reason", "owner", "expires", "affected"];

/// An entry of `admissionExemptions`.
pub(super) const ADMISSION_EXEMPTION: Keys = &["user", "group", "reason"];

/// An entry of `changeGroupBindings`.
pub(super) const CHANGE_GROUP_BINDING: Keys = &["name", "resourceMatchers"];

/// An entry of `changeRuleBindings`.
pub(super) const CHANGE_RULE_BINDING: Keys = &["rules", "ignoreIfCyclical", "resourceMatchers"];

/// An entry of `rebaseRules`.
pub(super) const REBASE_RULE: Keys = &["path", "paths", "type", "sources", "cel", "resourceMatchers"];

/// An entry of `diffMaskRules` or `ownershipLabelRules`.
pub(super) const PATH_RULE: Keys = &["path", "resourceMatchers"];

/// An entry of `fieldOwnershipRules`.
pub(super) const FIELD_OWNERSHIP_RULE: Keys = &["path", "ownership", "resourceMatchers"];

/// An entry of `deleteStrategyRules`.
pub(super) const DELETE_STRATEGY_RULE: Keys = &["strategy", "resourceMatchers"];

/// An entry of `labelScopingRules`.
pub(super) const LABEL_SCOPING_RULE: Keys = &["path", "isDefault", "resourceMatchers"];

/// An entry of `templateRules`.
pub(super) const TEMPLATE_RULE: Keys = &["resourceMatchers", "affectedResources"];

/// `affectedResources` of a template rule.
pub(super) const AFFECTED_RESOURCES: Keys = &["objectReferences"];

/// An entry of `objectReferences`.
pub(super) const OBJECT_REFERENCE: Keys = &["path", "resourceMatchers", "nameKey"];

/// An entry of `waitRules`.
pub(super) const WAIT_RULE: Keys = &["supportsObservedGeneration", "conditionMatchers", "cel", "resourceMatchers"];

/// `cel` of a wait rule.
pub(super) const OUTCOMES: Keys = &["failed", "inProgress", "current", "unblock", "message"];

/// An entry of `conditionMatchers`.
pub(super) const CONDITION_MATCHER: Keys =
    &["type", "status", "failure", "success", "unblockChanges", "supportsObservedGeneration", "timeout"];

/// An entry of `resourceMatchers`: exactly one of these.
pub(super) const MATCHER: Keys = &[
    "allMatcher",
    "anyMatcher",
    "andMatcher",
    "notMatcher",
    "apiGroupKindMatcher",
    "apiVersionKindMatcher",
    "kindNamespaceNameMatcher",
    "hasAnnotationMatcher",
    "hasNamespaceMatcher",
    "customResourceMatcher",
    "emptyFieldMatcher",
];

/// `anyMatcher` and `andMatcher`.
pub(super) const MATCHERS: Keys = &["matchers"];

/// `notMatcher`.
pub(super) const NOT_MATCHER: Keys = &["matcher"];

/// `apiGroupKindMatcher`.
pub(super) const API_GROUP_KIND: Keys = &["apiGroup", "kind"];

/// `apiVersionKindMatcher`.
pub(super) const API_VERSION_KIND: Keys = &["apiVersion", "kind"];

/// `kindNamespaceNameMatcher`.
pub(super) const KIND_NAMESPACE_NAME: Keys = &["kind", "namespace", "name"];

/// `hasAnnotationMatcher`.
pub(super) const HAS_ANNOTATION: Keys = &["keys"];

/// `hasNamespaceMatcher`.
pub(super) const HAS_NAMESPACE: Keys = &["names"];

/// `emptyFieldMatcher`.
pub(super) const EMPTY_FIELD: Keys = &["path"];

/// A part of a path that is not a plain key: exactly one of these.
pub(super) const PATH_PART: Keys = &["index", "allIndexes", "regex"];

/// All supported keys, for the test of the example file.
#[cfg(test)]
pub(super) const ALL: &[Keys] = &[
    CONFIG,
    PREFLIGHT_RULE,
    PREFLIGHT_WAIVER,
    ADMISSION_EXEMPTION,
    CHANGE_GROUP_BINDING,
    CHANGE_RULE_BINDING,
    REBASE_RULE,
    PATH_RULE,
    DELETE_STRATEGY_RULE,
    FIELD_OWNERSHIP_RULE,
    LABEL_SCOPING_RULE,
    TEMPLATE_RULE,
    AFFECTED_RESOURCES,
    OBJECT_REFERENCE,
    WAIT_RULE,
    OUTCOMES,
    CONDITION_MATCHER,
    MATCHER,
    MATCHERS,
    NOT_MATCHER,
    API_GROUP_KIND,
    API_VERSION_KIND,
    KIND_NAMESPACE_NAME,
    HAS_ANNOTATION,
    HAS_NAMESPACE,
    EMPTY_FIELD,
    PATH_PART,
];
