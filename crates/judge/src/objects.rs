//! The objects of a request, as answers to the needs of the rule.

use pushback_crd::definition::crd::{GROUP, KIND};
use pushback_objects::object::{ObjectExt, ObjectRef};
use pushback_preflight::{Answer, Need, Session};
use serde_json::Value;

use crate::response::JudgeError;

/// Checks that each object can be recognised.
pub(crate) fn check(objects: &[Value]) -> Result<(), JudgeError> {
    for (index, object) in objects.iter().enumerate() {
        let missing = ["/apiVersion", "/kind", "/metadata/name"].iter().find(|pointer| object.text(pointer).is_empty());
        if let Some(missing) = missing {
            let field = missing.trim_start_matches('/').replace('/', ".");
            return Err(JudgeError::request(format!("objects[{index}]: {field} is missing")));
        }
    }
    Ok(())
}

/// Answers a need like a folder that has the CRD and the objects, and nothing else.
pub(crate) fn answer(session: &Session, need: &Need, objects: &[Value]) -> Answer {
    match need {
        Need::Objects { group, kind, .. } if group != GROUP || kind != KIND => {
            let is_of_kind = |object: &&Value| {
                let reference = ObjectRef::of(object);
                reference.group == *group && reference.kind == *kind
            };
            let found: Vec<&Value> = objects.iter().filter(is_of_kind).collect();
            let mut state = Value::Null;
            session.fold(need, &mut state, &found.iter().map(|object| (*object).clone()).collect::<Vec<_>>());
            Answer::Folded { state, examined: found.len() as u64, cut: false }
        }
        Need::Objects { .. } => Answer::Folded { state: Value::Null, examined: 0, cut: false },
        Need::Object { .. } => Answer::Object { object: None },
        _ => Answer::Unable { reason: "a request does not have this fact".to_owned() },
    }
}
