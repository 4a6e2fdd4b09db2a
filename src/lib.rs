//! `pushback` applies Kubernetes manifests as one app, and refuses an unsafe change before anything is written.
//! The modules, in the order in which data flows through them:

pub mod run;

pub mod cli;

#[cfg(feature = "kapp")]
mod kapp;

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::process;

use pushback_events::exit::ExitCode;

/// Runs the command line of the tool by whose name the program was called.
#[must_use]
pub fn main() -> process::ExitCode {
    #[cfg(feature = "kapp")]
    if kapp::is_name(&pushback_system::environment::program_name()) {
        return kapp::process_code(run_with(kapp::main));
    }
    run_with(cli::main).into()
}

/// Answers a shell that completes a word, or runs a command line. A panic has an exit code of its own.
fn run_with(main: fn(&[OsString]) -> ExitCode) -> ExitCode {
    let work = || match cli::completion::engine::answer() {
        Some(code) => code,
        None => main(&std::env::args_os().collect::<Vec<_>>()),
    };
    catch_unwind(work).unwrap_or(ExitCode::Defect)
}
