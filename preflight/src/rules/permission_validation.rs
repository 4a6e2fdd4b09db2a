//! Rule PermissionValidation: whether the user may write everything in the change set, asked before the first write.
//! It needs few requests: one review of all rules per namespace, single reviews only for what those leave open.

mod escalation;
mod questions;

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::object::join_api_version;
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::{Value, json};

use crate::facts::{Change, ChangeSet, Facts, Needs, Operation};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use crate::rules::remedies::join_resource;
use questions::{Access, Questions, Reply};

pub(crate) const NAME: &str = "PermissionValidation";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Maximum number of objects reviewed one by one, if only a permission by name can help.
const NAMES_ASKED: usize = 100;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermissionValidation;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "this user may write everything in the change set",
    docs: include_str!("permission_validation/docs.md"),
    checks: &[
        ("create", "an object may not be created"),
        ("patch", "an object may not be applied"),
        ("delete", "an object may not be deleted"),
        ("resource", "the API resource of a kind is not known, so nothing can be asked about it"),
        ("escalate", "a role grants more than this user has"),
        ("bind", "a binding grants a role with more permissions than this user has"),
    ],
    needs: "a SelfSubjectRulesReview for each namespace, a SelfSubjectAccessReview for what it leaves open, and the roles \
            that bindings refer to",
    on_directory: false,
    ..RuleMeta::COMMON
};

impl Rule for PermissionValidation {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, _settings: &Settings) -> Needs {
        let mut namespaces: BTreeSet<&str> = BTreeSet::new();
        let mut writes = false;
        for change in changes.changes.iter().filter(|change| change.operation.writes()) {
            writes = true;
            if change.namespaced && !change.object.namespace.is_empty() {
                namespaces.insert(&change.object.namespace);
            }
        }
        if !writes {
            return Needs::new();
        }
        if namespaces.is_empty() {
            // Cluster-wide permissions are visible in every namespace.
            namespaces.insert("default");
        }
        namespaces.into_iter().map(questions::rules_in).chain([Access::everything().need()]).collect()
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        grants(facts, finding)
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let mut questions = Questions::new(facts);
        if !facts.changes.changes.iter().any(|change| change.operation.writes())
            || questions.ask(&Access::everything()) == Reply::Yes
        {
            return Checked::Done(Judgement::default());
        }
        let mut findings = writes(&facts.changes, &mut questions);
        findings.extend(escalation::check(&facts.changes, &mut questions));
        questions.close(findings)
    }
}

/// Reviews of the user's rights that a write in this namespace is sure to need, or one outside of namespaces if it is
/// empty.
pub(crate) fn needs_of_write_in(namespace: &str) -> Needs {
    let rules = (!namespace.is_empty()).then(|| questions::rules_in(namespace));
    rules.into_iter().chain([Access::everything().need()]).collect()
}

/// The user's right to create objects, as far as it is known.
pub(crate) enum CreatePermission {
    /// No review denies it.
    Granted,
    /// The user has no such right.
    Denied,
    /// These reviews are still needed.
    Open(Needs),
}

/// Returns whether the user may create objects of a core resource in a namespace. Only a complete list of the user's rules
/// denies it: where it is not known, the request itself is the test.
pub(crate) fn may_create(facts: &Facts, resource: &str, namespace: &str) -> CreatePermission {
    let open: Needs =
        needs_of_write_in(namespace).into_iter().filter(|need| !facts.answers.contains_key(need)).collect();
    if !open.is_empty() {
        return CreatePermission::Open(open);
    }
    let mut questions = Questions::new(facts);
    let create = Access { verb: "create", group: "", resource, namespace, name: "" };
    let is_granted = questions.ask(&Access::everything()) == Reply::Yes || questions.granted_in_namespace(&create);
    if is_granted || !questions.are_rules_complete(namespace) {
        CreatePermission::Granted
    } else {
        CreatePermission::Denied
    }
}

/// The verbs that a change needs. Who may not patch but create and update writes whole objects.
fn verbs(change: &Change) -> &'static [&'static str] {
    match change.operation {
        Operation::Create => &["create"],
        Operation::Update => &["patch"],
        Operation::Replace => &["create", "delete"],
        // An orphaned object only loses the app's label.
        Operation::Delete if change.orphaned => &["patch"],
        Operation::Delete => &["delete"],
        Operation::Noop | Operation::Exists => &[],
    }
}

fn writes(changes: &ChangeSet, questions: &mut Questions<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut requests: BTreeMap<(&str, &str, &str, &'static str), Vec<&Change>> = BTreeMap::new();
    let mut nameless: BTreeMap<(&str, &str), Vec<&Change>> = BTreeMap::new();
    for change in &changes.changes {
        let Some(resource) = resource_of(change, changes) else {
            if change.operation.writes() {
                nameless.entry((&change.object.group, &change.object.kind)).or_default().push(change);
            }
            continue;
        };
        let namespace = if change.namespaced { change.object.namespace.as_str() } else { "" };
        for verb in verbs(change) {
            requests.entry((namespace, &change.object.group, resource, verb)).or_default().push(change);
        }
    }
    for ((_, kind), objects) in nameless {
        let Some(first) = first(&objects) else { continue };
        let message = format!("unable to determine whether {kind} objects may be written: the resource is not known");
        findings.push(
            Finding::new(NAME, "resource", Verdict::Unknown, first.object.clone(), message + &count(objects.len()))
                .at(first.locate(&[]))
                .bound_to(&names(&objects)),
        );
    }
    for ((namespace, group, resource, verb), objects) in requests {
        let request = Access { verb, group, resource, namespace, name: "" };
        let mut refused = refused_of(&request, &objects, questions);
        if verb == "patch" {
            // Asked in the same round: a third one would be needed otherwise.
            let open = not_granted(&request, &objects, questions);
            let alternative = refused_of(&Access { verb: "update", ..request }, &open, questions);
            refused.retain(|change| alternative.iter().any(|other| std::ptr::eq(*change, *other)));
        }
        let Some(first) = first(&refused) else { continue };
        let api = join_group(group, &first.object.version);
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace \"{namespace}\"") };
        let core = format!("not permitted to \"{verb}\" {api}, Resource={resource}{place}{}", count(refused.len()));
        let is_open = may_be_granted_by(changes, namespace);
        let (verdict, message) = if is_open {
            let why = "the namespace is created here, and role bindings in it may grant this";
            (Verdict::Unknown, format!("unable to determine: {core}, but {why}"))
        } else {
            (Verdict::Breaking, core)
        };
        let content = json!([group, resource, namespace, names(&refused), is_open]);
        let mut finding = Finding::new(NAME, verb, verdict, first.object.clone(), message)
            .at(first.locate(&[]))
            .bound_to(&content)
            .remedy(format!(
                "have an administrator grant \"{verb}\" on {resource}{place}, or run as a user who has it"
            ));
        finding.blocks = Some(verb.to_owned());
        finding.effect = Some("rejected".to_owned());
        findings.push(finding);
    }
    findings
}

/// The grant that is missing, as commands of an administrator.
fn grants(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let (Some(remedy), Some(verb)) = (&finding.remedy, &finding.blocks) else { return Vec::new() };
    let step = Remedy::deployer(RemedyKind::Grant, remedy);
    let change = facts.changes.find(&finding.object.key()).filter(|_| *verb == finding.check);
    let Some(resource) = change.and_then(|change| resource_of(change, &facts.changes)) else { return vec![step] };
    let namespace = change.filter(|change| change.namespaced).map(|change| change.object.namespace.as_str());
    let (role, binding) =
        if namespace.is_some() { ("role", "rolebinding") } else { ("clusterrole", "clusterrolebinding") };
    let resource = join_resource(resource, &finding.object.group);
    let name = format!("pushback-{verb}-{resource}");
    let place: Vec<&str> = namespace.into_iter().flat_map(|namespace| ["-n", namespace]).collect();
    let administrator = facts.invocation.without("--as").without("--as-group");
    let user = facts.invocation.value("--as");
    let create = |words: &[&str]| administrator.kubectl(&[&["create"], words, &place].concat());
    let commands = [
        create(&[role, &name, &format!("--verb={verb}"), &format!("--resource={resource}")]),
        create(&[
            binding,
            &name,
            &format!("--{role}={name}"),
            &format!("--user={}", user.as_deref().unwrap_or("USER")),
        ]),
    ];
    let mut remedy = step.commands(commands);
    if user.is_none() {
        let whose = "an administrator puts the user in the place of USER; `kubectl auth whoami` shows it";
        remedy.steps.push(whose.to_owned());
    }
    vec![remedy]
}

/// The change that represents several ones in a finding, independent of their order.
fn first<'c>(changes: &[&'c Change]) -> Option<&'c Change> {
    changes.iter().copied().min_by_key(|change| change.object.key())
}

/// The names that a finding about several changes covers.
fn names(changes: &[&Change]) -> Value {
    json!(changes.iter().map(|change| change.object.key().to_string()).collect::<BTreeSet<_>>())
}

/// The objects for which the rules of their namespace do not grant the request.
fn not_granted<'c>(request: &Access<'_>, objects: &[&'c Change], questions: &mut Questions<'_>) -> Vec<&'c Change> {
    let granted = |change: &&Change| questions.granted_in_namespace(&request.named(&change.object.name));
    objects.iter().copied().filter(|change| !granted(change)).collect()
}

/// The objects for which the request is denied; also empty while answers are missing.
fn refused_of<'c>(request: &Access<'_>, objects: &[&'c Change], questions: &mut Questions<'_>) -> Vec<&'c Change> {
    let open = not_granted(request, objects, questions);
    if open.is_empty() || questions.ask(request) != Reply::No {
        return Vec::new();
    }
    if !questions.names_may_matter(request) {
        return open;
    }
    if open.len() > NAMES_ASKED {
        let resource = request.resource;
        questions.unable(format!("more than {NAMES_ASKED} {resource} would have to be asked about one by one"));
    }
    open.into_iter()
        .take(NAMES_ASKED)
        .filter(|change| questions.ask(&request.named(&change.object.name)) == Reply::No)
        .collect()
}

/// The plural resource name; for a kind not served yet, from its definition in the change set.
fn resource_of<'c>(change: &'c Change, changes: &'c ChangeSet) -> Option<&'c str> {
    if !change.resource.is_empty() {
        return Some(&change.resource);
    }
    changes
        .changes
        .iter()
        .filter(|other| other.object.kind == "CustomResourceDefinition")
        .filter_map(Change::after)
        .find(|definition| {
            let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
            text("/spec/group") == Some(&change.object.group) && text("/spec/names/kind") == Some(&change.object.kind)
        })
        .and_then(|definition| definition.pointer("/spec/names/plural")?.as_str())
}

/// Whether the change set creates the namespace and binds roles in it: then a denied request may be allowed later.
fn may_be_granted_by(changes: &ChangeSet, namespace: &str) -> bool {
    let creates = |change: &Change| change.operation == Operation::Create;
    !namespace.is_empty()
        && changes.changes.iter().any(|change| {
            let object = &change.object;
            creates(change) && object.group.is_empty() && object.kind == "Namespace" && object.name == namespace
        })
        && changes.changes.iter().any(|change| {
            let object = &change.object;
            creates(change) && object.group == RBAC && object.kind == "RoleBinding" && object.namespace == namespace
        })
}

/// Joins group and version as Kubernetes prints them: `apps/v1`, and `/v1` for the core group.
fn join_group(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/{version}") } else { join_api_version(group, version) }
}

fn count(objects: usize) -> String {
    if objects == 1 { String::new() } else { format!(" ({objects} objects)") }
}

#[cfg(test)]
mod tests;
