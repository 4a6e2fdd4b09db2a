//! Derives the conversions between two versions from their schemas and what the plan says of the step: pairs the fields of
//! each object, and decides what becomes of those that have no counterpart.

mod hooks;
mod pairs;
mod values;

use std::collections::BTreeSet;

use pushback_crd::schema::Schema;
use pushback_objects::source::{InputError, Position};
use pushback_objects::suggest;
use serde_json::Value;

use super::operation_list::{Loss, Operation, OperationKind};
use super::path::FieldPath;
use super::plan::{Hook, HookAction, Placed, StepPlan, Unassessed};
use super::step::Convert;

/// A version as conversions see it.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) name: String,
    /// Fields and types, without bags.
    pub(super) schema: Schema,
    /// The same for expressions.
    pub(super) skeleton: Value,
}

/// A field of one version that the other one does not have.
#[derive(Clone, Debug)]
pub(super) struct Leftover {
    /// Whether the newer version has it.
    pub(super) is_newer: bool,
    /// The object that it belongs to, in the older and in the newer version.
    pub(super) parents: (FieldPath, FieldPath),
    pub(super) name: String,
    /// Its key in the bag; `None` if it is not kept.
    pub(super) key: Option<String>,
    pub(super) schema: Schema,
}

/// Objects that correspond to each other.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) older: FieldPath,
    pub(super) newer: FieldPath,
    /// Whether everything below has the same path in both.
    pub(super) is_same: bool,
}

/// What is derived for a step.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) up: Convert,
    pub(super) down: Convert,
    pub(super) up_programs: Vec<String>,
    pub(super) down_programs: Vec<String>,
    pub(super) pairs: Vec<Pair>,
    /// Objects that get a bag, in the older and in the newer version.
    pub(super) bags: Vec<(FieldPath, FieldPath)>,
    pub(super) leftovers: Vec<Leftover>,
    pub(super) operations: Vec<Operation>,
    pub(super) errors: Vec<InputError>,
}

/// Derives one step.
pub(super) struct Deriver<'p> {
    older: &'p Form,
    newer: &'p Form,
    plan: &'p StepPlan,
    /// Where an error belongs that no entry of the plan causes.
    position: Position,
    types: &'p [Placed<(String, FieldPath, String)>],
    unassessed: Unassessed,
    used: BTreeSet<(&'static str, usize)>,
    pairs: Vec<Pair>,
    bags: Vec<(FieldPath, FieldPath)>,
    leftovers: Vec<Leftover>,
    operations: Vec<Operation>,
    errors: Vec<InputError>,
}

impl<'p> Deriver<'p> {
    pub(super) fn new(
        older: &'p Form,
        newer: &'p Form,
        plan: &'p StepPlan,
        types: &'p [Placed<(String, FieldPath, String)>],
        unassessed: Unassessed,
    ) -> Self {
        Self {
            older,
            newer,
            plan,
            position: plan.position.clone(),
            types,
            unassessed,
            used: BTreeSet::new(),
            pairs: Vec::new(),
            bags: Vec::new(),
            leftovers: Vec::new(),
            operations: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn derive(mut self) -> Derived {
        let root = FieldPath::default();
        let (up, down) = self.object(&self.older.schema, &self.newer.schema, &root, &root).unwrap_or_else(|why| {
            let position = self.position.clone();
            self.error(&position, format!("{} and {}: {why}", self.older.name, self.newer.name), &[]);
            (Convert::Same, Convert::Same)
        });
        let up_programs = self.programs("up", &self.plan.up);
        let down_programs = self.programs("down", &self.plan.down);
        self.report_unused();
        Derived {
            up,
            down,
            up_programs,
            down_programs,
            pairs: self.pairs,
            bags: self.bags,
            leftovers: self.leftovers,
            operations: self.operations,
            errors: self.errors,
        }
    }

    fn programs(&mut self, key: &'static str, hooks: &[Hook]) -> Vec<String> {
        let mut programs = Vec::new();
        for (index, hook) in hooks.iter().enumerate() {
            if let HookAction::Program(name) = &hook.action {
                self.used.insert((key, index));
                let root = FieldPath::default();
                self.operation(OperationKind::Program, &root, &root, Loss::Unknown);
                programs.push(name.clone());
            }
        }
        programs
    }

    fn error(&mut self, position: &Position, message: String, hints: &[&str]) {
        let hints = hints.iter().map(|&hint| hint.to_owned()).collect();
        self.errors.push(InputError { message, position: position.clone(), hints });
    }

    fn operation(&mut self, kind: OperationKind, older: &FieldPath, newer: &FieldPath, loss: Loss) {
        self.operations.push(Operation {
            from: self.older.name.clone(),
            to: self.newer.name.clone(),
            older: older.clone(),
            newer: newer.clone(),
            kind,
            loss,
        });
    }

    /// The position of an entry that accepts the loss of a field.
    fn acknowledged(&mut self, path: &FieldPath) -> bool {
        let found = self.plan.acknowledge.iter().position(|entry| entry.path == *path);
        if let Some(index) = found {
            self.used.insert(("acknowledge", index));
        }
        found.is_some()
    }

    /// Whether the plan says anything about a node or what is below it.
    fn is_declared_below(&self, older: &FieldPath, newer: &FieldPath) -> bool {
        let plan = self.plan;
        let in_older = |path: &FieldPath| path.below(older).is_some();
        let in_newer = |path: &FieldPath| path.below(newer).is_some();
        let at = |hooks: &[Hook], is_below: &dyn Fn(&FieldPath) -> bool| {
            hooks.iter().any(|hook| matches!(&hook.action, HookAction::Set { at, .. } if is_below(at)))
        };
        let pairs = || plan.renames.iter().chain(&plan.moves);
        pairs().any(|entry| in_older(&entry.path) || in_newer(&entry.value))
            || plan.removed.iter().any(|entry| in_older(&entry.path))
            || plan.coerce.iter().any(|entry| in_older(&entry.path))
            || plan.enums.iter().any(|entry| in_older(&entry.path))
            || plan.lists.iter().any(|entry| in_older(&entry.path))
            || plan.separate.iter().any(|entry| in_older(&entry.path) || in_newer(&entry.path))
            || at(&plan.up, &in_older)
            || at(&plan.down, &in_newer)
            || self.types.iter().any(|named| in_older(&named.value.1) || in_newer(&named.value.1))
    }

    /// Entries that nothing came of are slips: of the path, or of what somebody believes the versions to be.
    fn report_unused(&mut self) {
        let plan = self.plan;
        let mut unused: Vec<(Position, String)> = Vec::new();
        let mut look = |key: &'static str, entries: Vec<(&Position, String)>| {
            for (index, (position, what)) in entries.into_iter().enumerate() {
                if !self.used.contains(&(key, index)) {
                    unused.push((position.clone(), format!("{key}: {what}")));
                }
            }
        };
        fn named<T>(entries: &[super::plan::Entry<T>]) -> Vec<(&Position, String)> {
            entries.iter().map(|entry| (&entry.position, entry.path.to_string())).collect()
        }
        look("renames", named(&plan.renames));
        look("moves", named(&plan.moves));
        look("removed", named(&plan.removed));
        look("coerce", named(&plan.coerce));
        look("enums", named(&plan.enums));
        look("lists", named(&plan.lists));
        look("separate", named(&plan.separate));
        look("acknowledge", named(&plan.acknowledge));
        let types = plan.type_renames.iter();
        look("typeRenames", types.map(|rename| (&rename.position, rename.value.0.clone())).collect());
        for (key, hooks) in [("up", &plan.up), ("down", &plan.down)] {
            let at = |hook: &Hook| match &hook.action {
                HookAction::Set { at, field, .. } => at.join(field).to_string(),
                HookAction::Program(name) => name.clone(),
            };
            look(key, hooks.iter().map(|hook| (&hook.position, at(hook))).collect());
        }
        let (older, newer) = (self.older.name.clone(), self.newer.name.clone());
        for (position, what) in unused {
            if self.errors.iter().any(|error| error.position == position) {
                continue;
            }
            let message = format!("{what}: the step from {older} to {newer} has no use for this");
            self.error(&position, message, &["remove it, or correct the path: paths are those of the older version"]);
        }
    }

    /// Reports a path that a version does not have.
    fn missing(&mut self, position: &Position, path: &FieldPath, is_newer: bool) {
        let form = if is_newer { self.newer } else { self.older };
        let parent = path.split_field();
        let names = parent.as_ref().and_then(|(parent, name)| {
            let node = super::storage_schema::node(&form.skeleton, parent.steps())?;
            let properties = node.get("properties")?.as_object()?;
            suggest::nearest(name, properties.keys().map(String::as_str)).map(|known| parent.field(known))
        });
        let hint = names.map(|path| format!("did you mean {path}?"));
        let hints: Vec<&str> = hint.iter().map(String::as_str).collect();
        self.error(position, format!("{} has no field {path}", form.name), &hints);
    }
}
