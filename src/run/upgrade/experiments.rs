//! Reads experiments from files, directories and suites. Those that a suite's manifest switches off are read, and
//! returned with the reason.

use std::collections::BTreeMap;

use pushback_manifest::{Input, InputError, Manifest};
use pushback_manifest::{LoadOptions, collect};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::{self, Experiment, suite};
use pushback_upgrade::suite_folder;
use serde_json::Value;

use crate::run::error::CommandError;

/// Experiments of a run.
#[derive(Debug, Default)]
pub struct LoadedExperiments {
    /// Experiments to run, in order.
    pub experiments: Vec<Experiment>,
    /// Experiments switched off, each with the reason.
    pub switched_off: Vec<(Experiment, String)>,
}

/// Reads experiments from these inputs.
///
/// # Errors
/// All errors in them, with positions; or there is no experiment.
pub fn read(inputs: &[String]) -> Result<LoadedExperiments, CommandError> {
    let Input { manifests, .. } = collect::load(&suite_folder::expanded(inputs), &LoadOptions::default())?;
    let reasons = reasons_to_leave_out(&manifests);
    let mut given = LoadedExperiments::default();
    let mut errors = Vec::new();
    for manifest in manifests.iter().filter(|manifest| manifest.object.kind == experiment::KIND) {
        match (Experiment::read(&manifest.value), reasons.get(&manifest.object.name)) {
            (Ok(experiment), Some(reason)) => given.switched_off.push((experiment, reason.clone())),
            (Ok(experiment), None) => given.experiments.push(experiment),
            (Err(problems), _) => errors.extend(problems.into_iter().map(|problem| InputError {
                message: format!("{}: {}", manifest.object, problem.message),
                position: manifest.positions.locate(&problem.path),
                hints: Vec::new(),
            })),
        }
    }
    if !errors.is_empty() {
        return Err(errors.into());
    }
    if given.experiments.is_empty() && given.switched_off.is_empty() {
        return Err(CommandError::usage_with_hint(
            format!("{} holds no experiment", inputs.join(", ")),
            format!(
                "an experiment is a document of apiVersion {} and kind {}",
                experiment::API_VERSION,
                experiment::KIND
            ),
        ));
    }
    Ok(given)
}

/// Why experiments listed with `enabled: false` do not run, by their name.
fn reasons_to_leave_out(manifests: &[Manifest]) -> BTreeMap<String, String> {
    let suites = manifests.iter().filter(|manifest| manifest.object.kind == suite::KIND);
    let entries = suites.filter_map(|manifest| manifest.value.get("experiments")?.as_array()).flatten();
    let off = entries.filter(|entry| entry.get("enabled") == Some(&Value::Bool(false)));
    off.map(|entry| {
        let needs = entry.get("needs").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let needs: Vec<&str> = needs.collect();
        let why = if needs.is_empty() { String::new() } else { format!(": it needs {}", needs.join(", ")) };
        let reason = format!("{} switches it off{why}; fill it in, and set enabled: true", suite::MANIFEST_FILE);
        (entry.text("/name").to_owned(), reason)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pushback_preflight::experiment::generate;
    use pushback_releases::compare::{self, Options};
    use pushback_upgrade::sources;

    use super::*;

    #[test]
    fn what_a_suite_switches_off_is_left_out_until_it_is_filled_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let model = |webhook: &str| {
            format!(
                "operator: {{name: shop, namespace: shop}}\n\
                 components:\n\
                 - name: shop\n  controller: Shop\n\
                 \x20 managedResources:\n  - {{apiVersion: apps/v1, kind: Deployment, name: shop, namespace: shop, labels: {{app: shop}}}}\n\
                 {webhook}\
                 recovery: {{reconcileTimeout: 60s, maxReconcileCycles: 5}}\n"
            )
        };
        let webhook = "  webhooks: [{name: carts.shop.example, type: validating, path: /validate}]\n";
        fs::write(place("old.yaml"), model("")).expect("written");
        fs::write(place("new.yaml"), model(webhook)).expect("written");
        let side = |name: &str| sources::read(&[place(name)], false, false).expect("read");
        let (old, new) = sources::releases(&side("old.yaml"), &side("new.yaml")).expect("models");
        let diff = compare::compare(&old, &new, Options::default());
        let suite = generate::generate(&old, &new, &diff, &generate::Options::default());
        suite_folder::write(&folder.path().join("suite"), &suite).expect("written");
        let given = read(&[place("suite")]).expect("a suite");
        let [(experiment, reason)] = &given.switched_off[..] else { panic!("one is open: {given:?}") };
        assert_eq!(experiment.injection.kind.as_str(), "WebhookDisrupt");
        assert!(reason.contains("needs") && reason.contains("webhookConfiguration"), "{reason}");
        let manifest = folder.path().join("suite").join(suite::MANIFEST_FILE);
        let text = fs::read_to_string(&manifest).expect("a manifest").replace("enabled: false", "enabled: true");
        fs::write(&manifest, text).expect("written");
        let given = read(&[place("suite")]).expect("a suite");
        assert_eq!((given.experiments.len(), given.switched_off.len()), (suite.experiments.len(), 0));
    }
}
