//! Permissions that one Role or ClusterRole grants and another does not, rule by rule as the authorizer reads them.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::object::ObjectExt;
use serde_json::Value;

/// Maximum number of single permissions of a role, and of steps to compare them.
const MAX_PERMISSIONS: usize = 5_000;
const MAX_STEPS: usize = 2_000_000;
/// Maximum number of permissions in a message.
const SHOWN: usize = 3;

/// Permissions that only one of two roles grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surplus {
    /// Sorted, in the form `get pods`, `update deployments.apps`.
    pub(crate) permissions: BTreeSet<String>,
    /// Verbs by their target in words: `Pods`, `Secrets "a"`, `/metrics`.
    verbs: BTreeMap<String, BTreeSet<String>>,
    /// True if there were too many permissions to compare them all.
    is_cut: bool,
}

impl Surplus {
    /// Returns whether one of them is every verb on every resource.
    pub(crate) fn is_everything(&self) -> bool {
        self.permissions.contains("* *.*")
    }

    pub(crate) fn shown(&self) -> String {
        let some: Vec<&str> = self.permissions.iter().take(SHOWN).map(String::as_str).collect();
        let rest = self.permissions.len().saturating_sub(SHOWN);
        let more = match (rest, self.is_cut) {
            (0, false) => String::new(),
            (_, true) => ", and more".to_owned(),
            (rest, false) => format!(", and {rest} more"),
        };
        some.join(", ") + &more
    }

    /// Returns the permissions in words, those with the same verbs together: `get, list and watch Pods, Secrets`.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut targets: BTreeMap<&BTreeSet<String>, Vec<&str>> = BTreeMap::new();
        for (target, verbs) in &self.verbs {
            targets.entry(verbs).or_default().push(target);
        }
        let line = |(verbs, targets): (&BTreeSet<String>, Vec<&str>)| {
            let verbs = if verbs.contains("*") { "do everything with".to_owned() } else { joined(verbs) };
            format!("{verbs} {}", targets.join(", "))
        };
        targets.into_iter().map(line).collect()
    }
}

/// `get, list and watch`.
fn joined(verbs: &BTreeSet<String>) -> String {
    let mut verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    match verbs.pop() {
        Some(last) if !verbs.is_empty() => format!("{} and {last}", verbs.join(", ")),
        last => last.unwrap_or_default().to_owned(),
    }
}

/// Compares the permissions of two versions of a role. `None` if either is not a role with rules of its own, or if
/// there are too many to compare.
#[must_use]
pub fn permission_changes(old: &Value, new: &Value) -> Option<PermissionChanges> {
    let is_comparable = |role: &Value| is_role(role) && !role.get("aggregationRule").is_some_and(Value::is_object);
    if !is_comparable(old) || !is_comparable(new) {
        return None;
    }
    let (granted, revoked) = (compared(new, old), compared(old, new));
    let is_cut = granted.iter().chain(&revoked).any(|surplus| surplus.is_cut);
    let words = |surplus: Option<Surplus>| surplus.map(|surplus| surplus.words()).unwrap_or_default();
    (!is_cut).then(|| PermissionChanges { granted: words(granted), revoked: words(revoked) })
}

/// Permissions that a change of a role grants and revokes, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionChanges {
    /// `delete Secrets`.
    pub granted: Vec<String>,
    /// `get and list Pods`.
    pub revoked: Vec<String>,
}

fn is_role(value: &Value) -> bool {
    matches!(value.text("/kind"), "Role" | "ClusterRole")
        && value.text("/apiVersion").starts_with("rbac.authorization.k8s.io/")
}

/// Permissions that `role` grants and `other` does not; `None` if there are none, or if either is not a role.
pub(crate) fn surplus(role: &Value, other: &Value) -> Option<Surplus> {
    compared(role, other).filter(|surplus| !surplus.permissions.is_empty())
}

/// Compares two roles; `None` if either is not a role, or the other collects its rules from further roles.
fn compared(role: &Value, other: &Value) -> Option<Surplus> {
    // An aggregated role does not contain the rules that it collects.
    if !is_role(role) || !is_role(other) || other.get("aggregationRule").is_some_and(Value::is_object) {
        return None;
    }
    let others: Vec<Rule<'_>> = rules(other).collect();
    let mut surplus = Surplus { permissions: BTreeSet::new(), verbs: BTreeMap::new(), is_cut: false };
    let (mut looked, mut steps) = (0, 0);
    for rule in rules(role) {
        for permission in rule.permissions() {
            looked += 1;
            steps += others.iter().map(Rule::size).sum::<usize>();
            if looked > MAX_PERMISSIONS || steps > MAX_STEPS {
                surplus.is_cut = true;
                return Some(surplus);
            }
            if !others.iter().any(|rule| rule.covers(&permission)) {
                surplus.permissions.insert(permission.title());
                let (verb, target) = permission.words();
                surplus.verbs.entry(target).or_default().insert(verb);
            }
        }
    }
    Some(surplus)
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

/// Resources of Kubernetes whose kinds have several words.
const KINDS: [&str; 28] = [
    "APIServices",
    "CertificateSigningRequests",
    "ClusterRoleBindings",
    "ClusterRoles",
    "ConfigMaps",
    "ControllerRevisions",
    "CronJobs",
    "CustomResourceDefinitions",
    "DaemonSets",
    "EndpointSlices",
    "HorizontalPodAutoscalers",
    "IngressClasses",
    "LimitRanges",
    "MutatingWebhookConfigurations",
    "NetworkPolicies",
    "PersistentVolumeClaims",
    "PersistentVolumes",
    "PodDisruptionBudgets",
    "PriorityClasses",
    "ReplicaSets",
    "ReplicationControllers",
    "ResourceQuotas",
    "RoleBindings",
    "ServiceAccounts",
    "StatefulSets",
    "StorageClasses",
    "ValidatingWebhookConfigurations",
    "VolumeAttachments",
];

/// A resource in words: the plural of its kind for those of Kubernetes, `kafkas.kafka.strimzi.io` for others.
fn resource_words(group: &str, resource: &str) -> String {
    let is_builtin = !group.contains('.') || group.ends_with(".k8s.io");
    let (resource, sub) = resource.split_once('/').map_or((resource, None), |(name, sub)| (name, Some(sub)));
    let name = match (resource, group) {
        ("*", "*") => "all resources".to_owned(),
        ("*", "") => "all resources of the core group".to_owned(),
        ("*", group) => format!("all resources of {group}"),
        (resource, "*") => format!("{resource} of all groups"),
        (resource, _) if is_builtin => match KINDS.iter().find(|kind| kind.eq_ignore_ascii_case(resource)) {
            Some(kind) => (*kind).to_owned(),
            None => {
                let (first, rest) = resource.split_at(resource.chars().next().map_or(0, char::len_utf8));
                first.to_uppercase() + rest
            }
        },
        (resource, group) => format!("{resource}.{group}"),
    };
    sub.map_or_else(|| name.clone(), |sub| format!("{name}/{sub}"))
}

impl Permission<'_> {
    /// Verb, and what it is allowed on.
    fn words(&self) -> (String, String) {
        match *self {
            Self::Url { verb, url } => (verb.to_owned(), url.to_owned()),
            Self::Resource { verb, group, resource, name } => {
                let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
                (verb.to_owned(), resource_words(group, resource) + &name)
            }
        }
    }

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(rules: &Value) -> Value {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules})
    }

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    }

    fn changes(old: &[Value], new: &[Value]) -> (Vec<String>, Vec<String>) {
        let PermissionChanges { granted, revoked } =
            permission_changes(&role(&json!(old)), &role(&json!(new))).expect("two roles");
        (granted, revoked)
    }

    #[test]
    fn permissions_are_compared_as_sets_and_in_words() {
        let pods = rule(&[""], &["pods", "configmaps"], &["get", "list"]);
        let secrets = |verbs: &[&str]| rule(&[""], &["secrets"], verbs);
        let (granted, revoked) =
            changes(&[pods.clone(), secrets(&["get"])], &[secrets(&["delete", "get"]), pods.clone()]);
        assert_eq!((granted, revoked), (vec!["delete Secrets".to_owned()], vec![]));
        let split = [rule(&[""], &["configmaps"], &["list", "get"]), rule(&[""], &["pods"], &["get", "list"])];
        assert_eq!(changes(std::slice::from_ref(&pods), &split), (vec![], vec![]));
        let (granted, revoked) = changes(&[pods], &[rule(&["apps", "ex.com"], &["foos", "replicasets/scale"], &["*"])]);
        assert_eq!(granted, ["do everything with Foos, ReplicaSets/scale, foos.ex.com, replicasets.ex.com/scale"]);
        assert_eq!(revoked, ["get and list ConfigMaps, Pods"]);
    }

    #[test]
    fn wildcards_grant_what_they_cover() {
        let all = rule(&["*"], &["*"], &["*"]);
        let (granted, revoked) =
            changes(std::slice::from_ref(&all), &[all.clone(), rule(&[""], &["secrets"], &["delete"])]);
        assert_eq!((granted, revoked), (vec![], vec![]));
    }

    #[test]
    fn aggregated_roles_and_other_objects_are_not_compared() {
        let mut aggregated = role(&json!([]));
        aggregated["aggregationRule"] = json!({"clusterRoleSelectors": []});
        assert_eq!(permission_changes(&aggregated, &role(&json!([]))), None);
        assert_eq!(permission_changes(&json!({"kind": "Role"}), &role(&json!([]))), None);
    }
}
