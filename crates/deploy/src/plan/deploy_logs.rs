//! kapp's annotations of Pods whose logs are told while the app is applied: on a Pod, or on the template that it is made
//! from.

use pushback_manifest::InputError;
use pushback_objects::{ObjectExt, PathSegment, Positions};
use serde_json::Value;

const LOGS: &str = "kapp.k14s.io/deploy-logs";
const CONTAINERS: &str = "kapp.k14s.io/deploy-logs-container-names";

/// The accepted values; the empty one means new Pods.
pub const WHOSE: [&str; 4] = ["", "for-new", "for-existing", "for-new-or-existing"];

/// Where workloads have the metadata of their Pods.
const TEMPLATES: [&[&str]; 2] = [&["spec", "template"], &["spec", "jobTemplate", "spec", "template"]];

/// Whose logs are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployLogs {
    /// Pods that come while the app is applied.
    pub of_new: bool,
    /// Pods that are there before.
    pub of_existing: bool,
    /// Names of containers; empty for all.
    pub containers: Vec<String>,
}

/// What a Pod, or a template of Pods, asks for.
#[must_use]
pub fn wanted(pod: &Value) -> Option<DeployLogs> {
    let whose = pod.annotation(LOGS)?;
    let names = pod.annotation(CONTAINERS).unwrap_or_default().split(',').map(str::trim);
    Some(DeployLogs {
        of_new: matches!(whose, "" | "for-new" | "for-new-or-existing"),
        of_existing: matches!(whose, "for-existing" | "for-new-or-existing"),
        containers: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    })
}

/// Whether Pods of this object may ask for it.
#[must_use]
pub fn may_be_wanted(object: &Value) -> bool {
    wanted(object).is_some() || templates(object).any(|(_, template)| wanted(template).is_some())
}

/// Every value in a template that is none of those accepted.
pub(super) fn check_templates(object: &Value, positions: &Positions) -> Vec<InputError> {
    let wrong = templates(object).filter_map(|(place, template)| {
        let value = template.annotation(LOGS).filter(|value| !WHOSE.contains(value))?;
        let path = place.iter().chain(&["metadata", "annotations", LOGS]);
        let path: Vec<PathSegment> = path.map(|segment| PathSegment::from(*segment)).collect();
        let words = WHOSE.map(|word| format!("{word:?}")).join(", ");
        let message = format!("annotation {LOGS} is {value:?}, expected {words}");
        Some(InputError { message, position: positions.locate(&path), hints: Vec::new() })
    });
    wrong.collect()
}

fn templates(object: &Value) -> impl Iterator<Item = (&'static [&'static str], &Value)> {
    TEMPLATES.into_iter().filter_map(move |place| {
        let template = place.iter().try_fold(object, |value, field| value.get(field))?;
        Some((place, template))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_says_whether_its_logs_are_told_when_it_is_new_and_when_it_was_there() {
        let of = |whose: &str| {
            let pod = json!({"metadata": {"annotations": {LOGS: whose, CONTAINERS: "main, side"}}});
            wanted(&pod).map(|logs| (logs.of_new, logs.of_existing, logs.containers.len()))
        };
        assert_eq!(of(""), Some((true, false, 2)));
        assert_eq!(of("for-new"), Some((true, false, 2)));
        assert_eq!(of("for-existing"), Some((false, true, 2)));
        assert_eq!(of("for-new-or-existing"), Some((true, true, 2)));
        assert_eq!(wanted(&json!({"metadata": {"annotations": {}}})), None);
    }

    #[test]
    fn a_template_is_looked_at_too() {
        let template = |whose: &str| json!({"metadata": {"annotations": {LOGS: whose}}});
        let job = json!({"spec": {"jobTemplate": {"spec": {"template": template("for-new")}}}});
        assert!(may_be_wanted(&job) && check_templates(&job, &Positions::of_file("a.yaml")).is_empty());
        let wrong = json!({"spec": {"template": template("always")}});
        let told = check_templates(&wrong, &Positions::of_file("a.yaml"));
        assert_eq!(
            told.iter().map(|error| error.message.as_str()).collect::<Vec<_>>(),
            ["annotation kapp.k14s.io/deploy-logs is \"always\", expected \"\", \"for-new\", \"for-existing\", \
              \"for-new-or-existing\""]
        );
    }
}
