//! A conversion plan as it is written: only what the schemas do not say themselves. Nothing here is checked against a
//! schema yet.

use pushback_objects::source::Position;
use serde_json::Value;

use super::path::FieldPath;

/// A value of the plan, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it is.
    pub position: Position,
}

/// What the plan says about a field of one version of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The field.
    pub path: FieldPath,
    /// What is said of it.
    pub value: T,
    /// Where it is written.
    pub position: Position,
}

/// What happens to fields that nobody has decided about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unassessed {
    /// The plan is refused.
    #[default]
    Error,
    /// Their values go into the bag.
    Stash,
}

/// Where values are kept that a version has no field for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BagPlace {
    /// In fields of the storage schema.
    #[default]
    Property,
    /// In an annotation of the object.
    Annotation,
    /// Nowhere: they are lost, and named.
    Nowhere,
}

/// A plan for one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionPlan {
    /// Name of the definition.
    pub name: String,
    /// Where the plan begins.
    pub position: Position,
    /// The version in which conversions meet.
    pub hub: Option<Placed<String>>,
    /// All versions, the oldest first, where names do not say it.
    pub order: Option<Vec<Placed<String>>>,
    /// The previews, where names do not say it.
    pub previews: Option<Vec<Placed<String>>>,
    /// The policy for fields that nobody has decided about.
    pub unassessed: Unassessed,
    /// Where the bag is.
    pub bag: BagPlace,
    /// Schemas of versions that the definition no longer has.
    pub schemas: Vec<Placed<(String, Value)>>,
    /// Names of types, by version and path.
    pub types: Vec<Placed<(String, FieldPath, String)>>,
    /// What changes from a version to a newer one.
    pub steps: Vec<StepPlan>,
    /// Conversions of single versions.
    pub hooks: Vec<VersionHooks>,
}

/// What changes from a version to a newer one. Paths are those of the older one, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// The older version.
    pub from: String,
    /// The newer version.
    pub to: String,
    /// Where the step is written.
    pub position: Position,
    /// Fields with another name in the same object.
    pub renames: Vec<Entry<FieldPath>>,
    /// Fields in another object.
    pub moves: Vec<Entry<FieldPath>>,
    /// Types with another name.
    pub type_renames: Vec<Placed<(String, String)>>,
    /// Fields that the newer version does not have.
    pub removed: Vec<Entry<Removal>>,
    /// Fields with another scalar type.
    pub coerce: Vec<Entry<Coercion>>,
    /// Fields whose values have other names: pairs of an old value and a new one.
    pub enums: Vec<Entry<Vec<(String, String)>>>,
    /// Lists and maps with another form.
    pub lists: Vec<Entry<Reshaping>>,
    /// Fields of either version that share only the name with what other versions call so.
    pub separate: Vec<Entry<()>>,
    /// Fields whose loss is accepted.
    pub acknowledge: Vec<Entry<()>>,
    /// After the derived conversion to the newer version.
    pub up: Vec<Hook>,
    /// After the derived conversion to the older version.
    pub down: Vec<Hook>,
}

/// A field that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Whether somebody has decided about it.
    pub assessed: bool,
    /// Why it goes.
    pub reason: String,
    /// Whether its value is not kept.
    pub drop: bool,
}

/// How one scalar becomes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coercion {
    /// By its text: `"80"` and 80.
    Text,
    /// As a quantity: `"1Ki"` and 1024.
    Quantity,
}

/// How a list or map gets another form, on the way to the newer version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reshaping {
    /// A value becomes a list with one item.
    WrapList,
    /// A list with one item becomes the item.
    UnwrapList,
    /// A list of objects becomes a map by the value of a field.
    ListToMap(Keyed),
    /// A map becomes a list of objects with its key in a field.
    MapToList(Keyed),
}

/// Fields of the items of a list that corresponds to a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The field with the key.
    pub key: String,
    /// The field with the value; the rest of the item if absent.
    pub value: Option<String>,
}

/// One conversion by an expression or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// What it does.
    pub action: HookAction,
    /// Where it is written.
    pub position: Position,
}

/// What a hook does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// Sets a field to the value of an expression.
    Set {
        /// The object that the expression calls `self`, in the version that is converted.
        at: FieldPath,
        /// The field, below that object in the other version.
        field: FieldPath,
        /// The expression.
        cel: String,
        /// Whether it replaces a value.
        always: bool,
    },
    /// Hands the object to a program, by the name that a policy source gives it.
    Program(String),
}

/// Which type a hook belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The version as it is served.
    Api,
    /// The version as it is stored.
    Storage,
}

/// Conversions of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHooks {
    /// The version.
    pub version: String,
    /// Which of its types.
    pub side: Side,
    /// On the way to the hub.
    pub assign_to: Vec<Hook>,
    /// On the way from the hub.
    pub assign_from: Vec<Hook>,
    /// Where they are written.
    pub position: Position,
}
