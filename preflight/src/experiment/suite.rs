//! A suite of experiments for one upgrade: the experiments in the order in which they run, what each needs, what people
//! must look at themselves, and the manifest that says all this.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Experiment;

use crate::hex;

/// API version of the manifest of a suite.
pub const API_VERSION: &str = "pushback.dev/v1alpha1";
/// Kind of the manifest of a suite.
pub const KIND: &str = "UpgradeSuite";
/// File of the manifest.
pub const MANIFEST_FILE: &str = "suite-manifest.yaml";

/// Experiments for the upgrade from one release to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// Its name: a DNS name made of both versions.
    pub name: String,
    /// The old release.
    pub source: Side,
    /// The new release.
    pub target: Side,
    /// In the order in which they run.
    pub experiments: Vec<SuiteExperiment>,
    /// What no experiment can test.
    pub manual: Vec<ManualReview>,
    /// The suite in the formats of other tools.
    pub exports: Vec<Export>,
}

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

/// One release, as the manifest names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Its version.
    pub version: String,
    /// Its platform.
    pub platform: String,
}

/// When an experiment injects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// While the old release runs; what becomes of it is judged after the upgrade.
    PreUpgrade,
    /// While the new release runs.
    #[default]
    PostUpgrade,
}

impl Phase {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
        }
    }

    /// The phase of this very name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::PreUpgrade, Self::PostUpgrade].into_iter().find(|phase| phase.as_str() == name)
    }
}

/// What an experiment needs before it can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// The upgrade itself must happen while it is injected.
    Upgrade,
    /// A stored object: its name must be filled in.
    Instance,
    /// A value that the old definition takes and the new one does not: it must be filled in.
    Value,
    /// The name of the configuration object that holds the webhook must be filled in.
    WebhookConfiguration,
    /// A network that enforces NetworkPolicies.
    NetworkPolicies,
}

impl Need {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Instance => "instance",
            Self::Value => "value",
            Self::WebhookConfiguration => "webhookConfiguration",
            Self::NetworkPolicies => "networkPolicies",
        }
    }

    /// Whether something in the experiment must be filled in first.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Instance | Self::Value | Self::WebhookConfiguration)
    }
}

/// An experiment of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuiteExperiment {
    /// File, beside the manifest.
    pub file: String,
    /// The experiment.
    pub experiment: Experiment,
    /// The change that it tests.
    pub origin: Origin,
    /// When it injects.
    pub phase: Phase,
    /// What it needs.
    pub needs: BTreeSet<Need>,
    /// What to know about it, or to do; empty if nothing.
    pub note: String,
}

impl SuiteExperiment {
    /// Whether it can run as it is.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.needs.iter().any(|need| need.is_open())
    }
}

/// The change that an experiment or a review comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Operator that changed.
    pub operator: String,
    /// Its component; empty if no component of the models owns what changed.
    pub component: String,
    /// What kind of change it is.
    pub change_type: String,
    /// Stable name of the change.
    pub change_id: String,
}

/// Something that people must look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManualReview {
    /// The change.
    pub origin: Origin,
    /// What it is about: an object, a field, a webhook; empty for the whole component.
    pub subject: String,
    /// Why there is no experiment, and what to look at.
    pub reason: String,
}

impl Suite {
    /// All files: the experiments, those for other tools, then the manifest.
    #[must_use]
    pub fn files(&self) -> Vec<(String, Value)> {
        let experiments = self.experiments.iter().map(|entry| (entry.file.clone(), entry.experiment.to_value()));
        let exports = self.exports.iter().flat_map(|export| export.files.iter().cloned());
        experiments.chain(exports).chain([(MANIFEST_FILE.to_owned(), self.manifest())]).collect()
    }

    /// The manifest. It holds no time: the same releases yield the same bytes.
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
        map.insert("injection".to_owned(), json!(injection.kind.name()));
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

/// Tells whether a file is still what was generated; comments and spaces do not count.
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
