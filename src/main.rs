//! The binary: runs the library's command line, and exits with a code of its own after a panic.

use std::process::ExitCode;

use pushback_system::environment::Voice;

/// musl's allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pushback_terminal::defect::tell_of_panics();
    let voice = Voice::of_process();
    let ended = std::panic::catch_unwind(|| pushback::cli::main(voice));
    ended.unwrap_or(pushback_events::exit::ExitCode::Defect).process_code(voice)
}
