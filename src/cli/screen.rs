//! Where a run is shown: the reporter, the prompt, and the report that standard output may hold; also output of
//! commands without a run.

use std::io::{self, IsTerminal};
use std::sync::PoisonError;

use pushback_events::Events;
use pushback_events::exit::ExitCode;
use pushback_manifest::InputWarning;
use pushback_terminal::live::options::WIDTH;
use pushback_terminal::live::prompt;
use pushback_terminal::live::renderer::Renderer;
use pushback_terminal::output::Output;
use pushback_terminal::words::hang;
use pushback_terminal::{DiffStyle, Format, RenderOptions, Reporter, Theme, error_text, renderer, system_clock};

use super::arguments::{GlobalArgs, OutputFormat};
use super::reports::HeldDocument;
use crate::run::Run;
use crate::run::answer::Notes;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::running::{Consent, Terminal};

/// Fewest columns that output is laid out for.
const NARROWEST: u16 = 20;

/// The terminal or log that shows a run.
#[derive(Debug)]
struct Screen {
    reporter: Reporter,
    /// The format; `None` where a presenter shows the run.
    format: Option<Format>,
    consent: Consent,
    document: HeldDocument,
}

impl Terminal for Screen {
    fn settle(&self, events: &Events) {
        self.reporter.settle(events);
    }

    fn consent(&self) -> Consent {
        self.consent
    }

    fn leave_question(&self) {
        // A presenter decides about blank lines itself.
        if self.format.is_some() {
            prompt::leave(&mut io::stderr());
        }
    }

    fn finish(self: Box<Self>) -> Result<(), ExitCode> {
        let Self { reporter, document, .. } = *self;
        let document = document.lock().unwrap_or_else(PoisonError::into_inner).take();
        let written = reporter.join().and_then(|()| {
            let mut output = Output::standard();
            document.iter().for_each(|document| document.print(&mut output));
            output.finish()
        });
        written.map_err(|error| not_written(&error))
    }
}

fn consent(global: &GlobalArgs, format: Option<Format>) -> Consent {
    match (&global.behaviour.presenter, format) {
        _ if global.yes => Consent::Given,
        (Some(presenter), _) => Consent::Ask(presenter.confirm()),
        (None, Some(Format::Json)) => Consent::Nobody,
        (None, _) => Consent::Ask(|question| {
            let input = io::stdin();
            let is_terminal = input.is_terminal();
            prompt::confirm(question, columns(), &mut input.lock(), is_terminal, &mut io::stderr())
        }),
    }
}

/// Asks in a command without a run.
///
/// # Errors
/// The user declined, or nobody can be asked.
pub fn confirm(global: &GlobalArgs, question: &str) -> Result<(), CommandError> {
    consent(global, format(global)).obtain(question)
}

/// Starts a run whose result is a report: nothing else goes to standard output.
///
/// # Errors
/// No thread could be started.
pub fn start_for_report(global: &GlobalArgs, document: HeldDocument) -> io::Result<Run> {
    start_as(global, DiffStyle::None, Some(Format::Plain), (Box::new(io::sink()), false), document)
}

/// Starts a run for people on standard output or, if one of its reports goes there, on standard error.
///
/// # Errors
/// No thread could be started.
pub fn start(
    global: &GlobalArgs,
    diff: DiffStyle,
    reports_to_standard_output: bool,
    document: HeldDocument,
) -> io::Result<Run> {
    let format = format(global);
    // Events are a document of their own; a report next to them was refused with the arguments.
    if format != Some(Format::Json) && reports_to_standard_output {
        let errors = io::stderr();
        let is_terminal = errors.is_terminal();
        return start_as(global, diff, format, (Box::new(errors), is_terminal), document);
    }
    let output = io::stdout();
    let is_terminal = output.is_terminal();
    start_as(global, diff, format, (Box::new(output), is_terminal), document)
}

fn start_as(
    global: &GlobalArgs,
    diff: DiffStyle,
    format: Option<Format>,
    (data, data_is_terminal): (Box<dyn io::Write + Send>, bool),
    document: HeldDocument,
) -> io::Result<Run> {
    let options = RenderOptions {
        theme: theme(global, io::stderr().is_terminal()),
        data_theme: theme(global, data_is_terminal),
        verbose: global.verbose > 0,
        diff,
        size: None,
        data_columns: data_is_terminal.then(columns).or_else(columns_set),
    };
    let (events, receiver) = Events::channel();
    let output = Output::new(data, Box::new(io::stderr()));
    let renderer: Box<dyn Renderer> = match &global.behaviour.presenter {
        Some(presenter) if format.is_none() => presenter.renderer(output),
        _ => renderer(format.unwrap_or(Format::Plain), options, output),
    };
    let reporter = Reporter::start(renderer, receiver, system_clock())?;
    Ok(Run::start(events, Box::new(Screen { reporter, format, consent: consent(global, format), document })))
}

/// Columns of the terminal that standard output is, or those of `COLUMNS`, for commands without a run; `None` without
/// either.
pub fn data_columns() -> Option<u16> {
    io::stdout().is_terminal().then(columns).or_else(columns_set)
}

/// Columns of output to a file or a pipe, as `COLUMNS` has them.
fn columns_set() -> Option<u16> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns >= NARROWEST)
}

/// Colours and glyphs of standard output, for commands without a run.
pub fn data_theme(global: &GlobalArgs) -> Theme {
    theme(global, io::stdout().is_terminal())
}

/// Columns of the terminal, whichever stream leads to it.
fn columns() -> u16 {
    let size = console::Term::stdout().size_checked().or_else(|| console::Term::stderr().size_checked());
    // A terminal that was given no size has 0 columns.
    size.map(|(_, columns)| columns).filter(|columns| *columns >= NARROWEST).unwrap_or(WIDTH)
}

/// Runs a command within a run, and ends the run whatever the result.
pub async fn complete(
    global: &GlobalArgs,
    started: io::Result<Run>,
    work: impl AsyncFnOnce(&mut Run) -> Result<End, CommandError>,
) -> ExitCode {
    match started {
        Err(error) => fail(global, &CommandError::usage(error.to_string())),
        Ok(mut run) => {
            // Nothing is written by a run that cannot be shown.
            let end = match global.behaviour.presenter.as_ref().map_or(Ok(()), |presenter| presenter.check()) {
                Err(error) => Err(error),
                Ok(()) => work(&mut run).await,
            };
            run.finish(end.unwrap_or_else(|error| End::error(&error)))
        }
    }
}

/// Ends a run that has come to nothing: its arguments are wrong.
pub async fn end(global: &GlobalArgs, diff: DiffStyle, error: CommandError) -> ExitCode {
    complete(global, start(global, diff, false, HeldDocument::default()), async |_| Err(error)).await
}

/// The output format: the flag, or the default for the terminal; `None` where a presenter shows runs.
fn format(global: &GlobalArgs) -> Option<Format> {
    if global.behaviour.presenter.is_some() {
        return None;
    }
    let term = std::env::var("TERM").ok();
    let is_terminal = io::stderr().is_terminal();
    Some(match global.output_format() {
        Some(OutputFormat::Tty) => Format::tty_where_possible(is_terminal, term.as_deref()),
        Some(OutputFormat::Plain) => Format::Plain,
        Some(OutputFormat::Json) => Format::Json,
        // Lines of the log would break rows that move.
        None if global.verbose > 0 => Format::Plain,
        None => Format::detect(is_terminal, std::env::var("CI").ok().as_deref(), term.as_deref()),
    })
}

/// Prints messages of a command without a run to standard error.
#[derive(Debug)]
pub struct ProgressNotes<'a>(pub &'a GlobalArgs);

impl Notes for ProgressNotes<'_> {
    fn note(&self, text: &str) {
        Output::standard().progress(&error_text::note_text(text, theme(self.0, io::stderr().is_terminal())));
    }

    fn warn(&self, warnings: &[InputWarning]) {
        let theme = theme(self.0, io::stderr().is_terminal());
        let mut output = Output::standard();
        for warning in warnings {
            output.progress(&error_text::warning_text(&warning.message, Some(&warning.position), theme));
        }
    }
}

/// Colours and glyphs for a stream.
fn theme(global: &GlobalArgs, is_terminal: bool) -> Theme {
    Theme::detect(global.color, is_terminal, &|name| std::env::var(name).ok())
}

/// Writes data to standard output.
///
/// # Errors
/// Standard output cannot be written, such as to a full disk; a closed pipe is not an error.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut output = Output::standard();
    output.data(text);
    output.finish().map_err(|error| CommandError::standard_output(&error))
}

/// Prints the result of a command without events.
pub fn simple(global: &GlobalArgs, result: Result<String, CommandError>) -> ExitCode {
    let printed = result.and_then(|text| print(&text));
    printed.map_or_else(|error| fail(global, &error), |()| ExitCode::Success)
}

/// Reports that standard output could not be written.
pub(crate) fn not_written(error: &io::Error) -> ExitCode {
    let error = CommandError::standard_output(error);
    Output::standard().progress(&error_text::error_text(&error.message(), &[], Theme::plain()));
    error.code
}

/// Prints an error outside a run.
pub fn fail(global: &GlobalArgs, error: &CommandError) -> ExitCode {
    if let Some(presenter) = &global.behaviour.presenter {
        return presenter.error(error).map_or_else(|error| not_written(&error), |()| error.code);
    }
    let mut output = Output::standard();
    let text = error_text::input_errors_text(&error.errors, theme(global, io::stderr().is_terminal()));
    output.progress(&if io::stderr().is_terminal() { hang(&text, columns()) } else { text });
    error.code
}

/// Starts logging for `-v`: the writes, then every request, then connections. The client library's own log is excluded: it
/// prints whole bodies that it cannot parse.
pub fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "pushback=info",
        2 => "pushback=debug",
        _ => "pushback=trace,hyper_util=debug",
    };
    let filter = tracing_subscriber::EnvFilter::new(level);
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(io::stderr).try_init();
}
