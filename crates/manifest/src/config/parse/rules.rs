//! Parses the entries of every list of a Config document.

use pushback_crd::schema::cel::Gives;
use pushback_crd::schema::cel::admission::Expression;
use pushback_objects::bookkeeping::is_reserved_label;
use pushback_objects::reader::{Fields, Node, quote};
use pushback_objects::source::Document;
use pushback_preflight::custom::Definition;
use serde_json::Value;

use crate::config::cel::{Outcomes, gives, variables};
use crate::config::ordering::{check_group, parse_rule};
use crate::config::rebase;
use crate::config::{
    AdmissionExemption, ChangeGroupBinding, ChangeRuleBinding, ConditionMatcher, ExemptSubject, LabelScopingRule,
    Matcher, ObjectReference, Path, PathRule, PreflightRule, PreflightWaiver, RebaseAction, RebaseRule, RebaseSource,
    TemplateRule, WaitRule,
};

use super::matchers::{Regexes, path, resource_matchers, texts};
use super::scalars::{is_date, label_key_error, label_value_error};
use super::{shapes, ytt};

pub(super) fn preflight_rule(node: &Node<'_>) -> PreflightRule {
    let fields = node.fields(shapes::PREFLIGHT_RULE);
    let name = fields.required_text("name");
    let config = fields.optional("config").filter(|config| !config.value().is_null());
    let config = config.and_then(|config| config.map().cloned()).unwrap_or_default();
    let custom = Definition::of_entry(&fields);
    let matchers = match fields.optional("resourceMatchers") {
        Some(node) if custom.is_none() && !Definition::is_one(&fields) => {
            node.note("only a rule that is defined here has matchers", &[]);
            Vec::new()
        }
        Some(_) => resource_matchers(&fields),
        None => vec![Matcher::All],
    };
    PreflightRule {
        name,
        custom: custom.map(|definition| (definition, matchers)),
        config: Document { value: Value::Object(config), positions: fields.positions("config") },
        position: node.position(),
    }
}

pub(super) fn preflight_waiver(node: &Node<'_>) -> PreflightWaiver {
    let fields = node.fields(shapes::PREFLIGHT_WAIVER);
    let cause = fields.text("cause");
    // Without a list, a cause would cover what nobody has seen.
    let members = match cause {
        Some(_) => texts(&fields.filled_list("members", "fingerprint")),
        None => {
            if let Some(members) = fields.optional("members") {
                members.fail::<()>("`members` lists the findings of a `cause`, which is missing", &[]);
            }
            Vec::new()
        }
    };
    PreflightWaiver {
        rule: fields.required_text("rule"),
        check: fields.text("check"),
        object: fields.optional("object").and_then(|node| waived_object(&node)),
        path: fields.text("path"),
        fingerprint: fields.text("fingerprint"),
        cause,
        members,
        reason: fields.required_text("reason"),
        owner: fields.text("owner"),
        expires: fields.optional("expires").and_then(|node| day(&node)),
        affected: fields.optional("affected").and_then(|node| node.whole_number(0..=u64::MAX)),
        position: node.position(),
    }
}

pub(super) fn admission_exemption(node: &Node<'_>) -> Option<AdmissionExemption> {
    let fields = node.fields(shapes::ADMISSION_EXEMPTION);
    let reason = fields.required_text("reason");
    let subject = match (fields.text("user"), fields.text("group")) {
        (Some(user), None) => ExemptSubject::User(user),
        (None, Some(group)) => ExemptSubject::Group(group),
        _ => return node.fail("expected either `user` or `group`", &[]),
    };
    Some(AdmissionExemption { subject, reason })
}

/// `Kind name` or `Kind namespace/name`.
fn waived_object(node: &Node<'_>) -> Option<String> {
    let words: Vec<&str> = node.filled_text()?.split_whitespace().collect();
    match words.as_slice() {
        [_, name] if name.split('/').all(|part| !part.is_empty()) && name.split('/').count() <= 2 => {
            Some(words.join(" "))
        }
        _ => node.malformed("`Kind name` or `Kind namespace/name`", &[]),
    }
}

fn day(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if is_date(text) { Some(text.to_owned()) } else { node.malformed("a day such as 2026-12-31", &[]) }
}

pub(super) fn change_group_binding(node: &Node<'_>) -> ChangeGroupBinding {
    let fields = node.fields(shapes::CHANGE_GROUP_BINDING);
    let name = fields.required("name").and_then(|name| {
        let text = name.filled_text()?;
        check_group(text).map_or_else(|problem| name.fail(problem, &[]), |()| Some(text.to_owned()))
    });
    ChangeGroupBinding {
        name: name.unwrap_or_default(),
        matchers: resource_matchers(&fields),
        position: Some(node.position()),
    }
}

pub(super) fn change_rule_binding(node: &Node<'_>) -> ChangeRuleBinding {
    let fields = node.fields(shapes::CHANGE_RULE_BINDING);
    let rules = fields.filled_list("rules", "rule").into_iter().filter_map(|rule| {
        let text = rule.filled_text()?;
        parse_rule(text).map_or_else(|problem| rule.fail(problem, &[]), |_| Some(text.to_owned()))
    });
    ChangeRuleBinding {
        rules: rules.collect(),
        ignore_if_cyclical: fields.flag("ignoreIfCyclical"),
        matchers: resource_matchers(&fields),
        position: Some(node.position()),
    }
}

pub(super) fn rebase_rule(node: &Node<'_>) -> Option<RebaseRule> {
    let fields = node.any_fields();
    if refuse_ytt(&fields, shapes::REBASE_RULE, ytt::rebase_rule) {
        // What else is missing next to it does not matter.
        return None;
    }
    let paths = match (fields.optional("path"), fields.optional("paths")) {
        (Some(_), Some(paths)) => paths.fail("expected either `path` or `paths`, found both", &[]),
        (None, Some(paths)) => Some(paths.filled_list("path")),
        _ => fields.required_with("path", " (or `paths`)", &[]).map(|path| vec![path]),
    };
    let paths = paths.iter().flatten().map(|node| path(node, Regexes::Allowed)).collect();
    let action = rebase_action(&fields);
    let matchers = resource_matchers(&fields);
    Some(RebaseRule { paths, action: action?, matchers })
}

fn rebase_action(fields: &Fields<'_>) -> Option<RebaseAction> {
    if let Some(node) = fields.optional("cel") {
        for other in ["type", "sources"].into_iter().filter_map(|key| fields.optional(key)) {
            other.note("a rule with `cel` computes the value, and has neither `type` nor `sources`", &[]);
        }
        return expression(&node, rebase::VARIABLES, None).map(RebaseAction::Compute);
    }
    let copies = fields.required("type")?.choice(&[("copy", true), ("remove", false)])?;
    if !copies {
        return match fields.optional("sources") {
            Some(sources) => sources.fail("a rule of type remove has no sources", &[]),
            None => Some(RebaseAction::Remove),
        };
    }
    let words = [("new", RebaseSource::New), ("existing", RebaseSource::Existing)];
    let sources = fields.filled_list("sources", "source").into_iter().filter_map(|source| source.choice(&words));
    Some(RebaseAction::Copy(sources.collect()))
}

pub(super) fn path_rule(node: &Node<'_>) -> PathRule {
    let fields = node.fields(shapes::PATH_RULE);
    PathRule { path: required_path(&fields), matchers: resource_matchers(&fields) }
}

/// An entry of `fieldOwnershipRules`; its only ownership is `exclusive`.
pub(super) fn field_ownership_rule(node: &Node<'_>) -> PathRule {
    let fields = node.fields(shapes::FIELD_OWNERSHIP_RULE);
    if let Some(ownership) = fields.required("ownership") {
        let _ = ownership.choice(&[("exclusive", ())]);
    }
    PathRule { path: required_path(&fields), matchers: resource_matchers(&fields) }
}

/// The matchers of an entry of `deleteStrategyRules`.
pub(super) fn delete_strategy_rule(node: &Node<'_>) -> Vec<Matcher> {
    let fields = node.fields(shapes::DELETE_STRATEGY_RULE);
    if let Some(strategy) = fields.required("strategy") {
        let _ = strategy.choice(&[("orphan", ())]);
    }
    resource_matchers(&fields)
}

pub(super) fn label_scoping_rule(node: &Node<'_>) -> LabelScopingRule {
    let fields = node.fields(shapes::LABEL_SCOPING_RULE);
    LabelScopingRule {
        path: required_path(&fields),
        is_default: fields.flag("isDefault"),
        matchers: resource_matchers(&fields),
    }
}

pub(super) fn template_rule(node: &Node<'_>) -> TemplateRule {
    let fields = node.fields(shapes::TEMPLATE_RULE);
    let references = fields.required("affectedResources").map(|affected| {
        let affected = affected.fields(shapes::AFFECTED_RESOURCES);
        affected.filled_list("objectReferences", "object reference").iter().map(object_reference).collect()
    });
    TemplateRule { matchers: resource_matchers(&fields), references: references.unwrap_or_default() }
}

fn object_reference(node: &Node<'_>) -> ObjectReference {
    let fields = node.fields(shapes::OBJECT_REFERENCE);
    let name_key = fields.optional("nameKey").and_then(|node| node.filled_text().map(str::to_owned));
    ObjectReference {
        path: required_path(&fields),
        name_key: name_key.unwrap_or_else(|| "name".to_owned()),
        matchers: resource_matchers(&fields),
    }
}

fn required_path(fields: &Fields<'_>) -> Path {
    fields.required("path").map(|node| path(&node, Regexes::Refused)).unwrap_or_default()
}

pub(super) fn wait_rule(node: &Node<'_>) -> Option<WaitRule> {
    let fields = node.any_fields();
    if refuse_ytt(&fields, shapes::WAIT_RULE, ytt::wait_rule) {
        return None;
    }
    let cel = fields.optional("cel").map(|node| outcomes(&node));
    let conditions = match (&cel, fields.optional("conditionMatchers")) {
        (Some(_), Some(conditions)) => {
            conditions.note("expected either `conditionMatchers` or `cel`, found both", &[]);
            Vec::new()
        }
        (Some(_), None) => Vec::new(),
        (None, _) => fields.filled_list("conditionMatchers", "condition matcher"),
    };
    Some(WaitRule {
        cel,
        supports_observed_generation: fields.flag("supportsObservedGeneration"),
        condition_matchers: conditions.iter().map(condition_matcher).collect(),
        matchers: resource_matchers(&fields),
    })
}

/// Refuses unknown keys and a rule in ytt, with the CEL form of that rule. Returns whether there is one.
fn refuse_ytt(fields: &Fields<'_>, keys: shapes::Keys, in_cel: fn(&Value) -> String) -> bool {
    fields.allow(keys, shapes::RULE_LATER);
    let Some(node) = fields.optional("ytt") else { return false };
    node.note("rules in ytt are not run", &[&in_cel(node.value())]);
    true
}

fn outcomes(node: &Node<'_>) -> Outcomes {
    let fields = node.fields(shapes::OUTCOMES);
    let expression =
        |key| fields.optional(key).and_then(|node| expression(&node, Outcomes::VARIABLES, Some(gives(key))));
    let outcomes = Outcomes {
        failed: expression("failed"),
        in_progress: expression("inProgress"),
        current: expression("current"),
        unblock: expression("unblock"),
        message: expression("message"),
    };
    if node.map().is_some() && fields.optional("current").is_none() {
        node.note("missing key `current`; without it the object is never ready", &[]);
    }
    outcomes
}

fn expression(node: &Node<'_>, names: &'static [&'static str], gives: Option<Gives>) -> Option<Expression> {
    let text = node.filled_text()?;
    match Expression::compile(text, &variables(names), gives) {
        Ok(expression) => Some(expression),
        Err(error) => node.fail(error.to_string(), &[&format!("the variables are {}", names.join(", "))]),
    }
}

fn condition_matcher(node: &Node<'_>) -> ConditionMatcher {
    let fields = node.fields(shapes::CONDITION_MATCHER);
    let matcher = ConditionMatcher {
        type_: fields.required_text("type"),
        status: fields.required("status").and_then(|node| condition_status(&node)).unwrap_or_default().to_owned(),
        failure: fields.flag("failure"),
        success: fields.flag("success"),
        unblock_changes: fields.flag("unblockChanges"),
        supports_observed_generation: fields.flag("supportsObservedGeneration"),
        timeout: fields.optional("timeout").and_then(|node| node.positive_duration()),
    };
    // An invalid value has been reported, and does not mean nothing.
    let says = |key: &&str| fields.optional(key).is_some_and(|node| *node.value() != Value::Bool(false));
    if matcher.failure && matcher.success {
        node.note("a condition cannot mean both failure and success", &[]);
    } else if !["failure", "success", "unblockChanges", "timeout"].iter().any(says) {
        node.note("expected one of failure, success, unblockChanges or timeout; without one it means nothing", &[]);
    }
    matcher
}

/// YAML reads `True` as a boolean; kapp then waits for a status that no object has.
fn condition_status<'a>(node: &Node<'a>) -> Option<&'a str> {
    match node.value() {
        Value::Bool(flag) => {
            let word = if *flag { "True" } else { "False" };
            node.expected("a string such as \"True\"", &[&format!("write it in quotes: \"{word}\"")])
        }
        _ => node.filled_text(),
    }
}

/// `additionalLabels`.
pub(super) fn labels(node: &Node<'_>) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    for (key, node) in node.entries() {
        if let Some(problem) = label_key_error(key) {
            node.note(problem, &[]);
        }
        if is_reserved_label(key) {
            let hint = "remove it; an object of an app gets the labels that it needs when it is applied";
            node.note("this label is reserved: it says whose an object is", &[hint]);
        }
        if let Some(text) = node.text() {
            match label_value_error(text) {
                Some(problem) => node.note(format!("{problem}; found {}", quote(text)), &[]),
                None => labels.push((key.to_owned(), text.to_owned())),
            }
        }
    }
    labels
}
