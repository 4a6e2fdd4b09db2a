//! Stack space for deeply nested schemas and objects: the depth is up to the input.

/// Stack size in bytes. Only the pages that are used cost memory.
pub const SIZE: usize = 256 << 20;

/// Runs `work` on a thread with a stack of [`SIZE`] bytes.
pub fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let mut run = || work.take().map(|work| work());
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SIZE).spawn_scoped(scope, &mut run).ok()?;
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    // If no thread can be started, the current stack has to do.
    match done.or_else(run) {
        Some(done) => done,
        None => unreachable!("the work runs once, in one of the two places"),
    }
}
