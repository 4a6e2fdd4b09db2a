//! `pushback upgrade`: compares releases of operators. One file per subcommand.

pub mod arguments;
pub mod diff;
pub mod diff_crds;
mod ended;
pub mod execute;
pub mod model;
pub mod recover;
pub mod reports;
pub mod simulate;
pub mod step;
pub mod validate;
pub mod validate_version;

use clap::{Args, Subcommand};
use pushback_events::exit::ExitCode;

use self::ended::ended;
use super::arguments::GlobalArgs;

/// Compare two releases of an operator.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    #[command(subcommand)]
    command: UpgradeCommand,
}

#[derive(Debug, Subcommand)]
enum UpgradeCommand {
    /// Say what changed between two releases: components, resources, webhooks, finalizers, definitions
    Diff(diff::UpgradeDiffArgs),
    /// Generate experiments that test what changed between two releases
    Simulate(simulate::SimulateArgs),
    /// Check chaos experiments: what every runner and API server would refuse
    Validate(validate::ValidateArgs),
    /// Say every difference between the CustomResourceDefinitions of two releases
    DiffCrds(diff_crds::DiffCrdsArgs),
    /// Check that a folder of models is complete for one version
    ValidateVersion(validate_version::ValidateVersionArgs),
    /// Work with operator models: derive one from manifests or a live app
    Model(model::ModelArgs),
    /// Run experiments on a cluster, and take back what they inject
    Run(execute::RunArgs),
    /// Take back what killed runs of experiments have left
    Recover(recover::RecoverArgs),
}

impl UpgradeArgs {
    /// Whether the global `--output json` applies; commands whose `--output` is a path check that themselves.
    #[must_use]
    pub fn prints_events_or_json(&self) -> bool {
        !matches!(self.command, UpgradeCommand::Validate(_) | UpgradeCommand::Recover(_))
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: UpgradeArgs) -> ExitCode {
    match arguments.command {
        UpgradeCommand::Diff(arguments) => ended(global, diff::run(global, arguments).await),
        UpgradeCommand::Simulate(arguments) => simulate::run(global, arguments).await,
        UpgradeCommand::Validate(arguments) => ended(global, validate::run(global, &arguments)),
        UpgradeCommand::DiffCrds(arguments) => diff_crds(global, arguments).await,
        UpgradeCommand::ValidateVersion(arguments) => validate_version(global, arguments),
        UpgradeCommand::Model(arguments) => ended(global, model::run(global, arguments).await),
        UpgradeCommand::Run(arguments) => execute::run(global, arguments).await,
        UpgradeCommand::Recover(arguments) => recover::run(global, arguments).await,
    }
}

/// Runs `diff-crds`, which is also a top-level command.
pub async fn diff_crds(global: &GlobalArgs, arguments: diff_crds::DiffCrdsArgs) -> ExitCode {
    ended(global, diff_crds::run(global, arguments).await)
}

/// Runs `validate-version`, which is also a top-level command.
pub fn validate_version(global: &GlobalArgs, arguments: validate_version::ValidateVersionArgs) -> ExitCode {
    ended(global, validate_version::run(global, arguments))
}
