//! Derives an operator model from manifests or a live app.

use pushback_releases::derive::{self, Given, Settings};
use pushback_releases::print;
use pushback_upgrade::sources::{self, Naming};
use serde_json::Value;

use super::sides::{LiveApp, read_app};
use crate::run::answer::Notes;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;

/// Source of a derived model.
#[derive(Clone, Debug)]
pub enum Derive {
    /// A live app.
    App {
        /// The cluster.
        cluster: ClusterOptions,
        /// App name.
        app: String,
        /// Namespace of the app.
        namespace: NamespaceOptions,
    },
    /// Manifests; models among them override what is derived.
    Manifests {
        /// Files, directories, URLs.
        files: Vec<String>,
        /// Operator name; empty: taken from the manifests.
        app: String,
        /// Namespace of objects that name none; empty: taken from the manifests.
        namespace: String,
        /// Whether `http://` URLs are allowed.
        allow_http: bool,
        /// Whether symbolic links may lead out of a directory.
        follow_links: bool,
    },
}

impl Derive {
    /// Derives the model, as documents to keep and edit.
    ///
    /// # Errors
    /// The manifests cannot be read; no such app.
    pub async fn run(self, notes: &dyn Notes) -> Result<Vec<Value>, CommandError> {
        let release = match self {
            Self::App { cluster, app, namespace } => {
                let announce = |text: &str| notes.note(text);
                let LiveApp { objects, namespace } = read_app(&cluster, &app, &namespace, &announce).await?;
                let given = objects.into_iter().map(|value| Given { value, positions: None }).collect::<Vec<_>>();
                derive::derive(&given, &Settings { app, namespace, ..Settings::default() })
            }
            Self::Manifests { files, app, namespace, allow_http, follow_links } => {
                let side = sources::read(&files, allow_http, follow_links)?;
                notes.warn(&side.warnings);
                side.derived(&Naming { app, namespace, ..Naming::default() })?
            }
        };
        Ok(print::documents(&release))
    }
}
