//! Fields that a plan sets by expressions: parsed and type-checked against both versions when the plan is loaded.

use std::sync::Arc;

use pushback_crd::schema::cel::{Declaration, Given, Objection, Program, given_by};
use pushback_crd::schema::{Schema, Type};
use serde_json::Value;

use super::super::operation_list::{Loss, OperationKind};
use super::super::path::FieldPath;
use super::super::plan::{Hook, HookAction};
use super::super::step::{Assignment, ObjectStep};
use super::super::storage_schema;
use super::pairs::is_opaque;
use super::{Deriver, Form};

/// The two ends of a hook.
struct Ends<'e> {
    source: (&'e Form, &'e FieldPath),
    target: (&'e Schema, &'e FieldPath),
    is_up: bool,
}

impl Deriver<'_> {
    /// Adds the expressions that are about this pair of objects.
    pub(super) fn attach_hooks(
        &mut self,
        (up, down): (&mut ObjectStep, &mut ObjectStep),
        (older, newer): (&Schema, &Schema),
        (path, new_path): (&FieldPath, &FieldPath),
    ) {
        let plan = self.plan;
        let (old_form, new_form) = (self.older, self.newer);
        let ups = Ends { source: (old_form, path), target: (newer, new_path), is_up: true };
        self.attach(up, "up", &plan.up, &ups);
        let downs = Ends { source: (new_form, new_path), target: (older, path), is_up: false };
        self.attach(down, "down", &plan.down, &downs);
    }

    fn attach(&mut self, step: &mut ObjectStep, key: &'static str, hooks: &[Hook], ends: &Ends<'_>) {
        for (index, hook) in hooks.iter().enumerate() {
            let HookAction::Set { at, field, cel, always } = &hook.action else { continue };
            if at != ends.source.1 {
                continue;
            }
            self.used.insert((key, index));
            match assignment(ends, field, cel, *always) {
                Ok(assignment) => {
                    let target = ends.target.1.join(field);
                    let loss = if *always { Loss::Unknown } else { Loss::None };
                    let (older, newer) = if ends.is_up { (at, &target) } else { (&target, at) };
                    let (older, newer) = (older.clone(), newer.clone());
                    self.operation(OperationKind::Set, &older, &newer, loss);
                    step.assignments.push(assignment);
                }
                Err(None) => self.missing(&hook.position, &ends.target.1.join(field), ends.is_up),
                Err(Some(why)) => {
                    let message = format!("{}: {why}", ends.target.1.join(field));
                    self.error(&hook.position, message, &[]);
                }
            }
        }
    }
}

/// An expression, checked; `None` as error if the field does not exist.
fn assignment(ends: &Ends<'_>, field: &FieldPath, cel: &str, always: bool) -> Result<Assignment, Option<String>> {
    let (form, at) = ends.source;
    let names = field.names().ok_or_else(|| {
        Some("an expression sets one field, not one of each item; name the items with `at`".to_owned())
    })?;
    let target = names.iter().try_fold(ends.target.0, |schema, name| schema.properties.get(name)).ok_or(None)?;
    let node = storage_schema::node(&form.skeleton, at.steps()).unwrap_or(&Value::Null);
    let hidden = || Some(format!("expressions cannot see {at} of {}", form.name));
    let declaration = Declaration::of(node, at.is_root()).ok_or_else(hidden)?;
    let given = given_by(cel, &declaration).map_err(|objection| {
        Some(match objection {
            Objection::Refused(why) => format!("the expression is wrong: {why}"),
            Objection::Unknown(why) => format!("the expression is not supported: {why}"),
        })
    })?;
    if !fits(&given, target) {
        return Err(Some(format!(
            "the expression gives {}, and the field is of type {}",
            shown(&given),
            target.type_name()
        )));
    }
    let program = Program::computing(cel).map_err(|error| Some(format!("the expression cannot be read: {error}")))?;
    Ok(Assignment {
        program: Arc::new(program),
        schema: Arc::new(Schema::of(node)),
        field: names,
        always,
        needs_first: at.is_root(),
    })
}

fn fits(given: &Given, target: &Schema) -> bool {
    if *given == Given::Any || target.kind.is_none() && !target.int_or_string {
        return true;
    }
    match (given, target.kind) {
        (Given::Integer | Given::String, _) if target.int_or_string => true,
        (Given::Boolean, Some(Type::Boolean))
        | (Given::Integer, Some(Type::Integer | Type::Number))
        | (Given::Number, Some(Type::Number))
        | (Given::String, Some(Type::String))
        | (Given::List, Some(Type::Array))
        | (Given::Map, Some(Type::Object)) => true,
        (Given::Map, _) => is_opaque(target),
        _ => false,
    }
}

fn shown(given: &Given) -> String {
    match given {
        Given::Boolean => "a boolean".to_owned(),
        Given::Integer => "an integer".to_owned(),
        Given::Number => "a number".to_owned(),
        Given::String => "a string".to_owned(),
        Given::List => "a list".to_owned(),
        Given::Map => "a map".to_owned(),
        Given::Any => "any value".to_owned(),
        Given::Other(name) => format!("a {name}, which is no JSON value; use string()"),
    }
}
