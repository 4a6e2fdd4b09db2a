//! SIGINT, SIGTERM and SIGHUP: the first asks the run to end cleanly, the second ends the process.

#[cfg(unix)]
use std::sync::LazyLock;
use std::time::Duration;

use pushback_events::exit::ExitCode;
use pushback_events::stop::Stop;
use pushback_system::program;
use tokio::sync::watch;

use super::error::CommandError;

/// Starts listening. The receiver's value changes with the first signal, or with what is sent besides.
pub fn listen() -> (watch::Sender<Stop>, watch::Receiver<Stop>) {
    let (sender, receiver) = watch::channel(Stop::No);
    let other = sender.clone();
    tokio::spawn(async move {
        let mut asked = false;
        loop {
            let stop = next_signal().await;
            if asked {
                end_now(stop);
            }
            asked = true;
            let _ = sender.send(stop);
        }
    });
    (other, receiver)
}

#[expect(clippy::exit, reason = "the second signal means now, whatever is still under way")]
fn end_now(stop: Stop) -> ! {
    program::end_all();
    std::process::exit(i32::from(stop.exit_code().unwrap_or(ExitCode::Interrupted).code()))
}

#[cfg(unix)]
async fn next_signal() -> Stop {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    let hang_up = async {
        // Listening would undo `nohup`.
        if !ends_with_its_terminal() {
            return std::future::pending().await;
        }
        match signal(SignalKind::hangup()) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = hang_up => Stop::HungUp,
        _ = interrupt.recv() => Stop::Interrupted,
        _ = terminate.recv() => Stop::Terminated,
    }
}

/// Returns whether SIGHUP is not ignored. Known only on Linux. Read once: the handler that is installed later changes the
/// set.
#[cfg(unix)]
fn ends_with_its_terminal() -> bool {
    /// The bit of SIGHUP in a set of signals.
    const HANG_UP: u64 = 1;
    static ANSWER: LazyLock<bool> = LazyLock::new(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & HANG_UP == 0)
    });
    *ANSWER
}

#[cfg(not(unix))]
async fn next_signal() -> Stop {
    match tokio::signal::ctrl_c().await {
        Ok(()) => Stop::Interrupted,
        Err(_) => std::future::pending().await,
    }
}

/// Runs work that has written nothing yet; a signal cancels it at once.
///
/// # Errors
/// The work's error, or [`ExitCode::Interrupted`].
pub async fn until_stopped<T>(
    stop: watch::Receiver<Stop>,
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    until_dismissed(stop, Duration::ZERO, work).await.unwrap_or_else(|code| Err(CommandError::stopped(code)))
}

/// Runs work that should be completed; after a signal it gets this much more time.
///
/// # Errors
/// The signal's exit code if the time was not enough.
pub async fn until_dismissed<T>(
    mut stop: watch::Receiver<Stop>,
    farewell: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ExitCode> {
    let dismissed = async {
        loop {
            if let Some(code) = stop.borrow_and_update().exit_code() {
                tokio::time::sleep(farewell).await;
                return code;
            }
            if stop.changed().await.is_err() {
                std::future::pending::<ExitCode>().await;
            }
        }
    };
    tokio::select! {
        result = work => Ok(result),
        code = dismissed => Err(code),
    }
}
