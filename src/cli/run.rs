//! One run of a command: its events, its clock, its signals, its end. Every run ends with `run.end`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::arguments::{GlobalArgs, OutputFormat, PreflightArgs};
use crate::apply::engine::Stop;
use crate::cluster::{Cluster, Notice, Notices};
use crate::event::{DiagnosticCode, Event, Events};
use crate::exit::ExitCode;
use crate::manifest::{InputWarning, shown_input};
use crate::report::escape::{terminal_safe, without_commands};
use crate::report::output::Output;
use crate::report::render::renderer;
use crate::report::report_file::Document;
use crate::report::{ColorChoice, DiffStyle, Format, RenderOptions, Reporter, Theme, error_text, prompt, system_clock};
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::pipeline::until_stopped;
use crate::run::signals;
use crate::surroundings::{Surroundings, reason};

/// A run under way.
pub struct Run {
    /// Where events go.
    pub events: Events,
    /// Clock, ids, host.
    pub surroundings: Surroundings,
    /// Set by the first signal.
    pub stop: watch::Receiver<Stop>,
    /// Its id.
    pub id: String,
    format: Format,
    reporter: Reporter,
    started: Instant,
    /// How long the user was asked; no time of the run's.
    asked: Mutex<Duration>,
    cluster: Option<Arc<dyn Cluster>>,
    /// What standard output holds at the end, where the run is for a document.
    document: Mutex<Option<Document>>,
}

impl Run {
    /// Starts a run whose data is a report at its end: nothing else goes to standard output.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start_for_report(global: &GlobalArgs) -> std::io::Result<Self> {
        Self::start_as(global, DiffStyle::None, Format::Plain, (Box::new(std::io::sink()), false))
    }

    /// Starts a run that people read, or, where one of its reports goes to standard output, a run for that one
    /// document: people then read on standard error.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(global: &GlobalArgs, diff: DiffStyle, preflight: &PreflightArgs) -> std::io::Result<Self> {
        let format = format(global);
        // Events are a document of their own; a report beside them is refused with the other arguments.
        if format != Format::Json && preflight.reports_to_standard_output() {
            let errors = std::io::stderr();
            let is_terminal = errors.is_terminal();
            return Self::start_as(global, diff, format, (Box::new(errors), is_terminal));
        }
        let output = std::io::stdout();
        let is_terminal = output.is_terminal();
        Self::start_as(global, diff, format, (Box::new(output), is_terminal))
    }

    fn start_as(
        global: &GlobalArgs,
        diff: DiffStyle,
        format: Format,
        (data, data_is_terminal): (Box<dyn std::io::Write + Send>, bool),
    ) -> std::io::Result<Self> {
        let options = RenderOptions {
            theme: theme(global, std::io::stderr().is_terminal()),
            data_theme: theme(global, data_is_terminal),
            verbose: global.verbose > 0,
            diff,
            size: None,
        };
        let (events, receiver) = Events::channel();
        let reporter = Reporter::start(format, options, receiver, data, Box::new(std::io::stderr()), system_clock())?;
        let surroundings = Surroundings::real();
        Ok(Self {
            id: surroundings.new_run(),
            events,
            surroundings,
            stop: signals::listen(),
            format,
            reporter,
            started: Instant::now(),
            asked: Mutex::default(),
            cluster: None,
            document: Mutex::default(),
        })
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
        self.reporter.settle(&self.events);
    }

    /// Returns when everything that was sent is on its stream, before something else is written there.
    pub fn settle(&self) {
        self.reporter.settle(&self.events);
    }

    /// Takes what standard output is to hold at the end, instead of what was taken before.
    pub fn set_document(&self, document: Document) {
        *self.document.lock().unwrap_or_else(PoisonError::into_inner) = Some(document);
    }

    /// Asks the user; yes where `--yes` is given.
    ///
    /// # Errors
    /// No; or nobody can be asked.
    pub async fn confirm(&self, global: &GlobalArgs, question: &str) -> Result<(), CommandError> {
        if global.yes {
            return Ok(());
        }
        let asked = self.format != Format::Json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !asked {
            return Err(CommandError::usage_with_hint(
                "the change is not confirmed, and nobody can be asked without a terminal",
                "give --yes to go on without a question",
            ));
        }
        self.reporter.settle(&self.events);
        let asked_at = Instant::now();
        let question = question.to_owned();
        // On a thread of its own: a signal ends the run, while nothing ends the wait for a line.
        let asking = tokio::task::spawn_blocking(move || {
            prompt::confirm(&question, &mut std::io::stdin().lock(), &mut std::io::stderr())
        });
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
                prompt::leave(&mut std::io::stderr());
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
        let document = self.document.into_inner().unwrap_or_else(PoisonError::into_inner);
        let written = self.reporter.join().and_then(|()| {
            let mut output = Output::standard();
            document.iter().for_each(|document| document.print(&mut output));
            output.finish()
        });
        let Err(error) = written else { return code };
        let failed = not_written(&error);
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

/// Runs a command's work over a run, and ends it whichever way the work went.
pub async fn complete(
    global: &GlobalArgs,
    started: std::io::Result<Run>,
    work: impl AsyncFnOnce(&mut Run) -> Result<End, CommandError>,
) -> ExitCode {
    match started {
        Err(error) => fail(global, &CommandError::usage(error.to_string())),
        Ok(mut run) => {
            let end = work(&mut run).await.unwrap_or_else(|error| End::error(&error));
            run.finish(end)
        }
    }
}

/// The output format: the flag, or what suits the terminal.
pub fn format(global: &GlobalArgs) -> Format {
    let term = std::env::var("TERM").ok();
    let is_terminal = std::io::stderr().is_terminal();
    match global.output_format() {
        Some(OutputFormat::Tty) => Format::tty_where_possible(is_terminal, term.as_deref()),
        Some(OutputFormat::Plain) => Format::Plain,
        Some(OutputFormat::Json) => Format::Json,
        None => Format::detect(is_terminal, std::env::var("CI").ok().as_deref(), term.as_deref()),
    }
}

/// Colours and glyphs for a stream.
pub fn theme(global: &GlobalArgs, is_terminal: bool) -> Theme {
    Theme::detect(global.color, is_terminal, &|name| std::env::var(name).ok())
}

/// Prints what a command without events came to. An error that is no [`CommandError`] is about the command itself.
pub fn simple(global: &GlobalArgs, result: anyhow::Result<String>) -> ExitCode {
    match result {
        Err(error) => match error.downcast_ref::<CommandError>() {
            Some(known) => fail(global, known),
            None => fail(global, &CommandError::usage(format!("{error:#}"))),
        },
        Ok(text) => {
            let mut output = Output::standard();
            output.data(&text);
            output.finish().map_or_else(|error| not_written(&error), |()| ExitCode::Success)
        }
    }
}

/// Says that data could not be written, such as to a full disk.
fn not_written(error: &std::io::Error) -> ExitCode {
    let message = format!("standard output could not be written: {}", reason(error));
    Output::standard().progress(&error_text::error_text(&message, &[], Theme::plain()));
    ExitCode::Usage
}

/// Prints an error where there is no run to end.
pub fn fail(global: &GlobalArgs, error: &CommandError) -> ExitCode {
    let mut output = Output::standard();
    output.progress(&error_text::input_errors_text(&error.errors, theme(global, std::io::stderr().is_terminal())));
    error.code
}

/// Prints what the argument parser says: help, or an error. A program that reads events gets their last one.
pub fn not_parsed(error: clap::Error, arguments: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        // Nobody is left to tell where the message itself cannot be written.
        let _ = error.print();
        return ExitCode::Success;
    }
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let escaped: Vec<String> = arguments
        .iter()
        .map(|argument| without_commands(&terminal_safe(&shown_input(argument))).into_owned())
        .collect();
    // The parser quotes arguments as they are: a terminal would act on what is in them, a log would keep passwords.
    let error = if escaped.iter().eq(&arguments) {
        error
    } else {
        super::command().try_get_matches_from(&escaped).err().unwrap_or(error)
    };
    let _ = error.print();
    if let Some(hint) = meant_elsewhere(&arguments) {
        let theme = Theme::detect(ColorChoice::Auto, std::io::stderr().is_terminal(), &|name| std::env::var(name).ok());
        Output::standard().progress(&error_text::hints_text(&[hint.to_owned()], theme));
    }
    if wants_events(&arguments) {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let end = End::error(&CommandError::usage(message.strip_prefix("error: ").unwrap_or(message)));
        let output = Output::new(Box::new(std::io::stdout()), Box::new(std::io::sink()));
        let mut renderer = renderer(Format::Json, RenderOptions::default(), output);
        renderer.event(&end.event(0, Duration::ZERO), system_clock()());
        let _ = renderer.finish();
    }
    ExitCode::Usage
}

/// `diff` with the flags that compare releases is published elsewhere; here it compares an app with its input.
fn meant_elsewhere(arguments: &[String]) -> Option<&'static str> {
    const RELEASES: [&str; 6] = ["--old", "--new", "--from", "--to", "--source", "--target"];
    let command = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'))?;
    let names = |argument: &String| RELEASES.contains(&argument.split('=').next().unwrap_or_default());
    (command == "diff" && arguments.iter().any(names))
        .then_some("two releases of an operator are compared by `pushback upgrade diff --from OLD --to NEW`")
}

/// Whether arguments that cannot be parsed ask for events all the same.
fn wants_events(arguments: &[String]) -> bool {
    let has_events = ["apply", "deploy", "delete", "diff"];
    let json = |(index, argument): (usize, &String)| match argument.as_str() {
        "-o" | "--output" => arguments.get(index + 1).is_some_and(|value| value == "json"),
        other => ["-ojson", "-o=json", "--output=json"].contains(&other),
    };
    arguments.iter().any(|argument| has_events.contains(&argument.as_str())) && arguments.iter().enumerate().any(json)
}

/// Logs are for `-v`; the user's interface is the report. The client library's own log is left out:
/// it prints whole bodies where it cannot read them.
pub fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "pushback=info",
        2 => "pushback=debug",
        _ => "pushback=trace,hyper_util=debug",
    };
    let filter = tracing_subscriber::EnvFilter::new(level);
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
