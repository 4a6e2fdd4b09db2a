//! Moves what a step does in one field into the step before it, where nothing between them looks at that field: a long
//! list is walked once on the way through many versions.

use super::converter::Edge;
use super::execute::object;
use super::step::{Convert, Field, ObjectStep, Pull, Table};

/// Gathers the work of steps that follow one another, as early as it can be.
pub(super) fn gather(steps: &mut [Edge]) {
    for later in (1..steps.len()).rev() {
        let (earlier, rest) = steps.split_at_mut(later);
        let (Some(first), Some(second)) = (earlier.last_mut(), rest.first_mut()) else { continue };
        // A program looks at the whole object.
        if first.programs.is_empty()
            && second.programs.is_empty()
            && let Some((earlier, later)) = moved(&first.convert, &second.convert)
        {
            (first.convert, second.convert) = (earlier, later);
        }
    }
}

/// Two conversions that do together what these do, the first one as much as it can; `None` if nothing can be moved.
fn moved(first: &Convert, second: &Convert) -> Option<(Convert, Convert)> {
    if is_plain(first) && is_plain(second) {
        return Some((joined(first, second)?, Convert::Same));
    }
    let (Convert::Object(first), Convert::Object(second)) = (first, second) else { return None };
    // Expressions of the second are about the object between the two.
    if first.rest.is_some() || second.rest.is_some() || !second.assignments.is_empty() {
        return None;
    }
    let (mut earlier, mut later) = (ObjectStep::clone(first), ObjectStep::clone(second));
    later.fields = Table::default();
    for (key, field) in second.fields.iter() {
        let left = match moved_field(first, second, key, field) {
            Some((source, convert, left)) => {
                earlier.fields.insert(source, Field::Keep { to: key.clone(), convert, aside: None });
                Field::Keep { to: key.clone(), convert: left, aside: None }
            }
            None => field.clone(),
        };
        if !matches!(&left, Field::Keep { to, convert, aside: None } if to == key && convert.is_same()) {
            later.fields.insert(key.clone(), left);
        }
    }
    Some((object(earlier), object(later)))
}

/// For a field that the second step keeps under its name: how the first one finds it, what it then does with it, and what
/// is left for the second.
fn moved_field(
    first: &ObjectStep,
    second: &ObjectStep,
    key: &str,
    field: &Field,
) -> Option<(String, Convert, Convert)> {
    let Field::Keep { to, convert, aside: None } = field else { return None };
    if to != key || makes(second, key, key) {
        return None;
    }
    let source = first.fields.iter().find(|(_, field)| matches!(field, Field::Keep { to, .. } if to == key));
    let (source, before) = match source {
        Some((source, Field::Keep { convert, aside: None, .. })) => (source.as_str(), convert),
        Some(_) => return None,
        None if first.fields.get(key).is_some() => return None,
        None => (key, &Convert::Same),
    };
    if makes(first, source, key) {
        return None;
    }
    let (earlier, left) = match before {
        Convert::Same if is_plain(convert) => (convert.clone(), Convert::Same),
        Convert::Same => return None,
        before => moved(before, convert)?,
    };
    Some((source.to_owned(), earlier, left))
}

/// Whether a step makes a field out of anything but the field that it keeps under this name, or takes parts of that.
fn makes(step: &ObjectStep, source: &str, key: &str) -> bool {
    let is_other =
        |(from, field): &(String, Field)| matches!(field, Field::Keep { to, .. } if to == key && from != source);
    let is_pulled = |(_, pull): &(String, Pull)| match pull {
        Pull::Field { to, .. } | Pull::Original { to, .. } => to == key,
        Pull::Rest => true,
    };
    let starts_with = |path: &[String], name: &str| path.first().is_some_and(|first| first == name);
    step.fields.iter().any(is_other)
        || step.pulls.iter().any(is_pulled)
        || step.moves.iter().any(|moving| starts_with(&moving.from, source) || starts_with(&moving.to, key))
        || step.assignments.iter().any(|assignment| starts_with(&assignment.field, key))
}

/// Whether a conversion only gives fields other names, and so neither fails nor loses anything.
fn is_plain(convert: &Convert) -> bool {
    let is_kept =
        |(_, field): &(String, Field)| matches!(field, Field::Keep { convert, aside: None, .. } if is_plain(convert));
    match convert {
        Convert::Same => true,
        Convert::Each(inner) => is_plain(inner),
        Convert::Object(step) => {
            step.pulls.is_empty()
                && step.moves.is_empty()
                && step.assignments.is_empty()
                && step.rest.is_none()
                && step.fields.iter().all(is_kept)
        }
        _ => false,
    }
}

/// One conversion that does what two plain ones do.
fn joined(first: &Convert, second: &Convert) -> Option<Convert> {
    Some(match (first, second) {
        (Convert::Same, other) | (other, Convert::Same) => other.clone(),
        (Convert::Each(first), Convert::Each(second)) => Convert::each(joined(first, second)?),
        (Convert::Object(first), Convert::Object(second)) => object(joined_objects(first, second)?),
        _ => return None,
    })
}

fn joined_objects(first: &ObjectStep, second: &ObjectStep) -> Option<ObjectStep> {
    let mut fields: Vec<(String, String, Convert)> = Vec::new();
    for (from, field) in first.fields.iter() {
        let Field::Keep { to, convert, .. } = field else { return None };
        match second.fields.get(to) {
            Some(Field::Keep { to, convert: then, .. }) => {
                fields.push((from.clone(), to.clone(), joined(convert, then)?));
            }
            Some(_) => return None,
            None => fields.push((from.clone(), to.clone(), convert.clone())),
        }
    }
    let is_made =
        |key: &str| first.fields.iter().any(|(_, field)| matches!(field, Field::Keep { to, .. } if to == key));
    for (from, field) in second.fields.iter().filter(|(from, _)| !is_made(from) && first.fields.get(from).is_none()) {
        let Field::Keep { to, convert, .. } = field else { return None };
        fields.push((from.clone(), to.clone(), convert.clone()));
    }
    fields.retain(|(from, to, convert)| from != to || !convert.is_same());
    let mut step = ObjectStep { rewrites: fields.iter().any(|(from, to, _)| from != to), ..ObjectStep::default() };
    for (from, to, convert) in fields {
        step.fields.insert(from, Field::Keep { to, convert, aside: None });
    }
    Some(step)
}
