//! What to do about a finding, as data: for whom, the steps, and the commands, ready to be copied. Carried out to the
//! letter they make the finding go, and bring no other.

use pushback_crd::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The key of a Config document that lists the rules.
const RULES: &str = "preflightRules";

/// The word for the default set in a list of rules.
pub const DEFAULT: &str = "default";

words! {
    /// Who can follow a remedy.
    pub enum Audience {
        /// Who deploys the release: may not be able to change it.
        Deployer = "deployer",
        /// Who wrote the definition or the manifest.
        Author = "author",
    }
}

words! {
    /// The kind of a remedy.
    pub enum RemedyKind {
        /// Have stored objects moved to another version.
        MoveObjects = "moveObjects",
        /// Change objects that exist.
        CorrectObjects = "correctObjects",
        /// Judge against the cluster instead of files.
        AskCluster = "askCluster",
        /// Keep what would be deleted, or its data.
        Keep = "keep",
        /// Give a user a permission.
        Grant = "grant",
        /// Change a setting of the rule.
        Configure = "configure",
        /// Change the definition or the manifest.
        Change = "change",
        /// Accept the finding by a waiver.
        Accept = "accept",
    }
}

/// One way out of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// Its kind.
    pub kind: RemedyKind,
    /// Who can follow it.
    #[serde(rename = "for")]
    pub audience: Audience,
    /// What to do, in order; each one sentence without a full stop.
    pub steps: Vec<String>,
    /// The commands for it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Lines of a Config document for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
}

impl Remedy {
    /// A remedy of one step for who deploys.
    #[must_use]
    pub fn deployer(kind: RemedyKind, step: impl Into<String>) -> Self {
        Self { kind, audience: Audience::Deployer, steps: vec![step.into()], commands: Vec::new(), config: None }
    }

    /// A change for who wrote the definition or the manifest.
    #[must_use]
    pub fn author(step: impl Into<String>) -> Self {
        Self { audience: Audience::Author, ..Self::deployer(RemedyKind::Change, step) }
    }

    /// Returns whether it is an entry of `preflightWaivers` that accepts a whole cause; reports print these apart from the steps.
    #[must_use]
    pub fn is_waiver_entry(&self) -> bool {
        self.kind == RemedyKind::Accept && self.config.is_some()
    }

    /// With these commands.
    #[must_use]
    pub fn commands(self, commands: impl IntoIterator<Item = String>) -> Self {
        Self { commands: commands.into_iter().collect(), ..self }
    }

    /// With these lines of a Config document.
    #[must_use]
    pub fn config(self, config: Value) -> Self {
        Self { config: Some(config), ..self }
    }

    /// With these settings of a rule.
    #[must_use]
    pub fn settings(self, rule: &str, settings: &Value) -> Self {
        self.config(json!({RULES: [{"name": rule, "config": settings}]}))
    }

    /// Adds the other rules that run to the lines of a Config: `preflightRules` takes the place of the default set. The
    /// default set is named as such, any other rules with their settings.
    #[must_use]
    pub fn among(mut self, running: &[(&str, Map<String, Value>)], is_default_set: bool) -> Self {
        let Some(Value::Array(entries)) = self.config.as_mut().and_then(|config| config.get_mut(RULES)) else {
            return self;
        };
        let wanted = std::mem::take(entries);
        if is_default_set {
            entries.push(json!({"name": DEFAULT}));
        }
        let is_written = |name: &str| !is_default_set || wanted.iter().any(|entry| entry["name"] == *name);
        for (name, settings) in running.iter().filter(|(name, _)| is_written(name)) {
            let mut config = Value::Object(settings.clone());
            for entry in wanted.iter().filter(|entry| entry["name"] == *name) {
                merge(&mut config, &entry["config"]);
            }
            let is_plain = config.as_object().is_some_and(Map::is_empty);
            entries.push(if is_plain { json!({"name": name}) } else { json!({"name": name, "config": config}) });
        }
        self
    }
}

/// Adds settings to others: maps key by key, lists at their end.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from.iter().cloned()),
        (into, from) => *into = from.clone(),
    }
}
