//! Parses the entries of every list of a Config document.

use pushback_preflight::bookkeeping::is_reserved_label;
use serde_json::{Map, Value};

use crate::config::ordering::{check_group, parse_rule};
use crate::config::{
    ChangeGroupBinding, ChangeRuleBinding, ConditionMatcher, EntryPlaces, LabelScopingRule, Path, PathRule,
    PreflightRule, PreflightWaiver, RebaseAction, RebaseRule, RebaseSource, WaitRule,
};

use super::matchers::{Regexes, path, resource_matchers};
use super::node::{Fields, Node, describe, quote};
use super::scalars::{is_date, label_key_error, label_value_error, unsigned_duration};
use super::shapes;

pub(super) fn preflight_rule(node: &Node<'_>) -> Option<PreflightRule> {
    let fields = node.fields(&shapes::PREFLIGHT_RULE)?;
    let name = fields.required("name").and_then(|name| name.filled_text());
    let config = match fields.optional("config") {
        Some(config) if !config.value().is_null() => config.map().cloned(),
        _ => Some(Map::new()),
    };
    Some(PreflightRule {
        name: name?.to_owned(),
        config: Value::Object(config?),
        position: node.position(),
        places: EntryPlaces { positions: node.document().positions().clone(), prefix: node.path().to_vec() },
    })
}

pub(super) fn preflight_waiver(node: &Node<'_>) -> Option<PreflightWaiver> {
    let fields = node.fields(&shapes::PREFLIGHT_WAIVER)?;
    let rule = fields.required("rule").and_then(|rule| rule.filled_text());
    let reason = fields.required("reason").and_then(|reason| reason.filled_text());
    let check = fields.filled_text("check");
    let object = waived_object(&fields);
    let path = fields.filled_text("path");
    let fingerprint = fields.filled_text("fingerprint");
    let owner = fields.filled_text("owner");
    let expires = expiry(&fields);
    let affected = affected(&fields);
    Some(PreflightWaiver {
        rule: rule?.to_owned(),
        check: check?,
        object: object?,
        path: path?,
        fingerprint: fingerprint?,
        reason: reason?.to_owned(),
        owner: owner?,
        expires: expires?,
        affected: affected?,
        position: node.position(),
    })
}

/// `Kind name` or `Kind namespace/name`.
fn waived_object(fields: &Fields<'_>) -> Option<Option<String>> {
    let Some(node) = fields.optional("object") else { return Some(None) };
    let text = node.filled_text()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let well_formed = match words.as_slice() {
        [_, name] => name.split('/').all(|part| !part.is_empty()) && name.split('/').count() <= 2,
        _ => false,
    };
    if !well_formed {
        return node.fail(format!("expected `Kind name` or `Kind namespace/name`, found {}", quote(text)), &[]);
    }
    Some(Some(words.join(" ")))
}

fn expiry(fields: &Fields<'_>) -> Option<Option<String>> {
    let Some(node) = fields.optional("expires") else { return Some(None) };
    let text = node.text()?;
    if !is_date(text) {
        return node.fail(format!("expected a day such as 2026-12-31, found {}", quote(text)), &[]);
    }
    Some(Some(text.to_owned()))
}

fn affected(fields: &Fields<'_>) -> Option<Option<u64>> {
    let Some(node) = fields.optional("affected") else { return Some(None) };
    match node.value().as_u64() {
        Some(count) => Some(Some(count)),
        None => node.fail(format!("expected a number of objects, found {}", describe(node.value())), &[]),
    }
}

pub(super) fn change_group_binding(node: &Node<'_>) -> Option<ChangeGroupBinding> {
    let fields = node.fields(&shapes::CHANGE_GROUP_BINDING)?;
    let name = fields.required("name").and_then(|name| {
        let text = name.filled_text()?;
        check_group(text).map_or_else(|problem| name.fail(problem, &[]), |()| Some(text.to_owned()))
    });
    let matchers = resource_matchers(&fields);
    Some(ChangeGroupBinding { name: name?, matchers: matchers?, position: Some(node.position()) })
}

pub(super) fn change_rule_binding(node: &Node<'_>) -> Option<ChangeRuleBinding> {
    let fields = node.fields(&shapes::CHANGE_RULE_BINDING)?;
    let rules = fields.required("rules").and_then(|rules| rules.filled_list("rule")).and_then(|rules| {
        let read: Vec<Option<String>> = rules
            .iter()
            .map(|rule| {
                let text = rule.filled_text()?;
                parse_rule(text).map_or_else(|problem| rule.fail(problem, &[]), |_| Some(text.to_owned()))
            })
            .collect();
        read.into_iter().collect::<Option<Vec<String>>>()
    });
    let ignore_if_cyclical = fields.flag("ignoreIfCyclical");
    let matchers = resource_matchers(&fields);
    Some(ChangeRuleBinding {
        rules: rules?,
        ignore_if_cyclical: ignore_if_cyclical?,
        matchers: matchers?,
        position: Some(node.position()),
    })
}

pub(super) fn rebase_rule(node: &Node<'_>) -> Option<RebaseRule> {
    let fields = node.fields(&shapes::REBASE_RULE)?;
    if node.map()?.contains_key("ytt") {
        // Already refused; what else is missing next to it does not matter.
        return None;
    }
    let paths = match (fields.optional("path"), fields.optional("paths")) {
        (Some(node), None) => path(&node, Regexes::Allowed).map(|path| vec![path]),
        (None, Some(node)) => node.filled_list("path").and_then(|nodes| {
            let read: Vec<Option<Path>> = nodes.iter().map(|node| path(node, Regexes::Allowed)).collect();
            read.into_iter().collect()
        }),
        (Some(_), Some(paths)) => paths.fail("expected either `path` or `paths`, found both", &[]),
        (None, None) => node.fail("missing key `path` (or `paths`)", &[]),
    };
    let action = rebase_action(&fields);
    let matchers = resource_matchers(&fields);
    Some(RebaseRule { paths: paths?, action: action?, matchers: matchers? })
}

fn rebase_action(fields: &Fields<'_>) -> Option<RebaseAction> {
    let copies = fields.required("type")?.choice(&[("copy", true), ("remove", false)])?;
    if !copies {
        return match fields.optional("sources") {
            Some(sources) => sources.fail("a rule of type remove has no sources", &[]),
            None => Some(RebaseAction::Remove),
        };
    }
    let words = [("new", RebaseSource::New), ("existing", RebaseSource::Existing)];
    let sources = fields.required("sources")?.filled_list("source")?;
    let read: Vec<Option<RebaseSource>> = sources.iter().map(|source| source.choice(&words)).collect();
    read.into_iter().collect::<Option<Vec<RebaseSource>>>().map(RebaseAction::Copy)
}

pub(super) fn path_rule(node: &Node<'_>) -> Option<PathRule> {
    let fields = node.fields(&shapes::PATH_RULE)?;
    let path = fields.required("path").and_then(|node| path(&node, Regexes::Refused));
    let matchers = resource_matchers(&fields);
    Some(PathRule { path: path?, matchers: matchers? })
}

pub(super) fn label_scoping_rule(node: &Node<'_>) -> Option<LabelScopingRule> {
    let fields = node.fields(&shapes::LABEL_SCOPING_RULE)?;
    let path = fields.required("path").and_then(|node| path(&node, Regexes::Refused));
    let is_default = fields.flag("isDefault");
    let matchers = resource_matchers(&fields);
    Some(LabelScopingRule { path: path?, is_default: is_default?, matchers: matchers? })
}

pub(super) fn wait_rule(node: &Node<'_>) -> Option<WaitRule> {
    let fields = node.fields(&shapes::WAIT_RULE)?;
    if node.map()?.contains_key("ytt") {
        return None;
    }
    let supports_observed_generation = fields.flag("supportsObservedGeneration");
    let condition_matchers = fields.required("conditionMatchers").and_then(|conditions| {
        let read: Vec<Option<ConditionMatcher>> =
            conditions.filled_list("condition matcher")?.iter().map(condition_matcher).collect();
        read.into_iter().collect()
    });
    let matchers = resource_matchers(&fields);
    Some(WaitRule {
        supports_observed_generation: supports_observed_generation?,
        condition_matchers: condition_matchers?,
        matchers: matchers?,
    })
}

fn condition_matcher(node: &Node<'_>) -> Option<ConditionMatcher> {
    let fields = node.fields(&shapes::CONDITION_MATCHER)?;
    let type_ = fields.required("type").and_then(|node| node.filled_text());
    let status = fields.required("status").and_then(|node| condition_status(&node));
    let (failure, success) = (fields.flag("failure"), fields.flag("success"));
    let unblock_changes = fields.flag("unblockChanges");
    let supports_observed_generation = fields.flag("supportsObservedGeneration");
    let timeout = match fields.optional("timeout") {
        None => Some(None),
        Some(node) => node.text().and_then(|text| match unsigned_duration(text) {
            Some(duration) if !duration.is_zero() => Some(Some(duration)),
            _ => node.fail(format!("expected a duration such as 90s, 5m or 1h30m, found {}", quote(text)), &[]),
        }),
    };
    let matcher = ConditionMatcher {
        type_: type_?.to_owned(),
        status: status?.to_owned(),
        failure: failure?,
        success: success?,
        unblock_changes: unblock_changes?,
        supports_observed_generation: supports_observed_generation?,
        timeout: timeout?,
    };
    if matcher.failure && matcher.success {
        return node.fail("a condition cannot mean both failure and success", &[]);
    }
    if !matcher.failure && !matcher.success && !matcher.unblock_changes && matcher.timeout.is_none() {
        return node
            .fail("expected one of failure, success, unblockChanges or timeout; without one it means nothing", &[]);
    }
    Some(matcher)
}

/// YAML reads `True` as a boolean; kapp then waits for a status that no object has.
fn condition_status<'a>(node: &Node<'a>) -> Option<&'a str> {
    match node.value() {
        Value::Bool(flag) => {
            let word = if *flag { "True" } else { "False" };
            node.fail(
                format!("expected a string such as \"True\", found {flag}"),
                &[&format!("write it in quotes: \"{word}\"")],
            )
        }
        _ => node.filled_text(),
    }
}

/// `additionalLabels`.
pub(super) fn labels(node: &Node<'_>) -> Option<Vec<(String, String)>> {
    let map = node.map()?;
    let mut labels = Vec::with_capacity(map.len());
    for (key, value) in map {
        let node = node.child(key.as_str(), value);
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
                None => labels.push((key.clone(), text.to_owned())),
            }
        }
    }
    Some(labels)
}
