//! `pushback storage`: the versions that custom resources are stored in. One file per subcommand.

pub mod convert;
pub mod golden;
pub mod migrate;
pub mod plan;
pub mod role;
pub mod rollback;
pub mod schema;
pub mod status;
pub mod step;
pub mod suggest;
pub mod test;

use clap::{Args, Subcommand};
use pushback_events::exit::ExitCode;

use super::arguments::GlobalArgs;

/// Look after the versions that custom resources are stored in.
#[derive(Debug, Args)]
#[command(after_help = "\
The way of an old version, each step refused until the one before is proved:
  pushback storage status                          which definitions have objects in old versions
  pushback storage plan widgets.example.com        what would be done, step by step
  pushback storage migrate widgets.example.com     rewrite them at the storage version, and prove it
  pushback storage unserve widgets.example.com v1  clients can no longer use the old version
  pushback storage remove widgets.example.com v1   the definition no longer has it")]
pub struct StorageArgs {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(Debug, Subcommand)]
enum StorageCommand {
    /// Show which versions the objects of each definition may be stored in
    Status(status::StatusArgs),
    /// Show what would be done to stored objects, step by step, and which fields differ
    Plan(plan::PlanArgs),
    /// Rewrite objects at the storage version, prove that none is left in another, and take the others off the list
    Migrate(migrate::MigrateArgs),
    /// Prove that no object is stored in another version than the storage version; the list of versions stays
    Verify(migrate::VerifyArgs),
    /// Print the smallest role that is enough to migrate
    Role(role::RoleArgs),
    /// Stop serving an old version: the first step of taking it off a definition
    Unserve(step::StepArgs),
    /// Remove an old version from a definition: the second step
    Remove(step::StepArgs),
    /// Go back to older definitions, with the objects that are stored by now
    Rollback(rollback::RollbackArgs),
    /// Convert manifests to another version of their kind, by a conversion plan
    Convert(convert::ConvertArgs),
    /// Print the storage schema of a version, with its property bag
    Schema(schema::SchemaArgs),
    /// Guess which field became which, as a draft of a conversion plan
    Suggest(suggest::SuggestArgs),
    /// Compare conversions of fixed objects with those that files hold
    Golden(golden::GoldenArgs),
    /// Test a conversion plan on generated, recorded and live objects
    Test(test::TestArgs),
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: StorageArgs) -> ExitCode {
    match arguments.command {
        StorageCommand::Status(arguments) => status::run(global, arguments).await,
        StorageCommand::Plan(arguments) => plan::run(global, arguments).await,
        StorageCommand::Migrate(arguments) => migrate::run(global, arguments).await,
        StorageCommand::Verify(arguments) => migrate::verify(global, arguments).await,
        StorageCommand::Role(arguments) => role::run(global, arguments).await,
        StorageCommand::Unserve(arguments) => step::unserve(global, arguments).await,
        StorageCommand::Remove(arguments) => step::remove(global, arguments).await,
        StorageCommand::Rollback(arguments) => rollback::run(global, arguments).await,
        StorageCommand::Convert(arguments) => convert::run(global, &arguments),
        StorageCommand::Schema(arguments) => schema::run(global, &arguments),
        StorageCommand::Suggest(arguments) => suggest::run(global, arguments).await,
        StorageCommand::Golden(arguments) => golden::run(global, &arguments),
        StorageCommand::Test(arguments) => test::run(global, &arguments).await,
    }
}
