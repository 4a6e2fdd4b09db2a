//! Rule ExistingObjects: what becomes of the objects that are there when a definition changes. Each is streamed through
//! a read and a write under the new definition, as the API server would do it.

mod passage;

use std::sync::{Arc, OnceLock};

use pushback_crd::definition::{Crd, Schemas, StoredState, Strategy, Upgrade, listed};
use pushback_crd::stack;
use pushback_objects::finding::{Finding, LiveObjects, Severity, Verdict};
use pushback_objects::remedy::Remedy;
use serde_json::{Value, json};

use crate::facts::{Change, ChangeSet, Facts, Folded, Need, Needs, Operation};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use crate::rules::counters::UP_TO;
use crate::rules::planned_objects::PlannedObjects;
use crate::rules::remedies::correct_objects;
use passage::Fate;

const NAME: &str = "ExistingObjects";
const WEBHOOK: &str = "converted";

/// Maximum number of fields that a message names.
const SHOWN: usize = 4;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExistingObjects;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "the objects that are there can be read, kept and written under the new definition",
    docs: include_str!("existing_objects/docs.md"),
    checks: &[
        (Fate::Lossy.check(), "objects lose fields at their next write"),
        (Fate::Altered.check(), "objects lose or change values that come from defaults"),
        (Fate::Blocked.check(), "objects cannot be written back unchanged, which blocks their migration"),
        (Fate::Untyped.check(), "objects have a value of another type, so that every server-side apply of them fails"),
        (Fate::Ratcheted.check(), "objects are invalid, and tolerated only as long as they do not change"),
        (
            Fate::Bumped.check(),
            "objects get another generation when they are written, so that controllers reconcile them",
        ),
        (Fate::Undecided.check(), "what becomes of objects cannot be decided"),
        (WEBHOOK, "a webhook converts objects, so that only one version can be judged"),
    ],
    needs: "the live definition, and all objects of its kind where its versions or its conversion change",
    default: false,
    judges_derived_crds: true,
    ..RuleMeta::COMMON
};

impl Rule for ExistingObjects {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        Needs::new()
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        let correct = correct_objects(facts, finding).filter(|_| finding.remedy.is_some());
        correct.into_iter().chain(finding.remedy.iter().map(Remedy::author)).collect()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, memory: &mut Memory) -> Checked {
        // The schemas are read when the first page comes, and kept for all others.
        memory.keep(|| AllSchemas(facts.changes.crds().map(|_| OnceLock::new()).collect()));
        let subjects: Vec<Subject<'_>> = facts.changes.crds().filter_map(Subject::of).collect();
        let needs: Needs = subjects.iter().filter_map(|it| Need::objects_of(&it.live)).collect();
        if needs.iter().any(|need| !facts.answers.contains_key(need)) {
            return Checked::More(needs);
        }
        let mut judgement = Judgement::default();
        for subject in &subjects {
            subject.check(facts, &mut judgement);
        }
        Checked::Done(judgement)
    }

    fn fold(&self, facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[&Value]) {
        let changes = facts.changes.crds().enumerate();
        let subject = changes.filter_map(|(index, change)| Some((index, Subject::of(change)?)));
        let Some((index, subject)) =
            subject.into_iter().find(|(_, subject)| Need::objects_of(&subject.live).as_ref() == Some(need))
        else {
            return;
        };
        let Some(schemas) = memory.get().and_then(|AllSchemas(all)| all.get(index)).filter(|_| !page.is_empty()) else {
            return;
        };
        let read = || Arc::new(Schemas::of(&Crd::of(subject.old), &Crd::of(subject.new)));
        let schemas = Arc::clone(schemas.get_or_init(read));
        let upgrade = Upgrade::with_schemas(subject.old, subject.new, facts.cluster.judged_server(), schemas);
        let planned = PlannedObjects::of_kind(&facts.changes, &subject.live.group, &subject.live.kind);
        stack::with_room(|| passage::fold(&upgrade, &subject.live, &planned, state, page));
    }
}

/// The schemas of all definitions, by the index of their change.
struct AllSchemas(Vec<OnceLock<Arc<Schemas>>>);

/// A definition whose versions or conversion change.
struct Subject<'a> {
    change: &'a Change,
    old: &'a Value,
    new: &'a Value,
    live: StoredState,
}

impl<'a> Subject<'a> {
    fn of(change: &'a Change) -> Option<Self> {
        if !change.object.is_definition() || change.operation != Operation::Update {
            return None;
        }
        let (old, new) = (change.live.as_deref()?, change.after()?);
        let differs = |pointer: &str| old.pointer(pointer) != new.pointer(pointer);
        let matters = ["/spec/versions", "/spec/conversion", "/spec/validation", "/spec/preserveUnknownFields"];
        matters.into_iter().any(differs).then(|| Self { change, old, new, live: StoredState::of(old) })
    }

    fn check(&self, facts: &Facts, judgement: &mut Judgement) {
        let object = &self.change.object;
        let folded = Need::objects_of(&self.live).and_then(|need| match facts.folded(NAME, &need)? {
            Folded::State { state, examined, .. } => Some(Ok((state, examined))),
            Folded::Unable(reason) => Some(Err(reason.to_owned())),
        });
        let (state, examined) = match folded {
            Some(Ok(folded)) => folded,
            Some(Err(reason)) => {
                return judgement.unable.push(format!("{object}: its objects could not be listed: {reason}"));
            }
            None => {
                return judgement
                    .unable
                    .push(format!("{object}: no version is served, so its objects cannot be listed"));
            }
        };
        if examined == 0 {
            return;
        }
        let new = Crd::of(self.new);
        for version in &new.versions {
            let by_fate = &state[version.name];
            judgement.findings.extend(Fate::ALL.into_iter().filter_map(|fate| {
                let counts = by_fate.get(fate.check())?;
                Some(self.finding(fate, version.name, counts, examined))
            }));
        }
        let seen = self.live.readable().unwrap_or_default();
        let others: Vec<&str> =
            new.versions.iter().filter(|it| it.served && it.name != seen).map(|it| it.name).collect();
        if new.strategy() == Strategy::Webhook && !others.is_empty() {
            let message = format!(
                "objects are judged at \"{seen}\" only: a webhook converts them to {}",
                others.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
            );
            let finding = Finding::new(NAME, WEBHOOK, Verdict::Change, object.clone(), message);
            judgement.findings.push(finding.at(self.change.locate(&["spec".into(), "conversion".into()])));
        }
    }

    fn finding(&self, fate: Fate, version: &str, counts: &Value, examined: u64) -> Finding {
        let affected = counts["objects"].as_u64().unwrap_or_default();
        let names = counts["names"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let fields = counts["fields"].as_object();
        let mut by_number: Vec<(&str, u64, &str, &str)> = fields
            .into_iter()
            .flatten()
            .map(|(field, counts)| {
                let example = counts["example"].as_str().unwrap_or_default();
                (field.as_str(), counts["objects"].as_u64().unwrap_or_default(), up_to(counts), example)
            })
            .collect();
        by_number.sort_by_key(|(field, count, ..)| (std::cmp::Reverse(*count), *field));
        let named = by_number
            .iter()
            .map(|(field, count, up_to, example)| format!("{field} ({up_to}{count}, such as {example})"));
        let named: Vec<String> = named.collect();
        let objects = if affected == 1 { "object" } else { "objects" };
        let kind = &self.live.kind;
        let message = format!(
            "{}{affected} {kind} {objects} {} at \"{version}\": {}",
            up_to(counts),
            fate.says(affected),
            listed(&named, SHOWN)
        );
        let fields: Vec<&str> = by_number.iter().map(|(field, ..)| *field).collect();
        let position = self.change.desired.as_deref().map(|manifest| Crd::of(manifest).path_of_schema(version));
        let mut finding = Finding::new(NAME, fate.check(), fate.verdict(), self.change.object.clone(), message)
            .at(position.and_then(|path| self.change.locate(&path)))
            .bound_to(&json!([version, fields]));
        finding.version = Some(version.to_owned());
        finding.effect = fate.effect().map(str::to_owned);
        finding.remedy = fate.remedy().map(str::to_owned);
        finding.severity = if fate.warns() { Severity::Warning } else { Severity::Info };
        finding.live_objects = Some(LiveObjects {
            up_to: !up_to(counts).is_empty(),
            ..LiveObjects::exactly(affected, examined, names.collect())
        });
        finding
    }
}

/// `up to ` in front of a count that has objects of which a read does not show whether they are affected.
fn up_to(counts: &Value) -> &'static str {
    if counts[UP_TO] == true { "up to " } else { "" }
}

#[cfg(test)]
mod tests;
