//! One run of a command: its events, its clock, its signals, its end. Every run ends with `run.end`.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::CommandError;
use super::outcome::End;
use super::signals::{self, until_stopped};
use crate::cluster::{Cluster, Notice, Notices};
use crate::environment::Environment;
use crate::event::{DiagnosticCode, Event, Events};
use crate::exit::ExitCode;
use crate::manifest::InputWarning;
use crate::stop::Stop;

/// Where a run is shown, and who can be asked there.
pub trait Terminal: Send + Sync {
    /// Returns when everything that was sent is on its stream.
    fn settle(&self, events: &Events);

    /// Whether a change is agreed to.
    fn consent(&self) -> Consent;

    /// Leaves a question that is still on the screen.
    fn leave_question(&self);

    /// Shows what is left to be shown once the last event is sent.
    ///
    /// # Errors
    /// Data could not be written, which is told; the exit code of a run that was for them.
    fn finish(self: Box<Self>) -> Result<(), ExitCode>;
}

/// Whether a change is agreed to.
#[derive(Clone, Copy, Debug)]
pub enum Consent {
    /// It is.
    Given,
    /// Somebody is there to be asked, by this.
    Ask(fn(&str) -> io::Result<bool>),
    /// It is not, and nobody can be asked.
    Nobody,
}

/// A run under way.
pub struct Run {
    /// Where events go.
    pub events: Events,
    /// Clock, ids, host.
    pub environment: Environment,
    /// Set by the first signal.
    pub stop: watch::Receiver<Stop>,
    /// Its id.
    pub id: String,
    terminal: Box<dyn Terminal>,
    started: Instant,
    /// How long the user was asked; no time of the run's.
    asked: Mutex<Duration>,
    cluster: Option<Arc<dyn Cluster>>,
}

impl Run {
    /// Starts a run whose events are shown on a terminal.
    #[must_use]
    pub fn start(events: Events, terminal: Box<dyn Terminal>) -> Self {
        let environment = Environment::real();
        Self {
            id: environment.new_run(),
            events,
            environment,
            stop: signals::listen(),
            terminal,
            started: Instant::now(),
            asked: Mutex::default(),
            cluster: None,
        }
    }

    /// Time since the start, without the time in which the user was asked.
    pub fn elapsed(&self) -> Duration {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.started.elapsed().saturating_sub(asked)
    }

    /// Where the cluster's notices go: they become events.
    pub fn notices(&self) -> Notices {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let events = self.events.clone();
        tokio::spawn(async move {
            while let Some(notice) = receiver.recv().await {
                events.send(match notice {
                    Notice::Retry { request, reason, attempt, delay } => {
                        Event::Retry { request, reason, attempt, delay: delay.into() }
                    }
                    Notice::Warning { request, message } => Event::Warning {
                        code: "server".to_owned(),
                        message: format!("{request}: {message}"),
                        object: None,
                        position: None,
                    },
                });
            }
        });
        sender
    }

    /// Notes the cluster, whose requests are counted at the end.
    pub fn uses(&mut self, cluster: &Arc<dyn Cluster>) {
        self.cluster = Some(Arc::clone(cluster));
    }

    /// Shows warnings of the input.
    pub fn warn_input(&self, warnings: &[InputWarning]) {
        for warning in warnings {
            self.events.send(Event::Warning {
                code: warning.code.to_owned(),
                message: warning.message.clone(),
                object: None,
                position: Some(warning.position.clone()),
            });
        }
    }

    /// Shows a warning.
    pub fn warn(&self, code: &str, message: impl Into<String>) {
        self.events.send(Event::Warning {
            code: code.to_owned(),
            message: message.into(),
            object: None,
            position: None,
        });
    }

    /// Says what is done before the plan and the verdict are known.
    pub fn planning(&self, what: impl Into<String>) {
        self.events.send(Event::Diagnostic { code: DiagnosticCode::Planning, message: what.into() });
    }

    /// Says what is about to happen, and returns when it is on the screen.
    pub fn announce(&self, what: &str) {
        self.events.send(Event::Diagnostic { code: DiagnosticCode::CredentialPlugin, message: what.to_owned() });
        self.terminal.settle(&self.events);
    }

    /// Returns when everything that was sent is on its stream, before something else is written there.
    pub fn settle(&self) {
        self.terminal.settle(&self.events);
    }

    /// Asks the user, who may have said yes already.
    ///
    /// # Errors
    /// No; or nobody can be asked.
    pub async fn confirm(&self, question: &str) -> Result<(), CommandError> {
        let ask = match self.terminal.consent() {
            Consent::Given => return Ok(()),
            Consent::Ask(ask) => ask,
            Consent::Nobody => {
                return Err(CommandError::usage("not confirmed: there is no terminal to ask on; use --yes"));
            }
        };
        self.settle();
        let asked_at = Instant::now();
        let question = question.to_owned();
        // On a thread of its own: a signal ends the run, while nothing ends the wait for a line.
        let asking = tokio::task::spawn_blocking(move || ask(&question));
        let answer = until_stopped(self.stop.clone(), async {
            let failed = |error: String| CommandError::usage(format!("failed to ask: {error}"));
            asking.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
        });
        let answer = answer.await;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) += asked_at.elapsed();
        match answer {
            Ok(true) => Ok(()),
            Ok(false) => Err(CommandError::usage("stopped: the change was not confirmed")),
            Err(error) => {
                self.terminal.leave_question();
                Err(error)
            }
        }
    }

    /// Ends the run: the last event, the exit code.
    pub fn finish(self, end: End) -> ExitCode {
        let code = end.code;
        let wrote = end.done.writes() > 0;
        let requests = self.cluster.as_ref().map(|cluster| cluster.request_count()).unwrap_or_default();
        let elapsed = self.elapsed();
        self.events.send(end.event(requests, elapsed));
        let Err(failed) = self.terminal.finish() else { return code };
        // What is deployed stays deployed, whether or not it could be told; otherwise the data were what the run was for.
        let was_for_data = matches!(code, ExitCode::Success | ExitCode::NoChanges | ExitCode::Changes) && !wrote;
        if was_for_data { failed } else { code }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", &self.id).finish_non_exhaustive()
    }
}
