//! An app's objects with their readiness.

use std::sync::Arc;

use pushback_app::record::{AppName, Observed, observe};
use pushback_cluster::Cluster;
use pushback_deploy::apply::tree::{self, Line};
use pushback_deploy::plan::filter::ObjectFilter;
use pushback_deploy::plan::live::{self, Scope};
use serde_json::Value;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::AppOptions;
use super::unknown_app;

/// Options of an inspection.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The app to inspect.
    pub app: AppOptions,
    /// Whether to include objects that controllers created for them.
    pub with_children: bool,
    /// Which objects to include.
    pub filter: ObjectFilter,
    /// Where to look for them.
    pub scope: Scope,
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
    /// The objects, what is below them last.
    pub objects: Vec<Arc<Value>>,
}

/// An app with everything that carries its label.
#[derive(Debug)]
pub struct LabelledApp {
    /// The cluster that was read.
    pub cluster: Arc<dyn Cluster>,
    /// Name of the app, and namespace of its record.
    pub app: AppName,
    /// Its objects; `None` if there is no such app.
    pub objects: Option<LabelledObjects>,
    /// Namespaces with an app of this name, if it does not exist.
    pub elsewhere: Vec<String>,
}

/// The objects that carry an app's label.
#[derive(Debug)]
pub struct LabelledObjects {
    /// Those of the app itself.
    pub own: Vec<Arc<Value>>,
    /// Those that controllers have made.
    pub others: Vec<Arc<Value>>,
}

impl Inspect {
    /// Reads everything that carries the app's label.
    ///
    /// # Errors
    /// The cluster's error.
    pub async fn labelled(&self, notes: &dyn Notes) -> Result<LabelledApp, CommandError> {
        let (cluster, kinds, namespaces) = reach(&self.cluster, &self.app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&self.app.name)).await?;
        let app = observed.app.clone();
        if observed.record.is_none() {
            let elsewhere = unknown_app::look(&*cluster, &app).await.elsewhere;
            return Ok(LabelledApp { cluster, app, objects: None, elsewhere });
        }
        let mut live = live::read(&*cluster, &kinds, &observed, &[], self.scope).await?;
        let own = live.objects.values().map(|object| &**object);
        let mut others = live::labelled(&*cluster, &kinds, &observed, own, self.scope).await;
        live.objects.retain(|_, object| self.filter.matches(object));
        others.retain(|object| self.filter.matches(object));
        Ok(LabelledApp {
            cluster,
            app,
            objects: Some(LabelledObjects { own: live.objects.into_values().collect(), others }),
            elsewhere: Vec::new(),
        })
    }

    /// Reads the app.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub async fn run(&self, notes: &dyn Notes) -> Result<InspectedApp, CommandError> {
        let Self { cluster, app, with_children, filter, .. } = self;
        let (cluster, kinds, namespaces) = reach(cluster, &app.namespace, &|text| notes.note(text)).await?;
        let observed = observe(&*cluster, &namespaces.app(&app.name)).await?;
        if observed.record.is_none() {
            return Err(unknown_app::error(&*cluster, &observed.app).await);
        }
        let mut live = live::read(&*cluster, &kinds, &observed, &[], self.scope).await?;
        if *with_children {
            live.derived.extend(live::children(&*cluster, &observed, &live).await);
        }
        live.objects.retain(|_, object| filter.matches(object));
        live.derived.retain(|object| filter.matches(object));
        let server = cluster.capabilities().server;
        let lines = tree::lines(&live, *with_children, server);
        let below = live.derived.iter().filter(|_| *with_children);
        let objects = live.objects.values().chain(below).cloned().collect();
        Ok(InspectedApp { lines, observed, server, objects })
    }
}
