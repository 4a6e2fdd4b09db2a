//! Two schemas of one version side by side: fields, types, what is required, enums and defaults. All other keywords are in
//! [`super::constraints`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pushback_crd::definition::path::schema_path;
use pushback_crd::definition::{Crd, Upgrade};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::SchemaStep;
use pushback_crd::schema::model::Additional;
use serde_json::{Value, json};

use super::draft::{Claim, Draft, Place, schema_place};
use super::excerpt::excerpt;
use super::words::{canonical, cut, short};
use super::{Options, constraints, rename};
use crate::operator::difference::{ChangeType, Severity};
use crate::source::PathSegment;

/// A schema as it was read and as it is written.
#[derive(Clone, Copy)]
pub(super) struct Node<'s> {
    pub(super) schema: &'s Schema,
    pub(super) written: &'s Value,
}

impl<'s> Node<'s> {
    pub(super) fn keyword(&self, keyword: &str) -> Option<&'s Value> {
        self.written.get(keyword)
    }

    fn items(&self) -> Option<Self> {
        Some(Self { schema: self.schema.items.as_deref()?, written: self.keyword("items")? })
    }

    /// The values under names that `properties` does not give; anything has no keywords.
    fn free_values(&self) -> Option<Self> {
        static ANYTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
        let schema: &Schema = match self.schema.additional.as_ref()? {
            Additional::Schema(schema) => schema,
            Additional::Anything => &ANYTHING,
            Additional::Nothing => return None,
        };
        Some(Self { schema, written: self.keyword("additionalProperties")? })
    }

    fn field(&self, name: &str) -> Option<Self> {
        let written = self.keyword("properties").and_then(|fields| fields.get(name)).unwrap_or(&Value::Null);
        Some(Self { schema: self.schema.properties.get(name)?, written })
    }
}

/// A node on both sides, and what it is in an object.
#[derive(Clone, Copy)]
pub(super) struct Pair<'s> {
    pub(super) old: Node<'s>,
    pub(super) new: Node<'s>,
    part: Part,
}

/// What the server knows of a node without a schema.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// A whole resource: it has apiVersion, kind and metadata.
    Resource,
    /// The metadata of one.
    Metadata,
    Field,
}

/// A schema with its text.
struct Known {
    written: Value,
    schema: Schema,
}

impl Known {
    fn of(written: Value) -> Self {
        Self { schema: Schema::of(&written), written }
    }

    fn node(&self) -> Node<'_> {
        Node { schema: &self.schema, written: &self.written }
    }
}

/// What a resource is where its definition does not say it.
static RESOURCE: LazyLock<Known> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let metadata = json!({"type": "object", "properties": {"name": text, "generateName": text}});
    Known::of(json!({"type": "object", "properties": {"apiVersion": text, "kind": text, "metadata": metadata}}))
});

/// What the server knows of a field that a schema does not name; `None` where it knows nothing.
fn known(part: Part, name: &str) -> Option<Node<'static>> {
    let resource = RESOURCE.node();
    match part {
        Part::Resource => resource.field(name),
        Part::Metadata => resource.field("metadata")?.field(name),
        Part::Field => None,
    }
}

/// Compares the schemas of a version that both definitions have.
pub(super) fn compare(upgrade: &Upgrade<'_>, version: &str, options: Options) -> Vec<Draft> {
    let (Some(before), Some(after)) = (upgrade.schemas.old.get(version), upgrade.schemas.new.get(version)) else {
        return Vec::new();
    };
    let mut walk = Walk {
        version,
        options,
        steps: Vec::new(),
        old_place: schema_place(upgrade.old.value, version),
        new_place: schema_place(upgrade.new.value, version),
        found: Vec::new(),
    };
    let old = Node { schema: before, written: written(&upgrade.old, version) };
    let new = Node { schema: after, written: written(&upgrade.new, version) };
    walk.nodes(Pair { old, new, part: Part::Resource });
    walk.found
}

/// A schema as it is written; a version without one takes anything.
fn written<'a>(definition: &Crd<'a>, version: &str) -> &'a Value {
    definition.version(version).and_then(|found| found.schema).unwrap_or(&Value::Null)
}

/// Both schemas, from the roots to where the walk is.
pub(super) struct Walk<'v> {
    version: &'v str,
    options: Options,
    steps: Vec<SchemaStep>,
    /// Where the two schemas stand.
    old_place: Vec<PathSegment>,
    new_place: Vec<PathSegment>,
    found: Vec<Draft>,
}

impl Walk<'_> {
    fn nodes(&mut self, at: Pair<'_>) {
        let Pair { old, new, .. } = at;
        if old.schema.digest == new.schema.digest {
            return;
        }
        let (before, after) = (type_of(old.schema), type_of(new.schema));
        if before != after {
            // Whatever else differs follows from it.
            let detail = format!("type changed from {before} to {after}");
            let fills_in = old.schema.default != new.schema.default;
            let claim = Claim::Field(self.steps.clone());
            let draft = self.note(at, ChangeType::TypeChanged, Severity::Breaking, "type", detail, &[&before, &after]);
            draft.fills_in = fills_in;
            draft.claims.push(claim);
            return;
        }
        self.default(at);
        self.enumeration(at);
        constraints::compare(self, at);
        self.required(at);
        self.fields(at);
        self.free_fields(at);
        if let (Some(before), Some(after)) = (old.items(), new.items()) {
            self.below(SchemaStep::Items, before, after, Part::Field);
        }
    }

    fn below(&mut self, step: SchemaStep, old: Node<'_>, new: Node<'_>, part: Part) {
        let embedded = old.schema.embedded_resource && new.schema.embedded_resource;
        self.steps.push(step);
        self.nodes(Pair { old, new, part: if embedded { Part::Resource } else { part } });
        self.steps.pop();
    }

    /// A change of a keyword at the node where the walk is.
    pub(super) fn note(
        &mut self,
        at: Pair<'_>,
        change_type: ChangeType,
        severity: Severity,
        keyword: &str,
        detail: String,
        subject: &[&str],
    ) -> &mut Draft {
        let place = self.place_in_new(keyword);
        self.push((change_type, severity), (Some(at.old), Some(at.new)), place, detail, subject)
    }

    /// The claim on what is said of a keyword here.
    pub(super) fn claim(&self, keyword: &str) -> Claim {
        Claim::Keyword(self.steps.clone(), keyword.to_owned())
    }

    /// The claim on all that is said of what is one step below.
    pub(super) fn claim_below(&self, step: SchemaStep) -> Claim {
        Claim::Field(self.steps.iter().cloned().chain([step]).collect())
    }

    fn place_in_new(&self, keyword: &str) -> Place {
        let mut place = self.new_place.clone();
        place.extend(schema_path(&self.steps));
        place.push(keyword.into());
        Place::New(place)
    }

    fn place_in_old(&self) -> Place {
        let mut place = self.old_place.clone();
        place.extend(schema_path(&self.steps));
        Place::Old(place)
    }

    fn push(
        &mut self,
        (change_type, severity): (ChangeType, Severity),
        (old, new): (Option<Node<'_>>, Option<Node<'_>>),
        place: Place,
        detail: String,
        subject: &[&str],
    ) -> &mut Draft {
        let mut draft = Draft::of_definition(change_type, severity, &[], detail)
            .in_version(self.version, place)
            .subject(subject.join("\n"));
        draft.steps.clone_from(&self.steps);
        draft.old_schema = excerpt(old.map(|node| node.written));
        draft.new_schema = excerpt(new.map(|node| node.written));
        self.found.push(draft);
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn default(&mut self, at: Pair<'_>) {
        let shown = |node: Node<'_>| node.schema.default.as_ref().map(canonical);
        let (before, after) = (shown(at.old), shown(at.new));
        if before == after {
            return;
        }
        let detail = match (&before, &after) {
            (Some(before), Some(after)) => format!("default changed from {} to {}", short(before), short(after)),
            (None, Some(after)) => format!("default {} added", short(after)),
            (Some(before), None) => format!("default {} removed", short(before)),
            (None, None) => return,
        };
        let subject = [before, after].map(|value| value.map_or_else(String::new, |value| value.to_string()));
        let claim = self.claim("default");
        let subject = [subject[0].as_str(), subject[1].as_str()];
        let draft = self.note(at, ChangeType::DefaultChanged, Severity::Warning, "default", detail, &subject);
        draft.fills_in = true;
        draft.claims.push(claim);
    }

    fn enumeration(&mut self, at: Pair<'_>) {
        let values = |node: Node<'_>| -> Option<BTreeMap<String, Value>> {
            let values = node.schema.enumeration.as_ref()?.iter().map(canonical);
            Some(values.map(|value| (value.to_string(), value)).collect())
        };
        let claim = self.claim("enum");
        let all = |values: &BTreeMap<String, Value>| values.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        match (values(at.old), values(at.new)) {
            (None, Some(after)) => {
                let values = all(&after);
                let detail = format!("only these values are allowed from now on: {}", cut(&values));
                self.note(at, ChangeType::EnumRestrictionAdded, Severity::Breaking, "enum", detail, &[&values])
                    .claims
                    .push(claim);
            }
            (Some(before), None) => {
                let values = all(&before);
                let detail = format!("no longer only these values are allowed: {}", cut(&values));
                self.note(at, ChangeType::EnumRestrictionRemoved, Severity::Info, "enum", detail, &[&values])
                    .claims
                    .push(claim);
            }
            (Some(before), Some(after)) => {
                let lost: Vec<_> = before.iter().filter(|(text, _)| !after.contains_key(*text)).collect();
                for (text, value) in &lost {
                    let detail = format!("value {} is no longer allowed", short(value));
                    self.note(at, ChangeType::EnumValueRemoved, Severity::Breaking, "enum", detail, &[text])
                        .claims
                        .push(claim.clone());
                }
                for (text, value) in after.iter().filter(|(text, _)| !before.contains_key(*text)) {
                    let detail = format!("value {} is allowed too", short(value));
                    let draft = self.note(at, ChangeType::EnumValueAdded, Severity::Info, "enum", detail, &[text]);
                    // Where values are lost too, whatever is said of the enum is said of those.
                    if lost.is_empty() {
                        draft.claims.push(claim.clone());
                    }
                }
            }
            (None, None) => {}
        }
    }

    fn required(&mut self, at: Pair<'_>) {
        let Pair { old, new, part } = at;
        let place = self.place_in_new("required");
        // The server itself sees to the fields that every resource has.
        let matters = |name: &&String| part != Part::Resource || known(part, name).is_none();
        for name in new.schema.required.difference(&old.schema.required).filter(matters) {
            let (before, after) = (old.field(name), new.field(name));
            let default = after.and_then(|field| field.schema.default.as_ref());
            let what = if before.is_none() && after.is_some() { "new field, and it" } else { "field" };
            let detail = match default {
                Some(default) => format!("{what} is required from now on, with the default {}", short(default)),
                None => format!("{what} is required from now on"),
            };
            let severity = match default {
                Some(_) if self.options.required_with_default_warns => Severity::Warning,
                _ => Severity::Breaking,
            };
            let mut claims = vec![Claim::Required(self.steps.clone(), name.clone())];
            self.steps.push(SchemaStep::Property(name.clone()));
            if before.is_none() {
                claims.push(Claim::Field(self.steps.clone()));
            }
            let what = (ChangeType::RequiredAdded, severity);
            let draft = self.push(what, (before, after), place.clone(), detail, &[]);
            draft.fills_in = before.is_none() && after.is_some_and(|field| fills_in(field.schema));
            draft.claims = claims;
            self.steps.pop();
        }
        for name in old.schema.required.difference(&new.schema.required).filter(matters) {
            let (before, after) = (old.field(name), new.field(name));
            if before.is_some() && after.is_none() {
                // That the field is gone says more.
                continue;
            }
            let claim = Claim::Required(self.steps.clone(), name.clone());
            self.steps.push(SchemaStep::Property(name.clone()));
            let what = (ChangeType::RequiredRemoved, Severity::Info);
            let detail = "field is no longer required".to_owned();
            self.push(what, (before, after), place.clone(), detail, &[]).claims.push(claim);
            self.steps.pop();
        }
    }

    fn fields(&mut self, at: Pair<'_>) {
        let Pair { old, new, part } = at;
        let below = |name: &str| match (part, name) {
            (Part::Resource, "metadata") => Part::Metadata,
            _ => Part::Field,
        };
        let mut removed = Vec::new();
        for (name, schema) in &old.schema.properties {
            let Some(before) = old.field(name) else { continue };
            match new.field(name).or_else(|| known(part, name)) {
                Some(after) => self.below(SchemaStep::Property(name.clone()), before, after, below(name)),
                None => {
                    self.steps.push(SchemaStep::Property(name.clone()));
                    self.removed(before);
                    self.steps.pop();
                    removed.push((name.as_str(), schema.digest));
                }
            }
        }
        let mut added = Vec::new();
        for (name, schema) in
            new.schema.properties.iter().filter(|(name, _)| !old.schema.properties.contains_key(*name))
        {
            let Some(after) = new.field(name) else { continue };
            if let Some(before) = known(part, name) {
                self.below(SchemaStep::Property(name.clone()), before, after, below(name));
                continue;
            }
            added.push((name.as_str(), schema.digest));
            // A new field that is required is told as that.
            if !new.schema.required.contains(name) || old.schema.required.contains(name) {
                self.steps.push(SchemaStep::Property(name.clone()));
                self.added(after);
                self.steps.pop();
            }
        }
        for (gone, fresh) in rename::suggest(&removed, &added) {
            self.steps.push(SchemaStep::Property(gone.to_owned()));
            let claim = Claim::Field(self.steps.clone());
            let place = self.place_in_old();
            let what = (ChangeType::FieldRenamed, Severity::Info);
            let detail = format!("possibly renamed to {}: both have the same schema", short(&Value::from(fresh)));
            self.push(what, (old.field(gone), new.field(fresh)), place, detail, &[fresh]).claims.push(claim);
            self.steps.pop();
        }
    }

    /// The field where the walk is has gone.
    fn removed(&mut self, before: Node<'_>) {
        let claim = Claim::Field(self.steps.clone());
        let place = self.place_in_old();
        let what = (ChangeType::FieldRemoved, Severity::Breaking);
        let detail = format!("field of type {} removed", type_of(before.schema));
        self.push(what, (Some(before), None), place, detail, &[&type_of(before.schema)]).claims.push(claim);
    }

    /// The field where the walk is has come.
    fn added(&mut self, after: Node<'_>) {
        let claim = Claim::Field(self.steps.clone());
        let place = self.place_in_new("");
        let what = (ChangeType::FieldAdded, Severity::Info);
        let detail = match &after.schema.default {
            Some(default) => {
                format!("field of type {} added, with the default {}", type_of(after.schema), short(default))
            }
            None => format!("field of type {} added", type_of(after.schema)),
        };
        let draft = self.push(what, (None, Some(after)), place, detail, &[&type_of(after.schema)]);
        draft.fills_in = fills_in(after.schema);
        draft.claims.push(claim);
    }

    /// What may stand under names that the schema does not give.
    fn free_fields(&mut self, at: Pair<'_>) {
        use Additional::{Anything, Schema};
        match (&at.old.schema.additional, &at.new.schema.additional) {
            (Some(Schema(_)), Some(Schema(_))) => {
                if let (Some(before), Some(after)) = (at.old.free_values(), at.new.free_values()) {
                    self.below(SchemaStep::Additional, before, after, Part::Field);
                }
            }
            (Some(Schema(_) | Anything), None) => {
                self.steps.push(SchemaStep::Additional);
                at.old.free_values().into_iter().for_each(|before| self.removed(before));
                self.steps.pop();
            }
            (None, Some(Schema(_) | Anything)) => {
                self.steps.push(SchemaStep::Additional);
                at.new.free_values().into_iter().for_each(|after| self.added(after));
                self.steps.pop();
            }
            (before, after) if before != after => constraints::free_fields(self, at),
            _ => {}
        }
    }
}

/// The type in a word.
fn type_of(schema: &Schema) -> String {
    match (schema.kind, schema.int_or_string) {
        (None, true) => "int-or-string".to_owned(),
        (None, false) => "any".to_owned(),
        (Some(kind), false) => kind.as_str().to_owned(),
        (Some(kind), true) => format!("int-or-string ({})", kind.as_str()),
    }
}

/// Whether the server fills in anything where the field is left out, or in it.
fn fills_in(schema: &Schema) -> bool {
    schema.default.is_some() || schema.children().any(fills_in)
}
