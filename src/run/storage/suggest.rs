//! The draft of a conversion plan for a CRD on the cluster.

use std::path::PathBuf;

use pushback_conversion::{ConversionPlan, Converter};
use pushback_objects::Positions;
use pushback_objects::source::Document;
use pushback_storage::definitions;
use serde_json::Value;

use super::connected;
use super::conversion::{draft, read_plan};
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// A CRD on the cluster.
#[derive(Clone, Debug)]
pub struct LiveDraft {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Name of the CRD.
    pub name: String,
    /// File with the plan so far.
    pub plan: Option<PathBuf>,
}

impl LiveDraft {
    /// Reads the CRD, and compiles the draft.
    ///
    /// # Errors
    /// No API server, no such CRD, or a wrong plan.
    pub async fn run(&self, run: &mut Run) -> Result<Converter, CommandError> {
        let plan = self.plan.as_deref().map(read_plan).transpose()?;
        let connected = connected(run, &self.cluster, &NamespaceOptions::default()).await?;
        let reading = async { Ok(definitions::one(&*connected.cluster, &connected.definitions, &self.name).await?) };
        let definition = until_stopped(run.stop.clone(), reading).await?;
        let positions = Positions::of_file("the cluster");
        let document = Document { value: Value::clone(&definition), positions: positions.into() };
        draft(plan.unwrap_or_else(|| ConversionPlan::derived(&document)), &definition)
    }
}
