//! Rule ConversionRoundTrip: an object that a client writes back unchanged at another version stays what it was. Under
//! strategy None every pair of versions is judged by its schemas; a webhook is judged by its conversion plan.

mod operators;
mod planned;

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_conversion::plan::BagPlace;
use pushback_conversion::{GivenPlan, is_bag_edited};
use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{
    Crd, PairLoss, Schemas, StoredState, Strategy, Upgrade, VersionLosses, listed, round_trip, version_losses,
};
use pushback_crd::schema::pipeline::{self, Server};
use pushback_crd::stack;
use pushback_objects::finding::{Finding, LiveObjects, Severity, Verdict};
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::Remedy;
use serde_json::{Map, Value, json};

use crate::facts::{Change, ChangeSet, Facts, Folded, Need, Needs, Operation};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};
use operators::Risk;

const NAME: &str = "ConversionRoundTrip";
const STORED: &str = "lostWhenStored";
const WRITTEN_BACK: &str = "lostWhenWrittenBack";
const PLANNED: &str = "lostByPlan";
const FAILED: &str = "notConverted";
const SAMPLED: &str = "sampled";
const WEBHOOK: &str = "notJudged";
const EDITED: &str = "bagEdited";

/// Maximum number of fields that a message names.
const SHOWN: usize = 4;
/// Maximum number of affected objects kept by name.
const NAMES: usize = 5;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConversionRoundTrip;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "an object that is written back unchanged at another version stays what it was",
    docs: include_str!("conversion_round_trip/docs.md"),
    checks: &[
        (STORED, "what is written at a version is lost, because the storage version does not have it"),
        (
            WRITTEN_BACK,
            "a client that writes an object back unchanged at a version drops what this version does not have",
        ),
        (PLANNED, "by its conversion plan, an object does not come back from another version as it was"),
        (FAILED, "by its conversion plan, an object cannot be converted to another version, and not be read there"),
        (SAMPLED, "a conversion plan with expressions was tried on samples without a loss, which is not a proof"),
        (EDITED, "somebody edited the annotation in which objects carry values of other versions"),
        (WEBHOOK, "a webhook converts objects and no conversion plan says how, so that nothing is claimed"),
    ],
    needs: "the definition; where a pair of versions loses fields, or a plan keeps them in an annotation, the objects that \
            are there",
    // Which workloads are operators depends on all roles.
    compares_the_whole: true,
    default: false,
    ..RuleMeta::COMMON
};

impl Rule for ConversionRoundTrip {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        Needs::new()
    }

    fn remedies(&self, _facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        finding.remedy.iter().map(Remedy::author).collect()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, memory: &mut Memory) -> Checked {
        let changes = &facts.changes.changes;
        // Worked out once, for all rounds and every page.
        memory.keep(|| stack::with_room(|| AllLosses(changes.iter().map(Losses::of).collect())));
        let pairs: Vec<Pairs<'_>> = (0..changes.len()).filter_map(|index| Pairs::of(changes, index, memory)).collect();
        let converts = |pairs: &&Pairs<'_>| {
            let plan = facts.conversion_plan(&pairs.change.object.name);
            has_bags(plan) || (plan.is_some() && pairs.upgrade.new.strategy() == Strategy::Webhook)
        };
        let lossy = pairs.iter().filter(|pairs| !pairs.losses.written_back.is_empty() || converts(pairs));
        let needs: Needs = lossy.filter_map(|pairs| pairs.objects()).collect();
        if needs.iter().any(|need| !facts.answers.contains_key(need)) {
            return Checked::More(needs);
        }
        let mut judgement = Judgement::default();
        for pairs in &pairs {
            let found = stack::with_room(|| pairs.check(facts));
            judgement.findings.extend(found.findings);
            judgement.unable.extend(found.unable);
        }
        Checked::Done(judgement)
    }

    fn fold(&self, facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[&Value]) {
        let changes = &facts.changes.changes;
        let mut pairs = (0..changes.len()).filter_map(|index| Pairs::of(changes, index, memory));
        if let Some(pairs) = pairs.find(|pairs| pairs.objects().as_ref() == Some(need)) {
            let plan = facts.conversion_plan(&pairs.change.object.name);
            stack::with_room(|| pairs.fold(plan, state, page));
        }
    }
}

/// What the pairs of versions of each definition lose, by the index of its change.
struct AllLosses(Vec<Option<Losses>>);

/// What the pairs of versions of a definition lose.
struct Losses {
    storage: String,
    schemas: Arc<Schemas>,
    /// By the version of the write: what the storage version does not have.
    stored: BTreeMap<String, Vec<PairLoss>>,
    /// By the version of a client that writes objects back: what it drops.
    written_back: BTreeMap<String, Vec<PairLoss>>,
}

impl Losses {
    /// `None` if the change leaves no definition with several versions.
    fn of(change: &Change) -> Option<Self> {
        let stays = matches!(change.operation, Operation::Create | Operation::Update | Operation::Noop);
        if !change.object.is_definition() || !stays {
            return None;
        }
        let new = change.after()?;
        let crd = Crd::of(new);
        let storage = crd.versions.iter().find(|version| version.storage)?.name;
        if !crd.versions.iter().any(|version| version.served && version.name != storage) {
            return None;
        }
        let upgrade = Upgrade::of(new, new, Server::default());
        let VersionLosses { stored, written_back } =
            version_losses(&crd, |version| upgrade.new_resource(version), upgrade.server);
        Some(Self { storage: storage.to_owned(), schemas: Arc::clone(&upgrade.schemas), stored, written_back })
    }
}

/// The pairs of versions of a definition.
struct Pairs<'a> {
    change: &'a Change,
    upgrade: Upgrade<'a>,
    losses: &'a Losses,
}

impl<'a> Pairs<'a> {
    fn of(changes: &'a [Change], index: usize, memory: &'a Memory) -> Option<Self> {
        let AllLosses(all) = memory.get()?;
        let (losses, change) = (all.get(index)?.as_ref()?, &changes[index]);
        let new = change.after()?;
        let upgrade = Upgrade::with_schemas(new, new, Server::default(), Arc::clone(&losses.schemas));
        Some(Self { change, upgrade, losses })
    }

    /// The objects that are there.
    fn objects(&self) -> Option<Need> {
        let is_there = self.change.operation != Operation::Create;
        Need::objects_of(&StoredState::of(self.change.live.as_deref().filter(|_| is_there)?))
    }

    /// Counts the objects that a client of each version would take something from.
    fn fold(&self, plan: Option<&GivenPlan>, state: &mut Value, page: &[&Value]) {
        if !state.is_object() {
            *state = Value::Object(Map::new());
        }
        fold_edited_bags(state, page);
        if let Some(plan) = plan.filter(|_| self.upgrade.new.strategy() == Strategy::Webhook) {
            planned::fold(self, plan, state, page);
        }
        for version in self.losses.written_back.keys() {
            let Some(there) = self.upgrade.new_resource(version) else { continue };
            for object in page {
                let converted = pipeline::convert(&there, object);
                if !converted.loses() && converted.unevaluated.is_empty() {
                    continue;
                }
                count(&mut state[version], object);
            }
        }
    }

    fn check(&self, facts: &Facts) -> Judgement {
        let (mut judgement, losses) = (Judgement::default(), self.losses);
        let storage = losses.storage.as_str();
        let risk = Risk::of(&facts.changes, &self.upgrade.new);
        let crd = &self.upgrade.new;
        let folded = self.objects().and_then(|need| match facts.folded(NAME, &need)? {
            Folded::State { state, examined, .. } => Some(Ok((state.clone(), examined))),
            Folded::Unable(reason) => Some(Err(reason.to_owned())),
        });
        if let Some(Err(reason)) = &folded {
            judgement.unable.push(format!("{}: its objects could not be listed: {reason}", self.change.object));
        }
        if let Some(Ok((state, examined))) = &folded {
            judgement.findings.extend(edited_bags(self, state, *examined));
        }
        if crd.strategy() == Strategy::Webhook {
            let plan = facts.conversion_plan(&self.change.object.name);
            let folded = folded.as_ref().and_then(|folded| folded.as_ref().ok());
            let folded = folded.map(|(state, examined)| (state, *examined));
            judgement.findings.extend(planned::check(self, plan, &risk, folded));
            return judgement;
        }
        for (version, lost) in &losses.stored {
            let message = format!(
                "what is written at \"{version}\" loses {}: it is stored as \"{}\"{}",
                fields(lost),
                storage,
                risk.sentence()
            );
            judgement.findings.push(self.finding(STORED, version, lost, &risk, message));
        }
        for (version, lost) in &losses.written_back {
            let message = format!(
                "an object that is written back unchanged at \"{version}\" loses {}{}",
                fields(lost),
                risk.sentence()
            );
            let mut finding = self.finding(WRITTEN_BACK, version, lost, &risk, message);
            if let Some(Ok((state, examined))) = &folded {
                finding.live_objects = Some(counted(&state[version], *examined));
            }
            judgement.findings.push(finding);
        }
        judgement
    }

    fn finding(&self, check: &str, version: &str, losses: &[PairLoss], risk: &Risk, message: String) -> Finding {
        let witness = losses.iter().find_map(|loss| loss.witness.clone());
        let paths = paths(losses);
        let mut finding = self.concerning(check, risk, witness.is_some(), version, message);
        finding.witness = witness.filter(|witness| self.is_lost(check, version, witness)).map(Arc::new);
        let content = json!([self.losses.storage, version, paths]);
        finding.values(Some(json!(paths)), None).bound_to(&content)
    }

    /// A finding at a version, as serious as the risk.
    fn concerning(&self, check: &str, risk: &Risk, is_certain: bool, version: &str, message: String) -> Finding {
        let verdict = match risk {
            Risk::Overlap { .. } if is_certain => Verdict::Breaking,
            Risk::Overlap { .. } => Verdict::Unknown,
            Risk::Apart { .. } | Risk::Open => Verdict::Change,
        };
        let position = self.change.desired.as_deref().map(|manifest| Crd::of(manifest).path_of_schema(version));
        let position = position.and_then(|path| self.change.locate(&path));
        let mut finding = Finding::new(NAME, check, verdict, self.change.object.clone(), message).at(position);
        finding.version = Some(version.to_owned());
        finding.effect = Some("pruned".to_owned());
        finding.severity = if matches!(risk, Risk::Open) { Severity::Warning } else { Severity::Info };
        finding.remedy(risk.remedy())
    }

    /// Whether the pipeline loses something of an object that is written at its own version: when it is stored, or when
    /// it is written back at the other version.
    fn is_lost(&self, check: &str, version: &str, object: &Value) -> bool {
        let resource = |name: &str| self.upgrade.new_resource(name);
        let own = object.text("/apiVersion").rsplit('/').next().unwrap_or_default();
        let (Some(own), Some(through), Some(storage)) =
            (resource(own), resource(version), resource(&self.losses.storage))
        else {
            return false;
        };
        let server = self.upgrade.server;
        let to = if check == STORED { &storage } else { &through };
        match round_trip([&own, &through, &storage], server, object) {
            Some(trip) if check == WRITTEN_BACK => !trip.lost().is_empty(),
            // The write back is refused: nothing is lost until the object is made valid there.
            _ => pipeline::convert(to, &pipeline::create(&own, server, object).object).loses(),
        }
    }
}

/// Counts an object, and keeps the names of the first.
fn count(counts: &mut Value, object: &Value) {
    if !counts.is_object() {
        *counts = json!({"objects": 0, "names": []});
    }
    counts["objects"] = json!(counts["objects"].as_u64().unwrap_or_default() + 1);
    if let Some(names) = counts["names"].as_array_mut().filter(|names| names.len() < NAMES) {
        names.push(object.full_name().into());
    }
}

fn counted(counts: &Value, examined: u64) -> LiveObjects {
    let names = counts["names"].as_array().into_iter().flatten();
    LiveObjects::exactly(
        counts["objects"].as_u64().unwrap_or_default(),
        examined,
        names.filter_map(Value::as_str).map(str::to_owned).collect(),
    )
}

fn fields(losses: &[PairLoss]) -> String {
    listed(&paths(losses), SHOWN)
}

fn paths(losses: &[PairLoss]) -> Vec<String> {
    losses.iter().map(|loss| shown(&field_path(&loss.path))).collect()
}

fn shown(path: &str) -> String {
    if path.is_empty() { "the object as a whole".to_owned() } else { path.to_owned() }
}

/// Whether objects may carry an annotation with the values of other versions.
fn has_bags(plan: Option<&GivenPlan>) -> bool {
    plan.is_some_and(|given| given.plan().bag == BagPlace::Annotation)
}

/// Counts the objects of a page with an edited annotation. No version has such a name.
fn fold_edited_bags(state: &mut Value, page: &[&Value]) {
    page.iter().filter(|object| is_bag_edited(object)).for_each(|object| count(&mut state[EDITED], object));
}

/// Objects whose annotation was edited by hand: what the next conversion takes out of it is not what a version wrote.
fn edited_bags(pairs: &Pairs<'_>, state: &Value, examined: u64) -> Option<Finding> {
    let live = counted(&state[EDITED], examined);
    if live.affected == 0 {
        return None;
    }
    let (objects, change) = (if live.affected == 1 { "object was" } else { "objects were" }, pairs.change);
    let message = format!(
        "the annotation pushback.dev/property-bag of {} {} {objects} edited; the next conversion uses it as it is",
        live.affected,
        pairs.upgrade.new.kind()
    );
    let position = change.locate(&["spec".into(), "conversion".into()]);
    let mut finding = Finding::new(NAME, EDITED, Verdict::Change, change.object.clone(), message).at(position);
    finding.severity = Severity::Warning;
    finding.effect = Some("altered".to_owned());
    finding.live_objects = Some(live);
    let finding = finding.bound_to(&Value::from(EDITED));
    Some(finding.remedy("set the fields at the version that has them, and leave the annotation to conversions"))
}

#[cfg(test)]
mod tests;
