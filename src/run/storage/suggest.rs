//! The draft of a conversion plan: for a CRD in a file, for one on the cluster, or for the versions of both.

use std::path::{Path, PathBuf};

use pushback_conversion::plan::Unassessed;
use pushback_conversion::{ConversionPlan, Converter, compile, with_versions_of};
use pushback_objects::source::Document;
use pushback_objects::{ObjectExt, Positions};
use pushback_storage::definitions;
use serde_json::Value;

use super::connected_to_any;
use super::conversion::{ConversionFiles, read_plan};
use crate::run::Run;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::signals::until_stopped;

/// A plan to draft.
#[derive(Clone, Debug)]
pub struct Draft {
    /// File with the CRD; `None` if only the cluster has it.
    pub definition: Option<PathBuf>,
    /// Name of the CRD; a file with a single one needs none.
    pub name: Option<String>,
    /// File with the plan so far.
    pub plan: Option<PathBuf>,
}

impl Draft {
    /// Compiles the draft for the versions of a file.
    ///
    /// # Errors
    /// As for [`ConversionFiles::converter`].
    pub fn converter(&self, definition: &Path) -> Result<Converter, CommandError> {
        let (plan, definition) = self.read(definition)?;
        compiled(plan, &definition)
    }

    /// Compiles the draft for the versions on the cluster, and those of the file, if any.
    ///
    /// # Errors
    /// A file cannot be read, the plan is wrong, or the cluster cannot be reached or lacks the CRD.
    pub async fn live_converter(&self, run: &mut Run, options: &ClusterOptions) -> Result<Converter, CommandError> {
        let given = self.definition.as_deref().map(|definition| self.read(definition)).transpose()?;
        let name = match &given {
            Some((_, wanted)) => wanted.name(),
            None => self.name.as_deref().unwrap_or_default(),
        };
        let connected = connected_to_any(run, options, &NamespaceOptions::default()).await?;
        let reading = async { Ok(definitions::one(&*connected.cluster, &connected.definitions, name).await?) };
        let live = until_stopped(run.stop.clone(), reading).await?;
        if let Some((plan, wanted)) = given {
            let is_known = |name: &str| plan.schemas.iter().any(|placed| placed.value.0 == name);
            let both = with_versions_of(&live, &wanted, is_known);
            return compiled(plan, &both);
        }
        let plan = self.plan.as_deref().map(read_plan).transpose()?;
        let derived = || {
            let positions = Positions::of_file("the cluster");
            ConversionPlan::derived(&Document { value: Value::clone(&live), positions: positions.into() })
        };
        compiled(plan.unwrap_or_else(derived), &live)
    }

    fn read(&self, definition: &Path) -> Result<(ConversionPlan, Value), CommandError> {
        let files = ConversionFiles { definition: definition.to_owned(), plan: self.plan.clone() };
        files.read_named(self.name.as_deref())
    }
}

/// Compiles a plan with fields that it does not decide about kept in the bag.
fn compiled(plan: ConversionPlan, definition: &Value) -> Result<Converter, CommandError> {
    Ok(compile(&ConversionPlan { unassessed: Unassessed::Stash, ..plan }, definition)?)
}
