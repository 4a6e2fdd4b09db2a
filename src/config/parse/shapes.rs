//! Every key that a Config document may have, and the keys of kapp that are refused.
//! The example file is tested against this list, so a new key cannot stay undocumented.

use super::node::Shape;

const fn shape(keys: &'static [&'static str]) -> Shape {
    Shape { keys, later: &[] }
}

/// The document itself.
pub(super) static CONFIG: Shape = Shape {
    keys: &[
        "apiVersion",
        "kind",
        "metadata",
        "minimumRequiredVersion",
        "preflightRules",
        "preflightWaivers",
        "policyLoosening",
        "changeGroupBindings",
        "changeRuleBindings",
        "rebaseRules",
        "diffMaskRules",
        "waitRules",
        "additionalLabels",
        "ownershipLabelRules",
        "labelScopingRules",
    ],
    later: &[
        "templateRules",
        "diffAgainstLastAppliedFieldExclusionRules",
        "diffAgainstExistingFieldExclusionRules",
        "stripNameHashSuffixConfig",
    ],
};

/// An entry of `preflightRules`.
pub(super) static PREFLIGHT_RULE: Shape = shape(&["name", "config"]);

/// An entry of `preflightWaivers`.
pub(super) static PREFLIGHT_WAIVER: Shape =
    shape(&["rule", "check", "object", "path", "fingerprint", "reason", "owner", "expires", "affected"]);

/// An entry of `changeGroupBindings`.
pub(super) static CHANGE_GROUP_BINDING: Shape = shape(&["name", "resourceMatchers"]);

/// An entry of `changeRuleBindings`.
pub(super) static CHANGE_RULE_BINDING: Shape = shape(&["rules", "ignoreIfCyclical", "resourceMatchers"]);

/// An entry of `rebaseRules`.
pub(super) static REBASE_RULE: Shape =
    Shape { keys: &["path", "paths", "type", "sources", "resourceMatchers"], later: &["ytt"] };

/// An entry of `diffMaskRules` or `ownershipLabelRules`.
pub(super) static PATH_RULE: Shape = shape(&["path", "resourceMatchers"]);

/// An entry of `labelScopingRules`.
pub(super) static LABEL_SCOPING_RULE: Shape = shape(&["path", "isDefault", "resourceMatchers"]);

/// An entry of `waitRules`.
pub(super) static WAIT_RULE: Shape =
    Shape { keys: &["supportsObservedGeneration", "conditionMatchers", "resourceMatchers"], later: &["ytt"] };

/// An entry of `conditionMatchers`.
pub(super) static CONDITION_MATCHER: Shape =
    shape(&["type", "status", "failure", "success", "unblockChanges", "supportsObservedGeneration", "timeout"]);

/// An entry of `resourceMatchers`: exactly one of these.
pub(super) static MATCHER: Shape = shape(&[
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
]);

/// `anyMatcher` and `andMatcher`.
pub(super) static MATCHERS: Shape = shape(&["matchers"]);

/// `notMatcher`.
pub(super) static NOT_MATCHER: Shape = shape(&["matcher"]);

/// `apiGroupKindMatcher`.
pub(super) static API_GROUP_KIND: Shape = shape(&["apiGroup", "kind"]);

/// `apiVersionKindMatcher`.
pub(super) static API_VERSION_KIND: Shape = shape(&["apiVersion", "kind"]);

/// `kindNamespaceNameMatcher`.
pub(super) static KIND_NAMESPACE_NAME: Shape = shape(&["kind", "namespace", "name"]);

/// `hasAnnotationMatcher`.
pub(super) static HAS_ANNOTATION: Shape = shape(&["keys"]);

/// `hasNamespaceMatcher`.
pub(super) static HAS_NAMESPACE: Shape = shape(&["names"]);

/// `emptyFieldMatcher`.
pub(super) static EMPTY_FIELD: Shape = shape(&["path"]);

/// A part of a path that is not a plain key: exactly one of these.
pub(super) static PATH_PART: Shape = shape(&["index", "allIndexes", "regex"]);

/// All shapes with the key that leads to them, for the test of the example file.
#[cfg(test)]
pub(super) static ALL: &[&Shape] = &[
    &CONFIG,
    &PREFLIGHT_RULE,
    &PREFLIGHT_WAIVER,
    &CHANGE_GROUP_BINDING,
    &CHANGE_RULE_BINDING,
    &REBASE_RULE,
    &PATH_RULE,
    &LABEL_SCOPING_RULE,
    &WAIT_RULE,
    &CONDITION_MATCHER,
    &MATCHER,
    &MATCHERS,
    &NOT_MATCHER,
    &API_GROUP_KIND,
    &API_VERSION_KIND,
    &KIND_NAMESPACE_NAME,
    &HAS_ANNOTATION,
    &HAS_NAMESPACE,
    &EMPTY_FIELD,
    &PATH_PART,
];
