//! Guesses which field became which: names and shapes that resemble each other in fields that only one version of a step
//! has. They are for people to read; nothing applies them.

use super::converter::Converter;
use super::operation_list::{Operation, OperationKind};
use super::path::{FieldPath, FieldStep};
use super::storage_schema::node;

/// From 0 to 1; below this, two names have nothing to do with each other.
const LEAST: f64 = 0.7;

/// Longer names cost time and resemble nothing.
const LONGEST: usize = 100;

/// What a field may have become.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The older version.
    pub from: String,
    /// The newer version.
    pub to: String,
    /// The field in the older version.
    pub older: FieldPath,
    /// The field in the newer version; `None` if nothing resembles it.
    pub newer: Option<FieldPath>,
    /// Whether it would be in another object.
    pub is_move: bool,
    /// How much the names resemble each other, from 0 to 1.
    pub similarity: f64,
}

/// For every field that goes, the one that it resembles most among those that come, each at most once.
#[must_use]
pub fn suggestions(converter: &Converter) -> Vec<Suggestion> {
    let operations = converter.operations();
    let mut suggestions = Vec::new();
    for &(older, newer) in &converter.lineage().steps {
        let versions = &converter.lineage().versions;
        let (from, to) = (&versions[older], &versions[newer]);
        let of_step = |kind: OperationKind| {
            operations.iter().filter(move |one| one.kind == kind && one.from == *from && one.to == *to)
        };
        let gone: Vec<&Operation> = of_step(OperationKind::Stash).collect();
        let come: Vec<&Operation> = of_step(OperationKind::Unstash).collect();
        let mut found: Vec<(f64, bool, usize, usize)> = Vec::new();
        for (index, one) in gone.iter().enumerate() {
            for (other_index, other) in come.iter().enumerate() {
                let fit = fit(converter, one, other);
                found.extend(fit.map(|(similarity, is_move)| (similarity, is_move, index, other_index)));
            }
        }
        let (mut by_gone, mut by_come) = (vec![0; gone.len()], vec![0; come.len()]);
        for (_, _, index, other) in found.iter().filter(|(_, is_move, ..)| !is_move) {
            by_gone[*index] += 1;
            by_come[*other] += 1;
        }
        // The only two of a shape in an object may have any names.
        found.retain(|&(similarity, is_move, index, other)| {
            let is_only = by_gone[index] == 1 && by_come[other] == 1;
            if is_move { similarity >= 1.0 } else { similarity >= LEAST || is_only }
        });
        // The best first; among equals the one in the same object, and then the order of the fields.
        found.sort_by(|one, other| {
            other.0.total_cmp(&one.0).then((one.1, one.2, one.3).cmp(&(other.1, other.2, other.3)))
        });
        let (mut taken, mut chosen) = (vec![false; come.len()], vec![None; gone.len()]);
        for (similarity, is_move, index, other) in found {
            if chosen[index].is_none() && !taken[other] {
                taken[other] = true;
                chosen[index] = Some((similarity, is_move, other));
            }
        }
        for (one, chosen) in gone.iter().zip(chosen) {
            suggestions.push(Suggestion {
                from: from.clone(),
                to: to.clone(),
                older: one.older.clone(),
                newer: chosen.map(|(_, _, other)| come[other].newer.clone()),
                is_move: chosen.is_some_and(|(_, is_move, _)| is_move),
                similarity: chosen.map_or(0.0, |(similarity, _, _)| similarity),
            });
        }
    }
    suggestions
}

/// How much the names of two fields of the same shape resemble each other, and whether one would be moved.
fn fit(converter: &Converter, gone: &Operation, come: &Operation) -> Option<(f64, bool)> {
    let (parent, name) = come.newer.split_field()?;
    let (_, old_name) = gone.older.split_field()?;
    if name.len() > LONGEST || old_name.len() > LONGEST {
        return None;
    }
    let shape = |version: &str, path: &FieldPath| {
        node(&converter.versions[converter.lineage.index(version)?].form.skeleton, path.steps())
    };
    if shape(&gone.from, &gone.older)? != shape(&come.to, &come.newer)? {
        return None;
    }
    // `newer` of a field that goes is the object that it would be in.
    let is_move = gone.newer != parent;
    if is_move && crosses_items(&gone.older, &come.newer) {
        return None;
    }
    Some((likeness(old_name, name), is_move))
}

/// Returns from 0 to 1 how much the names of two fields resemble each other.
#[must_use]
pub fn likeness(one: &str, other: &str) -> f64 {
    if one.len().max(other.len()) > LONGEST {
        return 0.0;
    }
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let similarity = strsim::jaro_winkler(&one, &other).max(strsim::normalized_damerau_levenshtein(&one, &other));
    let contains = one.contains(&other) || other.contains(&one);
    if contains { similarity.max(LEAST) } else { similarity }
}

/// Returns whether one field may be the other one under another name.
#[must_use]
pub fn resembles(one: &str, other: &str) -> bool {
    likeness(one, other) >= LEAST
}

/// Whether a move would lead out of the items of a list, or into them.
fn crosses_items(older: &FieldPath, newer: &FieldPath) -> bool {
    let common = older.steps().iter().zip(newer.steps()).take_while(|(one, other)| one == other).count();
    let mut rest = older.steps().iter().skip(common).chain(newer.steps().iter().skip(common));
    rest.any(|step| *step == FieldStep::Each)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::converter;
    use super::*;

    #[test]
    fn a_move_is_guessed_by_its_name_within_one_item() {
        let string = || json!({"type": "string"});
        let named = |name: &str| json!({"type": "object", "properties": {name: string(), "kept": string()}});
        let converter = converter(
            &[
                (
                    "v1",
                    json!({"host": string(), "items": {"type": "array", "items": named("a")}, "server": named("b")}),
                ),
                ("v2", json!({"items": {"type": "array", "items": named("host")}, "server": named("host")})),
            ],
            json!({"policy": {"unassessed": "stash"}}),
        );
        let found = suggestions(&converter);
        let moved: Vec<String> = found
            .iter()
            .filter(|one| one.is_move)
            .map(|one| format!("{} {}", one.older, one.newer.clone().unwrap_or_default()))
            .collect();
        assert_eq!(moved, ["spec.host spec.server.host"]);
    }

    #[test]
    fn a_rename_is_guessed_by_name_and_shape_and_never_applied() {
        let string = || json!({"type": "string"});
        let converter = converter(
            &[
                (
                    "v1",
                    json!({"alphaKey": string(), "replicaCount": {"type": "integer"}, "old": string(), "host": string()}),
                ),
                (
                    "v2",
                    json!({
                        "alphabetKey": string(), "replicas": {"type": "string"}, "new": {"type": "boolean"},
                        "server": {"type": "object", "properties": {"host": string(), "port": string()}},
                    }),
                ),
            ],
            json!({"policy": {"unassessed": "stash"}}),
        );
        let found = suggestions(&converter);
        let shown: Vec<String> = found
            .iter()
            .map(|one| format!("{} {} {}", one.older, one.newer.clone().unwrap_or_default(), one.is_move))
            .collect();
        assert_eq!(
            shown,
            [
                "spec.alphaKey spec.alphabetKey false",
                "spec.host the object false",
                "spec.old the object false",
                "spec.replicaCount the object false",
            ]
        );
        let object = super::super::tests::object("v1", json!({"alphaKey": "a"}));
        let converted = converter.convert(object, "v2", &super::super::NoPrograms).expect("a conversion");
        assert_eq!(converted.object["spec"], json!({}));
    }
}
