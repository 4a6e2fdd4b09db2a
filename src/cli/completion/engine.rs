//! What a shell's completion script asks, and what it gets. The library completes commands and options; what bash cuts into
//! pieces is put together here, and values come from `values`.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{Shell, engine};
use pushback_events::exit::ExitCode;

use super::line::Line;
use super::values;
use crate::cli::command;

/// Says which shell asks. Not meant for people: without it a run is a run.
const VARIABLE: &str = "_PUSHBACK_COMPLETE";

/// The binary, as the scripts call it.
const PROGRAM: &str = "pushback";

/// bash, with words put together again.
#[derive(Debug)]
struct WholeWords;

const SHELLS: Shells<'static> = Shells(&[&WholeWords, &Elvish, &Fish, &Powershell, &Zsh]);

/// Writes the script of a shell.
///
/// # Errors
/// The shell is unknown.
pub(super) fn write_script(shell: Shell, script: &mut Vec<u8>) -> io::Result<()> {
    let name = shell.to_string();
    let shell = SHELLS.completer(&name).ok_or_else(|| io::Error::other(format!("no script for {name}")))?;
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, script)
}

/// Answers a shell that asks; `None` if this is a run.
#[must_use]
pub fn answer() -> Option<ExitCode> {
    let shell = std::env::var(VARIABLE).ok().filter(|shell| !shell.is_empty())?;
    silence();
    let line = line(&shell, std::env::args_os().skip_while(|word| word != "--").skip(1).collect());
    let tree = || values::completed(command(), &line);
    let asked = CompleteEnv::with_factory(tree).var(VARIABLE).bin(PROGRAM).completer(PROGRAM).shells(SHELLS);
    let current = std::env::current_dir().ok();
    // An error would land on the line that somebody is typing.
    let answered = asked.try_complete(std::env::args_os(), current.as_deref());
    Some(if answered.is_ok() { ExitCode::Success } else { ExitCode::Usage })
}

/// Nothing asks at the terminal, and nothing writes to it: neither this process nor the plugins that it runs.
fn silence() {
    #[cfg(unix)]
    if let Ok(nowhere) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
}

fn line(shell: &str, words: Vec<OsString>) -> Line {
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    if shell == "bash" { Line::of_bash(words, index.unwrap_or_default()) } else { Line::plain(words, index) }
}

impl EnvCompleter for WholeWords {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        Bash.write_registration(variable, name, program, completer, script)
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        current: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        let Line { words, index, kept } = line("bash", words);
        let candidates = engine::complete(command, words, index, current)?;
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let kept = kept.to_string_lossy();
        let texts = candidates.iter().map(|candidate| candidate.get_value().to_string_lossy());
        let texts: Vec<String> =
            texts.map(|text| text.strip_prefix(&*kept).map_or_else(|| text.to_string(), str::to_owned)).collect();
        answer.write_all(texts.join(&separator).as_bytes())
    }
}
