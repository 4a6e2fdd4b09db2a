//! Operators that are paused while the objects of their definitions are carried over: how that is written on the workload,
//! and which pods it has.

use std::borrow::Cow;

use pushback_cluster::{Patch, label_query};
use pushback_objects::ObjectExt;
use serde_json::{Value, json};

/// The annotation of a paused workload: the number of replicas that it had.
pub const PAUSED_REPLICAS: &str = "pushback.dev/paused-replicas";

/// Number of replicas that the workload has when it is not paused; `None` if it is not paused.
#[must_use]
pub fn paused_replicas(workload: &Value) -> Option<u64> {
    workload.annotation(PAUSED_REPLICAS).map(|replicas| replicas.parse().unwrap_or(1))
}

/// The workload as it will be when it goes on; `None` if it is not paused.
#[must_use]
pub fn resumed(workload: &Value) -> Option<Value> {
    let replicas = paused_replicas(workload)?;
    let mut resumed = workload.clone();
    if let Some(annotations) = resumed.metadata_map_mut("annotations") {
        annotations.shift_remove(PAUSED_REPLICAS);
        if annotations.is_empty()
            && let Some(metadata) = resumed.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove("annotations");
        }
    }
    if spec_replicas(workload) == 0 {
        resumed["spec"]["replicas"] = replicas.into();
    }
    Some(resumed)
}

/// The workload as it will be when it goes on, or as it is if it is not paused.
#[must_use]
pub fn unpaused(workload: &Value) -> Cow<'_, Value> {
    resumed(workload).map_or(Cow::Borrowed(workload), Cow::Owned)
}

/// The patch that pauses a workload; `None` if it has no replicas, or is paused already.
#[must_use]
pub fn pause(workload: &Value) -> Option<Patch> {
    let replicas = match (spec_replicas(workload), paused_replicas(workload)) {
        (0, _) => return None,
        // Somebody has scaled it up while it was paused.
        (replicas, _) => replicas,
    };
    Some(patch(workload, &replicas.to_string().into(), 0))
}

/// The patch that lets a workload go on; `None` if it is not paused.
#[must_use]
pub fn resume(workload: &Value) -> Option<Patch> {
    let resumed = resumed(workload)?;
    Some(patch(workload, &Value::Null, spec_replicas(&resumed)))
}

fn patch(workload: &Value, annotation: &Value, replicas: u64) -> Patch {
    Patch::Merge(json!({
        "metadata": {
            "uid": workload.uid(),
            "resourceVersion": workload.resource_version(),
            "annotations": {PAUSED_REPLICAS: annotation},
        },
        "spec": {"replicas": replicas},
    }))
}

fn spec_replicas(workload: &Value) -> u64 {
    workload.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// The selector of a workload's pods as a query has it.
#[must_use]
pub fn pod_selector(workload: &Value) -> String {
    label_query(workload.pointer("/spec/selector"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(workload: &Value, patch: Option<Patch>) -> Value {
        let Some(Patch::Merge(patch)) = patch else { panic!("a merge patch was expected: {patch:?}") };
        let mut workload = workload.clone();
        workload["spec"]["replicas"] = patch["spec"]["replicas"].clone();
        match &patch["metadata"]["annotations"][PAUSED_REPLICAS] {
            Value::Null => {
                drop(workload["metadata"]["annotations"].as_object_mut().unwrap().shift_remove(PAUSED_REPLICAS));
            }
            replicas => workload["metadata"]["annotations"][PAUSED_REPLICAS] = replicas.clone(),
        }
        workload
    }

    fn workload(replicas: &Value) -> Value {
        json!({"metadata": {"name": "operator", "annotations": {"a": "b"}}, "spec": {"replicas": replicas}})
    }

    #[test]
    fn a_paused_workload_goes_on_with_as_many_replicas_as_it_had() {
        let before = workload(&json!(3));
        let paused = applied(&before, pause(&before));
        assert_eq!((paused["spec"]["replicas"].as_u64(), paused_replicas(&paused)), (Some(0), Some(3)));
        assert!(pause(&paused).is_none(), "it is paused already");
        assert_eq!(resumed(&paused), Some(before.clone()));
        assert_eq!(applied(&paused, resume(&paused)), before);
    }

    #[test]
    fn a_workload_that_nobody_paused_is_left_alone() {
        for replicas in [json!(0), json!(2)] {
            let workload = workload(&replicas);
            assert!(resume(&workload).is_none() && resumed(&workload).is_none(), "{workload}");
        }
        assert!(pause(&workload(&json!(0))).is_none(), "there is nothing to pause");
        let unset = json!({"metadata": {"name": "operator", "annotations": {}}, "spec": {}});
        assert_eq!(paused_replicas(&applied(&unset, pause(&unset))), Some(1));
    }

    #[test]
    fn replicas_that_somebody_set_meanwhile_stay() {
        let mut paused = workload(&json!(5));
        paused["metadata"]["annotations"][PAUSED_REPLICAS] = "2".into();
        assert_eq!(resumed(&paused), Some(workload(&json!(5))));
    }
}
