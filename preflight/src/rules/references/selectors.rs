//! Services and PodDisruptionBudgets that select no Pod: none of the set any more, or none at all.

use serde_json::Value;

use super::objects::Objects;
use super::pods;
use super::reference::At;
use crate::facts::{Change, Need};
use crate::object::{ObjectExt, ObjectRef, is_custom_group};

/// What selects Pods: labels of a Service, or the selector of a PodDisruptionBudget.
#[derive(Clone, Debug)]
pub(super) struct Selecting<'a> {
    pub(super) object: ObjectRef,
    pub(super) change: &'a Change,
    /// Requirements in the form of `matchLabels` and `matchExpressions`.
    selector: Value,
}

/// The Services and budgets of the set that select Pods.
pub(super) fn selecting<'a>(objects: &Objects<'a>) -> Vec<Selecting<'a>> {
    let of = |(manifest, change): &(&'a Value, Option<&'a Change>)| {
        Some(Selecting { object: ObjectRef::of(manifest), change: (*change)?, selector: selector(manifest)? })
    };
    objects.standing.iter().filter_map(of).collect()
}

/// The selector of a Service or budget; `None` if it selects nothing by itself, or everything.
fn selector(object: &Value) -> Option<Value> {
    let of = ObjectRef::of(object);
    let selector = object.pointer("/spec/selector").filter(|selector| is_filled(selector))?;
    match (of.group.as_str(), of.kind.as_str()) {
        ("", "Service") if object.text("/spec/type") != "ExternalName" => {
            Some(serde_json::json!({"matchLabels": selector}))
        }
        ("policy", "PodDisruptionBudget") => Some(selector.clone()),
        _ => None,
    }
}

fn is_filled(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty())
}

impl Selecting<'_> {
    /// Whether it selects a Pod that the set makes. Labels may be there that the manifest does not have.
    pub(super) fn finds_one(&self, objects: &Objects<'_>) -> bool {
        objects.standing.iter().any(|(manifest, change)| {
            let live = change.and_then(|change| change.live.as_deref());
            let result = change.and_then(|change| change.result.as_deref());
            self.selects(&self.selector, &[result, Some(manifest), live])
        })
    }

    /// Whether the live object has selected a Pod of a live object of the app.
    pub(super) fn has_found_one(&self, changes: &[Change]) -> bool {
        let Some(before) = self.change.live.as_deref().and_then(selector) else { return false };
        changes.iter().any(|change| self.selects(&before, &[change.live.as_deref()]))
    }

    /// Whether it selects the Pods of an object, given in layers: the first one that has a label decides.
    fn selects(&self, selector: &Value, layers: &[Option<&Value>]) -> bool {
        let is_near = |object: &&Value| object.namespace() == self.object.namespace;
        let templates: Vec<At<'_>> =
            layers.iter().copied().flatten().filter(is_near).filter_map(pods::template).collect();
        let label = |key: &str| {
            let labels = templates.iter().filter_map(|at| at.value.pointer("/metadata/labels"));
            labels.filter_map(|labels| labels.get(key)?.as_str()).next()
        };
        !templates.is_empty() && matches(selector, label)
    }

    /// Whether something of the set may make Pods of its own at run time.
    pub(super) fn may_be_served_by_a_controller(&self, objects: &Objects<'_>) -> bool {
        objects.standing.iter().any(|(object, _)| {
            let of = ObjectRef::of(object);
            is_custom_group(&of.group) && (of.namespace.is_empty() || of.namespace == self.object.namespace)
        })
    }

    /// Asks the cluster for Pods that it selects.
    pub(super) fn need(&self) -> Need {
        Need::PodCount { namespace: self.object.namespace.clone(), selector: query(&self.selector) }
    }
}

/// Whether a selector selects what has these labels.
fn matches<'v>(selector: &Value, label: impl Fn(&str) -> Option<&'v str>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let mut wanted = wanted.into_iter().flatten();
    wanted.all(|(key, value)| label(key) == value.as_str())
        && expressions(selector).all(|(key, operator, values)| match operator {
            "In" => label(key).is_some_and(|value| values.contains(&value)),
            "NotIn" => label(key).is_none_or(|value| !values.contains(&value)),
            "Exists" => label(key).is_some(),
            "DoesNotExist" => label(key).is_none(),
            _ => true,
        })
}

fn expressions(selector: &Value) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
    let list = selector.get("matchExpressions").and_then(Value::as_array);
    list.into_iter().flatten().map(|expression| {
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).collect();
        (expression.text("/key"), expression.text("/operator"), values)
    })
}

/// The selector as a query has it: `app=web,tier in (a,b),!canary`.
fn query(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = expressions(selector).map(|(key, operator, values)| match operator {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}
