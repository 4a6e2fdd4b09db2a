//! `check --facts`: the verdict of a run once more, from what its rules judged. Reads no cluster and no input.

use std::path::{Path, PathBuf};

use pushback_deploy::check::facts_file::{self, FactsError, FactsFile};
use pushback_deploy::check::report::CheckReport;
use pushback_events::exit::ExitCode;
use pushback_events::{Event, RuleLine};
use pushback_manifest::InputError;
use pushback_objects::Position;
use pushback_preflight::RunReport;
use pushback_system::bounded_file::{DOCUMENT, read_text};

use super::error::CommandError;
use super::options::{Command, PreflightOptions};
use super::outcome::End;
use super::policy;
use super::running::Run;
use super::saved::stale;

const AGAIN: &str = "--facts-out writes it again";

/// A verdict to be repeated.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The facts.
    pub path: PathBuf,
    /// Files of the policy, for the rules that it brings.
    pub config: Vec<String>,
    /// Who gets the reports.
    pub preflight: PreflightOptions,
}

/// A repeated verdict.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The verdict.
    pub verdict: RunReport,
    /// The report on it.
    pub report: CheckReport,
    /// Whether it is the report of the run.
    pub is_the_same: bool,
}

/// Reads a facts file.
///
/// # Errors
/// It cannot be read, or holds no facts; it was edited, or another version has written it.
pub fn read(path: &Path) -> Result<FactsFile, CommandError> {
    let failed = |text: String| CommandError::usage(format!("{}: {text}", path.display()));
    let text = read_text(path, DOCUMENT).map_err(failed)?;
    parse(path, &text)
}

/// Reads the text of a facts file.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<FactsFile, CommandError> {
    let at = |line: usize, column: usize| Position {
        file: path.display().to_string(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    };
    let file = FactsFile::parse(text).map_err(|error| {
        let (code, position, hint) = match &error {
            FactsError::NotFacts => {
                (ExitCode::Usage, at(0, 0), "`--facts-out FILE` of check, diff, plan and apply writes one")
            }
            FactsError::Malformed { line, column, .. } => (ExitCode::Usage, at(*line, *column), AGAIN),
            FactsError::Edited { line, .. } => (ExitCode::Stale, at(*line, usize::from(*line > 0)), AGAIN),
            FactsError::Newer(_) => (ExitCode::Stale, at(0, 0), "use the version that has written it"),
        };
        let error = InputError { message: error.to_string(), position, hints: vec![hint.to_owned()] };
        CommandError { code, errors: vec![error], failure: None }
    })?;
    Ok(file)
}

/// Judges the facts of a file. `config` are the files of its policy, for the rules that it brings.
///
/// # Errors
/// Another version has written it; a rule is not known, or its settings are not valid.
pub fn judge(path: &Path, file: &FactsFile, config: &[String]) -> Result<Replayed, CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    if file.tool.version != version {
        let text = format!("{}: written by pushback {}, and this is {version}", path.display(), file.tool.version);
        return Err(stale(vec![text], "use that version: another one may judge otherwise"));
    }
    let custom = policy::custom_rules(config)?;
    let verdict = file.judged_by.replay(file.facts(), &custom).map_err(|errors| {
        let hint = "give the files of its policy with --config";
        let error = |message| InputError {
            message,
            position: Position { file: path.display().to_string(), ..Position::default() },
            hints: vec![hint.to_owned()],
        };
        CommandError { code: ExitCode::Usage, errors: errors.into_iter().map(error).collect(), failure: None }
    })?;
    let report = file.report.clone().report(&verdict, &file.judged_by.today);
    let is_the_same = facts_file::digest_of(&report) == file.named.report;
    Ok(Replayed { verdict, report, is_the_same })
}

impl Replay {
    /// Judges, shows the verdict, and writes the reports.
    ///
    /// # Errors
    /// As [`read`] and [`judge`]; a report cannot be written.
    pub fn run(self, run: &mut Run) -> Result<End, CommandError> {
        let Self { path, config, preflight } = self;
        let file = read(&path)?;
        let started = run.elapsed();
        if let Some(reports) = &preflight.reports {
            reports.prepare()?;
        }
        let Replayed { verdict, report, is_the_same } = judge(&path, &file, &config)?;
        run.events.send(Event::RunStart {
            command: Command::Check.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            app: file.report.app.clone(),
            namespace: String::new(),
            cluster: file.report.cluster.clone(),
            run: run.id.clone(),
        });
        for finding in &verdict.findings {
            run.events.send(Event::Finding { finding: Box::new(finding.clone()), excerpt: None });
        }
        run.events.send(Event::Preflight {
            outcome: verdict.outcome,
            rules: verdict.rules.iter().map(RuleLine::from).collect(),
            left_out: verdict.left_out.clone(),
            broad_waivers: verdict.broad_waivers.clone(),
            elapsed: run.elapsed().saturating_sub(started).into(),
        });
        if !is_the_same {
            let text = "the run itself came to another verdict: a rule has judged values that are masked in the facts, or its \
                        policy is another now";
            run.warn("other-verdict", text);
        }
        if let Some(reports) = &preflight.reports {
            reports.take(&report)?;
        }
        Ok(End::of_check(&verdict))
    }
}
