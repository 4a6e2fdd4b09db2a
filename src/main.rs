//! The binary: the command line of the library, with an exit code of its own for defects.

use std::process::ExitCode;

fn main() -> ExitCode {
    pushback::report::defect::tell_of_panics();
    let ended = std::panic::catch_unwind(pushback::cli::main);
    ended.unwrap_or(pushback::exit::ExitCode::Defect).into()
}
