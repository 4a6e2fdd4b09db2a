//! The binary: runs the library's command line.

use std::process::ExitCode;

/// musl's allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pushback_terminal::defect::tell_of_panics();
    pushback::main()
}
