//! Rule FieldConflicts: fields that an apply takes over from other managers. The apply is forced and overwrites their
//! values without asking; this rule asks.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::facts::{Change, ChangeSet, Facts, Needs, Operation, TakenField, TakenFrom};
use crate::glob::matches;
use crate::rule::{Checked, Judgement, Memory, Order, Rule, RuleMeta, Setting, SettingKind, Settings};

const NAME: &str = "FieldConflicts";

/// Maximum number of fields of one object with a finding each; the rest share one.
const SHOWN: usize = 25;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldConflicts;

/// The actions for a conflict, strictest first.
const REFUSE: Order = Order::Words(&["refuse", "warn", "allow"]);

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "an apply overwrites no field that another manager has set since",
    docs: include_str!("field_conflicts/docs.md"),
    checks: &[
        ("conflict", "a field that another manager has set gets another value"),
        ("takeover", "another deploy tool has deployed the object so far, and its fields become the app's"),
    ],
    settings: &[
        Setting {
            name: "default",
            doc: "what happens to a conflict that no entry of `rules` matches",
            kind: SettingKind::Choice(&["refuse", "warn", "allow"]),
            order: REFUSE,
        },
        Setting {
            name: "predecessors",
            doc: "what happens in a takeover from another deploy tool (kapp, kubectl apply)",
            kind: SettingKind::Choice(&["allow", "warn", "refuse"]),
            order: REFUSE,
        },
        Setting {
            name: "rules",
            doc: "what happens to a conflict; the first matching entry decides. In all strings `*` matches any characters",
            order: Order::FirstMatch { key: "action", strictest: "refuse" },
            kind: SettingKind::List(&[
                Setting {
                    name: "managers",
                    doc: "field managers, as `metadata.managedFields` names them",
                    kind: SettingKind::Texts(&[]),
                    order: Order::Unordered,
                },
                Setting {
                    name: "operations",
                    doc: "how the manager has set it: `Apply` (server-side apply) or `Update` (anything else)",
                    kind: SettingKind::Texts(&["Apply", "Update"]),
                    order: Order::Unordered,
                },
                Setting {
                    name: "apiGroups",
                    doc: "API groups; the empty string is the core group",
                    kind: SettingKind::Texts(&[]),
                    order: Order::Unordered,
                },
                Setting { name: "kinds", doc: "kinds", kind: SettingKind::Texts(&[]), order: Order::Unordered },
                Setting {
                    name: "paths",
                    doc: "fields, as findings show them; a path includes everything below it",
                    kind: SettingKind::Texts(&[]),
                    order: Order::Unordered,
                },
                Setting {
                    name: "action",
                    doc: "`refuse`: breaking; `warn`: a warning; `allow`: for information",
                    kind: SettingKind::Required(&["allow", "warn", "refuse"]),
                    order: REFUSE,
                },
            ]),
        },
    ],
    needs: "nothing of its own: who owns which field is part of the plan",
    default: false,
    on_directory: false,
    ..RuleMeta::COMMON
};

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OwnSettings {
    default: Action,
    predecessors: Action,
    rules: Vec<Entry>,
}

/// The action for matching conflicts; an empty list matches all.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    managers: Vec<String>,
    operations: Vec<String>,
    api_groups: Vec<String>,
    kinds: Vec<String>,
    paths: Vec<String>,
    action: Action,
}

impl Rule for FieldConflicts {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        Needs::new()
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        ways_out(facts, finding)
    }

    fn check(&self, facts: &Facts, settings: &Settings, _memory: &mut Memory) -> Checked {
        let settings: OwnSettings = settings.own();
        let mut judgement = Judgement::default();
        for change in facts.changes.changes.iter().filter(|change| change.operation == Operation::Update) {
            let (predecessors, others): (Vec<&TakenFrom>, Vec<&TakenFrom>) =
                change.taken_from.iter().partition(|taken| taken.predecessor);
            judgement
                .findings
                .extend(predecessors.into_iter().map(|taken| takeover(change, taken, settings.predecessors)));
            judgement.findings.extend(conflicts(change, &others, &settings));
        }
        Checked::Done(judgement)
    }
}

/// The action for a conflict, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Warn,
    Refuse,
}

impl Action {
    fn finding(self, change: &Change, check: &str, message: String) -> Finding {
        let verdict = if self == Self::Refuse { Verdict::Breaking } else { Verdict::Change };
        let mut finding = Finding::new(NAME, check, verdict, change.object.clone(), message);
        if self == Self::Warn {
            finding.severity = Severity::Warning;
        }
        finding
    }
}

fn takeover(change: &Change, taken: &TakenFrom, action: Action) -> Finding {
    let altered = match taken.fields.as_slice() {
        [] => "none of them changes".to_owned(),
        [field] => format!("{} changes", field.path),
        [first, rest @ ..] => format!("{} and {} more change", first.path, rest.len()),
    };
    let message = format!("the fields of {} become this app's; {altered}", owner(taken));
    let content = json!([owners_in_order(&[taken]), fields_in_order(&taken.fields)]);
    let finding = action.finding(change, "takeover", message).at(change.locate(&[])).bound_to(&content);
    if action == Action::Allow {
        return finding;
    }
    finding
        .remedy(format!("make sure that {} no longer deploys the object, and set `predecessors: allow`", taken.manager))
}

/// One finding per field, whoever owns it: managers with the same value lose it together.
fn conflicts(change: &Change, others: &[&TakenFrom], settings: &OwnSettings) -> Vec<Finding> {
    let mut by_path: BTreeMap<&str, (&TakenField, Vec<&TakenFrom>, Action)> = BTreeMap::new();
    for taken in others {
        for field in &taken.fields {
            let action = action(change, taken, &field.path, settings);
            let (_, owners, strictest) =
                by_path.entry(field.path.as_str()).or_insert_with(|| (field, Vec::new(), action));
            owners.push(taken);
            *strictest = action.max(*strictest);
        }
    }
    let mut conflicts: Vec<_> = by_path.into_values().collect();
    // Refusing conflicts sort first, in case there are too many to show.
    conflicts.sort_by_key(|(_, _, action)| std::cmp::Reverse(*action));
    let rest = conflicts.split_off(conflicts.len().min(SHOWN));
    let mut findings: Vec<Finding> =
        conflicts.iter().map(|(field, owners, action)| conflict(change, field, owners, *action)).collect();
    if let Some((_, owners, action)) = rest.first() {
        let message = format!("{} more fields are taken over, such as from {}", rest.len(), owner(owners[0]));
        let finding = action.finding(change, "conflict", message).at(change.locate(&[]));
        let content = rest.iter().map(|(field, owners, _)| json!([fields_in_order([*field]), owners_in_order(owners)]));
        findings.push(finding.values(Some(json!({"fields": rest.len()})), None).bound_to(&content.collect()));
    }
    findings
}

fn conflict(change: &Change, field: &TakenField, owners: &[&TakenFrom], action: Action) -> Finding {
    let names: Vec<String> = owners.iter().map(|taken| owner(taken)).collect();
    let message = match field.new {
        Some(_) => format!("{} is taken over from {}", field.path, names.join(" and ")),
        None => format!("{} is removed, and it is {}'s", field.path, names.join(" and ")),
    };
    let finding = action
        .finding(change, "conflict", message)
        .at(change.locate(&field.place))
        .path(field.path.as_str())
        .values(field.old.clone(), field.new.clone())
        .bound_to(&owners_in_order(owners));
    if action == Action::Allow { finding } else { finding.remedy(remedy(change, field, owners)) }
}

/// The owners, independent of the order of `managedFields`.
fn owners_in_order(owners: &[&TakenFrom]) -> Value {
    let owners = owners.iter().map(|taken| (&taken.manager, &taken.operation, &taken.subresource));
    json!(owners.collect::<BTreeSet<_>>())
}

/// The values before and after; positions in the input are excluded.
fn fields_in_order<'f>(fields: impl IntoIterator<Item = &'f TakenField>) -> Value {
    let fields = fields.into_iter().map(|field| (&field.path, json!([field.old, field.new])));
    json!(fields.collect::<BTreeMap<_, _>>())
}

/// Both remedies: resolve the difference, or allow it in the settings.
fn remedy(change: &Change, field: &TakenField, owners: &[&TakenFrom]) -> String {
    // Written by hand to fix the key order with any JSON library; JSON is also YAML.
    let quoted: Vec<String> = managers(owners).iter().map(|manager| json!(manager).to_string()).collect();
    let entry = format!(
        "{{\"managers\": [{}], \"kinds\": [{}], \"paths\": [{}], \"action\": \"allow\"}}",
        quoted.join(", "),
        json!(change.object.kind),
        json!(field.path)
    );
    format!("{}; to overwrite it, add to the `rules` of {NAME}: {entry}", settle(owners))
}

fn managers<'t>(owners: &[&'t TakenFrom]) -> Vec<&'t str> {
    owners.iter().map(|taken| taken.manager.as_str()).collect()
}

/// How both come to agree.
fn settle(owners: &[&TakenFrom]) -> String {
    if owners.iter().any(|taken| taken.operation == "Apply") {
        let others = managers(owners).join(", ");
        format!("let one of the two set it: take it out of the manifest, or out of what {others} applies")
    } else {
        "copy the other value into the manifest, or leave the field out".to_owned()
    }
}

/// The ways out of a finding as data, the best first.
fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let Some(remedy) = &finding.remedy else { return Vec::new() };
    let configured =
        |step: String, settings: Value| Remedy::deployer(RemedyKind::Configure, step).settings(NAME, &settings);
    let Some(path) = &finding.path else {
        return vec![configured(remedy.clone(), json!({"predecessors": "allow"}))];
    };
    let taken_from = facts.changes.find(&finding.object.key()).map(|change| change.taken_from.as_slice());
    let has_field = |taken: &&TakenFrom| !taken.predecessor && taken.fields.iter().any(|field| field.path == *path);
    let owners: Vec<&TakenFrom> = taken_from.unwrap_or_default().iter().filter(has_field).collect();
    let entry = json!({
        "managers": managers(&owners), "kinds": [finding.object.kind], "paths": [path], "action": "allow",
    });
    let step = format!("to overwrite it, add this to the `rules` of {NAME}");
    vec![Remedy::deployer(RemedyKind::Change, settle(&owners)), configured(step, json!({"rules": [entry]}))]
}

fn action(change: &Change, taken: &TakenFrom, path: &str, settings: &OwnSettings) -> Action {
    let is_for = |entry: &&Entry| {
        let within =
            |words: &[String], fits: &dyn Fn(&str) -> bool| words.is_empty() || words.iter().any(|word| fits(word));
        within(&entry.managers, &|glob| matches(glob, &taken.manager))
            && within(&entry.operations, &|word| word == taken.operation)
            && within(&entry.api_groups, &|glob| matches(glob, &change.object.group))
            && within(&entry.kinds, &|glob| matches(glob, &change.object.kind))
            && within(&entry.paths, &|glob| is_below(glob, path))
    };
    settings.rules.iter().find(is_for).map_or(settings.default, |entry| entry.action)
}

/// Whether the path matches the glob or is below it.
fn is_below(glob: &str, path: &str) -> bool {
    matches(glob, path) || matches(&format!("{glob}.*"), path) || matches(&format!("{glob}[*"), path)
}

/// Shows `kubectl-edit (Update, last wrote 2026-11-21T12:04:10Z)`.
fn owner(taken: &TakenFrom) -> String {
    let through = if taken.subresource.is_empty() { String::new() } else { format!(" of {}", taken.subresource) };
    let time = if taken.time.is_empty() { String::new() } else { format!(", last wrote {}", taken.time) };
    format!("{} ({}{through}{time})", taken.manager, taken.operation)
}

#[cfg(test)]
mod tests;
