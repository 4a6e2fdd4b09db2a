//! Roles and bindings: users cannot grant permissions that they do not have, unless they may `escalate` or `bind`
//! (`pkg/registry/rbac/role/policybased`, `rolebinding/policybased` in Kubernetes). Asked before the write.

use std::collections::BTreeSet;

use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::{Value, json};

use super::questions::{Access, Questions, Reply};
use super::{NAME, RBAC};
use crate::facts::{Change, ChangeSet, Operation, Verification};

/// Maximum number of single permissions reviewed for one role; beyond that, the result is unknown.
const PERMISSIONS_ASKED: usize = 200;
/// Maximum number of permissions in a message.
const SHOWN: usize = 3;

pub(super) fn check(changes: &ChangeSet, questions: &mut Questions<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for change in &changes.changes {
        let writes = change.operation.applies();
        let (true, true, Some(after)) = (writes, change.object.group == RBAC, change.after()) else { continue };
        findings.extend(match change.object.kind.as_str() {
            "Role" | "ClusterRole" => role(change, after, questions),
            "RoleBinding" | "ClusterRoleBinding" => binding(change, after, changes, questions),
            _ => None,
        });
    }
    findings
}

fn role(change: &Change, after: &Value, questions: &mut Questions<'_>) -> Option<Finding> {
    // The server asks the same in a dry-run.
    if change.verification == Verification::Server {
        return None;
    }
    let object = &change.object;
    let resource = if object.kind == "Role" { "roles" } else { "clusterroles" };
    // This includes the live role: changing an aggregation requires permission to write the role as it is.
    let aggregates = object.kind == "ClusterRole"
        && [Some(after), change.live.as_deref()].into_iter().flatten().any(has_aggregation);
    if !aggregates && rules_of(after).next().is_none() {
        return None;
    }
    let escalate = Access { verb: "escalate", group: RBAC, resource, namespace: &object.namespace, name: &object.name };
    if questions.hold(&escalate) != Reply::No {
        return None;
    }
    let mut lacks = MissingPermissions::default();
    if aggregates && questions.ask(&Access::everything()) == Reply::No {
        lacks.reason = Some("an aggregationRule needs all permissions".to_owned());
    } else {
        lacks.look(after, &object.namespace, questions);
    }
    finding(change, "escalate", "rules", "the role", &lacks)
}

fn binding(change: &Change, after: &Value, changes: &ChangeSet, questions: &mut Questions<'_>) -> Option<Finding> {
    let object = &change.object;
    let (kind, name) = (after.text("/roleRef/kind"), after.text("/roleRef/name"));
    let (resource, role_namespace) = match (kind, object.kind.as_str()) {
        ("Role", "RoleBinding") => ("roles", object.namespace.as_str()),
        ("ClusterRole", _) => ("clusterroles", ""),
        // The API server itself rejects any other reference.
        _ => return None,
    };
    let key = ObjectKey {
        group: RBAC.to_owned(),
        kind: kind.to_owned(),
        namespace: role_namespace.to_owned(),
        name: name.to_owned(),
    };
    let in_set = changes.find(&key);
    // The server asks the same in a dry-run, by the role as it is now. Who deploys need not be able to read that.
    if change.verification == Verification::Server && in_set.is_none() {
        return None;
    }
    let bind = Access { verb: "bind", group: RBAC, resource, namespace: &object.namespace, name };
    let reply = questions.hold(&bind);
    if matches!(reply, Reply::Yes | Reply::Unable) {
        return None;
    }
    let role = match in_set {
        Some(change) => change.after(),
        None => {
            let ObjectKey { group, kind, namespace, name } = key;
            // Requested together with `bind`, so that both need one round.
            questions.object(ObjectRef { group, version: "v1".to_owned(), kind, namespace, name }).ok()?
        }
    };
    if reply == Reply::Later {
        return None;
    }
    let title = format!("{kind} \"{name}\"");
    let Some(role) = role else {
        let reason = Some(format!("it needs \"bind\" on {title}, which does not exist"));
        return finding(
            change,
            "bind",
            "roleRef",
            &title,
            &MissingPermissions { reason, ..MissingPermissions::default() },
        );
    };
    let mut lacks = MissingPermissions::default();
    lacks.look(role, &object.namespace, questions);
    if in_set.is_some() && has_aggregation(role) {
        lacks.unknown.insert("what the role aggregates".to_owned());
    }
    finding(change, "bind", "roleRef", &title, &lacks)
}

/// Permissions of a role that the user lacks, and those that could not be checked.
#[derive(Debug, Default)]
struct MissingPermissions {
    missing: BTreeSet<String>,
    unknown: BTreeSet<String>,
    /// Why the role is denied whatever it grants.
    reason: Option<String>,
}

impl MissingPermissions {
    /// Compares a role with the user's permissions in a namespace, or cluster-wide if `namespace` is empty.
    fn look(&mut self, role: &Value, namespace: &str, questions: &mut Questions<'_>) {
        let mut asked = 0;
        for rule in rules_of(role) {
            let urls = texts(rule, "nonResourceURLs");
            if !urls.is_empty() {
                self.unknown.insert(format!("nonResourceURLs {}", urls.join(", ")));
            }
            let names = texts(rule, "resourceNames");
            let names = if names.is_empty() { vec![""] } else { names };
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    for (verb, name) in
                        texts(rule, "verbs").iter().flat_map(|verb| names.iter().map(move |name| (*verb, *name)))
                    {
                        asked += 1;
                        if asked > PERMISSIONS_ASKED {
                            self.unknown.insert(format!("more than {PERMISSIONS_ASKED} single permissions"));
                            return;
                        }
                        let access = Access { verb, group, resource, namespace, name };
                        if questions.hold(&access) == Reply::No {
                            self.missing.insert(title(&access));
                        }
                    }
                }
            }
        }
    }
}

fn finding(change: &Change, check: &str, field: &str, role: &str, lacks: &MissingPermissions) -> Option<Finding> {
    let object = &change.object;
    let verb = if change.operation == Operation::Update { "update" } else { "create" };
    let core = format!("not permitted to \"{verb}\" {RBAC}/{}, Kind={}", object.version, object.kind);
    let (verdict, message, lacking) = if let Some(reason) = &lacks.reason {
        (Verdict::Breaking, format!("potential privilege escalation, {core}: {reason}"), &lacks.missing)
    } else if !lacks.missing.is_empty() {
        let list = shown(&lacks.missing);
        let message =
            format!("potential privilege escalation, {core}: {role} grants {list}, and this user does not hold that");
        (Verdict::Breaking, message, &lacks.missing)
    } else if !lacks.unknown.is_empty() {
        let list = shown(&lacks.unknown);
        let message = format!("unable to determine if this is a privilege escalation: {role} grants {list}");
        (Verdict::Unknown, message, &lacks.unknown)
    } else {
        return None;
    };
    let mut finding = Finding::new(NAME, check, verdict, object.clone(), message)
        .at(change.locate(&[field.into()]))
        .path(field)
        .values(None, (!lacking.is_empty()).then(|| json!(lacking)))
        .bound_to(&json!([verb, role, lacks.reason, verdict == Verdict::Unknown]))
        .remedy(format!(
            "have an administrator grant \"{check}\" on the role, or grant this user the same permissions"
        ));
    finding.effect = Some("rejected".to_owned());
    finding.blocks = Some(verb.to_owned());
    Some(finding)
}

fn title(access: &Access<'_>) -> String {
    let Access { verb, group, resource, name, .. } = access;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let name = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    format!("\"{verb}\" {resource}{group}{name}")
}

fn shown(items: &BTreeSet<String>) -> String {
    let rest = items.len().saturating_sub(SHOWN);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    let first: Vec<&str> = items.iter().take(SHOWN).map(String::as_str).collect();
    format!("{}{more}", first.join(", "))
}

fn has_aggregation(role: &Value) -> bool {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

fn rules_of(role: &Value) -> impl Iterator<Item = &Value> {
    role.get("rules").and_then(Value::as_array).into_iter().flatten()
}

fn texts<'v>(rule: &'v Value, key: &str) -> Vec<&'v str> {
    rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
