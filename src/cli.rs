//! The command line: parses the arguments and runs the command.

pub mod app_group;
pub mod apply;
pub mod arguments;
pub(crate) mod behaviour;
pub mod check;
pub mod completion;
pub mod delete;
pub mod diff;
pub mod filters;
pub mod help;
pub mod history;
pub mod inspect;
pub mod judge;
pub mod list;
pub mod logs;
pub mod man;
pub(crate) mod parser_output;
pub mod plan;
pub mod rename;
pub mod reports;
pub mod rules;
pub mod screen;
#[cfg(feature = "webhook")]
pub mod serve_admission;
#[cfg(feature = "webhook")]
pub mod serve_conversion;
pub mod storage;
pub mod tools;
#[cfg(feature = "upgrade")]
pub mod upgrade;
pub mod verify;
pub mod version;
#[cfg(feature = "webhook")]
mod webhook_server;
pub mod writing;

use std::ffi::OsString;
use std::fs::File;
use std::num::NonZero;
use std::path::Path;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use pushback_events::exit::ExitCode;
use pushback_system::environment::reason;
use pushback_system::program;
use tokio::runtime::{Builder, Runtime};

use crate::run::error::CommandError;
pub use arguments::GlobalArgs;
use plan::given::Given;

/// Applies Kubernetes manifests as one app, and pushes back before anything is written when the change is not safe.
#[derive(Debug, Parser)]
#[command(name = "pushback", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply manifests as an app: plan, preflight, write in order, wait, prune
    #[command(visible_alias = "deploy")]
    Apply(apply::ApplyArgs),
    /// Delete an app with everything that it owns
    Delete(delete::DeleteArgs),
    /// Show what apply would change, and stop there
    Diff(diff::DiffCommandArgs),
    /// Plan and run the preflight rules; exit with 10 when apply would be refused
    Check(check::CheckArgs),
    /// Save what apply would change, to be looked at and applied later; show a saved plan
    Plan(plan::PlanCommandArgs),
    /// Judge changes of CRDs for other programs: a JSON request per line in, a JSON response per line out
    Judge(judge::JudgeArgs),
    /// Check that a report, a saved plan, facts and this program belong together
    Verify(verify::VerifyArgs),
    /// Show an app's objects and how they are
    Inspect(inspect::InspectArgs),
    /// List the apps of a namespace
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show an app's changes: when, by whom, with which outcome, and what was waived
    History(history::HistoryArgs),
    /// List the records of an app's changes, or delete the oldest
    #[command(aliases = ["ac", "app-changes", "appchange", "appchanges"])]
    AppChange(history::AppChangeArgs),
    /// Apply a directory of directories as apps of a group, or delete the group
    #[command(visible_alias = "ag", alias = "appgroup")]
    AppGroup(app_group::AppGroupArgs),
    /// Give an app another name or namespace
    Rename(rename::RenameArgs),
    /// Print the label of an app's objects
    Label(history::LabelArgs),
    /// Show the logs of an app's Pods
    Logs(logs::LogsArgs),
    /// List the preflight rules, or explain one
    Rules(rules::RulesArgs),
    #[cfg(feature = "upgrade")]
    /// Compare two releases of an operator: what changed, and how bad it may be
    Upgrade(upgrade::UpgradeArgs),
    /// Look after the versions that custom resources are stored in: status, migrate, verify, unserve, remove
    Storage(storage::StorageArgs),
    #[cfg(feature = "webhook")]
    /// Answer the API server as a validating webhook that refuses breaking changes of CRDs
    ServeAdmission(serve_admission::ServeAdmissionArgs),
    #[cfg(feature = "webhook")]
    /// Answer the API server as a conversion webhook, by conversion plans
    ServeConversion(serve_conversion::ServeConversionArgs),
    /// Look at files without a cluster, as kapp's scripts do
    #[command(hide = true, alias = "t")]
    Tools(tools::ToolsArgs),
    #[cfg(feature = "upgrade")]
    /// The same as `upgrade simulate`
    #[command(hide = true)]
    SimulateUpgrade(upgrade::simulate::SimulateArgs),
    #[cfg(feature = "upgrade")]
    /// The same as `upgrade diff-crds`
    #[command(hide = true)]
    DiffCrds(upgrade::diff_crds::DiffCrdsArgs),
    #[cfg(feature = "upgrade")]
    /// Check that a folder of models is complete for one version: `upgrade validate-version`
    #[command(hide = true)]
    ValidateVersion(upgrade::validate_version::ValidateVersionArgs),
    /// Print the version, the build, and the Kubernetes versions that it is tested on
    Version(version::VersionArgs),
    /// Print a shell's completion script
    Completion(completion::CompletionArgs),
    /// Print a manual page, or write all of them
    Man(man::ManArgs),
    /// Print the help of a command
    Help(help::HelpArgs),
}

impl Command {
    /// Runs the command. `arguments` are the whole command line.
    pub(crate) async fn run(self, global: &GlobalArgs, arguments: &[OsString]) -> ExitCode {
        match self {
            Self::Apply(arguments) => apply::run(global, arguments).await,
            Self::Delete(arguments) => delete::run(global, arguments).await,
            Self::Diff(arguments) => diff::run(global, arguments).await,
            Self::Check(arguments) => check::run(global, arguments).await,
            Self::Plan(arguments) => plan::run(global, arguments).await,
            Self::Judge(_) => judge::run(global),
            Self::Verify(arguments) => verify::run(global, &arguments),
            Self::Inspect(arguments) => screen::simple(global, inspect::run(global, arguments).await),
            Self::List(arguments) => screen::simple(global, list::run(global, arguments).await),
            Self::History(arguments) => screen::simple(global, history::run(global, arguments).await),
            Self::AppChange(arguments) => screen::simple(global, history::run_app_change(global, arguments).await),
            Self::AppGroup(arguments) => app_group::run(global, arguments).await,
            Self::Rename(arguments) => screen::simple(global, rename::run(global, arguments).await),
            Self::Label(arguments) => screen::simple(global, history::run_label(global, arguments).await),
            Self::Logs(arguments) => screen::simple(global, logs::run(global, arguments).await),
            Self::Rules(arguments) => screen::simple(global, rules::run(global, &arguments)),
            Self::Tools(arguments) => screen::simple(global, tools::run(global, arguments)),
            #[cfg(feature = "upgrade")]
            Self::Upgrade(arguments) => upgrade::run(global, arguments).await,
            Self::Storage(arguments) => storage::run(global, arguments).await,
            #[cfg(feature = "webhook")]
            Self::ServeAdmission(arguments) => serve_admission::run(global, arguments).await,
            #[cfg(feature = "webhook")]
            Self::ServeConversion(arguments) => serve_conversion::run(global, arguments).await,
            #[cfg(feature = "upgrade")]
            Self::SimulateUpgrade(arguments) => upgrade::simulate::run(global, arguments).await,
            #[cfg(feature = "upgrade")]
            Self::DiffCrds(arguments) => upgrade::diff_crds(global, arguments).await,
            #[cfg(feature = "upgrade")]
            Self::ValidateVersion(arguments) => upgrade::validate_version(global, arguments),
            Self::Version(_) => screen::simple(global, version::run(global)),
            Self::Completion(arguments) => screen::simple(global, completion::run(&arguments)),
            Self::Man(arguments) => screen::simple(global, man::run(&arguments, self::command())),
            Self::Help(asked) => help::run(&asked, &command_of(arguments)),
        }
    }

    /// Refuses JSON output for commands that have none: text would be read as JSON.
    ///
    /// # Errors
    /// JSON was requested.
    fn require_output(&self, global: &GlobalArgs) -> Result<(), CommandError> {
        let has_json = match self {
            Self::Completion(_) | Self::Man(_) | Self::Help(_) => false,
            #[cfg(feature = "upgrade")]
            Self::Upgrade(arguments) => arguments.prints_events_or_json(),
            #[cfg(feature = "webhook")]
            Self::ServeAdmission(arguments) => arguments.has_json(),
            #[cfg(feature = "webhook")]
            Self::ServeConversion(arguments) => arguments.has_json(),
            _ => true,
        };
        if has_json || !global.wants_json() {
            return Ok(());
        }
        Err(CommandError::usage("this command has no JSON output"))
    }
}

/// Number of file descriptors that the start of the runtime takes.
const DESCRIPTORS: usize = 8;

/// Starts the runtime. It would panic where the environment asks for no threads, and where no descriptor is left.
fn start() -> std::io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    if cfg!(unix) {
        let opened: Vec<File> = (0..DESCRIPTORS).map(|_| File::open("/dev/null")).collect::<Result<_, _>>()?;
        drop(opened);
    }
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// Parses the command line and runs it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match parsed(arguments) {
        Ok(cli) => cli.run(async |command, global| command.run(global, arguments).await),
        Err(error) => parser_output::print(error, arguments, || command_of(arguments)),
    }
}

fn parsed(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let matches: ArgMatches = command_of(arguments).try_get_matches_from(arguments)?;
    Cli::from_matches(&matches).map_err(|error| error.format(&mut command_of(arguments)))
}

/// The command line under the name that users type. kubectl runs `kubectl-pushback` for `kubectl pushback`.
fn command_of(arguments: &[OsString]) -> clap::Command {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem).unwrap_or_default();
    if program == "kubectl-pushback" { command().bin_name("kubectl pushback") } else { command() }
}

impl Cli {
    /// Runs the command, as `work` does it.
    pub(crate) fn run(self, work: impl AsyncFnOnce(Command, &GlobalArgs) -> ExitCode) -> ExitCode {
        let Self { global, command } = self;
        if let Err(error) = command.require_output(&global) {
            return screen::fail(&global, &error);
        }
        screen::start_logging(global.verbose);
        let runtime = match start() {
            Ok(runtime) => runtime,
            Err(error) => {
                return screen::fail(
                    &global,
                    &CommandError::usage_with_hint(
                        format!("failed to start: {}", reason(&error)),
                        "allow the process more open files (`ulimit -n 256`), threads and memory",
                    ),
                );
            }
        };
        let code = runtime.block_on(work(command, &global));
        // A signal may have ended the run while one works.
        program::end_all();
        // Watches and retries that are still running have no receiver left.
        runtime.shutdown_background();
        code
    }

    /// Reads what was parsed. The commands about plans also get to know which options were given.
    pub(crate) fn from_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        let Some((name, below)) = matches.subcommand() else { return Ok(cli) };
        match &mut cli.command {
            Command::Plan(arguments) => arguments.given = Given::of(name, below),
            Command::Apply(arguments) => arguments.given = Given::of(name, below),
            Command::Check(arguments) => arguments.given = Given::of(name, below),
            _ => {}
        }
        Ok(cli)
    }
}

/// Commands that need no cluster, with the other global options that mean nothing to them.
const LEFT_OUT: [(&str, &[&str]); 7] = [
    ("judge", &["output", "color", "verbose"]),
    ("rules", &[]),
    ("verify", &[]),
    ("version", &[]),
    ("completion", &["output", "color", "verbose"]),
    ("man", &["output", "color", "verbose"]),
    ("help", &["output", "color", "verbose"]),
];

/// Global options that mean nothing without a cluster.
const CLUSTER: &[&str] = &[
    "cluster",
    "kubeconfig",
    "kubeconfig_context",
    "as_user",
    "as_group",
    "credential_plugins",
    "request_timeout",
    "yes",
];

/// The whole command line, also for completion scripts and tests.
#[must_use]
pub fn command() -> clap::Command {
    let command = Cli::command();
    let global: Vec<clap::Arg> = command.get_arguments().cloned().collect();
    command.mut_subcommands(|subcommand| {
        let Some((_, ids)) = LEFT_OUT.iter().find(|(name, _)| *name == subcommand.get_name()) else {
            return subcommand;
        };
        let is_left_out = |option: &&clap::Arg| {
            let id = option.get_id().as_str();
            CLUSTER.contains(&id) || ids.contains(&id)
        };
        let hidden: Vec<clap::Arg> =
            global.iter().filter(is_left_out).map(|option| option.clone().hide(true)).collect();
        subcommand.args(hidden)
    })
}
