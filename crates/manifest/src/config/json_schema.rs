//! The JSON Schema of a Config, for editors. It accepts every document that `parse` does; what has a grammar of its own,
//! such as CEL, durations and the settings of a rule, it takes for text or a map.

use pushback_objects::json_schema::{
    DIALECT, Property, any_map, any_text, choice, filled_list, flag, list, map, object, reference, text, whole_number,
};
use serde_json::{Value, json};

/// The schema of a document.
#[must_use]
pub fn json_schema() -> Value {
    let rules = |name| list(&reference(name));
    let properties = vec![
        ("apiVersion", "", choice(&["pushback.dev/v1alpha1", "kapp.k14s.io/v1alpha1"])),
        ("kind", "", choice(&["Config"])),
        ("metadata", "Ignored", any_map()),
        ("minimumRequiredVersion", "The oldest release that may read this document, without v, in quotes", version()),
        (
            "preflightRules",
            "The rules that run, with their settings; `default` stands for the default set",
            rules("preflightRule"),
        ),
        ("preflightWaivers", "Findings that are accepted, each with a reason", rules("preflightWaiver")),
        (
            "policyLoosening",
            "What happens if the manifests ask for less than the policy: warn (default) or error",
            choice(&["warn", "error"]),
        ),
        (
            "admissionExemptions",
            "Users who may make breaking changes past serve-admission",
            rules("admissionExemption"),
        ),
        (
            "conversionPlans",
            "Conversion plans, as in a ConversionPlan",
            list(&pushback_conversion::json_schema::entry()),
        ),
        ("changeGroupBindings", "Puts objects into groups for ordering", rules("changeGroupBinding")),
        ("changeRuleBindings", "Orders objects before or after groups", rules("changeRuleBinding")),
        ("rebaseRules", "Fields whose live value is kept, or that are computed", rules("rebaseRule")),
        ("diffMaskRules", "Fields whose values are not shown", rules("pathRule")),
        ("waitRules", "When objects are ready, or have failed", rules("waitRule")),
        ("additionalLabels", "Labels that every object gets", map(&label_value())),
        ("ownershipLabelRules", "Where else the app's label is set", rules("pathRule")),
        (
            "deleteStrategyRules",
            "Objects that stay on the cluster when they leave the app",
            rules("deleteStrategyRule"),
        ),
        ("fieldOwnershipRules", "Fields that no other manager may own", rules("fieldOwnershipRule")),
        ("labelScopingRules", "Selectors that get the app's label", rules("labelScopingRule")),
        ("templateRules", "ConfigMaps and Secrets that get a new name with each change", rules("templateRule")),
        (
            "diffAgainstLastAppliedFieldExclusionRules",
            "Fields that are left out of kapp's copy of the manifest",
            rules("pathRule"),
        ),
        ("diffAgainstExistingFieldExclusionRules", "Accepted as kapp's, without effect", rules("pathRule")),
    ];
    let mut schema = object(properties, &["apiVersion", "kind"]);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "Config of pushback".into();
    schema["$defs"] = definitions();
    schema
}

fn definitions() -> Value {
    let mut definitions = pushback_conversion::json_schema::definitions();
    for (name, schema) in [
        ("preflightRule", preflight_rule()),
        ("preflightWaiver", preflight_waiver()),
        ("admissionExemption", admission_exemption()),
        (
            "changeGroupBinding",
            with_matchers(vec![("name", "The group; {name}, {namespace}, {kind} are replaced", text())], &["name"]),
        ),
        (
            "changeRuleBinding",
            with_matchers(
                vec![
                    ("rules", "Such as `upsert after upserting GROUP`", filled_list(&text())),
                    ("ignoreIfCyclical", "true: the rule is left out where it would close a circle", flag()),
                ],
                &["rules"],
            ),
        ),
        ("rebaseRule", rebase_rule()),
        ("pathRule", with_matchers(vec![("path", "The field", reference("path"))], &["path"])),
        (
            "deleteStrategyRule",
            with_matchers(vec![("strategy", "orphan: the object stays", choice(&["orphan"]))], &["strategy"]),
        ),
        (
            "fieldOwnershipRule",
            with_matchers(
                vec![
                    ("path", "The field", reference("path")),
                    ("ownership", "exclusive: no other manager may own it", choice(&["exclusive"])),
                ],
                &["path", "ownership"],
            ),
        ),
        (
            "labelScopingRule",
            with_matchers(
                vec![
                    ("path", "The selector", reference("path")),
                    ("isDefault", "true: left out with --default-label-scoping-rules=false", flag()),
                ],
                &["path"],
            ),
        ),
        ("templateRule", template_rule()),
        ("waitRule", wait_rule()),
        ("matcher", matcher()),
        ("path", filled_list(&json!({"anyOf": [key(), index(), all_indexes()]}))),
        ("pathWithRegexes", filled_list(&json!({"anyOf": [key(), index(), all_indexes(), regex()]}))),
    ] {
        definitions[name] = schema;
    }
    definitions
}

fn version() -> Value {
    json!({"type": "string", "pattern": r"^\d+\.\d+\.\d+([-+].*)?$"})
}

fn label_value() -> Value {
    json!({"type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"})
}

/// A plain part of a path.
fn key() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn index() -> Value {
    object(vec![("index", "The element at this index", whole_number(0, None))], &["index"])
}

fn all_indexes() -> Value {
    object(vec![("allIndexes", "All elements", json!({"const": true}))], &["allIndexes"])
}

fn regex() -> Value {
    object(vec![("regex", "Keys that match", text())], &["regex"])
}

fn matchers() -> Value {
    filled_list(&reference("matcher"))
}

/// An entry for the objects that its matchers choose.
fn with_matchers(mut properties: Vec<Property>, required: &[&str]) -> Value {
    properties.push(("resourceMatchers", "The objects: any of these", matchers()));
    object(properties, &[required, &["resourceMatchers"]].concat())
}

fn preflight_rule() -> Value {
    let words = json!({"type": "array", "prefixItems": [text()], "items": any_text(), "minItems": 1});
    let command = object(
        vec![
            ("command", "The program and its arguments", words),
            ("timeout", "How long it may take, such as 30s", text()),
            ("memory", "Most memory in MiB; default: 1024", whole_number(1, Some(65_536))),
        ],
        &["command"],
    );
    let operations = choice(&["CREATE", "UPDATE", "DELETE"]);
    let properties = vec![
        ("name", "A rule that `pushback rules` lists, `default`, or the name of a rule defined here", text()),
        ("config", "Settings of the rule; `pushback rules NAME` lists them", json!({"type": ["object", "null"]})),
        ("description", "A line about a rule defined here", text()),
        ("cel", "What has to be true of object, oldObject, request, change, params", text()),
        ("message", "What a finding says", text()),
        ("messageExpression", "The same in CEL", text()),
        ("exec", "A program that judges the changes", command),
        ("params", "Values for the expressions or the program", any_map()),
        ("operations", "The changes that are judged; default: CREATE, UPDATE", filled_list(&operations)),
        ("resourceMatchers", "The objects that are judged: any of these", matchers()),
    ];
    let mut schema = object(properties, &["name"]);
    // What belongs to a rule of one's own needs its body.
    let is_own = json!({"anyOf": [{"required": ["cel"]}, {"required": ["exec"]}]});
    for key in ["description", "message", "messageExpression", "params", "operations", "resourceMatchers"] {
        schema["dependentSchemas"][key] = is_own.clone();
    }
    let of_cel = ["cel", "message", "messageExpression"].map(|key| json!({"required": [key]}));
    schema["dependentSchemas"]["exec"] = json!({"not": {"anyOf": of_cel}});
    schema
}

fn preflight_waiver() -> Value {
    let mut schema = object(
        vec![
            ("rule", "The rule of the finding", text()),
            ("check", "The check of the finding", text()),
            (
                "object",
                "`Kind name` or `Kind namespace/name`",
                json!({"type": "string", "pattern": r"^\s*\S+\s+[^\s/]+(/[^\s/]+)?\s*$"}),
            ),
            ("path", "The field of the finding", text()),
            ("fingerprint", "The finding; a report has it", text()),
            ("cause", "The cause of several findings; a report has it", text()),
            ("members", "The fingerprints of the findings of `cause`", filled_list(&text())),
            ("reason", "Why it is accepted", text()),
            ("owner", "Who answers for it", text()),
            (
                "expires",
                "The last day, such as \"2026-12-31\"",
                json!({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}),
            ),
            ("affected", "Most live objects that may be affected", whole_number(0, None)),
        ],
        &["rule", "reason"],
    );
    schema["dependentRequired"] = json!({"cause": ["members"], "members": ["cause"]});
    schema
}

fn admission_exemption() -> Value {
    let properties = vec![
        ("user", "A user, as the API server names it", text()),
        ("group", "A group of users", text()),
        ("reason", "Why it is exempt", text()),
    ];
    let mut schema = object(properties, &["reason"]);
    schema["oneOf"] = json!([{"required": ["user"]}, {"required": ["group"]}]);
    schema
}

fn rebase_rule() -> Value {
    let path = || reference("pathWithRegexes");
    let mut schema = with_matchers(
        vec![
            ("path", "The field", path()),
            ("paths", "Several fields", filled_list(&path())),
            ("type", "copy: the value of the first source that has one; remove", choice(&["copy", "remove"])),
            ("sources", "new: the manifest; existing: the live object", filled_list(&choice(&["new", "existing"]))),
            ("cel", "The value, in CEL", text()),
        ],
        &[],
    );
    schema["allOf"] = json!([
        {"oneOf": [{"required": ["path"]}, {"required": ["paths"]}]},
        {"oneOf": [
            {"required": ["cel"], "properties": {"type": false, "sources": false}},
            {"required": ["type", "sources"], "properties": {"type": {"const": "copy"}}},
            {"required": ["type"], "properties": {"type": {"const": "remove"}, "sources": false}},
        ]},
    ]);
    schema
}

fn template_rule() -> Value {
    let reference_to = with_matchers(
        vec![
            ("path", "Where the name is used", reference("path")),
            ("nameKey", "The key of the name there; default: name", text()),
        ],
        &["path"],
    );
    let affected = object(
        vec![("objectReferences", "Fields that name the object", filled_list(&reference_to))],
        &["objectReferences"],
    );
    with_matchers(vec![("affectedResources", "What refers to the object", affected)], &["affectedResources"])
}

fn wait_rule() -> Value {
    let mut condition = object(
        vec![
            ("type", "Type of the condition", text()),
            ("status", "Its status, in quotes: \"True\", \"False\" or \"Unknown\"", text()),
            ("failure", "true: the object has failed", flag()),
            ("success", "true: the object is ready", flag()),
            ("unblockChanges", "true: objects that wait for it go on", flag()),
            ("supportsObservedGeneration", "true: a condition of an older generation does not count", flag()),
            ("timeout", "How long the condition may last before it is a failure, such as 5m", text()),
        ],
        &["type", "status"],
    );
    let is_true = |key: &str| json!({"required": [key], "properties": {key: {"const": true}}});
    condition["anyOf"] =
        json!([is_true("failure"), is_true("success"), is_true("unblockChanges"), {"required": ["timeout"]}]);
    condition["not"] = json!({"allOf": [is_true("failure"), is_true("success")]});
    let outcomes = object(
        vec![
            ("failed", "true: the object has failed", text()),
            ("inProgress", "true: not ready yet", text()),
            ("current", "true: the object is ready", text()),
            ("unblock", "true: objects that wait for it go on", text()),
            ("message", "What is shown of its state", text()),
        ],
        &["current"],
    );
    let mut schema = with_matchers(
        vec![
            ("supportsObservedGeneration", "true: a status of an older generation does not count", flag()),
            ("conditionMatchers", "Conditions and what they mean", filled_list(&condition)),
            ("cel", "The state in CEL, of object", outcomes),
        ],
        &[],
    );
    schema["oneOf"] = json!([{"required": ["conditionMatchers"]}, {"required": ["cel"]}]);
    schema
}

fn matcher() -> Value {
    let nothing = || json!({"type": "object", "maxProperties": 0});
    let several = || object(vec![("matchers", "", matchers())], &["matchers"]);
    let mut schema = object(
        vec![
            ("allMatcher", "Every object", nothing()),
            ("anyMatcher", "Any of these", several()),
            ("andMatcher", "All of these", several()),
            ("notMatcher", "Not this", object(vec![("matcher", "", reference("matcher"))], &["matcher"])),
            (
                "apiGroupKindMatcher",
                "A kind, in any version",
                object(vec![("apiGroup", "Empty: the core group", any_text()), ("kind", "", text())], &["kind"]),
            ),
            (
                "apiVersionKindMatcher",
                "A kind in one version",
                object(vec![("apiVersion", "", text()), ("kind", "", text())], &["apiVersion", "kind"]),
            ),
            (
                "kindNamespaceNameMatcher",
                "One object",
                object(
                    vec![
                        ("kind", "", text()),
                        ("namespace", "Empty: cluster-scoped", any_text()),
                        ("name", "", text()),
                    ],
                    &["kind", "name"],
                ),
            ),
            (
                "hasAnnotationMatcher",
                "Objects with all these annotations",
                object(vec![("keys", "", filled_list(&text()))], &["keys"]),
            ),
            (
                "hasNamespaceMatcher",
                "Namespaced objects; in these namespaces, if any",
                object(vec![("names", "", list(&text()))], &[]),
            ),
            ("customResourceMatcher", "Custom resources", nothing()),
            (
                "emptyFieldMatcher",
                "Objects without this field",
                object(vec![("path", "", reference("path"))], &["path"]),
            ),
        ],
        &[],
    );
    schema["minProperties"] = 1.into();
    schema["maxProperties"] = 1.into();
    schema
}

#[cfg(test)]
pub(super) mod tests;
