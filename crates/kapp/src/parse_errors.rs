//! kapp's messages for a command line that cannot be parsed.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Whether kapp prints its help before the error: the command line names no command.
#[must_use]
pub fn shows_help(error: &clap::Error, tree: &Command) -> bool {
    message(error, tree) == NO_COMMAND
}

/// Words an error of the parser as kapp does.
#[must_use]
pub fn message(error: &clap::Error, tree: &Command) -> String {
    let named = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = named(ContextKind::InvalidArg);
            match argument.strip_prefix("--") {
                Some(flag) => format!("unknown flag: --{}", flag.split('=').next().unwrap_or_default()),
                None if argument.starts_with('-') => format!("unknown shorthand flag: {argument}"),
                None => {
                    format!("command '{}' does not accept extra arguments '{argument}'", called(error).join(" "))
                }
            }
        }
        ErrorKind::InvalidSubcommand if declined(&named(ContextKind::InvalidSubcommand)).is_some() => {
            declined(&named(ContextKind::InvalidSubcommand)).unwrap_or_default().to_owned()
        }
        ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand if !subcommands(error, tree).is_empty() => {
            format!("Use one of available subcommands: {}", subcommands(error, tree).join(", "))
        }
        ErrorKind::InvalidSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => NO_COMMAND.to_owned(),
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--app ") => {
            "Expected app name to be non-empty".to_owned()
        }
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--group ") => {
            "Expected group name to be non-empty".to_owned()
        }
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--directory ") => {
            "Reading directory '': open : no such file or directory".to_owned()
        }
        kind => {
            let is_of_value = matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue);
            let known = is_of_value
                .then(|| wrong_value(&named(ContextKind::InvalidArg), &named(ContextKind::InvalidValue), error));
            known.flatten().unwrap_or_else(|| {
                let text = error.to_string();
                let text = text.split("\n\n").next().unwrap_or_default();
                text.strip_prefix("error: ").unwrap_or(text).to_owned()
            })
        }
    }
}

/// The error where no command is named, or one that does not exist.
const NO_COMMAND: &str = "Invalid command - see available commands/subcommands above";

/// What kapp, or Go for it, says of a value that a flag cannot have.
fn wrong_value(argument: &str, value: &str, error: &clap::Error) -> Option<String> {
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let invalid = |why: &str| Some(format!("invalid argument \"{value}\" for \"{flag}\" flag: {why}"));
    let is_truth = matches!(error.get(ContextKind::ValidValue),
        Some(ContextValue::Strings(values)) if values.iter().any(|value| value == "true"));
    match flag {
        _ if is_truth => invalid(&format!("strconv.ParseBool: parsing \"{value}\": invalid syntax")),
        "--labels" if value.starts_with('=') => Some("Expected label key to be non-empty".to_owned()),
        "--labels" => Some("Expected label to be in 'key=val' format".to_owned()),
        "--map-ns" => Some(format!("Expected map namespace '{value}' to be in 'src-ns=dst-ns' format")),
        "--before" | "--after" => {
            Some(format!("unrecognized time format {value}, supported formats: [2006-01-02T15:04:05Z07:00 2006-01-02]"))
        }
        "--max" | "--lines" | "--context" | "--diff-context" | "--app-changes-max-to-keep" => {
            invalid(&format!("strconv.ParseInt: parsing \"{value}\": invalid syntax"))
        }
        _ if flag.ends_with("-timeout") => invalid(&format!("time: invalid duration \"{value}\"")),
        _ => None,
    }
}

/// Why a command of kapp is left out.
fn declined(command: &str) -> Option<&'static str> {
    match command {
        "config-map" | "cm" | "cfg" => Some("config-map list is left out: kubectl get configmaps lists them"),
        "service-account" | "sa" => Some("service-account list is left out: kubectl get serviceaccounts lists them"),
        "deploy-config" => Some(
            "deploy-config is left out: the default order, labels and scoping rules are kapp's, and rebase rules are not \
             needed with server-side apply",
        ),
        "list-labels" | "ls-labels" => Some("tools list-labels is left out: kubectl get --show-labels lists them"),
        _ => None,
    }
}

/// The command that was called, by its line of usage: `kapp app-change list`.
fn called(error: &clap::Error) -> Vec<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return Vec::new() };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "kapp");
    words.take_while(|word| !word.starts_with(['[', '<', '-'])).map(str::to_owned).collect()
}

/// The subcommands of the group of commands that was called; none of the whole command line.
fn subcommands(error: &clap::Error, tree: &Command) -> Vec<String> {
    let words: Vec<String> = called(error).into_iter().skip(1).collect();
    let mut group = tree;
    for word in &words {
        let Some(next) = group.find_subcommand(word) else { return Vec::new() };
        group = next;
    }
    let names = group.get_subcommands().map(|command| command.get_name().to_owned()).filter(|name| name != "help");
    let mut names: Vec<String> = names.filter(|_| !words.is_empty()).collect();
    names.sort();
    names
}
