//! An app's objects with their readiness.

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;
use crate::app::record::{Observed, observe};
use crate::apply::tree::{self, Line};
use crate::plan::live;

/// Options of an inspection.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app to inspect.
    pub app: AppOptions,
    /// Whether to include objects that controllers created for them.
    pub with_children: bool,
}

/// An inspected app.
#[derive(Debug)]
pub struct InspectedApp {
    /// Its record.
    pub observed: Observed,
    /// Its objects, as lines of a tree.
    pub lines: Vec<Line>,
    /// Whether controllers reconcile them.
    pub server: bool,
}

impl Inspect {
    /// Reads the app.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub async fn run(&self, notes: &dyn Notes) -> Result<InspectedApp, CommandError> {
        let Self { cluster, app, with_children } = self;
        let (cluster, kinds, namespaces) = reach(cluster, &app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&app.name)).await?;
        if observed.record.is_none() {
            return Err(CommandError::usage_with_hint(
                unknown_app::message(&*cluster, &observed.app).await,
                "`pushback list -A` shows all apps",
            ));
        }
        let mut live = live::read(&*cluster, &kinds, &observed, &[]).await?;
        if *with_children {
            live.derived.extend(live::children(&*cluster, &observed, &live).await);
        }
        let server = cluster.capabilities().server;
        Ok(InspectedApp { lines: tree::lines(&live, *with_children, server), observed, server })
    }
}
