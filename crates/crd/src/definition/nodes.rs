//! The schemas of each version side by side, node by node: fields, types and required fields. Keywords are compared in
//! [`super::keywords`].

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::keywords::{self, Changed};
use super::structure::{Claim, Kind, Node, NodeChange};
use super::{Crd, Upgrade};
use crate::schema::Schema;
use crate::schema::contain::SchemaStep;
use crate::schema::model::Additional;

/// The changed nodes of all versions that are in both definitions.
pub(super) fn compare<'u>(upgrade: &'u Upgrade<'_>) -> Vec<NodeChange<'u>> {
    let schemas = &upgrade.schemas;
    let both = schemas.old.iter().filter_map(|(version, old)| Some((version, old, schemas.new.get(version)?)));
    let mut found = Vec::new();
    for (version, before, after) in both {
        let old = Node { schema: before, written: written(&upgrade.old, version) };
        let new = Node { schema: after, written: written(&upgrade.new, version) };
        let mut walk = Walk { version, path: Vec::new(), found };
        walk.nodes(old, new, Part::Resource);
        found = walk.found;
    }
    found
}

/// The schema as written; a version without one accepts anything.
fn written<'a>(definition: &Crd<'a>, version: &str) -> &'a Value {
    definition.version(version).and_then(|found| found.schema).unwrap_or(&Value::Null)
}

/// What the server knows about a node without a schema.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// A resource, with apiVersion, kind and metadata.
    Resource,
    /// The metadata of a resource.
    Metadata,
    Field,
}

impl Part {
    fn below(self, name: &str) -> Self {
        if self == Self::Resource && name == "metadata" { Self::Metadata } else { Self::Field }
    }

    /// The server's own schema for a field that the schema does not name, if it has one.
    fn known(self, name: &str) -> Option<Node<'static>> {
        static RESOURCE: LazyLock<(Value, Schema)> = LazyLock::new(|| {
            let text = json!({"type": "string"});
            let metadata = json!({"type": "object", "properties": {"name": text, "generateName": text}});
            let fields = json!({"apiVersion": text, "kind": text, "metadata": metadata});
            let written = json!({"type": "object", "properties": fields});
            let schema = Schema::of(&written);
            (written, schema)
        });
        let resource = Node { schema: &RESOURCE.1, written: &RESOURCE.0 };
        match self {
            Self::Resource => field(resource, name),
            Self::Metadata => field(field(resource, "metadata")?, name),
            Self::Field => None,
        }
    }
}

fn field<'u>(node: Node<'u>, name: &str) -> Option<Node<'u>> {
    let written = node.keyword("properties").and_then(|fields| fields.get(name)).unwrap_or(&Value::Null);
    Some(Node { schema: node.schema.properties.get(name)?, written })
}

fn items(node: Node<'_>) -> Option<Node<'_>> {
    Some(Node { schema: node.schema.items.as_deref()?, written: node.keyword("items")? })
}

/// The schema of values whose names are not in `properties`; a free value has no keywords.
fn free_values(node: Node<'_>) -> Option<Node<'_>> {
    static ANYTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
    let schema: &Schema = match node.schema.additional.as_ref()? {
        Additional::Schema(schema) => schema,
        Additional::Anything => &ANYTHING,
        Additional::Nothing => return None,
    };
    Some(Node { schema, written: node.keyword("additionalProperties")? })
}

/// Walks both schemas of a version, from the roots down.
struct Walk<'u> {
    version: &'u str,
    path: Vec<SchemaStep>,
    found: Vec<NodeChange<'u>>,
}

impl<'u> Walk<'u> {
    fn push(&mut self, nodes: [Option<Node<'u>>; 2], changed: Changed<'u>) {
        let Changed { kind, keyword, old, new, claims } = changed;
        let (version, path) = (self.version, self.path.clone());
        self.found.push(NodeChange { version, path, kind, keyword, old, new, nodes, claims });
    }

    fn at(&mut self, step: SchemaStep, look: impl FnOnce(&mut Self)) {
        self.path.push(step);
        look(self);
        self.path.pop();
    }

    fn nodes(&mut self, old: Node<'u>, new: Node<'u>, part: Part) {
        if old.schema.digest == new.schema.digest {
            return;
        }
        let both = [Some(old), Some(new)];
        let (before, after) = (old.schema.type_name(), new.schema.type_name());
        if before != after {
            let (old, new) = (Some(before.into()), Some(after.into()));
            self.push(both, Changed { kind: Kind::Type, keyword: "type", old, new, claims: &[Claim::Within] });
            return;
        }
        keywords::compare(old, new).into_iter().for_each(|changed| self.push(both, changed));
        self.required(old, new, part);
        self.fields(old, new, part);
        self.free_fields(old, new);
        if let (Some(before), Some(after)) = (items(old), items(new)) {
            self.below(SchemaStep::Items, before, after, Part::Field);
        }
    }

    fn below(&mut self, step: SchemaStep, old: Node<'u>, new: Node<'u>, part: Part) {
        let is_embedded = old.schema.embedded_resource && new.schema.embedded_resource;
        self.at(step, |walk| walk.nodes(old, new, if is_embedded { Part::Resource } else { part }));
    }

    fn required(&mut self, old: Node<'u>, new: Node<'u>, part: Part) {
        // The server itself requires the fields that every resource has, except in an embedded one in status.
        let is_of_status = self.path.first() == Some(&SchemaStep::Property("status".to_owned()));
        let is_validated = part == Part::Resource && !is_of_status;
        let matters = |name: &&String| !is_validated || part.known(name).is_none();
        let (was, is) = (&old.schema.required, &new.schema.required);
        for name in was.symmetric_difference(is).filter(matters) {
            let nodes = [field(old, name), field(new, name)];
            let is_required = is.contains(name);
            let claims: &[Claim] = match nodes {
                // Its removal says more.
                [Some(_), None] if !is_required => continue,
                [None, _] if is_required => &[Claim::Required, Claim::Within],
                _ => &[Claim::Required],
            };
            let name_if = |is_so: bool| is_so.then(|| Value::from(name.as_str()));
            let (old, new) = (name_if(!is_required), name_if(is_required));
            let changed = Changed { kind: Kind::Required, keyword: "required", old, new, claims };
            self.at(SchemaStep::Property(name.clone()), |walk| walk.push(nodes, changed));
        }
    }

    fn fields(&mut self, old: Node<'u>, new: Node<'u>, part: Part) {
        let step = |name: &String| SchemaStep::Property(name.clone());
        for name in old.schema.properties.keys() {
            let Some(before) = field(old, name) else { continue };
            match field(new, name).or_else(|| part.known(name)) {
                Some(after) => self.below(step(name), before, after, part.below(name)),
                None => self.field(step(name), [Some(before), None]),
            }
        }
        for name in new.schema.properties.keys().filter(|name| !old.schema.properties.contains_key(*name)) {
            let Some(after) = field(new, name) else { continue };
            if let Some(before) = part.known(name) {
                self.below(step(name), before, after, part.below(name));
            } else if !new.schema.required.contains(name) || old.schema.required.contains(name) {
                self.field(step(name), [None, Some(after)]);
            }
        }
    }

    /// A field that was removed or added.
    fn field(&mut self, step: SchemaStep, nodes: [Option<Node<'u>>; 2]) {
        if nodes.iter().all(Option::is_none) {
            return;
        }
        let [old, new] = nodes.map(|node| node.map(|node| node.schema.type_name().into()));
        let changed = Changed { kind: Kind::Field, keyword: "", old, new, claims: &[Claim::Within] };
        self.at(step, |walk| walk.push(nodes, changed));
    }

    /// What is allowed under names that the schema does not give.
    fn free_fields(&mut self, old: Node<'u>, new: Node<'u>) {
        use Additional::{Anything, Schema};
        let values = [free_values(old), free_values(new)];
        match (&old.schema.additional, &new.schema.additional) {
            (Some(Schema(_)), Some(Schema(_))) => {
                if let [Some(before), Some(after)] = values {
                    self.below(SchemaStep::Additional, before, after, Part::Field);
                }
            }
            (Some(Schema(_) | Anything), None) | (None, Some(Schema(_) | Anything)) => {
                self.field(SchemaStep::Additional, values);
            }
            (before, after) if before != after => self.push([Some(old), Some(new)], keywords::additional(old, new)),
            _ => {}
        }
    }
}
