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
            // Most versions lack only fields that are lost anyway, which takes no comparison to find out.
            if let (Some(source), Some(target)) = (resource(from), resource(through))
                && keeps_except(source.schema, target.schema, &[&fields, &not_stored[from]], &mut Vec::new())
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
    fn include(&self, path: &[SchemaStep]) -> bool {
        !self.0.is_empty() && (1..=path.len()).any(|length| self.0.contains(&path[..length]))
    }
}

/// Returns whether the target keeps everything that the source has, except for these fields. False if a comparison is
/// needed to decide.
fn keeps_except(source: &Schema, target: &Schema, fields: &[&Fields], path: &mut Vec<SchemaStep>) -> bool {
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
            Some(other) => keeps_except(inner, other, fields, path),
            None => fields.iter().any(|fields| fields.include(path)),
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
    let mut items = source.items.iter().zip(&target.items);
    let keeps_items = items.all(|(items, other)| keeps_below(SchemaStep::Items, items, Some(other)));
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
    use crate::schema::testing::edit::edit;
    use crate::schema::testing::{Generator, resource};

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
    fn every_way_to_keep_less_needs_a_comparison() {
        let text = json!({"type": "string"});
        let fields = json!({"type": "object", "properties": {"a": text}});
        let rows = [
            (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), json!({"type": "object"})),
            (json!({"type": "object", "additionalProperties": text}), json!({"type": "object"})),
            (
                json!({"type": "object", "additionalProperties": fields}),
                json!({"type": "object", "additionalProperties": text}),
            ),
            (json!({"type": "array", "items": fields}), json!({"type": "array", "items": {"type": "object"}})),
            (json!({"type": "object", "x-kubernetes-embedded-resource": true}), json!({"type": "object"})),
            (json!({"type": "string", "nullable": true}), text.clone()),
            (json!({"x-kubernetes-int-or-string": true}), json!({"type": "integer"})),
            (json!({"type": "string", "format": 1}), text.clone()),
            (fields.clone(), json!({"type": "object"})),
        ];
        let keeps = |source: &Value, target: &Value, fields: &[&Fields]| {
            keeps_except(&Schema::of(source), &Schema::of(target), fields, &mut Vec::new())
        };
        for (source, target) in &rows {
            assert!(!keeps(source, target, &[]), "{source} to {target}");
        }
        let field = Fields(HashSet::from([vec![SchemaStep::Property("a".to_owned())]]));
        assert!(keeps(&fields, &json!({"type": "object"}), &[&field]));
        assert!(keeps(&json!({"type": "string", "nullable": true}), &json!({"type": "string", "default": ""}), &[]));
        assert!(keeps(&text, &json!({"type": "string", "maxLength": 1}), &[]));
    }

    #[test]
    fn versions_that_are_not_compared_lose_nothing_more() {
        let lost = |from: &Schema, to: &Schema| {
            converted_losses(&resource(from), &resource(to), Server::default(), &Budget::default())
        };
        let mut skipped = 0;
        for round in 0..150 {
            let mut generator = Generator::new(7_000_003 + round);
            let first = generator.schema();
            let schemas: Vec<Schema> = (0..4)
                .map(|index| {
                    let mut schema = first.clone();
                    for _ in 0..index {
                        edit(&mut generator, &mut schema["properties"]["spec"], 0);
                    }
                    Schema::of(&schema)
                })
                .collect();
            let storage = &schemas[generator.below(schemas.len())];
            for (from, through) in schemas.iter().flat_map(|from| schemas.iter().map(move |through| (from, through))) {
                let known = [lost(storage, through), lost(from, storage)].concat();
                if from != through && keeps_except(from, through, &[&Fields::from_losses(&known)], &mut Vec::new()) {
                    skipped += 1;
                    let mut losses = lost(from, through).into_iter();
                    let more = losses.find(|loss| !known.iter().any(|known| known.includes(loss)));
                    assert_eq!(more, None, "round {round}: {from:?}\n{through:?}");
                }
            }
        }
        assert!(skipped > 50, "{skipped}");
    }

    #[test]
    fn equal_versions_and_webhooks_lose_nothing() {
        assert_eq!(losses(&crd(&[("v1", &["a"]), ("v2", &["a"])])), VersionLosses::default());
        let mut webhook = crd(&[("v1", &["a"]), ("v2", &["a", "b"])]);
        webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
        assert_eq!(losses(&webhook), VersionLosses::default());
    }
}
