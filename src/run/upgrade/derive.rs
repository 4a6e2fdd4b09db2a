//! An operator model out of manifests or a live app.

use pushback_preflight::operator::derive::{self, Given, Settings};
use pushback_preflight::operator::print;
use serde_json::Value;

use super::sides::{LiveApp, read_app};
use crate::run::answer::Notes;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::upgrade::sources::{self, Naming};

/// What a model is derived from.
#[derive(Clone, Debug)]
pub enum Derive {
    /// A live app.
    App {
        /// The cluster.
        cluster: ClusterOptions,
        /// The app.
        app: String,
        /// Its namespace.
        namespace: NamespaceOptions,
    },
    /// Manifests; models among them are laid over what they show.
    Manifests {
        /// Files, folders, URLs.
        files: Vec<String>,
        /// How the operator is called; empty: what the manifests say.
        app: String,
        /// The namespace of objects that name none; empty: what the manifests say.
        namespace: String,
        /// `http://` URLs are fetched.
        allow_http: bool,
        /// Symbolic links in a directory may lead out of it.
        follow_links: bool,
    },
}

impl Derive {
    /// Derives it: the documents of a model that can be kept and edited.
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
