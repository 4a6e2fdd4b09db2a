//! Exports experiments to the formats of other tools. Those kill pods and partition networks; they cannot change
//! webhooks, custom resources, labels or bindings, so such experiments are listed as left out.

mod chaos_mesh;
mod krkn;
mod litmus;
mod on_pods;

#[cfg(test)]
mod tests;

use super::InjectionType;
use super::suite::{Export, Suite, Tool};
use crate::selector::LabelSelector;
use on_pods::OnPods;

/// Time that a runner waits for pods to recover if an experiment sets none, in seconds.
const DEFAULT_TTL: u64 = 120;

/// Exports the suite for a tool.
#[must_use]
pub fn export(suite: &Suite, tool: Tool) -> Export {
    let mut export = Export { tool, files: Vec::new(), left_out: Vec::new() };
    let mut scenarios = krkn::Scenarios::default();
    for entry in &suite.experiments {
        let experiment = &entry.experiment;
        let name = experiment.name.clone();
        let kind = experiment.injection.kind;
        if !matches!(kind, InjectionType::PodKill | InjectionType::NetworkPartition) {
            export.left_out.push((name, format!("{} has nothing like {}", tool.as_str(), kind.as_str())));
            continue;
        }
        let selector = experiment.injection.parameters.get("labelSelector").map(String::as_str).unwrap_or_default();
        let selector = LabelSelector::parse(selector).unwrap_or_default();
        let Some(labels) = selector.equalities().filter(|labels| !labels.is_empty()) else {
            export.left_out.push((name, "its selector needs more than equal labels".to_owned()));
            continue;
        };
        let ttl = if experiment.injection.ttl_seconds == 0 { DEFAULT_TTL } else { experiment.injection.ttl_seconds };
        let pods = OnPods { entry, namespace: experiment.injection_namespace(), labels, ttl };
        let file = format!("{}/{}", tool.as_str(), entry.file);
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
        export.files.push((format!("{}/config.yaml", tool.as_str()), scenarios.config()));
    }
    export
}
