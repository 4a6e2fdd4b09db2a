//! Arguments of the commands that write: how long they wait, what ends them early, the lock and the history.

use std::time::Duration;

use clap::{ArgAction, Args};
use pushback_app::history;
use pushback_app::lease::LockOptions;
use pushback_deploy::apply::engine;
use pushback_deploy::plan::saved::Deletion;

use super::arguments::duration;
use crate::run::options::WriteOptions;

/// How it is applied.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Apply and wait")]
pub struct WriteArgs {
    /// Wait until objects are ready, and deleted ones gone
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true)]
    pub wait: bool,
    /// How long the whole run may take, with planning, questions and waiting for other runs; what is written by then is
    /// recorded, as after a signal
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub timeout: Option<Duration>,
    /// How long writing and waiting may take in all; what has not started then does not start
    #[arg(long, value_parser = duration, default_value = "15m", value_name = "DURATION")]
    pub wait_timeout: Duration,
    /// How long to wait for one object; 0s: no limit of its own
    #[arg(long, value_parser = duration, default_value = "0s", value_name = "DURATION")]
    pub wait_resource_timeout: Duration,
    /// How long Pods may fail in a way that may heal (image not pulled, crash loop, missing ConfigMap, quota) while
    /// nothing of their object moves, until it counts as failed; 0s: as long as waiting takes
    #[arg(long, value_parser = duration, default_value = "5m", value_name = "DURATION")]
    pub wait_failure_timeout: Duration,
    /// How long to try one write that may yet succeed
    #[arg(long, value_parser = duration, default_value = "15m", value_name = "DURATION", hide_short_help = true)]
    pub apply_timeout: Duration,
    /// Exit with 3 where something was changed and with 2 where nothing was
    #[arg(long)]
    pub apply_exit_status: bool,
    /// Start no more writes after one has failed; where false, the server's refusal of an object in the plan does not keep
    /// the others from being written
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide_short_help = true)]
    pub exit_early_on_apply_error: bool,
    /// Start no more writes after an object has failed to become ready
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide_short_help = true)]
    pub exit_early_on_wait_error: bool,
    /// How long to wait for another run of the same app [default: the lease and 5 seconds]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub lock_wait: Option<Duration>,
    /// How long the app's lock holds without being renewed
    #[arg(long, value_parser = lease, default_value = "15s", value_name = "DURATION", hide_short_help = true)]
    pub lock_lease: Duration,
    /// How many changes the app's history keeps; 0: none is recorded
    #[arg(long, default_value_t = history::KEEP, value_name = "COUNT", hide_short_help = true)]
    pub app_changes_max_to_keep: usize,
}

impl WriteArgs {
    /// Resolves to options.
    #[must_use]
    pub fn resolve(self) -> WriteOptions {
        WriteOptions {
            engine: engine::Options {
                wait: self.wait,
                apply_timeout: self.apply_timeout,
                wait_timeout: self.wait_timeout,
                wait_resource_timeout: self.wait_resource_timeout,
                wait_failure_timeout: self.wait_failure_timeout,
                logs: engine::LogsOf::Nobody,
                failure_log_lines: 0,
                exit_early_on_apply_error: self.exit_early_on_apply_error,
                exit_early_on_wait_error: self.exit_early_on_wait_error,
                deletion: Deletion::default(),
                compares_writes: true,
                awaits_controllers: true,
                wait_words: None,
            },
            lock: LockOptions::new(self.lock_lease, self.lock_wait),
            history: self.app_changes_max_to_keep,
            exit_status: self.apply_exit_status,
        }
    }
}

/// What is shown of the logs of Pods.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Apply and wait")]
pub struct PodLogArgs {
    /// Show what Pods with the annotation kapp.k14s.io/deploy-logs write while the app is applied
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide_short_help = true)]
    logs: bool,
    /// Show what all Pods of the app write while it is applied
    #[arg(long)]
    logs_all: bool,
    /// How many lines to show of the log of each container that fails or does not become ready; 0: none
    #[arg(long, default_value_t = engine::FAILURE_LOG_LINES, value_name = "LINES", hide_short_help = true)]
    failure_log_lines: usize,
}

impl PodLogArgs {
    /// Adds to the options of the run.
    #[must_use]
    pub fn resolve(self, mut write: WriteOptions) -> WriteOptions {
        write.engine.logs = match (self.logs_all, self.logs) {
            (true, _) => engine::LogsOf::All,
            (false, true) => engine::LogsOf::Annotated,
            (false, false) => engine::LogsOf::Nobody,
        };
        write.engine.failure_log_lines = self.failure_log_lines;
        write
    }
}

/// Parses a lease duration; it must be longer than the requests that renew it.
fn lease(text: &str) -> Result<Duration, String> {
    let lease = duration(text)?;
    if lease < Duration::from_secs(1) { Err("a lease takes at least 1s".to_owned()) } else { Ok(lease) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_too_short_to_be_renewed_is_refused() {
        assert_eq!(lease("1s"), Ok(Duration::from_secs(1)));
        assert!(lease("0").is_err() && lease("999ms").is_err());
    }
}
