//! An object that is written at one version and written back unchanged at another one, under conversion strategy None:
//! what the first version shows of it afterwards.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/customresource_handler.go`: a write is pruned and filled in by
//! the version of the request, and pruned by the storage version; a read is filled in by the storage version, and pruned
//! by the version of the request.

use serde_json::Value;

use crate::path::PathSegment;
use crate::schema::pipeline::{self, Path, Resource, Server};

/// What a version shows of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// After it was written.
    pub before: Value,
    /// After it was written back at the other version.
    pub after: Value,
}

impl RoundTrip {
    /// The places at which something is lost or changed. What defaults add is no loss.
    #[must_use]
    pub fn lost(&self) -> Vec<Path> {
        not_kept(&self.before, &self.after)
    }
}

/// Writes an object at `from`, and writes it back unchanged at `through`. `None` if a write is refused.
#[must_use]
pub fn round_trip([from, through, storage]: [&Resource<'_>; 3], server: Server, object: &Value) -> Option<RoundTrip> {
    let written = pipeline::create(from, server, object);
    if written.accepted() != Some(true) {
        return None;
    }
    let stored = converted(from, storage, &written.object);
    let before = seen(storage, from, &stored);
    let back = pipeline::write_back(through, server, &seen(storage, through, &stored));
    if back.accepted() != Some(true) {
        return None;
    }
    let after = seen(storage, from, &converted(through, storage, &back.object));
    Some(RoundTrip { before, after })
}

fn seen(storage: &Resource<'_>, version: &Resource<'_>, stored: &Value) -> Value {
    converted(storage, version, &pipeline::read(storage, stored).object)
}

fn converted(from: &Resource<'_>, to: &Resource<'_>, object: &Value) -> Value {
    if from.version == to.version { object.clone() } else { pipeline::convert(to, object).object }
}

/// The places of `before` that `after` does not have, or has with another value.
#[must_use]
pub fn not_kept(before: &Value, after: &Value) -> Vec<Path> {
    let (mut found, mut path) = (Vec::new(), Path::new());
    compare(before, after, &mut path, &mut found);
    found
}

fn compare(before: &Value, after: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut below = |segment: PathSegment, before: &Value, after: Option<&Value>| {
        path.push(segment);
        match after {
            Some(after) => compare(before, after, path, found),
            None => found.push(path.clone()),
        }
        path.pop();
    };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().for_each(|(key, value)| below(key.as_str().into(), value, after.get(key)));
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().enumerate().for_each(|(index, value)| below(index.into(), value, after.get(index)));
        }
        _ if before == after => {}
        _ => found.push(path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{PairLoss, converted_losses};
    use crate::schema::Schema;
    use crate::schema::contain::Budget;
    use crate::schema::testing::edit::{edit, number};
    use crate::schema::testing::{Generator, resource};

    fn versions(schemas: &[Schema; 3]) -> [Resource<'_>; 3] {
        let [first, second, third] = schemas;
        let of = |schema, version| Resource { version, ..resource(schema) };
        [of(first, "v1"), of(second, "v2"), of(third, "v3")]
    }

    /// What an object of every version loses when it is written back at every other one, for each of the three as the
    /// storage version, is what its version loses in the storage version and in the other one. `PUSHBACK_ROUNDS=full`
    /// tries 10,000 objects a pair; a number takes that many triples of versions.
    #[test]
    #[expect(clippy::print_stderr, reason = "the figures of a run by hand; the harness keeps them back otherwise")]
    fn what_generated_objects_lose_on_a_round_trip_is_named() {
        let is_full = std::env::var("PUSHBACK_ROUNDS").is_ok_and(|rounds| rounds == "full");
        let (rounds, objects) = if is_full { (60, 10_000) } else { (number("PUSHBACK_ROUNDS", 60), 8) };
        let seed = number("PUSHBACK_SEED", 1);
        let (mut trips, mut lossy, mut kept_all, mut wrong) = (0, 0, 0, Vec::new());
        for round in 0..rounds {
            let mut generator = Generator::new(seed.wrapping_mul(5_000_011).wrapping_add(round));
            let first = generator.schema();
            let [mut second, mut third] = [first.clone(), first.clone()];
            for schema in [&mut second, &mut third] {
                for _ in 0..=generator.below(3) {
                    edit(&mut generator, &mut schema["properties"]["spec"], 0);
                }
            }
            let written = [first, second, third];
            let schemas = [0, 1, 2].map(|index| Schema::of(&written[index]));
            let all = versions(&schemas);
            for (storage, from, through) in triples() {
                let [from_version, through_version, home] = [from, through, storage].map(|index| &all[index]);
                let server = Server::default();
                let named = [
                    converted_losses(from_version, home, server, &Budget::default()),
                    converted_losses(from_version, through_version, server, &Budget::default()),
                ]
                .concat();
                let is_named = |place: &Path| named.iter().any(|loss: &PairLoss| loss.covers(place));
                for _ in 0..objects {
                    let object = generator.object_of(&written[from]);
                    let Some(trip) = round_trip([from_version, through_version, home], server, &object) else {
                        continue;
                    };
                    trips += 1;
                    let at = |place: &Path| {
                        place.iter().try_fold(&trip.before, |value, segment| match segment {
                            PathSegment::Key(key) => value.get(key),
                            PathSegment::Index(index) => value.get(*index),
                        })
                    };
                    // A default takes the place of a null that the other version does not allow.
                    let lost: Vec<Path> =
                        trip.lost().into_iter().filter(|place| at(place) != Some(&Value::Null)).collect();
                    lossy += usize::from(!lost.is_empty());
                    kept_all += usize::from(lost.is_empty());
                    if let Some(place) = lost.iter().find(|place| !is_named(place)) {
                        wrong.push(format!(
                            "round {round}, {storage}/{from}/{through}: {place:?} of {object}\n  {written:?}"
                        ));
                    }
                }
            }
        }
        eprintln!("{rounds} triples: {trips} round trips, {lossy} lose something, {kept_all} nothing");
        assert!(wrong.is_empty(), "{} not named:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
        assert!(lossy > 0 && kept_all > 0);
    }

    /// Storage version, version of the object, and version of the write back, which differs from it.
    fn triples() -> impl Iterator<Item = (usize, usize, usize)> {
        let pairs =
            (0..3).flat_map(|from| (0..3).filter(move |through| *through != from).map(move |through| (from, through)));
        pairs.flat_map(|(from, through)| (0..3).map(move |storage| (storage, from, through)))
    }

    #[test]
    fn the_three_steps_of_a_breaking_change() {
        // Created at the new version, written back unchanged at the old one, read at the new one again.
        let schema = |fields: Value| {
            Schema::of(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}))
        };
        let text = json!({"type": "string"});
        let old = schema(json!({"a": text}));
        let new = schema(json!({"a": text, "b": text}));
        let [v1, v2] = [("v1", &old), ("v2", &new)].map(|(version, schema)| Resource { version, ..resource(schema) });
        let object = json!({
            "apiVersion": "example.com/v2", "kind": "Test", "metadata": {"name": "a"}, "spec": {"a": "x", "b": "y"},
        });
        let server = Server::default();
        let trip = round_trip([&v2, &v1, &v2], server, &object).expect("both writes");
        assert_eq!((&trip.before["spec"], &trip.after["spec"]), (&json!({"a": "x", "b": "y"}), &json!({"a": "x"})));
        assert_eq!(trip.lost(), [vec![PathSegment::from("spec"), "b".into()]]);
        let trip = round_trip([&v2, &v2, &v2], server, &object).expect("both writes");
        assert_eq!(trip.lost(), Vec::<Path>::new());
    }
}
