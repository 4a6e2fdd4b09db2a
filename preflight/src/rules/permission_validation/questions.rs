//! The known answers about the user's permissions, and the questions still open.
//! Open questions are collected, so that the rule asks all of them in one round.

use std::collections::BTreeSet;

use pushback_objects::finding::Finding;
use pushback_objects::object::ObjectRef;

use crate::facts::{AccessRule, Answer, Facts, Need, Needs};
use crate::rule::{Checked, Judgement};

/// One request of the user. `resource` may be `pods/log`; `name` is empty for all objects, `namespace` for
/// cluster-wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access<'a> {
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// What is known about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Yes,
    No,
    /// The review failed; the judgement says so.
    Unable,
    /// The review is requested; the answer arrives in the next round.
    Later,
}

impl<'a> Access<'a> {
    /// Everything everywhere: whoever may do this may do anything.
    pub(super) fn everything() -> Access<'static> {
        Access { verb: "*", group: "*", resource: "*", namespace: "", name: "" }
    }

    pub(super) fn named(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    pub(super) fn need(self) -> Need {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        Need::Access {
            verb: self.verb.to_owned(),
            group: self.group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
        }
    }
}

/// The need for all rules in a namespace.
pub(super) fn rules_in(namespace: &str) -> Need {
    Need::AccessRules { namespace: namespace.to_owned() }
}

/// Available answers and open questions.
#[derive(Debug)]
pub(super) struct Questions<'f> {
    facts: &'f Facts,
    missing: Needs,
    unable: BTreeSet<String>,
}

impl<'f> Questions<'f> {
    pub(super) fn new(facts: &'f Facts) -> Self {
        Self { facts, missing: Needs::new(), unable: BTreeSet::new() }
    }

    /// The judgement, or the open questions if there are any.
    pub(super) fn close(self, findings: Vec<Finding>) -> Checked {
        if self.missing.is_empty() {
            Checked::Done(Judgement { findings, unable: self.unable.into_iter().collect() })
        } else {
            Checked::More(self.missing)
        }
    }

    pub(super) fn unable(&mut self, reason: String) {
        self.unable.insert(reason);
    }

    /// Asks for an access review.
    pub(super) fn ask(&mut self, access: &Access<'_>) -> Reply {
        match self.answer(access.need()) {
            None => Reply::Later,
            Some(Answer::Allowed { allowed: true, .. }) => Reply::Yes,
            Some(Answer::Allowed { allowed: false, .. }) => Reply::No,
            Some(answer) => {
                let Access { verb, resource, .. } = access;
                self.unable(format!("whether \"{verb}\" {resource} is permitted: {}", reason(answer)));
                Reply::Unable
            }
        }
    }

    /// A live object: `Ok(None)` if it does not exist, `Err` while it is unknown.
    pub(super) fn object(&mut self, object: ObjectRef) -> Result<Option<&'f serde_json::Value>, Reply> {
        let title = object.to_string();
        match self.answer(Need::Object { object }) {
            None => Err(Reply::Later),
            Some(Answer::Object { object }) => Ok(object.as_deref()),
            Some(answer) => {
                self.unable(format!("{title}: {}", reason(answer)));
                Err(Reply::Unable)
            }
        }
    }

    fn answer(&mut self, need: Need) -> Option<&'f Answer> {
        let answer = self.facts.answers.get(&need);
        if answer.is_none() {
            self.missing.insert(need);
        }
        answer
    }

    /// Whether the rules of the namespace grant the request. `false` proves nothing if they are incomplete.
    pub(super) fn granted_in_namespace(&self, access: &Access<'_>) -> bool {
        !access.namespace.is_empty()
            && self.rules(access.namespace).is_some_and(|(rules, _)| rules.iter().any(|rule| grants(rule, access)))
    }

    /// Returns true if the server lists all rules of the user in a namespace.
    pub(super) fn are_rules_complete(&self, namespace: &str) -> bool {
        self.rules(namespace).is_some_and(|(_, complete)| complete)
    }

    /// Like [`Self::ask`], but trusts a complete list of rules and so asks less. Only for permissions from RBAC, as the
    /// checks behind `escalate` and `bind` use them.
    pub(super) fn hold(&mut self, access: &Access<'_>) -> Reply {
        if self.granted_in_namespace(access) {
            return Reply::Yes;
        }
        let known = if access.namespace.is_empty() {
            // Cluster-wide permissions are in every namespace's list.
            self.reviews().find(|(_, complete)| *complete)
        } else {
            self.rules(access.namespace).filter(|(_, complete)| *complete)
        };
        match known {
            Some((rules, _)) if !rules.iter().any(|rule| grants(rule, access)) => Reply::No,
            _ => self.ask(access),
        }
    }

    /// Whether the permission may be granted for single names only.
    pub(super) fn names_may_matter(&self, access: &Access<'_>) -> bool {
        let by_name = |rules: &[AccessRule]| {
            rules.iter().any(|rule| !rule.resource_names.is_empty() && grants_kind(rule, access))
        };
        let known = if access.namespace.is_empty() {
            self.reviews().find(|(_, complete)| *complete)
        } else {
            self.rules(access.namespace).filter(|(_, complete)| *complete)
        };
        known.is_none_or(|(rules, _)| by_name(rules))
    }

    fn rules(&self, namespace: &str) -> Option<(&'f [AccessRule], bool)> {
        match self.facts.answers.get(&rules_in(namespace))? {
            Answer::AccessRules { rules, incomplete } => Some((rules, !incomplete)),
            _ => None,
        }
    }

    fn reviews(&self) -> impl Iterator<Item = (&'f [AccessRule], bool)> {
        self.facts.answers.values().filter_map(|answer| match answer {
            Answer::AccessRules { rules, incomplete } => Some((rules.as_slice(), !incomplete)),
            _ => None,
        })
    }
}

fn reason(answer: &Answer) -> &str {
    match answer {
        Answer::Unable { reason } => reason,
        _ => "the answer does not fit the question",
    }
}

/// Whether a rule grants the request, as RBAC decides (`pkg/registry/rbac/validation/policy_comparator.go`): a
/// requested
/// `*` is granted only by a `*`, and a rule with names applies only to these names.
fn grants(rule: &AccessRule, access: &Access<'_>) -> bool {
    let named = rule.resource_names.is_empty() || rule.resource_names.iter().any(|name| name == access.name);
    named && grants_kind(rule, access)
}

fn grants_kind(rule: &AccessRule, access: &Access<'_>) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
    let any_with_subresource = access.resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
    has(&rule.verbs, access.verb)
        && has(&rule.api_groups, access.group)
        && (has(&rule.resources, access.resource)
            || any_with_subresource.is_some_and(|pattern| rule.resources.contains(&pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> AccessRule {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        AccessRule { verbs: own(verbs), api_groups: own(groups), resources: own(resources), resource_names: own(names) }
    }

    fn access<'a>(verb: &'a str, group: &'a str, resource: &'a str, name: &'a str) -> Access<'a> {
        Access { verb, group, resource, namespace: "shop", name }
    }

    #[test]
    fn a_rule_grants_what_rbac_would() {
        let pods = rule(&["get", "create"], &[""], &["pods", "*/scale"], &[]);
        assert!(grants(&pods, &access("get", "", "pods", "")));
        assert!(grants(&pods, &access("get", "", "pods", "any")));
        assert!(grants(&pods, &access("get", "", "replicationcontrollers/scale", "")));
        assert!(!grants(&pods, &access("get", "", "pods/log", "")));
        assert!(!grants(&pods, &access("delete", "", "pods", "")));
        assert!(!grants(&pods, &access("get", "apps", "pods", "")));
        assert!(!grants(&pods, &access("*", "", "pods", "")), "all verbs are more than some");
        let everything = rule(&["*"], &["*"], &["*"], &[]);
        assert!(grants(&everything, &access("*", "*", "*", "")));
        assert!(grants(&everything, &access("get", "", "pods/log", "")));
    }

    #[test]
    fn a_rule_with_names_grants_these_names_only() {
        let one = rule(&["get"], &[""], &["secrets"], &["db"]);
        assert!(grants(&one, &access("get", "", "secrets", "db")));
        assert!(!grants(&one, &access("get", "", "secrets", "tls")));
        assert!(!grants(&one, &access("get", "", "secrets", "")));
    }
}
