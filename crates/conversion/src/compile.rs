//! Compiles a plan for a definition: orders the versions, derives every step, and checks the whole before anything is
//! converted.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::Crd;
use pushback_crd::schema::Schema;
use pushback_objects::object::ObjectExt;
use pushback_objects::source::{Document, InputError, Position};
use serde_json::{Value, json};

use super::bag::Levels;
use super::converter::{CompiledVersion, Converter, Edge, Ways};
use super::derive::{Derived, Deriver, Form};
use super::gaps;
use super::gather::gather;
use super::lineage::{self, Lineage};
use super::path::FieldPath;
use super::plan::{BagPlace, ConversionPlan, Placed, Side, StepPlan, Unassessed};
use super::storage_schema::{self, add_bags, free_name, skeleton, with_enumerations, without_bags};

/// Compiles a plan for its definition.
///
/// # Errors
/// Everything that is wrong with the plan, in the order of its text: what does not fit the schemas, what is never used,
/// and fields that nobody has decided about.
pub fn compile(plan: &ConversionPlan, definition: &Value) -> Result<Converter, Vec<InputError>> {
    let mut errors = Errors { plan, list: Vec::new() };
    let crd = Crd::of(definition);
    let name = definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name != plan.name {
        errors.add(
            &plan.position,
            format!("metadata.name: the plan is for {}, the definition is {name}", plan.name),
            "",
        );
    }
    let schemas = schemas(plan, &crd, &mut errors);
    let Some(lineage) = order(plan, &schemas, &mut errors) else { return Err(errors.sorted()) };
    let all: Vec<&Value> = schemas.values().collect();
    let Some(bag) = free_name(&all) else {
        let message = format!("every name for the property bag is taken: {}", storage_schema::BAG_NAMES.join(", "));
        errors.add(&plan.position, message, "rename the field in one of the versions");
        return Err(errors.sorted());
    };
    let forms: Vec<(Form, BTreeSet<FieldPath>)> =
        lineage.versions.iter().map(|name| form(name, schemas.get(name).unwrap_or(&Value::Null), bag)).collect();
    check_names(plan, &lineage, &forms, &mut errors);
    let steps = step_plans(plan, &lineage, &mut errors);
    let mut derived: BTreeMap<(usize, usize), Derived> = BTreeMap::new();
    for (&(older, newer), step) in &steps {
        let deriver = Deriver::new(&forms[older].0, &forms[newer].0, step, &plan.types, plan.unassessed);
        derived.insert((older, newer), deriver.derive());
    }
    let of_versions: Vec<Derived> = forms.iter().map(|(form, _)| on_its_own(plan, form)).collect();
    for found in derived.values_mut().chain(of_versions.clone().iter_mut()) {
        errors.list.append(&mut found.errors);
    }
    if errors.list.is_empty() {
        gaps::check(&lineage, &steps, &derived, &mut errors.list);
    }
    if !errors.list.is_empty() {
        return Err(errors.sorted());
    }
    let places = gaps::bags(&lineage, &steps, &derived);
    let versions = forms.into_iter().zip(of_versions).zip(places).enumerate();
    let versions = versions.map(|(index, (((form, declared), own), places))| {
        version(form, &declared, own, &places, bag, (index, lineage.hub))
    });
    let operations = derived.values_mut().flat_map(|found| std::mem::take(&mut found.operations)).collect();
    let versions = versions.collect();
    let (next, edges) = (lineage.towards_hub(), edges(derived, &steps));
    Ok(Converter {
        name: plan.name.clone(),
        group: crd.group().to_owned(),
        kind: crd.kind().to_owned(),
        bag,
        place: plan.bag,
        versions,
        ways: (0..lineage.versions.len()).map(|version| ways(version, &next, &edges)).collect(),
        next,
        edges,
        operations,
        lineage,
    })
}

/// The errors of a plan.
struct Errors<'p> {
    plan: &'p ConversionPlan,
    list: Vec<InputError>,
}

impl Errors<'_> {
    fn add(&mut self, position: &Position, message: String, hint: &str) {
        let hints = if hint.is_empty() { Vec::new() } else { vec![hint.to_owned()] };
        self.list.push(InputError { message, position: position.clone(), hints });
    }

    /// In the order of the text; what no entry causes is an error of the plan as a whole.
    fn sorted(mut self) -> Vec<InputError> {
        for error in &mut self.list {
            if error.position == Position::default() {
                error.position = self.plan.position.clone();
            }
        }
        self.list.sort_by(|one, other| {
            let key = |error: &InputError| (error.position.line, error.position.column, error.message.clone());
            key(one).cmp(&key(other))
        });
        self.list.dedup();
        self.list
    }
}

/// The schema of every version: of the definition, and of those that only the plan still has.
fn schemas(plan: &ConversionPlan, crd: &Crd<'_>, errors: &mut Errors<'_>) -> BTreeMap<String, Value> {
    let empty = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let given = crd
        .versions
        .iter()
        .map(|version| (version.name.to_owned(), version.schema.cloned().unwrap_or_else(|| empty.clone())));
    let mut schemas: BTreeMap<String, Value> = given.collect();
    for Placed { value: (name, schema), position } in &plan.schemas {
        if schemas.contains_key(name) {
            let message = format!("schemas: the definition has version {name} itself");
            errors.add(position, message, "remove it here: a plan keeps only schemas of versions that are gone");
        } else {
            let schema = schema.get("openAPIV3Schema").unwrap_or(schema);
            schemas.insert(name.clone(), schema.clone());
        }
    }
    if schemas.is_empty() {
        errors.add(&plan.position, format!("{} has no versions", plan.name), "");
    }
    let stored = crd.value.pointer("/status/storedVersions").and_then(Value::as_array);
    for name in stored.into_iter().flatten().filter_map(Value::as_str).filter(|name| !schemas.contains_key(*name)) {
        let message = format!("objects may be stored in version {name}, and there is no schema of it");
        errors.add(&plan.position, message, "keep its last schema under `schemas`");
    }
    schemas
}

fn order(plan: &ConversionPlan, schemas: &BTreeMap<String, Value>, errors: &mut Errors<'_>) -> Option<Lineage> {
    let names: Vec<String> = schemas.keys().cloned().collect();
    let known = |list: &[Placed<String>], key: &str, errors: &mut Errors<'_>| {
        for Placed { value, position } in list {
            if !schemas.contains_key(value) {
                let message = format!("{key}: there is no schema of version {value}");
                errors.add(position, message, "keep the last schema of a version that is gone under `schemas`");
            }
        }
    };
    let versions = match &plan.order {
        Some(order) => {
            known(order, "order", errors);
            let listed: Vec<String> = order.iter().map(|placed| placed.value.clone()).collect();
            let unique: BTreeSet<&String> = listed.iter().collect();
            let missing: Vec<&str> = names.iter().filter(|name| !listed.contains(name)).map(String::as_str).collect();
            if !missing.is_empty() || unique.len() < listed.len() {
                let position = order.first().map_or(&plan.position, |placed| &placed.position);
                let message = format!("order: expected every version once, missing are: {}", missing.join(", "));
                errors.add(position, message, "");
                return None;
            }
            listed
        }
        None => match lineage::sort(&names) {
            Ok(sorted) => sorted,
            Err((one, other)) => {
                let message = format!("nothing says whether {one} or {other} is older");
                errors.add(&plan.position, message, "list all versions under `order`, the oldest first");
                return None;
            }
        },
    };
    if let Some(previews) = &plan.previews {
        known(previews, "previews", errors);
    }
    if let Some(hub) = &plan.hub {
        known(std::slice::from_ref(hub), "hub", errors);
    }
    if !errors.list.is_empty() || versions.is_empty() {
        return None;
    }
    let is_preview = |name: &String| match &plan.previews {
        Some(previews) => previews.iter().any(|placed| placed.value == *name),
        None => lineage::is_preview(name),
    };
    let previews: Vec<bool> = versions.iter().map(is_preview).collect();
    let hub = plan.hub.as_ref().and_then(|hub| versions.iter().position(|name| *name == hub.value));
    Some(Lineage::new(versions, &previews, hub))
}

fn form(name: &str, schema: &Value, bag: &str) -> (Form, BTreeSet<FieldPath>) {
    let (mut plain, mut full) = (skeleton(schema), with_enumerations(schema));
    without_bags(&mut full, bag);
    let declared = without_bags(&mut plain, bag);
    (Form { name: name.to_owned(), schema: Schema::of(&full), skeleton: plain }, declared)
}

/// Types and hooks must be about versions and fields that exist.
fn check_names(
    plan: &ConversionPlan,
    lineage: &Lineage,
    forms: &[(Form, BTreeSet<FieldPath>)],
    errors: &mut Errors<'_>,
) {
    for Placed { value: (version, path, name), position } in &plan.types {
        match lineage.index(version) {
            None => errors.add(position, format!("types: there is no version {version}"), ""),
            Some(index) if storage_schema::node(&forms[index].0.skeleton, path.steps()).is_none() => {
                errors.add(position, format!("types: {version} has no field {path} to be a {name}"), "");
            }
            Some(_) => {}
        }
    }
    for hooks in &plan.hooks {
        match lineage.index(&hooks.version) {
            None => errors.add(&hooks.position, format!("hooks: there is no version {}", hooks.version), ""),
            Some(index) if index == lineage.hub && hooks.side == Side::Storage => {
                let message = format!("hooks: {} is the hub, so its storage side is not converted", hooks.version);
                errors.add(&hooks.position, message, "say `side: api`, or name the version before it");
            }
            Some(_) => {}
        }
    }
}

/// What the plan says of every step, hooks of the storage side included.
fn step_plans(plan: &ConversionPlan, lineage: &Lineage, errors: &mut Errors<'_>) -> BTreeMap<(usize, usize), StepPlan> {
    let name = |index: usize| lineage.versions[index].clone();
    let empty = |&(older, newer): &(usize, usize)| {
        let step =
            StepPlan { from: name(older), to: name(newer), position: plan.position.clone(), ..StepPlan::default() };
        ((older, newer), step)
    };
    let mut steps: BTreeMap<(usize, usize), StepPlan> = lineage.steps.iter().map(empty).collect();
    for step in &plan.steps {
        let ends = (lineage.index(&step.from), lineage.index(&step.to));
        match ends {
            (Some(older), Some(newer)) if steps.contains_key(&(older, newer)) => {
                steps.insert((older, newer), step.clone());
            }
            (Some(_), Some(_)) => {
                let known = lineage.steps.iter().filter(|(older, newer)| {
                    [&lineage.versions[*older], &lineage.versions[*newer]].iter().any(|name| **name == step.from)
                });
                let known: Vec<String> =
                    known.map(|&(older, newer)| format!("from {} to {}", name(older), name(newer))).collect();
                let message = format!("there is no step from {} to {}", step.from, step.to);
                let hint = format!("steps lead to the next version: {}", known.join(", "));
                errors.add(&step.position, message, &hint);
            }
            (one, _) => {
                let missing = if one.is_none() { &step.from } else { &step.to };
                errors.add(&step.position, format!("there is no version {missing}"), "");
            }
        }
    }
    let next = lineage.towards_hub();
    for hooks in plan.hooks.iter().filter(|hooks| hooks.side == Side::Storage) {
        let Some(here) = lineage.index(&hooks.version) else { continue };
        let Some(&there) = next.get(&here) else { continue };
        let is_up = here < there;
        let Some(step) = steps.get_mut(&(here.min(there), here.max(there))) else { continue };
        let (to, from) = if is_up { (&mut step.up, &mut step.down) } else { (&mut step.down, &mut step.up) };
        to.extend(hooks.assign_to.iter().cloned());
        from.extend(hooks.assign_from.iter().cloned());
    }
    steps
}

/// The hooks of a version's API side, as a step from the version to itself.
fn on_its_own(plan: &ConversionPlan, form: &Form) -> Derived {
    let mut step = StepPlan {
        from: form.name.clone(),
        to: form.name.clone(),
        position: plan.position.clone(),
        ..StepPlan::default()
    };
    for hooks in plan.hooks.iter().filter(|hooks| hooks.side == Side::Api && hooks.version == form.name) {
        step.up.extend(hooks.assign_to.iter().cloned());
        step.down.extend(hooks.assign_from.iter().cloned());
    }
    Deriver::new(form, form, &step, &[], Unassessed::Error).derive()
}

fn version(
    form: Form,
    declared: &BTreeSet<FieldPath>,
    own: Derived,
    places: &BTreeSet<FieldPath>,
    bag: &str,
    (index, hub): (usize, usize),
) -> CompiledVersion {
    let mut storage_schema = form.skeleton.clone();
    add_bags(&mut storage_schema, bag, places);
    let edge = |ends, convert, programs: Vec<String>, operations: &[super::Operation]| Edge {
        ends,
        convert,
        has_hooks: !programs.is_empty() || !operations.is_empty(),
        programs,
    };
    let has = |hooks: &super::step::Convert| if hooks.is_same() { &[] } else { own.operations.as_slice() };
    let assign_to = edge((index, hub), own.up.clone(), own.up_programs, has(&own.up));
    let assign_from = edge((hub, index), own.down.clone(), own.down_programs, has(&own.down));
    CompiledVersion {
        levels: Levels::of(places, declared),
        has_bags: !declared.is_empty(),
        storage_schema,
        assign_to,
        assign_from,
        form,
    }
}

fn edges(
    derived: BTreeMap<(usize, usize), Derived>,
    steps: &BTreeMap<(usize, usize), StepPlan>,
) -> BTreeMap<(usize, usize), Edge> {
    let mut edges = BTreeMap::new();
    for ((older, newer), found) in derived {
        let step = steps.get(&(older, newer));
        let has = |hooks: fn(&StepPlan) -> bool| step.is_some_and(hooks);
        let (up, down) = (has(|step| !step.up.is_empty()), has(|step| !step.down.is_empty()));
        let up = Edge { ends: (older, newer), convert: found.up, programs: found.up_programs, has_hooks: up };
        let down = Edge { ends: (newer, older), convert: found.down, programs: found.down_programs, has_hooks: down };
        edges.extend([up, down].map(|edge| (edge.ends, edge)));
    }
    edges
}

/// The steps between a version and the hub.
fn ways(version: usize, next: &BTreeMap<usize, usize>, edges: &BTreeMap<(usize, usize), Edge>) -> Ways {
    let mut ways = Ways::default();
    let mut here = version;
    while let Some(&there) = next.get(&here) {
        ways.up.extend(edges.get(&(here, there)).cloned());
        ways.down.extend(edges.get(&(there, here)).cloned());
        here = there;
    }
    ways.down.reverse();
    gather(&mut ways.up);
    gather(&mut ways.down);
    ways
}

impl ConversionPlan {
    /// A plan for a definition that says nothing itself: conversions as they are derived, with fields that nobody has
    /// decided about kept in the bag.
    #[must_use]
    pub fn derived(definition: &Document) -> Self {
        Self {
            name: definition.value.name().to_owned(),
            position: definition.positions.start(),
            unassessed: Unassessed::Stash,
            bag: BagPlace::Property,
            ..Self::default()
        }
    }
}
