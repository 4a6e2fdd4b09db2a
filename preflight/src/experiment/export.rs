//! Experiments in the formats of other tools. Those kill pods and cut networks; nothing of theirs changes a webhook, a
//! definition's object, a label or a binding, so all else is named as left out.

mod chaos_mesh;
mod krkn;
mod litmus;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::InjectionType;
use super::suite::{Suite, SuiteExperiment};
use crate::selector::LabelSelector;

/// How long a runner waits for pods to be back where an experiment does not say, in seconds.
const DEFAULT_TTL: u64 = 120;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Chaos Mesh 2.x: `PodChaos`, `NetworkChaos`.
    ChaosMesh,
    /// Litmus: `ChaosEngine`.
    Litmus,
    /// Krkn: scenario files and the part of its configuration that names them.
    Krkn,
}

impl Tool {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ChaosMesh => "chaos-mesh",
            Self::Litmus => "litmus",
            Self::Krkn => "krkn",
        }
    }
}

/// A suite for another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The tool.
    pub tool: Tool,
    /// Files, in a folder of the tool's name.
    pub files: Vec<(String, Value)>,
    /// Experiments that it cannot express, with the reason.
    pub left_out: Vec<(String, String)>,
}

impl Export {
    /// As the manifest of the suite lists it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let files: Vec<&String> = self.files.iter().map(|(file, _)| file).collect();
        let left_out = self.left_out.iter().map(|(name, reason)| json!({"name": name, "reason": reason}));
        json!({"tool": self.tool.name(), "files": files, "notExportable": left_out.collect::<Vec<_>>()})
    }
}

/// What another tool needs to know of an experiment on pods.
#[derive(Debug)]
struct OnPods<'a> {
    entry: &'a SuiteExperiment,
    namespace: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    /// In seconds.
    ttl: u64,
}

/// The suite for a tool.
#[must_use]
pub fn export(suite: &Suite, tool: Tool) -> Export {
    let mut export = Export { tool, files: Vec::new(), left_out: Vec::new() };
    let mut scenarios = krkn::Scenarios::default();
    for entry in &suite.experiments {
        let experiment = &entry.experiment;
        let name = experiment.name.clone();
        let kind = experiment.injection.kind;
        if !matches!(kind, InjectionType::PodKill | InjectionType::NetworkPartition) {
            export.left_out.push((name, format!("{} has nothing like {}", tool.name(), kind.name())));
            continue;
        }
        let selector = experiment.injection.parameters.get("labelSelector").map(String::as_str).unwrap_or_default();
        let selector = LabelSelector::parse(selector).unwrap_or_default();
        let Some(labels) = selector.equalities().filter(|labels| !labels.is_empty()) else {
            export.left_out.push((name, "its selector demands more than equal labels".to_owned()));
            continue;
        };
        let ttl = if experiment.injection.ttl_seconds == 0 { DEFAULT_TTL } else { experiment.injection.ttl_seconds };
        let pods = OnPods { entry, namespace: experiment.injection_namespace(), labels, ttl };
        let file = format!("{}/{}", tool.name(), entry.file);
        match tool {
            Tool::ChaosMesh => export.files.push((file, chaos_mesh::object(&pods))),
            Tool::Litmus => export.files.push((file, litmus::object(&pods))),
            Tool::Krkn => {
                scenarios.add(kind, &file);
                export.files.push((file, krkn::scenario(&pods)));
            }
        }
    }
    if !scenarios.is_empty() {
        export.files.push((format!("{}/config.yaml", tool.name()), scenarios.config()));
    }
    export
}

impl OnPods<'_> {
    fn is_kill(&self) -> bool {
        self.entry.experiment.injection.kind == InjectionType::PodKill
    }

    fn count(&self) -> u32 {
        self.entry.experiment.injection.count
    }

    /// `a=b,c=d`
    fn selector(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.join(",")
    }

    /// Name, namespace, and where it comes from.
    fn metadata(&self) -> Value {
        let experiment = &self.entry.experiment;
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(experiment.name));
        map.insert("namespace".to_owned(), json!(self.namespace));
        map.insert("labels".to_owned(), json!(experiment.labels));
        map.insert("annotations".to_owned(), json!(experiment.annotations));
        Value::Object(map)
    }
}
