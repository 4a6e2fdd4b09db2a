//! A CEL value as JSON, for expressions that compute a value. What JSON has no form for is refused rather than guessed.

use std::rc::Rc;

use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{Map, Value};
use crate::schema::cel::evaluator::Evaluator;
use crate::schema::cel::stop::Stop;

impl Value<'_> {
    /// The value as JSON; `None` for an optional without a value.
    pub(in crate::schema::cel) fn to_json(&self, evaluator: &Evaluator<'_>) -> Result<Option<Json>, Stop> {
        evaluator.charge(1)?;
        Ok(Some(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => {
                Json::Number(Number::from_f64(*value).ok_or_else(|| Stop::unknown("a number without a finite value"))?)
            }
            Self::String(text) => Json::from(text.as_ref()),
            Self::Optional(None) => return Ok(None),
            Self::Optional(Some(inner)) => return inner.to_json(evaluator),
            Self::List(list) => {
                list.in_order()?;
                list.items.iter().filter_map(|item| item.to_json(evaluator).transpose()).collect::<Result<_, _>>()?
            }
            Self::Map(Map::Typed { entries, .. } | Map::Untyped(entries)) => {
                evaluator.charge(entries.len())?;
                Json::Object((*entries).clone())
            }
            Self::Map(Map::Built(entries)) => built(entries, evaluator)?,
            other => return Err(Stop::unknown(format!("a {} as JSON; use string()", other.type_name()))),
        }))
    }
}

fn built(entries: &Rc<Vec<(Value<'_>, Value<'_>)>>, evaluator: &Evaluator<'_>) -> Result<Json, Stop> {
    let mut map = JsonMap::new();
    for (key, value) in entries.iter() {
        let Value::String(key) = key else {
            return Err(Stop::unknown(format!("a map with a key of type {}", key.type_name())));
        };
        if let Some(value) = value.to_json(evaluator)? {
            map.insert(key.to_string(), value);
        }
    }
    Ok(Json::Object(map))
}
