//! A suite of experiments for one upgrade: the experiments in running order with their requirements, manual reviews,
//! and the manifest of the suite.

use std::collections::BTreeSet;

use pushback_crd::words;
use pushback_objects::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Experiment;

/// `apiVersion` of a suite's manifest.
pub const API_VERSION: &str = "pushback.dev/v1alpha1";
/// `kind` of a suite's manifest.
pub const KIND: &str = "UpgradeSuite";
/// File name of the manifest.
pub const MANIFEST_FILE: &str = "suite-manifest.yaml";

/// Experiments for the upgrade from one release to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// A DNS name made of both versions.
    pub name: String,
    /// The old release.
    pub source: Side,
    /// The new release.
    pub target: Side,
    /// Experiments, in running order.
    pub experiments: Vec<SuiteExperiment>,
    /// Changes that no experiment can test.
    pub manual: Vec<ManualReview>,
    /// The suite in the formats of other tools.
    pub exports: Vec<Export>,
}

words! {
    /// A tool with a format of its own.
    pub enum Tool {
        /// Chaos Mesh 2.x: `PodChaos`, `NetworkChaos`.
        ChaosMesh = "chaos-mesh",
        /// Litmus: `ChaosEngine`.
        Litmus = "litmus",
        /// Krkn: scenario files and the part of its configuration that lists them.
        Krkn = "krkn",
    }
}

/// A suite in the format of another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The tool that reads it.
    pub tool: Tool,
    /// File names and contents, in a folder named after the tool.
    pub files: Vec<(String, Value)>,
    /// Experiments that the tool cannot express, with the reasons.
    pub left_out: Vec<(String, String)>,
}

impl Export {
    /// Entry in the suite's manifest.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let files: Vec<&String> = self.files.iter().map(|(file, _)| file).collect();
        let left_out = self.left_out.iter().map(|(name, reason)| json!({"name": name, "reason": reason}));
        json!({"tool": self.tool.as_str(), "files": files, "notExportable": left_out.collect::<Vec<_>>()})
    }
}

/// A release, as identified in the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Version of the release.
    pub version: String,
    /// Platform of the release.
    pub platform: String,
}

words! {
    /// When an experiment injects.
    #[derive(Default)]
    pub enum Phase {
        /// While the old release runs; the result is checked after the upgrade.
        PreUpgrade = "pre-upgrade",
        /// While the new release runs.
        #[default]
        PostUpgrade = "post-upgrade",
    }
}

words! {
    /// A requirement of an experiment before it can run.
    pub enum Need {
        /// The upgrade must happen during the injection.
        Upgrade = "upgrade",
        /// The name of a stored object must be filled in.
        Instance = "instance",
        /// The name of the configuration object of the webhook must be filled in.
        WebhookConfiguration = "webhookConfiguration",
        /// The network must enforce NetworkPolicies.
        NetworkPolicies = "networkPolicies",
    }
}

impl Need {
    /// Whether the user must fill something in first.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Instance | Self::WebhookConfiguration)
    }
}

/// An experiment of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuiteExperiment {
    /// File name, relative to the manifest.
    pub file: String,
    /// The experiment.
    pub experiment: Experiment,
    /// The change that it tests.
    pub origin: Origin,
    /// When it injects.
    pub phase: Phase,
    /// Requirements before it can run.
    pub needs: BTreeSet<Need>,
    /// Note for the user; may be empty.
    pub note: String,
}

impl SuiteExperiment {
    /// Whether it can run unchanged.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.needs.iter().any(|need| need.is_open())
    }
}

/// The change behind an experiment or a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the changed operator.
    pub operator: String,
    /// Name of the component; empty if none owns the change.
    pub component: String,
    /// Type of the change.
    pub change_type: String,
    /// Stable identifier of the change.
    pub change_id: String,
    /// Identifiers of the other changes with the same cause, which this covers too.
    pub also: BTreeSet<String>,
}

/// A change that needs a manual review.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManualReview {
    /// The change to review.
    pub origin: Origin,
    /// Object, field or webhook; empty for the whole component.
    pub subject: String,
    /// Why there is no experiment, and what to review.
    pub reason: String,
}

impl Suite {
    /// Identifiers of all changes that an experiment tests or that people are asked to review.
    #[must_use]
    pub fn covered(&self) -> BTreeSet<&str> {
        let tested = self.experiments.iter().map(|entry| &entry.origin);
        let origins = tested.chain(self.manual.iter().map(|review| &review.origin));
        origins.flat_map(|origin| origin.also.iter().chain([&origin.change_id])).map(String::as_str).collect()
    }

    /// All files: the experiments, those for other tools, then the manifest.
    #[must_use]
    pub fn files(&self) -> Vec<(String, Value)> {
        let experiments = self.experiments.iter().map(|entry| (entry.file.clone(), entry.experiment.to_value()));
        let exports = self.exports.iter().flat_map(|export| export.files.iter().cloned());
        experiments.chain(exports).chain([(MANIFEST_FILE.to_owned(), self.manifest())]).collect()
    }

    /// The manifest. It contains no time: the same releases yield the same bytes.
    #[must_use]
    pub fn manifest(&self) -> Value {
        let side = |side: &Side| json!({"version": side.version, "platform": side.platform});
        let experiments = self.experiments.iter().enumerate().map(|(index, entry)| entry.to_value(index + 1));
        let mut manifest = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self.name},
            "source": side(&self.source),
            "target": side(&self.target),
            "experiments": experiments.collect::<Vec<_>>(),
            "manual": self.manual.iter().map(ManualReview::to_value).collect::<Vec<_>>(),
        });
        if !self.exports.is_empty() {
            manifest["exports"] = self.exports.iter().map(Export::to_value).collect();
        }
        manifest
    }
}

impl SuiteExperiment {
    fn to_value(&self, order: usize) -> Value {
        let injection = &self.experiment.injection;
        let mut map = Map::new();
        map.insert("order".to_owned(), json!(order));
        map.insert("file".to_owned(), json!(self.file));
        map.insert("digest".to_owned(), json!(digest(&self.experiment.to_value())));
        map.insert("name".to_owned(), json!(self.experiment.name));
        self.origin.put_in(&mut map);
        map.insert("injection".to_owned(), json!(injection.kind.as_str()));
        map.insert("tier".to_owned(), json!(self.experiment.tier));
        map.insert("dangerLevel".to_owned(), json!(injection.danger.as_str()));
        map.insert("phase".to_owned(), json!(self.phase.as_str()));
        map.insert("enabled".to_owned(), json!(self.is_enabled()));
        map.insert("needs".to_owned(), self.needs.iter().map(|need| need.as_str()).collect());
        if !self.note.is_empty() {
            map.insert("note".to_owned(), json!(self.note));
        }
        Value::Object(map)
    }
}

/// Digest of a generated file, to detect edits; comments and whitespace do not matter.
#[must_use]
pub fn digest(document: &Value) -> String {
    hex::encode(&Sha256::digest(document.to_string().as_bytes())[..8])
}

impl Origin {
    fn put_in(&self, map: &mut Map<String, Value>) {
        for (key, text) in [
            ("changeId", &self.change_id),
            ("changeType", &self.change_type),
            ("operator", &self.operator),
            ("component", &self.component),
        ] {
            if !text.is_empty() {
                map.insert(key.to_owned(), json!(text));
            }
        }
        if !self.also.is_empty() {
            map.insert("alsoCovers".to_owned(), json!(self.also));
        }
    }
}

impl ManualReview {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        self.origin.put_in(&mut map);
        if !self.subject.is_empty() {
            map.insert("subject".to_owned(), json!(self.subject));
        }
        map.insert("reason".to_owned(), json!(self.reason));
        Value::Object(map)
    }
}
