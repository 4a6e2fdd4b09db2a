//! A command line that cannot be parsed: prints the parser's message, made safe to show. A program that reads events
//! gets a final one.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use pushback_events::exit::ExitCode;
use pushback_manifest::shown_input;
use pushback_objects::quoted;
use pushback_terminal::escape::{terminal_safe, without_commands};
use pushback_terminal::live::reporter::renderer;
use pushback_terminal::output::Output;
use pushback_terminal::{ColorChoice, Format, RenderOptions, Theme, error_text, system_clock};

use crate::run::error::CommandError;
use crate::run::outcome::End;

/// Prints help; an error of the parser is returned, safe to show.
///
/// # Errors
/// Help was printed: the exit code.
pub(crate) fn safe_error(
    error: clap::Error,
    arguments: &[OsString],
    tree: impl FnOnce() -> clap::Command,
) -> Result<clap::Error, ExitCode> {
    if !error.use_stderr() {
        // If the message cannot be written, nobody can be told.
        let _ = error.print();
        return Err(ExitCode::Success);
    }
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let escaped: Vec<String> = arguments
        .iter()
        .map(|argument| without_commands(&terminal_safe(&shown_input(argument))).into_owned())
        .collect();
    // The parser quotes arguments verbatim: a terminal would act on control characters, and a log would keep passwords.
    if escaped == arguments {
        return Ok(error);
    }
    Ok(tree().try_get_matches_from(&escaped).err().unwrap_or(error))
}

/// Prints the parser's output: help, or an error. A program that reads events gets a final one.
pub(super) fn print(error: clap::Error, arguments: &[OsString], tree: impl FnOnce() -> clap::Command) -> ExitCode {
    let error = match safe_error(error, arguments, tree) {
        Ok(error) => error,
        Err(code) => return code,
    };
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let _ = error.print();
    let hint = meant_elsewhere(&arguments).or_else(|| path_for_format(&arguments)).map(str::to_owned);
    if let Some(hint) = hint.or_else(|| long_flag_with_one_dash(&arguments)).or_else(|| file_without_flag(&error)) {
        let theme = Theme::detect(ColorChoice::Auto, io::stderr().is_terminal(), &|name| std::env::var(name).ok());
        Output::standard().progress(&error_text::hints_text(&[hint], theme));
    }
    if wants_events(&arguments) {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let end = End::error(&CommandError::usage(message.strip_prefix("error: ").unwrap_or(message)));
        let output = Output::new(Box::new(io::stdout()), Box::new(io::sink()));
        let mut renderer = renderer(Format::Json, RenderOptions::default(), output);
        renderer.event(&end.event(0, Duration::ZERO), system_clock()());
        let _ = renderer.finish();
    }
    ExitCode::Usage
}

/// Hint for `diff` with the flags of `upgrade diff`; here `diff` compares an app with its input.
fn meant_elsewhere(arguments: &[String]) -> Option<&'static str> {
    const RELEASES: [&str; 6] = ["--old", "--new", "--from", "--to", "--source", "--target"];
    let command = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'))?;
    let names = |argument: &String| RELEASES.contains(&argument.split('=').next().unwrap_or_default());
    (command == "diff" && arguments.iter().any(names))
        .then_some("two releases of an operator are compared by `pushback upgrade diff --from OLD --to NEW`")
}

/// Hint for `-app shop`, which is read as `-a pp` and another argument.
fn long_flag_with_one_dash(arguments: &[String]) -> Option<String> {
    const FLAGS: [&str; 6] = ["app", "file", "namespace", "cluster", "yes", "output"];
    let flag = arguments.iter().find_map(|argument| {
        let name = argument.strip_prefix('-')?.split('=').next()?;
        FLAGS.contains(&name).then_some(name)
    })?;
    Some(format!("-{flag} is read as the flag -{}; the long flag has two dashes: --{flag}", &flag[..1]))
}

/// Hint for files that are given without `-f`.
fn file_without_flag(error: &clap::Error) -> Option<String> {
    let is_unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let found = error.get(clap::error::ContextKind::InvalidArg).filter(|_| is_unknown)?.to_string();
    let is_path = found.ends_with(".yaml") || found.ends_with(".yml") || Path::new(&found).exists();
    (!found.starts_with('-') && is_path).then(|| format!("files and folders are given with -f: -f {}", quoted(&found)))
}

/// Hint for a path after `-o` in a command on releases: there, too, it is a format.
fn path_for_format(arguments: &[String]) -> Option<&'static str> {
    let is_short = |argument: &String| argument.starts_with("-o");
    (is_on_releases(arguments) && arguments.iter().any(is_short))
        .then_some("-o is a format in every command; the path to write to is named by --output")
}

/// Whether the command compares releases: its `--output` is a path, and it sends no events.
fn is_on_releases(arguments: &[String]) -> bool {
    const COMMANDS: [&str; 3] = ["upgrade", "simulate-upgrade", "diff-crds"];
    arguments.iter().any(|argument| COMMANDS.contains(&argument.as_str()))
}

/// Whether arguments that cannot be parsed still request events.
fn wants_events(arguments: &[String]) -> bool {
    if is_on_releases(arguments) {
        return false;
    }
    let has_events = ["apply", "deploy", "delete", "diff"];
    let json = |(index, argument): (usize, &String)| match argument.as_str() {
        "-o" | "--output" => arguments.get(index + 1).is_some_and(|value| value == "json"),
        other => ["-ojson", "-o=json", "--output=json"].contains(&other),
    };
    arguments.iter().any(|argument| has_events.contains(&argument.as_str())) && arguments.iter().enumerate().any(json)
}
