//! Conversions of one kind, compiled: every version to the hub and from it, one step after the other.

use std::collections::BTreeMap;

use pushback_crd::display_path;
use pushback_objects::object::{ObjectExt, join_api_version, split_api_version};
use pushback_objects::source::{InputError, PathSegment, Position};
use serde_json::Value;

use super::bag::{self, Carried, Levels};
use super::derive::Form;
use super::execute::{Failure, Run};
use super::lineage::Lineage;
use super::operation_list::Operation;
use super::plan::BagPlace;
use super::prune::Pruned;
use super::step::Convert;

/// Runs the programs that a plan names. Who runs the conversion says which programs these are.
pub trait Programs {
    /// Converts an object: `before` is as it was, `after` as the derived conversion left it.
    ///
    /// # Errors
    /// Why there is no answer.
    fn run(&self, program: &str, request: &ProgramRequest<'_>) -> Result<Value, String>;
}

/// What a program is asked.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRequest<'r> {
    /// The version that is converted.
    pub from: &'r str,
    /// The version that it is converted to.
    pub to: &'r str,
    /// The object before.
    pub before: &'r Value,
    /// The object after the derived conversion.
    pub after: &'r Value,
}

/// No program is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPrograms;

impl Programs for NoPrograms {
    fn run(&self, program: &str, _: &ProgramRequest<'_>) -> Result<Value, String> {
        Err(format!("the program {program:?} is not started here"))
    }
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.start())]
pub struct ConversionError {
    /// Path of the field; empty if it is the whole object.
    pub path: String,
    /// What is wrong, a lower-case sentence.
    pub message: String,
}

impl ConversionError {
    fn of_object(message: String) -> Self {
        Self { path: String::new(), message }
    }

    fn start(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) }
    }
}

impl From<Failure> for ConversionError {
    fn from(failure: Failure) -> Self {
        Self { path: shown(failure.path), message: failure.message }
    }
}

/// The path of a field whose steps were found from inside to outside.
fn shown(mut path: Vec<PathSegment>) -> String {
    path.reverse();
    display_path(&path)
}

/// Why a field is not in the converted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The version that it came in does not have it.
    Unknown,
    /// The plan drops it.
    Dropped,
    /// The version does not have it, and there is no bag for it.
    NotKept,
    /// It was carried in an annotation that cannot be read, or for an item that is no longer there.
    BagLost,
    /// It was carried in an annotation that somebody edited; it is used as it is.
    BagEdited,
}

impl Why {
    /// A sentence about it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "the version of the object has no such field",
            Self::Dropped => "the plan drops it",
            Self::NotKept => "the version has no field for it, and there is no property bag",
            Self::BagLost => "what the annotation carried has no place any more",
            Self::BagEdited => "the annotation that carries values of other versions was edited",
        }
    }
}

/// A field that is not in the converted object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// Its path.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// A converted object.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The object.
    pub object: Value,
    /// What is not in it.
    pub lost: Vec<Lost>,
}

/// A version, compiled.
#[derive(Clone, Debug)]
pub(super) struct CompiledVersion {
    pub(super) form: Form,
    pub(super) levels: Levels,
    /// Whether the definition has fields for bags in it.
    pub(super) has_bags: bool,
    pub(super) storage_schema: Value,
    pub(super) assign_to: Edge,
    pub(super) assign_from: Edge,
}

/// One direction of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    /// The versions that it leads from and to.
    pub(super) ends: (usize, usize),
    pub(super) convert: Convert,
    pub(super) programs: Vec<String>,
    /// Whether the plan says more than what is derived.
    pub(super) has_hooks: bool,
}

/// The steps between a version and the hub.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    pub(super) up: Vec<Edge>,
    pub(super) down: Vec<Edge>,
}

impl Edge {
    fn apply(&self, object: &mut Value, lineage: &Lineage, state: &mut State<'_>) -> Result<(), ConversionError> {
        let (from, to) = (lineage.versions[self.ends.0].as_str(), lineage.versions[self.ends.1].as_str());
        let before = if self.programs.is_empty() { Value::Null } else { object.clone() };
        self.convert.apply(object, &mut state.run)?;
        for program in &self.programs {
            let request = ProgramRequest { from, to, before: &before, after: object };
            let answer = state.programs.run(program, &request);
            let answer = answer.map_err(|why| ConversionError::of_object(format!("program {program:?}: {why}")))?;
            let identity = |value: &Value| (value.get("kind").cloned(), value.get("metadata").cloned());
            if identity(&answer) != identity(object) {
                let message = format!("program {program:?} changed the kind or the metadata of the object");
                return Err(ConversionError::of_object(message));
            }
            *object = answer;
        }
        Ok(())
    }
}

/// One conversion.
struct State<'r> {
    run: Run<'r>,
    programs: &'r dyn Programs,
    /// What is lost beside what the plan drops.
    lost: Vec<Lost>,
}

impl<'r> State<'r> {
    fn new(bag: &'r str, programs: &'r dyn Programs) -> Self {
        Self { run: Run { bag, lost: Vec::new() }, programs, lost: Vec::new() }
    }

    fn lost(mut self) -> Vec<Lost> {
        let dropped = self.run.lost.into_iter().map(|path| Lost { path: shown(path), why: Why::Dropped });
        self.lost.extend(dropped);
        self.lost
    }

    fn finished(self, object: Value) -> Converted {
        Converted { object, lost: self.lost() }
    }
}

/// The conversions of one kind.
#[derive(Clone, Debug)]
pub struct Converter {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) lineage: Lineage,
    pub(super) bag: &'static str,
    pub(super) place: BagPlace,
    pub(super) versions: Vec<CompiledVersion>,
    pub(super) next: BTreeMap<usize, usize>,
    pub(super) edges: BTreeMap<(usize, usize), Edge>,
    /// For each version the steps to the hub and those from it, as they are executed.
    pub(super) ways: Vec<Ways>,
    pub(super) operations: Vec<Operation>,
}

impl Converter {
    /// Name of the definition.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// API group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Versions, previews, steps and hub.
    #[must_use]
    pub fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    /// Name of the version in which conversions meet.
    #[must_use]
    pub fn hub(&self) -> &str {
        &self.lineage.versions[self.lineage.hub]
    }

    /// Name of the property bag.
    #[must_use]
    pub fn bag(&self) -> &str {
        self.bag
    }

    /// What happens between the versions.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Names of the programs that the plan hands objects to.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let of_versions = self.versions.iter().flat_map(|version| [&version.assign_to, &version.assign_from]);
        self.edges.values().chain(of_versions).flat_map(|edge| &edge.programs).map(String::as_str)
    }

    /// The same, where no program is started.
    ///
    /// # Errors
    /// The plan, which begins at this position, hands objects to programs.
    pub fn without_programs(self, plan: &Position) -> Result<Self, InputError> {
        let Some(program) = self.programs().next() else { return Ok(self) };
        let message = format!("the plan hands objects to the program {program:?}, which is not started here");
        let hints =
            vec!["`pushback storage convert --program NAME=PATH` starts it; an expression works everywhere".to_owned()];
        Err(InputError { message, position: plan.clone(), hints })
    }

    /// The storage schema of a version.
    #[must_use]
    pub fn storage_schema(&self, version: &str) -> Option<&Value> {
        Some(&self.versions.get(self.lineage.index(version)?)?.storage_schema)
    }

    /// Whether it converts objects of a group and kind.
    #[must_use]
    pub fn is_for(&self, object: &Value) -> bool {
        object.text("/kind") == self.kind && split_api_version(object.text("/apiVersion")).0 == self.group
    }

    /// Converts an object to another version, through the hub.
    ///
    /// # Errors
    /// If it is of another kind or of an unknown version, or an expression or program of the plan fails.
    pub fn convert(&self, mut object: Value, to: &str, programs: &dyn Programs) -> Result<Converted, ConversionError> {
        let lost = self.convert_in_place(&mut object, to, programs)?;
        Ok(Converted { object, lost })
    }

    /// The same in its place; says what is lost. An object that cannot be converted is left half converted, with its
    /// kind, its name and its version as they were.
    pub(super) fn convert_in_place(
        &self,
        object: &mut Value,
        to: &str,
        programs: &dyn Programs,
    ) -> Result<Vec<Lost>, ConversionError> {
        let (from, to) = (self.version_of(object)?, self.version(to)?);
        if from == to {
            return Ok(Vec::new());
        }
        let mut state = State::new(self.bag, programs);
        self.up(object, from, &mut state)?;
        self.down(object, to, &mut state)?;
        Ok(state.lost())
    }

    /// Converts an object to the storage schema of the hub, with its bags.
    ///
    /// # Errors
    /// As for [`Converter::convert`].
    pub fn to_storage(&self, mut object: Value, programs: &dyn Programs) -> Result<Converted, ConversionError> {
        let from = self.version_of(&object)?;
        let mut state = State::new(self.bag, programs);
        self.up(&mut object, from, &mut state)?;
        self.set_version(&mut object, self.lineage.hub);
        Ok(state.finished(object))
    }

    /// Converts an object in the storage schema of the hub, with its bags, to a version.
    ///
    /// # Errors
    /// As for [`Converter::convert`].
    pub fn from_storage(
        &self,
        mut object: Value,
        to: &str,
        programs: &dyn Programs,
    ) -> Result<Converted, ConversionError> {
        let (from, to) = (self.version_of(&object)?, self.version(to)?);
        if from != self.lineage.hub {
            let message = format!("expected an object of the hub, {}, found one of {}", self.hub(), self.name_of(from));
            return Err(ConversionError::of_object(message));
        }
        let mut state = State::new(self.bag, programs);
        self.down(&mut object, to, &mut state)?;
        Ok(state.finished(object))
    }

    /// Whether anything but derived conversions happens on the way from one version to another.
    #[must_use]
    pub fn has_hooks(&self, from: &str, to: &str) -> bool {
        let (Some(from), Some(to)) = (self.lineage.index(from), self.lineage.index(to)) else { return false };
        let has_hooks = |from, to| self.edges.get(&(from, to)).is_some_and(|edge| edge.has_hooks);
        let up = self.way(from).windows(2).any(|pair| has_hooks(pair[0], pair[1]));
        let down = self.way(to).windows(2).any(|pair| has_hooks(pair[1], pair[0]));
        up || down || self.versions[from].assign_to.has_hooks || self.versions[to].assign_from.has_hooks
    }

    /// The versions from one to the hub.
    pub(super) fn way(&self, from: usize) -> Vec<usize> {
        std::iter::successors(Some(from), |here| self.next.get(here).copied()).collect()
    }

    fn name_of(&self, version: usize) -> &str {
        &self.lineage.versions[version]
    }

    fn version(&self, name: &str) -> Result<usize, ConversionError> {
        self.lineage.index(name).ok_or_else(|| {
            let known = self.lineage.versions.join(", ");
            ConversionError::of_object(format!("{} has no version {name}; known are {known}", self.name))
        })
    }

    fn version_of(&self, object: &Value) -> Result<usize, ConversionError> {
        if !self.is_for(object) {
            let message = format!(
                "expected an object of kind {} in {}, found kind {:?} in {:?}",
                self.kind,
                self.group,
                object.text("/kind"),
                object.text("/apiVersion")
            );
            return Err(ConversionError::of_object(message));
        }
        self.version(split_api_version(object.text("/apiVersion")).1)
    }

    fn set_version(&self, object: &mut Value, version: usize) {
        if let Some(place) = object.get_mut("apiVersion") {
            *place = join_api_version(&self.group, self.name_of(version)).into();
        }
    }

    /// To the hub.
    fn up(&self, object: &mut Value, from: usize, state: &mut State<'_>) -> Result<(), ConversionError> {
        let version = &self.versions[from];
        let mut pruned = Pruned { bag: self.bag, keeps_bags: version.has_bags, lost: Vec::new() };
        pruned.prune(object, &version.form.schema, true);
        state.lost.extend(pruned.lost.into_iter().map(|path| Lost { path: shown(path), why: Why::Unknown }));
        if self.place == BagPlace::Annotation {
            self.unpack(object, &mut state.lost);
        }
        version.assign_to.apply(object, &self.lineage, state)?;
        self.ways[from].up.iter().try_for_each(|step| step.apply(object, &self.lineage, state))
    }

    /// From the hub.
    fn down(&self, object: &mut Value, to: usize, state: &mut State<'_>) -> Result<(), ConversionError> {
        self.ways[to].down.iter().try_for_each(|step| step.apply(object, &self.lineage, state))?;
        let version = &self.versions[to];
        version.assign_from.apply(object, &self.lineage, state)?;
        let taken = bag::take(object, &version.levels, self.bag);
        if !taken.is_empty() {
            match self.place {
                BagPlace::Annotation => bag::put_annotation(object, &taken).map_err(ConversionError::of_object)?,
                BagPlace::Property | BagPlace::Nowhere => {
                    let paths = taken.iter().flat_map(bag::Taken::paths);
                    state.lost.extend(paths.map(|path| Lost { path: display_path(&path), why: Why::NotKept }));
                }
            }
        }
        self.set_version(object, to);
        Ok(())
    }

    fn unpack(&self, object: &mut Value, lost: &mut Vec<Lost>) {
        let path = || display_path(&["metadata".into(), "annotations".into(), bag::ANNOTATION.into()]);
        match bag::take_annotation(object) {
            Carried::Nothing => {}
            Carried::Unreadable => lost.push(Lost { path: path(), why: Why::BagLost }),
            Carried::Bags(bags, is_edited) => {
                if is_edited {
                    lost.push(Lost { path: path(), why: Why::BagEdited });
                }
                for bag in bag::put_back(object, bags, self.bag) {
                    lost.extend(bag.paths().map(|path| Lost { path: display_path(&path), why: Why::BagLost }));
                }
            }
        }
    }
}
