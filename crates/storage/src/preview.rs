//! What becomes of stored objects when another form of their definition is written: the steps, how many objects each one
//! writes, and the fields that differ. Read only.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, ErrorKind, ListQuery, Pages, Turn, guarded};
use pushback_conversion::{GivenPlan, Operation};
use pushback_crd::definition::path::field_path;
use pushback_crd::definition::{CarryOver, PairLoss, StoragePolicy, StoredState, Upgrade, pair_losses};
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_crd::{stack, words};
use pushback_objects::ObjectExt;
use pushback_objects::text::counted;
use serde::Serialize;
use serde_json::Value;

use super::definitions::object_kind;
use super::replacement::Replacement;

/// Objects a page: whole ones are read.
const PAGE: u32 = 100;

words! {
    /// What a step does.
    pub enum StepKind {
        /// Writes a definition with the old and the new versions.
        Bridge = "bridge",
        /// Converts objects by a plan.
        Convert = "convert",
        /// Rewrites objects at the storage version, and proves it.
        Move = "move",
        /// Takes old versions off the list of stored versions.
        Prune = "prune",
        /// Writes the wanted definition.
        Write = "write",
    }
}

words! {
    /// What becomes of a field.
    pub enum FieldFate {
        /// The new version has no place for it.
        Lost = "lost",
        /// Only the new version has it.
        New = "new",
        /// The plan says what happens to it.
        Planned = "planned",
    }
}

/// A step, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// What it does.
    pub step: StepKind,
    /// The same in a sentence.
    pub says: String,
    /// Number of objects that it writes.
    pub objects: u64,
}

/// A field that is not the same in both versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The older version, or the one that objects are stored in.
    pub from: String,
    /// The newer version, or the one that they are moved to.
    pub to: String,
    /// The field in the one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The field in the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// What becomes of it.
    pub fate: FieldFate,
    /// Details.
    pub how: String,
    /// Number of stored objects that lose something there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// One of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// What becomes of the objects of one definition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The definition.
    pub definition: String,
    /// The versions that objects may be stored in.
    pub stored: Vec<String>,
    /// The version that they are stored in afterwards.
    pub target: String,
    /// Number of objects.
    pub objects: u64,
    /// Number of objects that get a new generation, so that their controllers reconcile them.
    pub new_generation: u64,
    /// The least `--storage` that is enough; nothing is done to objects without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<&'static str>,
    /// The steps.
    pub steps: Vec<PlannedStep>,
    /// Fields that differ: first those that objects lose.
    pub fields: Vec<FieldChange>,
    /// Why it cannot be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What becomes of the objects of several definitions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewReport {
    /// Version of this format.
    pub schema_version: u32,
    /// The definitions, sorted by name.
    pub definitions: Vec<Preview>,
    /// Whether it has been done.
    pub carried_out: bool,
}

impl PreviewReport {
    /// Why it cannot be done: the first definition that stands against it.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        self.definitions.iter().find_map(|it| Some(format!("{}: {}", it.definition, it.refused.as_ref()?)))
    }

    /// Whether there is anything to do.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.definitions.iter().any(|it| !it.steps.is_empty())
    }
}

impl Preview {
    /// What becomes of the objects when the wanted definition is written.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn of(
        cluster: &dyn Cluster,
        address: &Address,
        live: &Arc<Value>,
        wanted: &Arc<Value>,
        given: Option<&GivenPlan>,
        backup: Option<&Path>,
    ) -> Result<(Self, Replacement), ClusterError> {
        let under = |policy| Replacement::of(live, wanted, policy, given, backup.map(Path::to_owned));
        let ways = [StoragePolicy::Migrate, StoragePolicy::Bridge].map(|policy| (policy, under(policy)));
        let found = ways.into_iter().find(|(_, replacement)| replacement.way.is_some());
        let (policy, replacement) = match found {
            Some((policy, replacement)) => (Some(policy), replacement),
            None => (None, Replacement { way: None, conversion: None }),
        };
        let (old, new) = (StoredState::of(live), StoredState::of(wanted));
        let target = match &replacement.way {
            Some(CarryOver::Before) => old.storage.clone(),
            _ => new.storage.clone(),
        };
        let target = target.unwrap_or_default();
        let (writes, refusal) = writes(cluster, address, live, wanted, replacement.way.as_ref()).await?;
        let refused = match refusal {
            None => replacement.obstacle(cluster, address, live, wanted).await?.map(|obstacle| obstacle.to_string()),
            Some(error) => Some(error.message),
        };
        let into = if replacement.way == Some(CarryOver::Before) { live } else { wanted };
        let mut differing = match &replacement.conversion {
            Some(conversion) => conversion.operations().iter().map(planned).collect(),
            None => differing(live, into, &old, &target),
        };
        let effects = effects(cluster, live, into, &target, &mut differing).await?;
        let mut fields: Vec<FieldChange> = differing.into_iter().map(|it| it.change).collect();
        fields.sort_by_key(|field| std::cmp::Reverse(field.objects));
        let mut preview = Self {
            definition: old.definition.clone(),
            stored: old.stored.clone(),
            target,
            objects: effects.objects,
            new_generation: effects.new_generation,
            policy: policy.map(StoragePolicy::as_str),
            steps: Vec::new(),
            fields,
            refused,
        };
        preview.steps = preview.steps_of(&replacement, &old, writes);
        Ok((preview, replacement))
    }

    fn steps_of(&self, replacement: &Replacement, old: &StoredState, writes: bool) -> Vec<PlannedStep> {
        let Self { objects, target, .. } = self;
        let step = |step, objects, says: String| PlannedStep { step, says, objects };
        let count = counted(*objects, "object");
        let debt: Vec<&str> = self.stored.iter().map(String::as_str).filter(|name| name != target).collect();
        let others = debt.join(" and ");
        let moved = || {
            [
                step(
                    StepKind::Move,
                    *objects,
                    format!("rewrite {count} at {target}, and prove that none is left behind"),
                ),
                step(StepKind::Prune, 0, format!("take {others} off status.storedVersions")),
            ]
        };
        let written = || step(StepKind::Write, 0, "write the wanted definition".to_owned());
        let from = old.storage.as_deref().unwrap_or_default();
        match &replacement.way {
            None | Some(CarryOver::Done) if !writes => Vec::new(),
            None | Some(CarryOver::Done) => vec![written()],
            Some(CarryOver::Before) => moved().into_iter().chain([written()]).collect(),
            Some(CarryOver::After | CarryOver::WebhookFirst(_)) => {
                writes.then(written).into_iter().chain(moved()).collect()
            }
            Some(CarryOver::Bridge(_)) => {
                let is_converted = replacement.conversion.is_some();
                let bridge = match is_converted {
                    true => format!("write a definition in which {target} takes both shapes, and {from} is not served"),
                    false => format!("write a definition with {from} and {target}, which stores {target}"),
                };
                let convert = step(StepKind::Convert, *objects, format!("convert {count} from {from} by the plan"));
                [step(StepKind::Bridge, 0, bridge)]
                    .into_iter()
                    .chain(is_converted.then_some(convert))
                    .chain(moved())
                    .chain([written()])
                    .collect()
            }
        }
    }
}

/// Whether the definition changes, and why the API server would refuse it as it is now.
async fn writes(
    cluster: &dyn Cluster,
    address: &Address,
    live: &Arc<Value>,
    wanted: &Arc<Value>,
    way: Option<&CarryOver>,
) -> Result<(bool, Option<ClusterError>), ClusterError> {
    if live == wanted {
        return Ok((false, None));
    }
    if !matches!(way, None | Some(CarryOver::After)) {
        return Ok((true, None));
    }
    match cluster.apply(address, &guarded(wanted, live), ApplyOptions::DRY_RUN).await {
        Ok(written) => Ok((written.object.get("spec") != live.get("spec"), None)),
        Err(error) if matches!(error.kind, ErrorKind::Invalid | ErrorKind::Denied) => Ok((true, Some(error))),
        // Who may only read can look all the same.
        Err(error) if error.kind == ErrorKind::Forbidden => Ok((true, None)),
        Err(error) => Err(error),
    }
}

/// A field, with what objects lose there.
struct Differing {
    change: FieldChange,
    loss: Option<PairLoss>,
}

/// What a plan does to a field.
fn planned(operation: &Operation) -> Differing {
    let shown = |path: String| Some(path).filter(|path| !path.is_empty());
    let change = FieldChange {
        from: operation.from.clone(),
        to: operation.to.clone(),
        old: shown(operation.older.to_string()),
        new: shown(operation.newer.to_string()),
        fate: FieldFate::Planned,
        how: operation.kind.says().to_owned(),
        objects: None,
        example: None,
    };
    Differing { change, loss: None }
}

/// The fields that differ between the versions that objects are stored in and the one that they are moved to.
fn differing(live: &Value, wanted: &Value, old: &StoredState, target: &str) -> Vec<Differing> {
    let stored = old.stored.iter().chain(&old.storage).map(String::as_str).collect::<BTreeSet<_>>();
    let row = |from: &str, loss: PairLoss, fate: FieldFate| {
        let field = Some(field_path(&loss.path)).filter(|path| !path.is_empty());
        let (old, new) = if fate == FieldFate::Lost { (field, None) } else { (None, field) };
        let (from, to, how) = (from.to_owned(), target.to_owned(), loss.kind.says().to_owned());
        let objects = (fate == FieldFate::Lost).then_some(0);
        let change = FieldChange { from, to, old, new, fate, how, objects, example: None };
        Differing { change, loss: (fate == FieldFate::Lost).then_some(loss) }
    };
    let mut found = Vec::new();
    for from in stored.into_iter().filter(|name| *name != target) {
        let (lost, new) = stack::with_room(|| {
            let lost = pair_losses((live, from), (wanted, target)).unwrap_or_default();
            (lost, pair_losses((wanted, target), (live, from)).unwrap_or_default())
        });
        found.extend(lost.into_iter().map(|loss| row(from, loss, FieldFate::Lost)));
        found.extend(new.into_iter().map(|loss| row(from, loss, FieldFate::New)));
    }
    found
}

/// What the objects show.
#[derive(Clone, Copy, Debug, Default)]
struct Effects {
    objects: u64,
    new_generation: u64,
}

/// Reads all objects, and counts those that lose something in each field.
async fn effects(
    cluster: &dyn Cluster,
    live: &Value,
    wanted: &Value,
    target: &str,
    differing: &mut [Differing],
) -> Result<Effects, ClusterError> {
    let state = StoredState::of(live);
    let upgrade = Upgrade::of(live, wanted, Server::default());
    let mut effects = Effects::default();
    let (Some(readable), Some(target)) = (state.readable(), upgrade.new_resource(target)) else { return Ok(effects) };
    let query = ListQuery { limit: PAGE, ..ListQuery::new(object_kind(&state, readable, false), None, "") };
    let mut pages = Pages::of(cluster, query);
    while let Some(turn) = pages.next().await? {
        match turn {
            Turn::Restart => {
                effects = Effects::default();
                differing.iter_mut().for_each(|it| it.change.objects = it.change.objects.map(|_| 0));
            }
            Turn::Page(page) => {
                stack::with_room(|| page.items.iter().for_each(|object| effects.add(object, &target, differing)));
            }
        }
    }
    Ok(effects)
}

impl Effects {
    fn add(&mut self, object: &Value, target: &Resource<'_>, differing: &mut [Differing]) {
        self.objects += 1;
        let converted = pipeline::convert(target, object);
        let written = pipeline::write_back(target, Server::default(), &converted.object);
        self.new_generation += u64::from(!written.defaulted.is_empty());
        let lost: Vec<_> = converted.pruned.iter().chain(&converted.dropped_nulls).collect();
        if lost.is_empty() {
            return;
        }
        for it in differing {
            if it.loss.as_ref().is_some_and(|loss| lost.iter().any(|path| loss.covers(path))) {
                it.change.objects = it.change.objects.map(|count| count + 1);
                it.change.example.get_or_insert_with(|| object.full_name());
            }
        }
    }
}
