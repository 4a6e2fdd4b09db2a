//! Permissions that one Role or ClusterRole grants and another does not, rule by rule as the authorizer reads them.

use std::collections::BTreeSet;

use pushback_objects::object::ObjectExt;
use serde_json::Value;

/// Maximum number of single permissions of a role, and of steps to compare them.
const MAX_PERMISSIONS: usize = 5_000;
const MAX_STEPS: usize = 2_000_000;
/// Maximum number of permissions in a message.
const SHOWN: usize = 3;

/// Permissions that only one of two roles grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Surplus {
    /// Sorted, in the form `get pods`, `update deployments.apps`.
    pub(super) permissions: BTreeSet<String>,
    /// Whether there were too many permissions to compare them all.
    is_cut: bool,
}

impl Surplus {
    /// Whether one of them is every verb on every resource.
    pub(super) fn is_everything(&self) -> bool {
        self.permissions.contains("* *.*")
    }

    pub(super) fn shown(&self) -> String {
        let some: Vec<&str> = self.permissions.iter().take(SHOWN).map(String::as_str).collect();
        let rest = self.permissions.len().saturating_sub(SHOWN);
        let more = match (rest, self.is_cut) {
            (0, false) => String::new(),
            (_, true) => ", and more".to_owned(),
            (rest, false) => format!(", and {rest} more"),
        };
        some.join(", ") + &more
    }
}

/// What `role` grants and `other` does not; `None` if nothing, or if either is not a role.
pub(super) fn surplus(role: &Value, other: &Value) -> Option<Surplus> {
    let is_role = |value: &Value| {
        matches!(value.text("/kind"), "Role" | "ClusterRole")
            && value.text("/apiVersion").starts_with("rbac.authorization.k8s.io/")
    };
    // An aggregated role does not contain the rules that it collects.
    if !is_role(role) || !is_role(other) || other.get("aggregationRule").is_some_and(Value::is_object) {
        return None;
    }
    let others: Vec<Rule<'_>> = rules(other).collect();
    let mut surplus = Surplus { permissions: BTreeSet::new(), is_cut: false };
    let (mut looked, mut steps) = (0, 0);
    for rule in rules(role) {
        for permission in rule.permissions() {
            looked += 1;
            steps += others.iter().map(Rule::size).sum::<usize>();
            if looked > MAX_PERMISSIONS || steps > MAX_STEPS {
                surplus.is_cut = true;
                return (!surplus.permissions.is_empty()).then_some(surplus);
            }
            if !others.iter().any(|rule| rule.covers(&permission)) {
                surplus.permissions.insert(permission.title());
            }
        }
    }
    (!surplus.permissions.is_empty()).then_some(surplus)
}

fn rules(role: &Value) -> impl Iterator<Item = Rule<'_>> {
    role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Rule::of)
}

#[derive(Debug)]
struct Rule<'a> {
    verbs: Vec<&'a str>,
    groups: Vec<&'a str>,
    resources: Vec<&'a str>,
    names: Vec<&'a str>,
    urls: Vec<&'a str>,
}

/// A verb on a resource or on a non-resource URL.
#[derive(Clone, Copy, Debug)]
enum Permission<'a> {
    Resource { verb: &'a str, group: &'a str, resource: &'a str, name: Option<&'a str> },
    Url { verb: &'a str, url: &'a str },
}

impl<'a> Rule<'a> {
    fn of(rule: &'a Value) -> Self {
        let texts = |key: &str| -> Vec<&'a str> {
            rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    fn size(&self) -> usize {
        1 + self.verbs.len() + self.groups.len() + self.resources.len() + self.names.len() + self.urls.len()
    }

    fn permissions(&self) -> impl Iterator<Item = Permission<'a>> {
        let urls = self.urls.iter().flat_map(|&url| self.verbs.iter().map(move |&verb| Permission::Url { verb, url }));
        let names: Vec<Option<&'a str>> =
            if self.names.is_empty() { vec![None] } else { self.names.iter().copied().map(Some).collect() };
        let resources = self.groups.iter().flat_map(move |&group| {
            let names = names.clone();
            self.resources.iter().flat_map(move |&resource| {
                let names = names.clone();
                self.verbs.iter().flat_map(move |&verb| {
                    names.clone().into_iter().map(move |name| Permission::Resource { verb, group, resource, name })
                })
            })
        });
        urls.chain(resources)
    }

    fn covers(&self, permission: &Permission<'_>) -> bool {
        let has = |words: &[&str], word: &str| words.contains(&"*") || words.contains(&word);
        match *permission {
            Permission::Resource { verb, group, resource, name } => {
                let below = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
                has(&self.verbs, verb)
                    && has(&self.groups, group)
                    && (has(&self.resources, resource)
                        || below.is_some_and(|any| self.resources.contains(&any.as_str())))
                    && (self.names.is_empty() || name.is_some_and(|name| self.names.contains(&name)))
            }
            Permission::Url { verb, url } => {
                let under = |pattern: &&str| pattern.strip_suffix('*').is_some_and(|prefix| url.starts_with(prefix));
                has(&self.verbs, verb) && (self.urls.contains(&url) || self.urls.iter().any(under))
            }
        }
    }
}

impl Permission<'_> {
    fn title(&self) -> String {
        match *self {
            Self::Url { verb, url } => format!("{verb} {url}"),
            Self::Resource { verb, group, resource, name } => {
                let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
                format!("{verb} {resource}{group}{name}")
            }
        }
    }
}
