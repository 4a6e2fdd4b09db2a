//! Room for schemas and objects that are nested as deep as they may be: how deep that is, is not ours to decide.

/// Bytes of stack for work on them; only what is used of it costs anything.
pub const SIZE: usize = 256 << 20;

/// Runs the work on a stack of [`SIZE`] bytes.
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
    // Where no thread can be had, its own stack has to do.
    match done.or_else(run) {
        Some(done) => done,
        None => unreachable!("the work runs once, in one of the two places"),
    }
}
