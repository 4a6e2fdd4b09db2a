//! Changes in how the pods of a workload start: arguments, variables and volumes. A release changes many of them, so
//! they are informational, except for volumes with data.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::super::derive::versioned_name;
use super::super::difference::Severity;
use super::manifest_difference::{ManifestDifference, names};
use super::pod_fields;

/// Volume sources whose data outlive a pod.
const DATA: [&str; 11] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "csi",
    "ephemeral",
    "gcePersistentDisk",
    "hostPath",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
];

pub(super) fn differences(old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let ((path, was), (_, is)) = (template(old), template(new));
    let (Some(before), Some(after)) = (pod_spec(was), pod_spec(is)) else { return Vec::new() };
    let path = format!("{path}.spec");
    let mut found = Vec::new();
    // That the template of a Job cannot be changed is told instead.
    let (may_change, is_live) = (new.text("/kind") != "Job", !old.uid().is_empty());
    for field in ["initContainers", "containers"] {
        let (was, is) = (named(before.get(field)), named(after.get(field)));
        if field == "initContainers" {
            let only_names =
                |items: &BTreeMap<String, Value>| items.keys().map(|key| (key.clone(), Value::Null)).collect();
            let path = format!("{path}.{field}");
            found.extend(names(&path, "init container", "init containers", &only_names(&was), &only_names(&is)));
        }
        for (name, before) in &was {
            if let Some(after) = is.get(name) {
                let path = format!("{path}.{field}.{name}");
                container(&path, before, after, &mut found);
                if may_change {
                    pod_fields::container(&path, before, after, is_live, &mut found);
                }
            }
        }
    }
    volumes(&format!("{path}.volumes"), before, after, &mut found);
    if may_change {
        pod_fields::spec(&path, before, after, is_live, &mut found);
        pod_fields::template(&path, was, is, &mut found);
    }
    found
}

/// The pod template of an object, with its path; null if it has none.
fn template(object: &Value) -> (&'static str, &Value) {
    let spec = &object["spec"];
    match object.text("/kind") {
        "CronJob" => ("spec.jobTemplate.spec.template", &spec["jobTemplate"]["spec"]["template"]),
        _ => ("spec.template", &spec["template"]),
    }
}

fn pod_spec(template: &Value) -> Option<&Value> {
    template.get("spec").filter(|spec| spec["containers"].is_array())
}

fn named(list: Option<&Value>) -> BTreeMap<String, Value> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| (item.text("/name").to_owned(), item.clone())).collect()
}

fn container(path: &str, before: &Value, after: &Value, found: &mut Vec<ManifestDifference>) {
    let (was, is) = (Arguments::of(before), Arguments::of(after));
    let flags = names(&format!("{path}.args"), "argument", "arguments", &was.flags, &is.flags);
    // An argument that is not a flag may be anything, even a password.
    let words = || ManifestDifference::new(Severity::Info, format!("{path}.args"), "command or arguments changed");
    found.extend(flags.or_else(|| (was.words != is.words).then(words)));
    let variables = |container: &Value| {
        let mut variables = named(container.get("env"));
        for source in container.get("envFrom").and_then(Value::as_array).into_iter().flatten() {
            let (map, secret) = (source.text("/configMapRef/name"), source.text("/secretRef/name"));
            let title =
                if map.is_empty() { format!("all of Secret {secret}") } else { format!("all of ConfigMap {map}") };
            variables.insert(title, source.clone());
        }
        variables
    };
    found.extend(names(&format!("{path}.env"), "variable", "variables", &variables(before), &variables(after)));
}

/// The arguments of a container. The order of flags does not matter.
struct Arguments<'a> {
    /// Flag, such as `--level`, with all its values.
    flags: BTreeMap<String, Value>,
    words: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn of(container: &'a Value) -> Self {
        let mut given: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let mut words = Vec::new();
        let all = ["command", "args"].into_iter().filter_map(|field| container.get(field)?.as_array()).flatten();
        for argument in all.filter_map(Value::as_str) {
            match flag(argument) {
                Some((name, value)) => {
                    given.entry(name.to_owned()).or_default().insert(value);
                }
                None => words.push(argument),
            }
        }
        Self { flags: given.into_iter().map(|(name, values)| (name, json!(values))).collect(), words }
    }
}

/// Parses `--level=info`, `-level=info`, `--quiet`. `-psecret` is not a flag that may be shown.
fn flag(argument: &str) -> Option<(&str, &str)> {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_long = name.strip_prefix("--").is_some_and(is_word);
    let is_given = name != argument && name.strip_prefix('-').is_some_and(is_word);
    (is_long || is_given).then_some((name, value))
}

fn volumes(path: &str, before: &Value, after: &Value, found: &mut Vec<ManifestDifference>) {
    let (was, is) = (named(before.get("volumes")), named(after.get("volumes")));
    let all: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    for name in all {
        let (old, new) = (was.get(name).map(source), is.get(name).map(source));
        if old == new {
            continue;
        }
        let loses_data = old.as_ref().is_some_and(|(kind, _)| DATA.contains(kind));
        let title = |(kind, name): &(&str, &str)| format!("{kind} {name}").trim_end().to_owned();
        let message = match (&old, &new) {
            (Some(old), Some(new)) => format!("volume is {} instead of {}", title(new), title(old)),
            (Some(old), None) => format!("volume removed, was {}", title(old)),
            (None, Some(new)) => format!("volume added: {}", title(new)),
            (None, None) => continue,
        };
        let severity = if loses_data { Severity::Warning } else { Severity::Info };
        let value = |side: &Option<(&str, &str)>| side.as_ref().map(|side| json!(title(side)));
        found.push(
            ManifestDifference::new(severity, format!("{path}.{name}"), message).values(value(&old), value(&new)),
        );
    }
}

/// Kind and name of the source of a volume, without the number of a versioned name.
fn source(volume: &Value) -> (&str, &str) {
    let fields = volume.as_object().into_iter().flatten();
    let Some((kind, source)) = fields.into_iter().find(|(key, _)| *key != "name") else { return ("emptyDir", "") };
    let paths = ["/name", "/secretName", "/claimName", "/path", "/driver", "/server", "/pdName", "/volumeID"];
    let name = paths.into_iter().map(|path| source.text(path)).find(|name| !name.is_empty()).unwrap_or_default();
    (kind, versioned_name(name).map_or(name, |(base, _)| base))
}
