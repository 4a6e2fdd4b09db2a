//! Rule References: what an object of the app needs is there after the run, with the key or port that it names; and a
//! Service or PodDisruptionBudget selects Pods.

mod collect;
pub(super) mod generated;
mod objects;
mod pods;
mod reference;
mod selectors;
mod ways_out;

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::object::{ObjectKey, ObjectRef};
use pushback_objects::remedy::Remedy;
use pushback_objects::source::display_path;
use serde::Deserialize;
use serde_json::json;

use self::generated::Generated;
pub use self::pods::read_by_pods;

use self::objects::{After, Objects};
use self::reference::{Part, Reference, Weight};
use self::selectors::Selecting;
use crate::facts::{Answer, Change, ChangeSet, ClusterSide, Facts, Need, Needs};
use crate::glob;
use crate::rule::{Checked, Judgement, Memory, Mode, Order, Rule, RuleMeta, Setting, SettingKind, Settings};
use crate::rules::crd_upgrade_safety::backend;
use crate::rules::pod_admission;

const NAME: &str = "References";
const MISSING: &str = "missing";
const DELETED: &str = "deleted";
const KEY: &str = "key";
const PORT: &str = "port";
const SELECTS_NOTHING: &str = "selectsNothing";

/// Most ports or keys that a finding names.
const NAMED: usize = 5;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct References;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "what an object of the app needs is there after the run, and a selector selects something",
    docs: include_str!("references/docs.md"),
    checks: &[
        (MISSING, "an object that another one needs is neither in the input nor on the cluster"),
        (DELETED, "this run deletes an object that another one still needs"),
        (KEY, "a ConfigMap or Secret lacks a key that another object names"),
        (PORT, "a Service lacks a port that an Ingress, a webhook or an APIService names"),
        (SELECTS_NOTHING, "a Service or PodDisruptionBudget selects no Pod, or none of the app's any more"),
    ],
    settings: &[Setting {
        name: "ignore",
        doc: "objects that may be missing, as `Kind namespace/name`; `*` matches any characters",
        kind: SettingKind::Texts(&[]),
        order: Order::Unordered,
    }],
    needs: "nothing where the input is complete; else a get of each object that is missing in the input, or, of many in \
            one namespace, a list of their names; for a selector that selects none of the app's Pods, a list of one Pod",
    unasked: &[("mode", "warn")],
    judges_manifests_only: true,
    ..RuleMeta::COMMON
};

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnSettings {
    ignore: Vec<String>,
}

impl Rule for References {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        // What is missing depends on the kind of cluster, which `check` knows.
        Needs::new()
    }

    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
        let own: OwnSettings = settings.own();
        let found = memory.keep(|| Found::of(facts, &own));
        let open: Needs = found.needs().filter(|need| !facts.answers.contains_key(need)).collect();
        if !open.is_empty() {
            return Checked::More(open);
        }
        let judgement = found.judgement(facts);
        if settings.mode == Mode::Warn && judgement.findings.is_empty() && !judgement.unable.is_empty() {
            return Checked::Skipped(judgement.unable.join("; "));
        }
        Checked::Done(judgement)
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        ways_out::ways_out(facts, finding)
    }
}

/// What was found in the manifests, and what the cluster is asked for.
#[derive(Debug, Default)]
struct Found {
    /// Findings that the manifests prove.
    findings: Vec<Finding>,
    /// References to what is not in the set.
    outside: Vec<Outside>,
    /// Selectors that select none of the set's Pods.
    unmatched: Vec<(Finding, Need)>,
}

/// A reference to an object that is not in the set.
#[derive(Debug)]
struct Outside {
    reference: Reference,
    missing: Finding,
}

impl Found {
    fn of(facts: &Facts, own: &OwnSettings) -> Self {
        let side = facts.cluster.side;
        let objects = Objects::of(&facts.changes, side);
        let mut found = Self::default();
        let mut generated: Option<Generated> = None;
        let mut told: BTreeSet<(ObjectKey, ObjectKey, &str, Option<String>)> = BTreeSet::new();
        for (manifest, change) in &objects.standing {
            let object = change.map_or_else(|| ObjectRef::of(manifest), |change| change.object.clone());
            for reference in collect::references(manifest) {
                if generated::is_of_the_cluster(&reference.target) || is_ignored(own, &reference.target) {
                    continue;
                }
                let from = Referrer { object: &object, change: *change };
                let (check, finding) = match objects.get(&reference.target) {
                    Some(After::There(parts)) => match lacks(&reference, parts.as_ref()) {
                        Some((check, message)) => (check, from.finding(check, &reference, message)),
                        None => continue,
                    },
                    absent => {
                        let made = generated.get_or_insert_with(|| Generated::of(&objects));
                        if made.makes(&reference.target) {
                            continue;
                        }
                        let is_deleted = absent.is_some();
                        let may_be_missing = side == ClusterSide::Directory || reference.weight == Weight::Customary;
                        if !is_deleted && may_be_missing {
                            continue;
                        }
                        let (check, words) = if is_deleted {
                            (DELETED, "is deleted by this run")
                        } else {
                            (MISSING, "is neither in the input nor on the cluster")
                        };
                        (check, from.finding(check, &reference, format!("{} {words}", shown(&reference.target))))
                    }
                };
                let part = reference.part.as_ref().map(|part| part.name().to_owned());
                let part = part.filter(|_| [KEY, PORT, MISSING].contains(&check));
                if !told.insert((object.key(), reference.target.clone(), check, part)) {
                    continue;
                }
                if check == MISSING {
                    found.outside.push(Outside { reference, missing: finding });
                } else {
                    found.findings.push(finding);
                }
            }
        }
        for selecting in selectors::selecting(&objects) {
            found.selector(&selecting, &objects, facts, own);
        }
        found
    }

    fn selector(&mut self, selecting: &Selecting<'_>, objects: &Objects<'_>, facts: &Facts, own: &OwnSettings) {
        if is_ignored(own, &selecting.object.key()) || selecting.finds_one(objects) {
            return;
        }
        let finding = |message: &str| {
            let mut finding = Finding::new(NAME, SELECTS_NOTHING, Verdict::Change, selecting.object.clone(), message)
                .at(selecting.change.locate(&["spec".into(), "selector".into()]))
                .path("spec.selector")
                .remedy("correct the selector, or the labels of the Pods");
            finding.severity = Severity::Warning;
            finding
        };
        if selecting.has_found_one(&facts.changes.changes) {
            self.findings.push(finding("it selects none of the app's Pods any more"));
        } else if facts.are_of_a_server() && !selecting.may_be_served_by_a_controller(objects) {
            let message = "it selects no Pod, neither of the input nor on the cluster";
            self.unmatched.push((finding(message), selecting.need()));
        }
    }

    /// What is to be asked: of each kind and namespace together.
    fn needs(&self) -> impl Iterator<Item = Need> {
        let mut names: BTreeMap<(&str, &str, &str), BTreeSet<String>> = BTreeMap::new();
        for Outside { reference: Reference { target, .. }, .. } in &self.outside {
            let place = (target.group.as_str(), target.kind.as_str(), target.namespace.as_str());
            names.entry(place).or_default().insert(target.name.clone());
        }
        let existing = names.into_iter().map(|((group, kind, namespace), names)| Need::Existing {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            names,
        });
        let counts: Vec<Need> = self.unmatched.iter().map(|(_, need)| need.clone()).collect();
        existing.chain(counts).collect::<Vec<_>>().into_iter()
    }

    fn judgement(&self, facts: &Facts) -> Judgement {
        let mut judgement = Judgement { findings: self.findings.clone(), unable: Vec::new() };
        let mut existing: BTreeMap<ObjectKey, Option<BTreeSet<String>>> = BTreeMap::new();
        let mut unread: BTreeSet<(String, String, String)> = BTreeSet::new();
        for need in self.needs() {
            let Need::Existing { group, kind, namespace, .. } = &need else { continue };
            match facts.answer(&need) {
                Answer::Existing { parts } => existing.extend(
                    parts.into_iter().map(|(name, parts)| (reference::key(group, kind, namespace, &name), parts)),
                ),
                Answer::Unable { reason } => {
                    judgement.unable.push(reason);
                    unread.insert((group.clone(), kind.clone(), namespace.clone()));
                }
                _ => judgement.unable.push("the answer does not fit the question".to_owned()),
            }
        }
        for Outside { reference, missing } in &self.outside {
            let target = &reference.target;
            match existing.get(target) {
                Some(parts) => {
                    if let Some((check, message)) = lacks(reference, parts.as_ref()) {
                        let finding = Finding { check: check.to_owned(), message, ..missing.clone() };
                        judgement.findings.push(finding.remedy(remedy(check)));
                    }
                }
                None if unread.contains(&(target.group.clone(), target.kind.clone(), target.namespace.clone())) => {}
                None => judgement.findings.push(missing.clone()),
            }
        }
        // One that is missing altogether is told once, whichever keys of it are named.
        let mut told = BTreeSet::new();
        judgement
            .findings
            .retain(|finding| finding.check != MISSING || told.insert((finding.object.key(), finding.message.clone())));
        for (finding, need) in &self.unmatched {
            match facts.answer(need) {
                Answer::Count { objects: 0, more: false } => judgement.findings.push(finding.clone()),
                Answer::Unable { reason } => judgement.unable.push(reason),
                _ => {}
            }
        }
        judgement
    }
}

/// The object that a reference is in.
struct Referrer<'a> {
    object: &'a ObjectRef,
    change: Option<&'a Change>,
}

impl Referrer<'_> {
    fn finding(&self, check: &str, reference: &Reference, message: String) -> Finding {
        let is_needed = reference.weight == Weight::Needed;
        let verdict = if is_needed { Verdict::Breaking } else { Verdict::Change };
        let target = &reference.target;
        let mut finding = Finding::new(NAME, check, verdict, self.object.clone(), message)
            .at(self.change.and_then(|change| change.locate(&reference.path)))
            .path(display_path(&reference.path))
            .values(None, Some(shown(target).into()))
            .remedy(remedy(check))
            .shares(&json!([target.group, target.kind, target.namespace, target.name]));
        finding.severity = Severity::Warning;
        // The Service of a conversion webhook.
        finding.repeats.extend(self.object.is_definition().then(backend::told));
        if check == MISSING {
            finding.repeats.extend(pod_admission::finding_for_missing(target, &reference.path));
        }
        finding
    }
}

fn remedy(check: &str) -> &'static str {
    match check {
        MISSING => "add it to the input, or correct the name",
        DELETED => "keep it in the input, or take the reference out",
        KEY => "add the key, or mark the reference as `optional: true`",
        _ => "correct the port, or add it to the Service",
    }
}

/// What an object that is there lacks of what a reference names.
fn lacks(reference: &Reference, parts: Option<&BTreeSet<String>>) -> Option<(&'static str, String)> {
    let (part, parts) = (reference.part.as_ref()?, parts?);
    if parts.contains(part.name()) {
        return None;
    }
    let target = shown(&reference.target);
    let named: Vec<&str> = parts.iter().take(NAMED).map(String::as_str).collect();
    let more = if parts.len() > NAMED { " and more" } else { "" };
    Some(match part {
        Part::Key(key) => (KEY, format!("{target} has no key {key:?}")),
        Part::Port(port) => (PORT, format!("{target} has no port {port}; it has {}{more}", named.join(", "))),
    })
}

/// `Secret shop/db`.
fn shown(target: &ObjectKey) -> String {
    target.to_string()
}

fn is_ignored(own: &OwnSettings, target: &ObjectKey) -> bool {
    let shown = shown(target);
    own.ignore.iter().any(|pattern| glob::matches(pattern, &shown))
}

#[cfg(test)]
mod tests;
