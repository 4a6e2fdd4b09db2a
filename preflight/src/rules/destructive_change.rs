//! Rule DestructiveChange: losses that no later apply can undo: stored data, objects of others in a namespace, the size
//! of a workload, and a large part of the app at once.

mod dependents;
mod loss;
mod namespace;
mod policies;
mod share;
mod size;
mod storage;
mod ways_out;
mod webhooks;
mod workload;

use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::remedy::Remedy;
use serde_json::Value;

pub use self::size::{CascadeSize, cascade_sizes, is_shared};

use self::loss::{DELETED_SHARE, Judge, LostFrom, NAME, OwnSettings, REPLACED, REPLICAS};

use super::cascaded;
use super::crd_upgrade_safety::{self, deletion};
use super::levels::Level;
use crate::facts::{Change, ChangeSet, Facts, Need, Needs};
use crate::rule::{Checked, Judgement, Memory, Order, Rule, RuleMeta, Setting, SettingKind, Settings};

const DEFINITIONS: deletion::Names =
    deletion::Names { rule: NAME, deletion: "crdDeleted", replacement: "crdDeleted", replacement_loss: "crdDeleted" };

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestructiveChange;

/// Check for kinds that could not be listed.
const NOT_LISTED: &str = "notListed";

/// The levels of a check that refuses by default.
const STRICT: SettingKind = SettingKind::Choice(&["error", "warn", "off"]);

/// Documentation of the level of a check.
const LEVEL: &str = "severity of a finding: `warn` never refuses, `off` skips the check";

const CHECKS: &[(&str, &str)] = &[
    (namespace::CHECK, "a namespace is deleted or replaced, and with it what this change set does not delete itself"),
    (
        DEFINITIONS.deletion,
        "a definition is deleted or replaced, and with it all objects of its kind; reported by CRDUpgradeSafety if that runs",
    ),
    (
        dependents::CHECK,
        "an object is deleted or replaced, and the garbage collector deletes objects outside the app that it owns",
    ),
    (dependents::OWN, "the owner of an object that the app keeps is deleted or replaced, and the object with it"),
    (storage::CLAIM, "a claim, or its owner, is deleted or replaced, and its volume is deleted with it"),
    (storage::VOLUME, "a volume is deleted or replaced, and its storage is deleted with it"),
    (workload::CLAIMS, "a StatefulSet is deleted or shrinks, and its retention policy then deletes claims"),
    (webhooks::CHECK, "an admission webhook is removed: what it rejected is accepted, or what it set is missing"),
    (policies::CHECK, "an admission policy, or a binding of one, is removed, with the same effect"),
    (REPLACED, "a StatefulSet is deleted and created anew: all its Pods stop at the same time"),
    (REPLICAS, "the manifest no longer sets `spec.replicas`, and the live number is replaced by a default"),
    (DELETED_SHARE, "a large share of the app's objects is deleted"),
    (NOT_LISTED, "a kind could not be listed, so what is deleted with an object is not fully known"),
];

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "nothing is deleted or reset that a later apply cannot restore",
    docs: include_str!("destructive_change/docs.md"),
    checks: CHECKS,
    settings: &[
        Setting {
            name: "checks",
            doc: "what each check does",
            order: Order::Each,
            kind: SettingKind::Map(&[
                Setting { name: namespace::CHECK, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: DEFINITIONS.deletion, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: dependents::CHECK, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: dependents::OWN, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: storage::CLAIM, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: storage::VOLUME, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting {
                    name: workload::CLAIMS,
                    doc: "severity of a finding: the policy in the StatefulSet already asks for the loss",
                    kind: SettingKind::Choice(&["warn", "error", "off"]),
                    order: Order::ERROR,
                },
                Setting {
                    name: webhooks::CHECK,
                    doc: LEVEL,
                    kind: SettingKind::Choice(&["warn", "error", "off"]),
                    order: Order::ERROR,
                },
                Setting {
                    name: policies::CHECK,
                    doc: LEVEL,
                    kind: SettingKind::Choice(&["warn", "error", "off"]),
                    order: Order::ERROR,
                },
                Setting { name: REPLACED, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: REPLICAS, doc: LEVEL, kind: STRICT, order: Order::ERROR },
                Setting { name: DELETED_SHARE, doc: LEVEL, kind: STRICT, order: Order::ERROR },
            ]),
        },
        Setting {
            name: "losses",
            doc: "the losses that are looked for: `all`, or only data and objects of others (`irreversible`), without \
                  replaced StatefulSets, replicas and the share of deleted objects",
            order: Order::Words(&["all", "irreversible"]),
            kind: SettingKind::Choice(&["all", "irreversible"]),
        },
        Setting {
            name: "unlisted",
            doc: "what a kind is that may not or cannot be listed: the rule is `unable`, or one warning names the right",
            order: Order::Words(&["unable", "warn"]),
            kind: SettingKind::Choice(&["unable", "warn"]),
        },
        Setting {
            name: "deletedShare",
            doc: "the limits of the check of that name; both must be exceeded",
            order: Order::Each,
            kind: SettingKind::Map(&[
                Setting {
                    name: "percent",
                    doc: "more than this share of the app's live objects is deleted",
                    kind: SettingKind::Number { default: 50, least: 0, most: 99 },
                    order: Order::Smaller,
                },
                Setting {
                    name: "atLeast",
                    doc: "at least this number of objects is deleted, so that one of two raises no alarm",
                    kind: SettingKind::Number { default: 5, least: 1, most: 100_000 },
                    order: Order::Smaller,
                },
            ]),
        },
    ],
    needs: "where anything is deleted or replaced, lists of the metadata of all objects that it can own; the volume of a \
            claim that is deleted; where a namespace is deleted, a list of everything in it; where a CRD is deleted and \
            CRDUpgradeSafety does not run, a list of the objects of its kind",
    judges_derived_crds: true,
    unasked: &[("failMode", "open"), ("losses", "irreversible"), ("unlisted", "warn")],
    ..RuleMeta::COMMON
};

impl Rule for DestructiveChange {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, changes: &ChangeSet, settings: &Settings) -> Needs {
        let settings: OwnSettings = settings.own();
        let on = |check: &str| settings.level(check) != Level::Off;
        let mut needs = Needs::new();
        needs.extend(cascaded::need(changes).filter(|_| on(dependents::CHECK) || on(dependents::OWN)));
        for change in changes.changes.iter().filter(|change| change.ends_live_object()) {
            needs.extend(namespace::need(change).filter(|_| on(namespace::CHECK)));
            needs.extend(storage::need(change).filter(|_| on(storage::CLAIM)));
        }
        needs
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        ways_out::ways_out(facts, finding)
    }

    fn check(&self, facts: &Facts, all: &Settings, _memory: &mut Memory) -> Checked {
        let settings: OwnSettings = all.own();
        let mut wanted = definitions_to_list(facts, &settings);
        wanted.extend(dependents::volumes(facts).into_iter().filter(|_| settings.level(storage::CLAIM) != Level::Off));
        let missing: Needs = wanted.into_iter().filter(|need| !facts.answers.contains_key(need)).collect();
        if !missing.is_empty() {
            return Checked::More(missing);
        }
        let mut judge = Judge { facts, settings: &settings, judgement: Judgement::default() };
        for change in &facts.changes.changes {
            namespace::check(&mut judge, change);
            storage::check(&mut judge, change);
            workload::check(&mut judge, change);
            webhooks::check(&mut judge, change);
            policies::check(&mut judge, change);
        }
        for change in facts.changes.crds() {
            definition(&mut judge, change);
        }
        share::check(&mut judge);
        dependents::check(&mut judge);
        dependents::unlisted(&mut judge, &self.plan(&facts.changes, all));
        Checked::Done(judge.judgement)
    }

    fn fold(&self, _facts: &Facts, need: &Need, _memory: &Memory, state: &mut Value, page: &[&Value]) {
        match need {
            Need::NamespaceContents { .. } => namespace::fold(state, page),
            _ => deletion::fold(state, page),
        }
    }
}

/// Whether this rule judges definitions: if CRDUpgradeSafety runs, it proves the same and says more.
fn judges_definitions(facts: &Facts, settings: &OwnSettings) -> bool {
    settings.level(DEFINITIONS.deletion) != Level::Off && !facts.rules.contains(crd_upgrade_safety::NAME)
}

fn definitions_to_list(facts: &Facts, settings: &OwnSettings) -> Needs {
    if !judges_definitions(facts, settings) {
        return Needs::new();
    }
    let deleted = facts.changes.crds().filter(|change| deletion::concerns(change));
    deleted.flat_map(|change| deletion::needs(change, &facts.changes)).collect()
}

fn definition(judge: &mut Judge<'_>, change: &Change) {
    if !deletion::concerns(change) || !judges_definitions(judge.facts, judge.settings) {
        return;
    }
    let mut judgement = Judgement::default();
    deletion::check(&DEFINITIONS, change, judge.facts, &mut judgement);
    judge.judgement.unable.extend(judgement.unable);
    for finding in judgement.findings {
        match finding.verdict {
            Verdict::Change => judge.note(finding),
            Verdict::Breaking | Verdict::Unknown => {
                judge.lose(LostFrom::Others, finding.remedy(judge.ways_out(change, DEFINITIONS.deletion)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
