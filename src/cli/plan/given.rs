//! The options of a plan as they were given, by flag or environment: kept in the plan's file, and read from there again.
//! What is about one run only is neither kept nor refused.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use pushback_manifest::shown_input;

use super::{MakePlanArgs, PlanCommandArgs};
use crate::cli::{Cli, Command, command};
use crate::run::error::CommandError;

/// Options of `plan` that it does not keep.
const OF_THE_RUN: [&str; 7] =
    ["out", "valid_for", "diff_changes", "diff_exit_status", "report", "witness_dir", "facts_out"];

/// Options of `apply` that go with a plan, besides those of how it is written.
const BESIDE_A_PLAN: [&str; 12] = [
    "saved_plan",
    "files",
    "config",
    "app",
    "namespace",
    "app_namespace",
    "labels",
    "app_metadata_file_output",
    "diff_changes",
    "report",
    "witness_dir",
    "facts_out",
];

/// Options of `check` that go with facts.
const BESIDE_FACTS: [&str; 4] = ["facts", "config", "report", "witness_dir"];

/// The heading of the help for how it is written.
const WRITING: &str = "Apply and wait";

/// Options that were given to a command.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<GivenOption>);

#[derive(Clone, Debug)]
struct GivenOption {
    id: String,
    /// As it is typed: `--into-ns`.
    flag: String,
    values: Vec<String>,
    is_from_environment: bool,
    is_of_writing: bool,
}

impl Given {
    /// The options that were given to a command, without the global ones.
    #[must_use]
    pub fn of(name: &str, matches: &ArgMatches) -> Self {
        let tree = command();
        let Some(command) = tree.find_subcommand(name) else { return Self::default() };
        let option = |argument: &clap::Arg| {
            let id = argument.get_id().as_str();
            let source = matches.value_source(id).filter(|source| *source != ValueSource::DefaultValue)?;
            let raw = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
            Some(GivenOption {
                id: id.to_owned(),
                flag: format!("--{}", argument.get_long()?),
                values: if argument.get_action().takes_values() { raw.collect() } else { Vec::new() },
                is_from_environment: source == ValueSource::EnvVariable,
                is_of_writing: argument.get_help_heading() == Some(WRITING),
            })
        };
        Self(command.get_arguments().filter(|argument| !argument.is_global_set()).filter_map(option).collect())
    }

    /// What a plan keeps: without credentials in URLs.
    #[must_use]
    pub fn to_keep(&self) -> BTreeMap<String, Vec<String>> {
        let kept = self.0.iter().filter(|option| !OF_THE_RUN.contains(&option.id.as_str()));
        kept.map(|option| (option.flag.clone(), option.values.iter().map(|value| shown_input(value)).collect()))
            .collect()
    }

    /// Refuses what the plan decides.
    ///
    /// # Errors
    /// Such an option was given beside `--plan`.
    pub fn require_beside_a_plan(&self) -> Result<(), CommandError> {
        let is_allowed = |option: &GivenOption| {
            option.is_from_environment || option.is_of_writing || BESIDE_A_PLAN.contains(&option.id.as_str())
        };
        match self.0.iter().find(|option| !is_allowed(option)) {
            Some(option) => {
                let message = format!("{} cannot be given with --plan: the plan has its own", option.flag);
                Err(CommandError::usage_with_hint(message, "make another plan with it"))
            }
            None => Ok(()),
        }
    }

    /// Refuses what facts decide.
    ///
    /// # Errors
    /// Such an option was given beside `--facts`.
    pub fn require_beside_facts(&self) -> Result<(), CommandError> {
        let is_allowed =
            |option: &&GivenOption| option.is_from_environment || BESIDE_FACTS.contains(&option.id.as_str());
        match self.0.iter().find(|option| !is_allowed(option)) {
            Some(option) => {
                let message = format!("{} cannot be given with --facts: they are judged as they were", option.flag);
                Err(CommandError::usage_with_hint(message, "leave out one of the two"))
            }
            None => Ok(()),
        }
    }
}

/// The arguments of the command that made a plan; `files` take the place of its files.
///
/// # Errors
/// The plan has an option that is not known.
pub fn read(kept: &BTreeMap<String, Vec<String>>, files: Vec<String>) -> Result<MakePlanArgs, CommandError> {
    let mut arguments: Vec<OsString> = ["pushback", "plan", "--out=-"].into_iter().map(OsString::from).collect();
    for (flag, values) in kept.iter().filter(|(flag, _)| files.is_empty() || *flag != "--file") {
        match values.as_slice() {
            [] => arguments.push(flag.into()),
            values => arguments.extend(values.iter().map(|value| format!("{flag}={value}").into())),
        }
    }
    arguments.extend(files.into_iter().map(|file| format!("--file={file}").into()));
    let failed = |error: &str| CommandError::usage(format!("the plan's options cannot be read: {error}"));
    let parsed = command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed.map(|cli| cli.command) {
        Ok(Command::Plan(PlanCommandArgs { making, .. })) => Ok(making),
        Ok(_) => Err(failed("they are those of another command")),
        Err(error) => Err(failed(error.to_string().lines().next().unwrap_or_default())),
    }
}
