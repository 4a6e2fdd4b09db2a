//! The parts of an experiment on Pods that other runners need.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::InjectionType;
use super::super::suite::SuiteExperiment;

/// An experiment on Pods, as other tools need it.
#[derive(Debug)]
pub(super) struct OnPods<'a> {
    pub(super) entry: &'a SuiteExperiment,
    pub(super) namespace: &'a str,
    pub(super) labels: BTreeMap<&'a str, &'a str>,
    /// Duration in seconds.
    pub(super) ttl: u64,
}

impl OnPods<'_> {
    pub(super) fn is_kill(&self) -> bool {
        self.entry.experiment.injection.kind == InjectionType::PodKill
    }

    pub(super) fn count(&self) -> u32 {
        self.entry.experiment.injection.count
    }

    /// The label selector, `a=b,c=d`.
    pub(super) fn selector(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.join(",")
    }

    /// Name, namespace, labels and annotations.
    pub(super) fn metadata(&self) -> Value {
        let experiment = &self.entry.experiment;
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(experiment.name));
        map.insert("namespace".to_owned(), json!(self.namespace));
        map.insert("labels".to_owned(), json!(experiment.labels));
        map.insert("annotations".to_owned(), json!(experiment.annotations));
        Value::Object(map)
    }
}
