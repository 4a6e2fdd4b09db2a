//! The binary: runs the library's command line, and exits with a code of its own after a panic.

use std::process::ExitCode;

fn main() -> ExitCode {
    pushback::report::defect::tell_of_panics();
    let ended = std::panic::catch_unwind(pushback::cli::main);
    ended.unwrap_or(pushback::exit::ExitCode::Defect).into()
}
