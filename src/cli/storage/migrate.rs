//! `pushback storage migrate` and `pushback storage verify`.

use std::time::Duration;

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_storage::migrate::MigrateOptions;
use pushback_storage::pass::{Pace, Shard};
use pushback_terminal::storage_text;

use crate::cli::arguments::{GlobalArgs, duration};
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{complete, print, start_for_report};
use crate::run::options::NamespaceOptions;
use crate::run::storage::migrate::MigrateRun;

/// Rewrite objects at the storage version.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage migrate widgets.example.com
  pushback storage migrate --all-debt --dry-run
  pushback storage migrate widgets.example.com --shard 1/4

Every object is written without a change, so that the API server stores it in the storage version,
until a pass over all of them changes nothing in etcd. Only then the other versions are taken off
status.storedVersions. A run that was stopped goes on where it was; it is always safe to run again.

Exit codes: 0 done and proved, 1 wrong input, 10 the objects cannot be written, 13 unreachable or no
rights, 20 some objects could not be rewritten.")]
pub struct MigrateArgs {
    /// Definitions, PLURAL.GROUP
    #[arg(value_name = "DEFINITION", required_unless_present = "all_debt", conflicts_with = "all_debt")]
    definitions: Vec<String>,
    /// All definitions with objects that may be stored in another version
    #[arg(long)]
    all_debt: bool,
    /// Say what would be written, and what the API server would refuse; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Only the objects of one of several processes that share the work; the last one to end proves it all
    #[arg(long, value_parser = shard, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Prove that objects are stored in the storage version.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback storage verify widgets.example.com

The proof is a write that changes nothing: the API server skips it only if the object is stored in
the storage version already. An object that is not is moved by it, and the result says so.

Exit codes: 0 proved, 1 wrong input, 10 the objects cannot be written, 13 unreachable or no rights,
20 not proved.")]
pub struct VerifyArgs {
    /// Definitions, PLURAL.GROUP
    #[arg(value_name = "DEFINITION", required = true)]
    definitions: Vec<String>,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// How fast.
#[derive(Debug, Args)]
struct PaceArgs {
    /// Objects that are written at the same time
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Most writes a second [default: as many as the API server takes]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    qps: Option<u32>,
    /// Objects a page
    #[arg(long, default_value_t = 500, value_name = "COUNT", hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    page: u32,
    /// Time until every API server knows the definition [default: 1s, or 10s if there are several]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    settle: Option<Duration>,
    /// Leave field owners at the versions that they wrote
    #[arg(long, hide_short_help = true)]
    no_managed_fields: bool,
}

impl PaceArgs {
    fn resolve(&self) -> MigrateOptions {
        MigrateOptions {
            pace: Pace { workers: self.workers.into(), per_second: self.qps, page: self.page },
            settle: self.settle,
            keep_owners: !self.no_managed_fields,
            shard: None,
            dry_run: false,
            verify_only: false,
            are_converted: false,
            namespace: String::new(),
        }
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let expected = || format!("{text:?} is no shard, expected I/N with 1 <= I <= N, for example 2/4");
    let (number, count) = text.split_once('/').ok_or_else(expected)?;
    let (number, count): (u32, u32) = (number.parse().map_err(|_| expected())?, count.parse().map_err(|_| expected())?);
    let index = number.checked_sub(1).filter(|index| *index < count).ok_or_else(expected)?;
    Ok(Shard { index, count })
}

/// Runs `migrate`.
pub async fn run(global: &GlobalArgs, arguments: MigrateArgs) -> ExitCode {
    let MigrateArgs { definitions: names, all_debt, dry_run, shard, pace, namespace } = arguments;
    let options = MigrateOptions { dry_run, shard, ..pace.resolve() };
    migrate(global, names, all_debt, options, namespace).await
}

/// Runs `verify`.
pub async fn verify(global: &GlobalArgs, arguments: VerifyArgs) -> ExitCode {
    let VerifyArgs { definitions: names, pace, namespace } = arguments;
    let options = MigrateOptions { verify_only: true, ..pace.resolve() };
    migrate(global, names, false, options, namespace).await
}

async fn migrate(
    global: &GlobalArgs,
    names: Vec<String>,
    all_debt: bool,
    options: MigrateOptions,
    namespace: NamespaceOptions,
) -> ExitCode {
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let migrate = MigrateRun { cluster: global.cluster()?, namespace, names, all_debt, options };
        let report = migrate.run(run).await?;
        run.settle();
        let text = || storage_text::migrated(&report, migrate.options.dry_run);
        print(&if global.wants_json() { storage_text::json(&report) } else { text() })?;
        Ok(migrate.end(&report))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(shard("1/4"), Ok(Shard { index: 0, count: 4 }));
        assert_eq!(shard("4/4"), Ok(Shard { index: 3, count: 4 }));
        for wrong in ["", "0/4", "5/4", "1", "a/b", "1/0", "-1/4"] {
            assert!(shard(wrong).is_err(), "{wrong} is no shard");
        }
    }
}
