//! One run of a command: its events, its clock, its signals, its end. Every run ends with `run.end`.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pushback_app::record::AppName;
use pushback_cluster::{Cluster, Notice, Notices};
use pushback_events::exit::ExitCode;
use pushback_events::stop::Stop;
use pushback_events::{DiagnosticCode, Event, Events, RunFailure};
use pushback_manifest::{InputWarning, ResolvedSource};
use pushback_objects::Invocation;
use pushback_system::environment::Environment;
use tokio::sync::watch;

use super::error::CommandError;
use super::options::{Command, RunOptions};
use super::outcome::End;
use super::signals::{self, until_stopped};

/// The place where a run is shown and questions are asked.
pub trait Terminal: Send + Sync {
    /// Waits until all events sent so far are written.
    fn settle(&self, events: &Events);

    /// How consent to changes is obtained.
    fn consent(&self) -> Consent;

    /// Ends the line of an unanswered question.
    fn leave_question(&self);

    /// Shows what remains after the last event.
    ///
    /// # Errors
    /// Data could not be written, which has been reported; holds the exit code of a run that has no other error.
    fn finish(self: Box<Self>) -> Result<(), ExitCode>;
}

/// How consent to changes is obtained.
#[derive(Clone, Copy, Debug)]
pub enum Consent {
    /// Already given.
    Given,
    /// By asking with this function.
    Ask(fn(&str) -> io::Result<bool>),
    /// Not possible: nobody can be asked.
    Nobody,
}

impl Consent {
    /// Asks at once, in a command without a run.
    ///
    /// # Errors
    /// The user declined, or nobody can be asked.
    pub fn obtain(self, question: &str) -> Result<(), CommandError> {
        match self {
            Self::Given => Ok(()),
            Self::Ask(ask) => agreed(ask(question)),
            Self::Nobody => Err(nobody()),
        }
    }
}

fn nobody() -> CommandError {
    CommandError::usage("not confirmed: there is nobody to ask; answer on standard input, or use --yes")
}

/// What an answer means.
fn agreed(answer: io::Result<bool>) -> Result<(), CommandError> {
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandError::usage("stopped: the change was not confirmed").because(RunFailure::Declined)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(nobody().because(RunFailure::NoAnswer)),
        Err(error) => Err(CommandError::usage(format!("failed to ask: {error}"))),
    }
}

/// Options for files that a run writes beside its work.
const REPORT_OPTIONS: [&str; 3] = ["--report", "--facts-out", "--witness-dir"];

/// Shortest time between two reports of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// A running command.
pub struct Run {
    /// Sink of events.
    pub events: Events,
    /// Source of time, ids and host name.
    pub environment: Environment,
    /// Set by the first signal.
    pub stop: watch::Receiver<Stop>,
    /// Id of the run.
    pub id: String,
    stopper: watch::Sender<Stop>,
    terminal: Box<dyn Terminal>,
    started: Instant,
    /// Time spent waiting for the user, which does not count as the run's.
    asked: Mutex<Duration>,
    /// Time of the last report of progress.
    progress_at: Mutex<Instant>,
    clusters: Vec<Arc<dyn Cluster>>,
    /// Labels given to apps that did not exist: an app that is planned again keeps its own.
    labels: Mutex<BTreeMap<(String, String), String>>,
    nonce: OnceLock<String>,
}

impl Run {
    /// Starts a run that is shown on this terminal.
    #[must_use]
    pub fn start(events: Events, terminal: Box<dyn Terminal>) -> Self {
        let environment = Environment::real();
        let (stopper, stop) = signals::listen();
        Self {
            id: environment.new_run(),
            events,
            environment,
            stop,
            stopper,
            terminal,
            started: Instant::now(),
            asked: Mutex::default(),
            progress_at: Mutex::new(Instant::now()),
            clusters: Vec::new(),
            labels: Mutex::default(),
            nonce: OnceLock::new(),
        }
    }

    /// Ends the run as a signal would once this time has passed since its start.
    pub fn limit_to(&self, limit: Duration) {
        let stopper = self.stopper.clone();
        let left = limit.saturating_sub(self.started.elapsed());
        tokio::spawn(async move {
            tokio::time::sleep(left).await;
            stopper.send_if_modified(|stop| {
                let is_first = *stop == Stop::No;
                if is_first {
                    *stop = Stop::TimedOut;
                }
                is_first
            });
        });
    }

    /// The command line of this run.
    pub fn invocation(&self) -> Invocation {
        let arguments = Invocation::new(self.environment.arguments.iter().cloned());
        // A command that is given back to a person needs no files of this run.
        REPORT_OPTIONS.iter().fold(arguments, |arguments, option| arguments.without(option))
    }

    /// Time since the start, without waiting for the user.
    pub fn elapsed(&self) -> Duration {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.started.elapsed().saturating_sub(asked)
    }

    /// Sink for the cluster's notices, which become events.
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

    /// Adds a connection whose requests are counted at the end.
    pub fn uses(&mut self, cluster: &Arc<dyn Cluster>) {
        self.clusters.push(Arc::clone(cluster));
    }

    /// Value of the label of an app that does not exist yet; the same however often it is planned.
    pub fn label_of_new(&self, app: &AppName) -> String {
        let key = (app.namespace.clone(), app.name.clone());
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        labels.entry(key).or_insert_with(|| self.environment.new_app_label()).clone()
    }

    /// Value of what an annotation asks to be new in every run.
    pub fn nonce(&self) -> &str {
        self.nonce.get_or_init(|| self.environment.new_app_label())
    }

    /// Has an app that does not exist get this label, and annotations that are new in every run this value: those of
    /// the plan that is carried out.
    pub fn keep(&self, app: &AppName, label: &str, nonce: &str) {
        let key = (app.namespace.clone(), app.name.clone());
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).insert(key, label.to_owned());
        let _ = self.nonce.set(nonce.to_owned());
    }

    /// Reports that the cluster answers.
    pub async fn show_start(&self, options: &RunOptions, command: Command, app: &AppName, cluster: &dyn Cluster) {
        if let Some(observer) = &options.observer {
            observer.connected(cluster).await;
        }
        self.events.send(Event::RunStart {
            command: command.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            app: app.name.clone(),
            namespace: app.namespace.clone(),
            cluster: cluster.description(),
            run: self.id.clone(),
        });
    }

    /// Reports sources that were rendered or resolved.
    pub fn show_rendered<'a>(&self, rendered: impl IntoIterator<Item = &'a ResolvedSource>) {
        for source in rendered {
            self.events.send(Event::diagnostic(DiagnosticCode::Rendered, source.to_string()));
        }
    }

    /// Shows warnings about the input.
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

    /// Reports what is being done before the plan and verdict are known.
    pub fn planning(&self, what: impl Into<String>) {
        self.events.send(Event::diagnostic(DiagnosticCode::Planning, what));
    }

    /// Reports the progress of what [`Self::planning`] has reported, at most once in a while.
    pub fn planning_progress(&self, words: impl FnOnce() -> String) {
        let mut last = self.progress_at.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= PROGRESS_EVERY {
            *last = Instant::now();
            drop(last);
            self.planning(words());
        }
    }

    /// Announces an action, and waits until that is on the screen.
    pub fn announce(&self, what: &str) {
        self.events.send(Event::diagnostic(DiagnosticCode::CredentialPlugin, what));
        self.terminal.settle(&self.events);
    }

    /// Waits until all events are written, before something else is written to the same stream.
    pub fn settle(&self) {
        self.terminal.settle(&self.events);
    }

    /// Asks the user, unless consent was given in advance.
    ///
    /// # Errors
    /// The user declined, or nobody can be asked.
    pub async fn confirm(&self, question: &str) -> Result<(), CommandError> {
        let ask = match self.terminal.consent() {
            Consent::Given => return Ok(()),
            Consent::Ask(ask) => ask,
            Consent::Nobody => return Err(nobody()),
        };
        self.settle();
        let asked_at = Instant::now();
        let question = question.to_owned();
        // On its own thread: a signal ends the run, but nothing interrupts reading a line.
        let asking = tokio::task::spawn_blocking(move || ask(&question));
        let answer = until_stopped(self.stop.clone(), async {
            asking.await.map_err(|error| CommandError::usage(format!("failed to ask: {error}")))
        });
        let answer = answer.await;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) += asked_at.elapsed();
        let declined = matches!(answer, Ok(Ok(false)));
        let agreed = answer.and_then(agreed);
        if agreed.is_err() && !declined {
            self.terminal.leave_question();
        }
        agreed
    }

    /// Ends the run with the last event; returns the exit code.
    pub fn finish(self, end: End) -> ExitCode {
        let code = end.code;
        let requests = self.clusters.iter().map(|cluster| cluster.request_count()).sum();
        let elapsed = self.elapsed();
        self.events.send(end.event(requests, elapsed));
        let Err(failed) = self.terminal.finish() else { return code };
        match code {
            // What is applied stays applied, but a program that reads the output must not take it for whole.
            ExitCode::Success | ExitCode::NoChanges | ExitCode::Changes => failed,
            code => code,
        }
    }
}

/// Frees a value on a thread of its own, for which the process does not wait at its end: freeing thousands of objects one
/// by one takes a tenth of a run without changes.
pub fn free_aside(value: impl Send + 'static) {
    // If no thread can be started, the closure is dropped here, and the value with it.
    let _ = std::thread::Builder::new().name("free".to_owned()).spawn(move || drop(value));
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", &self.id).finish_non_exhaustive()
    }
}
