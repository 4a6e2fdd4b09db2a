//! Where objects refer to versioned ConfigMaps and Secrets by name.
//! Source: kapp's built-in Config; references in the environment of bare Pods are followed as well.

use super::{APPS, GroupKinds, PACKAGE_INSTALLS, POD_TEMPLATES, SERVICE_ACCOUNTS, any, kinds, path};
use crate::config::{ObjectReference, TemplateRule};

const CRON_JOBS: GroupKinds = &[("batch", "CronJob")];
const PODS: GroupKinds = &[("", "Pod")];
const PACKAGE_REPOSITORIES: GroupKinds = &[("packaging.carvel.dev", "PackageRepository")];

/// Kinds that have a Pod, and where; `*` means all elements of a list.
const POD_SPECS: [(&[&str], GroupKinds); 3] = [
    (&["spec", "template", "spec"], POD_TEMPLATES),
    (&["spec", "jobTemplate", "spec", "template", "spec"], CRON_JOBS),
    (&["spec"], PODS),
];

const CONFIG_MAPS_OF_PODS: [&[&str]; 6] = [
    &["containers", "*", "env", "*", "valueFrom", "configMapKeyRef"],
    &["containers", "*", "envFrom", "*", "configMapRef"],
    &["initContainers", "*", "env", "*", "valueFrom", "configMapKeyRef"],
    &["initContainers", "*", "envFrom", "*", "configMapRef"],
    &["volumes", "*", "projected", "sources", "*", "configMap"],
    &["volumes", "*", "configMap"],
];

const SECRETS_OF_PODS: [&[&str]; 7] = [
    &["containers", "*", "env", "*", "valueFrom", "secretKeyRef"],
    &["containers", "*", "envFrom", "*", "secretRef"],
    &["initContainers", "*", "env", "*", "valueFrom", "secretKeyRef"],
    &["initContainers", "*", "envFrom", "*", "secretRef"],
    &["volumes", "*", "projected", "sources", "*", "secret"],
    &["volumes", "*", "secret"],
    &["imagePullSecrets", "*"],
];

/// Where kapp-controller's App reads values from: a ConfigMap or a Secret.
const SOURCES_OF_APPS: [&[&str]; 5] = [
    &["spec", "fetch", "*", "inline", "pathsFrom", "*"],
    &["spec", "template", "*", "ytt", "inline", "pathsFrom", "*"],
    &["spec", "template", "*", "ytt", "valuesFrom", "*"],
    &["spec", "template", "*", "helmTemplate", "valuesFrom", "*"],
    &["spec", "template", "*", "cue", "valuesFrom", "*"],
];

const SECRETS_OF_APPS: [&[&str]; 6] = [
    &["spec", "cluster", "kubeconfigSecretRef"],
    &["spec", "fetch", "*", "imgpkgBundle", "secretRef"],
    &["spec", "fetch", "*", "http", "secretRef"],
    &["spec", "fetch", "*", "git", "secretRef"],
    &["spec", "fetch", "*", "helmChart", "repository", "secretRef"],
    &["spec", "template", "*", "sops", "pgp", "privateKeySecretRef"],
];

/// The built-in rules: one for ConfigMaps, one for Secrets.
pub(super) fn template_rules() -> Vec<TemplateRule> {
    let mut config_maps = in_pods(&CONFIG_MAPS_OF_PODS);
    config_maps.extend(SOURCES_OF_APPS.map(|parts| reference(&[parts, &["configMapRef"]], APPS)));
    config_maps
        .push(reference(&[&["spec", "fetch", "inline", "pathsFrom", "*", "configMapRef"]], PACKAGE_REPOSITORIES));

    let mut secrets = in_pods(&SECRETS_OF_PODS);
    secrets.extend([["imagePullSecrets", "*"], ["secrets", "*"]].map(|parts| reference(&[&parts], SERVICE_ACCOUNTS)));
    secrets.extend(SOURCES_OF_APPS.map(|parts| reference(&[parts, &["secretRef"]], APPS)));
    secrets.extend(SECRETS_OF_APPS.map(|parts| reference(&[parts], APPS)));
    secrets.push(reference(&[&["spec", "values", "*", "secretRef"]], PACKAGE_INSTALLS));
    secrets.push(reference(&[&["spec", "cluster", "kubeconfigSecretRef"]], PACKAGE_INSTALLS));
    secrets.push(reference(&[&["spec", "fetch", "inline", "pathsFrom", "*", "secretRef"]], PACKAGE_REPOSITORIES));
    vec![
        TemplateRule { matchers: kinds(&[("", "ConfigMap")]), references: config_maps },
        TemplateRule { matchers: kinds(&[("", "Secret")]), references: secrets },
    ]
}

fn in_pods(paths: &[&[&str]]) -> Vec<ObjectReference> {
    let places = POD_SPECS.iter().flat_map(|(pod, members)| paths.iter().map(move |parts| (*pod, *parts, *members)));
    places.map(|(pod, parts, members)| reference(&[pod, parts], members)).collect()
}

fn reference(parts: &[&[&str]], members: GroupKinds) -> ObjectReference {
    let parts = parts.concat();
    // The one reference in Kubernetes that has another key for the name.
    let name_key = if parts.ends_with(&["volumes", "*", "secret"]) { "secretName" } else { "name" };
    ObjectReference { path: path(&parts), name_key: name_key.to_owned(), matchers: vec![any(&[members])] }
}
