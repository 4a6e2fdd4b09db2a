//! SIGINT and SIGTERM: the first asks the run to end in order, the second ends the process.

use tokio::sync::watch;

use crate::apply::engine::Stop;
use crate::exit::ExitCode;

/// Listens from now on. The receiver's value changes with the first signal.
pub fn listen() -> watch::Receiver<Stop> {
    let (sender, receiver) = watch::channel(Stop::No);
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
    receiver
}

/// The exit code that stands for a signal.
pub fn exit_code(stop: Stop) -> Option<ExitCode> {
    match stop {
        Stop::No => None,
        Stop::Interrupted => Some(ExitCode::Interrupted),
        Stop::Terminated => Some(ExitCode::Terminated),
    }
}

#[expect(clippy::exit, reason = "the second signal means now, whatever is still under way")]
fn end_now(stop: Stop) -> ! {
    std::process::exit(i32::from(exit_code(stop).unwrap_or(ExitCode::Interrupted).code()))
}

#[cfg(unix)]
async fn next_signal() -> Stop {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Stop::Interrupted,
        _ = terminate.recv() => Stop::Terminated,
    }
}

#[cfg(not(unix))]
async fn next_signal() -> Stop {
    match tokio::signal::ctrl_c().await {
        Ok(()) => Stop::Interrupted,
        Err(_) => std::future::pending().await,
    }
}
