//! `pushback man`: manual pages, made of the command line's own definitions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::run::error::CommandError;

/// Print a manual page, or write all of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback man upgrade diff
  pushback man --dir /usr/local/share/man/man1

To read one that is not installed: pushback man apply | man -l -

Exit codes: 0 printed or written, 1 no such command, or a folder that cannot be written.")]
pub struct ManArgs {
    /// Command, with all its words [default: the page about all commands]
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// No such command, or the folder cannot be written.
pub fn run(arguments: &ManArgs, command: Command) -> Result<String, CommandError> {
    pages(arguments, command).map_err(|error| CommandError::usage(format!("{error:#}")))
}

fn pages(arguments: &ManArgs, mut command: Command) -> anyhow::Result<String> {
    command.build();
    if let Some(folder) = &arguments.dir {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let count = write_all(&command, folder)?;
        return Ok(format!("Wrote {count} pages to {}.\n", folder.display()));
    }
    let mut wanted = &command;
    for word in &arguments.command {
        let Some(found) = wanted.find_subcommand(word) else {
            bail!("there is no command `{} {word}`", name(wanted));
        };
        wanted = found;
    }
    page(wanted)
}

/// The words of a command, with the program.
fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// Writes the page of a command and those of its subcommands; how many.
fn write_all(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    let mut count = 1;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        count += write_all(subcommand, folder)?;
    }
    Ok(count)
}

/// Defines the apostrophe, for every roff.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

fn page(command: &Command) -> anyhow::Result<String> {
    // The same line as in the help: with every option in it nobody could read it.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    // What the short help leaves out belongs here.
    let whole = command.clone().override_usage(usage).mut_args(|argument| argument.hide_short_help(false));
    let man = Man::new(whole).manual("pushback").source(concat!("pushback ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    add_sections(&mut roff, &after);
    add_see_also(&mut roff, command);
    roff.to_writer(&mut text)?;
    let text = String::from_utf8(text).context("the page is not text")?;
    // Each part begins with it.
    Ok(format!("{PREAMBLE}{}", text.replace(PREAMBLE, "")))
}

/// What stands below the options in the help: examples, which are set in; exit codes; notes.
fn add_sections(roff: &mut Roff, after: &str) {
    let mut section = "";
    let mut in_example = false;
    for line in after.lines() {
        let is_example = line.starts_with("  ");
        if in_example && !is_example {
            roff.control("fi", []);
        }
        let wanted = match line {
            "" => section,
            "Example:" | "Examples:" => "EXAMPLES",
            _ if line.starts_with("Exit codes:") => "EXIT STATUS",
            _ if is_example || !matches!(section, "" | "EXAMPLES") => section,
            _ => "NOTES",
        };
        if wanted != section {
            section = wanted;
            roff.control("SH", [section]);
        } else if line.is_empty() && !section.is_empty() && !in_example {
            roff.control("PP", []);
        }
        if is_example && !in_example {
            roff.control("nf", []);
        }
        in_example = is_example;
        let text = line.strip_prefix("Exit codes: ").unwrap_or(line);
        if !matches!(line, "" | "Example:" | "Examples:") {
            roff.text([roman(text.strip_prefix("  ").unwrap_or(text))]);
        }
    }
    if in_example {
        roff.control("fi", []);
    }
}

/// The page of the command that this one is part of.
fn add_see_also(roff: &mut Roff, command: &Command) {
    let words: Vec<&str> = name(command).split(' ').collect();
    if words.len() > 1 {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(format!("{}(1)", words[..words.len() - 1].join("-")))]);
    }
}
