//! Gives an app another name or namespace.

use std::sync::Arc;
use std::time::Duration;

use pushback_app::moving::Place;
use pushback_app::record::{AppName, QUALIFIED_SUFFIX, observe};
use pushback_app::rename::{self, Mover};
use pushback_cluster::Cluster;
use pushback_system::environment::Environment;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;

/// Options of a rename.
#[derive(Clone, Debug)]
pub struct Rename {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app.
    pub app: AppOptions,
    /// The new name, if it changes.
    pub new_name: Option<String>,
    /// The new namespace of the record, if it changes.
    pub new_namespace: Option<String>,
    /// How long to wait for the app's lock.
    pub patience: Duration,
}

/// A rename that can be carried out.
#[derive(Debug)]
pub struct Prepared {
    /// The app under its old name.
    pub from: AppName,
    /// Under its new one.
    pub to: AppName,
    /// The cluster that holds its record.
    pub cluster: Arc<dyn Cluster>,
    places: (Place, Place),
    patience: Duration,
}

impl Rename {
    /// Finds the app.
    ///
    /// # Errors
    /// The cluster's error; the app has this name already.
    pub async fn prepare(&self, notes: &dyn Notes) -> Result<Prepared, CommandError> {
        let (cluster, _, namespaces) = reach(&self.cluster, &self.app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&self.app.name)).await?;
        let from = observed.app.clone();
        let to = AppName {
            name: self.new_name.clone().unwrap_or_else(|| from.name.clone()),
            namespace: self.new_namespace.clone().unwrap_or_else(|| from.namespace.clone()),
        };
        let mut is_qualified =
            observed.record.as_ref().is_some_and(|record| record.address.name.ends_with(QUALIFIED_SUFFIX));
        if observed.record.is_none() {
            // The record may have moved before an earlier run was interrupted.
            let Some(moved) = observe(&*cluster, &to).await?.record else {
                return Err(unknown_app::error(&*cluster, &from).await);
            };
            is_qualified = moved.address.name.ends_with(QUALIFIED_SUFFIX);
        }
        let places = (Place::of(&from, is_qualified), Place::of(&to, is_qualified));
        if places.0 == places.1 {
            return Err(CommandError::usage(format!("app {} has this name and namespace already", from.name)));
        }
        Ok(Prepared { from, to, cluster, places, patience: self.patience })
    }
}

impl Prepared {
    /// Carries it out.
    ///
    /// # Errors
    /// No such app, the new name is taken, another run is at work, or the cluster refuses.
    pub async fn carry_out(&self) -> Result<(), CommandError> {
        let environment = Environment::real();
        let run = environment.new_run();
        let mover = Mover { environment: &environment, run: &run, patience: self.patience, holds: false };
        Ok(rename::rename(&*self.cluster, mover, &self.places.0, &self.places.1).await?)
    }
}
