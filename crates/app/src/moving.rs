//! A record on its way to another name or namespace, as noted in the old one and the new one.

use serde::{Deserialize, Serialize};

use super::identity::{AppName, QUALIFIED_SUFFIX};

/// A move under way, as both records note it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The old record.
    pub from: Place,
    /// The new one.
    pub to: Place,
}

impl Move {
    /// The command that finishes it.
    #[must_use]
    pub fn command(&self) -> String {
        let (from, to) = (self.from.app(), self.to.app());
        if from == to {
            return format!("KAPP_FQ_CONFIGMAP_NAMES=true kapp deploy -a {} -n {}", from.name, from.namespace);
        }
        format!(
            "pushback rename -a {} -n {} --new-name {} --new-namespace {}",
            from.name, from.namespace, to.name, to.namespace
        )
    }
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Its name.
    pub record: String,
}

impl Place {
    /// The record of an app; `qualified` under the longer of kapp's names.
    #[must_use]
    pub fn of(app: &AppName, qualified: bool) -> Self {
        let suffix = if qualified { QUALIFIED_SUFFIX } else { "" };
        let name = app.name.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(&app.name);
        Self { namespace: app.namespace.clone(), record: format!("{name}{suffix}") }
    }

    /// The app.
    #[must_use]
    pub fn app(&self) -> AppName {
        let name = self.record.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(&self.record);
        AppName { name: name.to_owned(), namespace: self.namespace.clone() }
    }
}
