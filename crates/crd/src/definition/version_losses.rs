//! What objects lose between the versions of one CRD under conversion strategy None: when they are stored, and when a
//! client writes them back at another version.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::pair::{LossKind, PairLoss, converted_losses};
use super::{Crd, Strategy};
use crate::schema::contain::{Budget, SchemaStep};
use crate::schema::pipeline::{Resource, Server};
use crate::schema::{Additional, Schema};

/// What the served versions of a CRD lose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionLosses {
    /// By the version of a write: what the storage version does not have.
    pub stored: BTreeMap<String, Vec<PairLoss>>,
    /// By the version of a client that writes objects back unchanged: what this version does not have.
    pub written_back: BTreeMap<String, Vec<PairLoss>>,
}

/// Returns what the served versions of a CRD lose, without versions that lose nothing. Empty if a webhook converts, or if
/// there is only one version.
///
/// Schemas may be deeply nested: call it within [`crate::stack::with_room`].
#[must_use]
pub fn version_losses<'s>(
    crd: &Crd<'_>,
    resource: impl Fn(&str) -> Option<Resource<'s>>,
    server: Server,
) -> VersionLosses {
    losses_within(crd, resource, server, lacks_only)
}

/// [`version_losses`] without the comparison of two versions where the other one lacks only fields that are lost anyway.
fn losses_within<'s>(
    crd: &Crd<'_>,
    resource: impl Fn(&str) -> Option<Resource<'s>>,
    server: Server,
    lacks_only: fn(&Schema, &Schema, &[&Fields]) -> bool,
) -> VersionLosses {
    let mut losses = VersionLosses::default();
    let storage = crd.versions.iter().find(|version| version.storage).map(|version| version.name);
    let Some(storage) = storage.filter(|_| crd.strategy() == Strategy::None) else { return losses };
    let others: Vec<&str> =
        crd.versions.iter().filter(|version| version.served && version.name != storage).map(|it| it.name).collect();
    // Every version is compared with every other one.
    let budget = Budget::of_one();
    let lost = |from: &str, to: &str| match (resource(from), resource(to)) {
        (Some(from), Some(to)) if from.schema.digest != to.schema.digest => {
            converted_losses(&from, &to, server, &budget)
        }
        _ => Vec::new(),
    };
    for version in &others {
        losses.stored.insert((*version).to_owned(), lost(version, storage));
    }
    let not_stored: BTreeMap<&str, Fields> =
        losses.stored.iter().map(|(version, losses)| (version.as_str(), Fields::from_losses(losses))).collect();
    // A client of the storage version loses what it cannot store, which is above.
    for through in &others {
        let mut all = lost(storage, through);
        let mut fields = Fields::from_losses(&all);
        // What is stored was valid where it was written, which need not be the storage version.
        for from in others.iter().filter(|from| *from != through) {
            if let (Some(source), Some(target)) = (resource(from), resource(through))
                && lacks_only(source.schema, target.schema, &[&fields, &not_stored[from]])
            {
                continue;
            }
            let gone_before = &losses.stored[*from];
            let more: Vec<PairLoss> = lost(from, through)
                .into_iter()
                .filter(|loss| !all.iter().chain(gone_before).any(|known| known.includes(loss)))
                .collect();
            fields.extend(&more);
            all.extend(more);
        }
        losses.written_back.insert((*through).to_owned(), all);
    }
    losses.stored.retain(|_, losses| !losses.is_empty());
    losses.written_back.retain(|_, losses| !losses.is_empty());
    losses
}

/// Fields that a version lacks.
struct Fields(HashSet<Vec<SchemaStep>>);

impl Fields {
    fn from_losses(losses: &[PairLoss]) -> Self {
        let mut fields = Self(HashSet::new());
        fields.extend(losses);
        fields
    }

    fn extend(&mut self, losses: &[PairLoss]) {
        let lacking = losses.iter().filter(|loss| loss.kind == LossKind::Field);
        self.0.extend(lacking.map(|loss| loss.path.clone()));
    }

    /// Returns whether the node is one of these fields or below one.
    fn cover(&self, path: &[SchemaStep]) -> bool {
        !self.0.is_empty() && (1..=path.len()).any(|length| self.0.contains(&path[..length]))
    }
}

/// Returns whether the target keeps everything that the source has, except for these fields. False where a comparison is
/// needed to decide. The walk over both schemas costs less than a comparison.
fn lacks_only(source: &Schema, target: &Schema, fields: &[&Fields]) -> bool {
    keeps(source, target, fields, &mut Vec::new())
}

fn keeps(source: &Schema, target: &Schema, fields: &[&Fields], path: &mut Vec<SchemaStep>) -> bool {
    if source.digest == target.digest {
        return true;
    }
    let structure = |schema: &Schema| {
        (schema.kind, schema.int_or_string, schema.preserve_unknown, schema.embedded_resource, schema.items.is_some())
    };
    let keeps_null = !source.nullable || target.nullable || target.default.is_some();
    let is_readable = source.unreadable.is_empty() && target.unreadable.is_empty();
    if structure(source) != structure(target) || !keeps_null || !is_readable {
        return false;
    }
    let mut keeps_below = |step: SchemaStep, inner: &Schema, other: Option<&Schema>| {
        path.push(step);
        let is_kept = match other {
            Some(other) => keeps(inner, other, fields, path),
            None => fields.iter().any(|fields| fields.cover(path)),
        };
        path.pop();
        is_kept
    };
    let keeps_values = match (&source.additional, &target.additional) {
        (Some(Additional::Schema(values)), Some(Additional::Schema(other))) => {
            keeps_below(SchemaStep::Additional, values, Some(other))
        }
        (values, other) => values == other,
    };
    let keeps_items = source.items.iter().zip(&target.items).all(|(items, other)| {
        let step = SchemaStep::Items;
        keeps_below(step, items, Some(other))
    });
    keeps_values
        && keeps_items
        && source
            .properties
            .iter()
            .all(|(name, field)| keeps_below(SchemaStep::Property(name.clone()), field, target.properties.get(name)))
}

impl VersionLosses {
    /// Returns what is lost here and was not lost before.
    #[must_use]
    pub fn without(&self, before: &Self) -> Self {
        let new = |now: &BTreeMap<String, Vec<PairLoss>>, before: &BTreeMap<String, Vec<PairLoss>>| {
            let mut new = now.clone();
            for (version, losses) in &mut new {
                let known = before.get(version).map_or(&[][..], Vec::as_slice);
                losses.retain(|loss| !known.iter().any(|known| known.includes(loss)));
            }
            new.retain(|_, losses| !losses.is_empty());
            new
        };
        Self { stored: new(&self.stored, &before.stored), written_back: new(&self.written_back, &before.written_back) }
    }

    /// Names of the versions that lose something.
    #[must_use]
    pub fn versions(&self) -> BTreeSet<&str> {
        self.stored.keys().chain(self.written_back.keys()).map(String::as_str).collect()
    }
}

impl PairLoss {
    /// Whether everything that is lost for the other reason is lost for this one.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match self.kind {
            LossKind::Field => other.path.starts_with(&self.path),
            kind => kind == other.kind && other.path == self.path,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::Upgrade;
    use crate::definition::path::field_path;
    use crate::schema::testing::Generator;
    use crate::schema::testing::edit::edit;

    fn crd(versions: &[(&str, &[&str])]) -> Value {
        let version = |(name, fields): &(&str, &[&str])| {
            let fields: serde_json::Map<String, Value> =
                fields.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
            let spec = json!({"type": "object", "properties": fields});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": name, "served": true, "storage": *name == "v2", "schema": schema})
        };
        json!({"metadata": {"name": "foos.ex.com"}, "spec": {"group": "ex.com", "names": {"kind": "Foo", "plural": "foos"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()}})
    }

    fn losses(value: &Value) -> VersionLosses {
        let upgrade = Upgrade::of(value, value, Server::default());
        version_losses(&upgrade.new, |name| upgrade.new_resource(name), Server::default())
    }

    fn lines(losses: &VersionLosses) -> Vec<String> {
        let of = |what: &'static str, by: &BTreeMap<String, Vec<PairLoss>>| -> Vec<String> {
            let line = |version: &String, loss: &PairLoss| format!("{what} {version} {}", field_path(&loss.path));
            by.iter().flat_map(|(version, all)| all.iter().map(move |loss| line(version, loss))).collect()
        };
        [of("stored", &losses.stored), of("back", &losses.written_back)].concat()
    }

    #[test]
    fn losses_that_were_there_before_are_not_new() {
        let old = losses(&crd(&[("v1", &["a"]), ("v2", &["a", "b"])]));
        let new = losses(&crd(&[("v1", &["a", "d"]), ("v2", &["a", "b", "c"])]));
        assert_eq!(lines(&new), ["stored v1 spec.d", "back v1 spec.b", "back v1 spec.c"]);
        assert_eq!(lines(&new.without(&old)), ["stored v1 spec.d", "back v1 spec.c"]);
        let three = losses(&crd(&[("v1", &["a"]), ("v2", &["a", "b"]), ("v3", &["a", "b", "e"])]));
        assert_eq!(lines(&three), ["stored v3 spec.e", "back v1 spec.b"], "what is not stored is not lost later");
    }

    #[test]
    fn versions_that_are_not_compared_lose_nothing_more() {
        let mut saved = 0;
        for round in 0..150 {
            let mut generator = Generator::new(7_000_003 + round);
            let first = generator.schema();
            let schemas: Vec<Value> = (0..4)
                .map(|index| {
                    let mut schema = first.clone();
                    for _ in 0..index {
                        edit(&mut generator, &mut schema["properties"]["spec"], 0);
                    }
                    schema
                })
                .collect();
            let storage = generator.below(schemas.len());
            let version = |(index, schema): (usize, &Value)| {
                json!({"name": format!("v{index}"), "served": true, "storage": index == storage,
                    "schema": {"openAPIV3Schema": schema}})
            };
            let mut value = crd(&[]);
            value["spec"]["versions"] = schemas.iter().enumerate().map(version).collect();
            let (upgrade, server) = (Upgrade::of(&value, &value, Server::default()), Server::default());
            let resource = |name: &str| upgrade.new_resource(name);
            let all = losses_within(&upgrade.new, resource, server, |_, _, _| false);
            assert_eq!(version_losses(&upgrade.new, resource, server), all, "round {round}: {value}");
            let parsed: Vec<Schema> = schemas.iter().map(Schema::of).collect();
            let pairs = parsed.iter().flat_map(|from| parsed.iter().map(move |through| (from, through)));
            saved += pairs.filter(|(from, through)| from != through && lacks_only(from, through, &[])).count();
        }
        assert!(saved > 50, "{saved}");
    }

    #[test]
    fn equal_versions_and_webhooks_lose_nothing() {
        assert_eq!(losses(&crd(&[("v1", &["a"]), ("v2", &["a"])])), VersionLosses::default());
        let mut webhook = crd(&[("v1", &["a"]), ("v2", &["a", "b"])]);
        webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
        assert_eq!(losses(&webhook), VersionLosses::default());
    }
}
