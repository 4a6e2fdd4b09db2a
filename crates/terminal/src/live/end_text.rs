//! The end of a run: errors, unfinished objects with reasons, what was done, the slowest waits, what to do next.

use std::fmt::Write as _;

use console::measure_text_width;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, Event, Millis, RunOutcome, Unfinished, UnfinishedLine};

use super::options::RenderOptions;
use super::progress::Progress;
use crate::error_text::{hints_text, labelled};
use crate::escape::terminal_safe;
use crate::log_text::failed_containers;
use crate::theme::{Role, Theme};
use crate::words::{ObjectColumns, column_width, counts_done, hang, pad, shortened_message, took};

/// Most unfinished objects that are listed; the rest is counted.
const UNFINISHED_ROWS: usize = 20;
/// Widest state and waiting time that others are aligned to.
const STATE_WIDTH: usize = 24;
/// Most causes listed per object.
pub(crate) const REASON_ROWS: usize = 3;

/// The final block for [`Event::RunEnd`], within the columns of the terminal, if any; empty for other events, and if there
/// is nothing to add to the plan.
#[must_use]
pub fn end_text(event: &Event, progress: &Progress, options: &RenderOptions, columns: Option<u16>) -> String {
    let Event::RunEnd { outcome, exit_code, done, error, hints, unfinished, requests, elapsed, .. } = event else {
        return String::new();
    };
    let theme = options.theme;
    let mut text = String::new();
    if !error.is_empty() {
        text += &labelled("error", Role::Bad, error, theme);
    }
    text += &unfinished_text(unfinished, options, columns.map(usize::from));
    let (command, name) = subject(progress);
    let writes = matches!(command, "apply" | "delete");
    if let Some(mut summary) =
        summary(command, (&name, &progress.cluster), (*outcome, *exit_code), done, unfinished, *elapsed)
    {
        // Where the input has to be corrected, the same again would fail again.
        if *exit_code == ExitCode::Partial.code() && !hints.iter().any(|hint| hint.starts_with("correct ")) {
            summary.push_str(" Run again to resume.");
        }
        let role = if *exit_code == 0 { Role::Good } else { Role::Bad };
        text += &painted(&summary, role, theme);
    }
    if writes {
        text += &figures(progress, *requests, options);
    }
    text += &hints_text(hints, theme);
    columns.map_or(text.clone(), |columns| hang(&text, columns))
}

/// The last line about an app of a group; empty for other events, and for an app that the run ends with.
#[must_use]
pub fn app_end_text(event: &Event, progress: &Progress, options: &RenderOptions) -> String {
    let Event::AppEnd { app, outcome, exit_code, done, elapsed, .. } = event else { return String::new() };
    let is_done = [ExitCode::Success, ExitCode::NoChanges, ExitCode::Changes].map(ExitCode::code).contains(exit_code);
    let told = summary(&progress.command, (app, &progress.cluster), (*outcome, *exit_code), done, &[], *elapsed);
    told.filter(|_| is_done).map_or_else(String::new, |summary| painted(&summary, Role::Good, options.theme))
}

fn painted(summary: &str, role: Role, theme: Theme) -> String {
    let (verdict, rest) = summary.split_at(summary.find([' ', ':', '.']).unwrap_or(summary.len()));
    format!("{}{rest}\n", theme.paint(role, verdict))
}

/// The command, and what it is about: the app, or the group.
fn subject(progress: &Progress) -> (&str, String) {
    match &progress.group {
        Some((command, group)) => (command, format!("group {group}")),
        None => (&progress.command, progress.app.clone()),
    }
}

/// The summary sentence; `None` if only the plan was requested and everything went well.
fn summary(
    command: &str,
    (name, cluster): (&str, &str),
    (outcome, exit_code): (RunOutcome, u8),
    done: &Counts,
    unfinished: &[UnfinishedLine],
    elapsed: Millis,
) -> Option<String> {
    let is = |code: ExitCode| exit_code == code.code();
    let elapsed = took(elapsed);
    let done_words = counts_done(done);
    let (app, cluster) = (terminal_safe(name), terminal_safe(cluster));
    let verb = match command {
        "apply" => Some(format!("Applied {app} to {cluster}")),
        "delete" if outcome == RunOutcome::Unchanged => return Some("Nothing was deleted.".to_owned()),
        "delete" if done.deleting > 0 => Some(format!("Requested the deletion of {app} from {cluster}")),
        "delete" => Some(format!("Deleted {app} from {cluster}")),
        _ => None,
    };
    let left = left_words(unfinished);
    if is(ExitCode::Refused) {
        return (outcome == RunOutcome::Refused).then(|| "Refused: nothing was written.".to_owned());
    }
    if is(ExitCode::Stale) {
        return Some("Stale: the plan was not carried out, nothing was written.".to_owned());
    }
    if is(ExitCode::Interrupted) || is(ExitCode::Terminated) {
        return Some(format!("Interrupted after {elapsed}: {done_words}."));
    }
    if is(ExitCode::Defect) {
        return Some(format!("Stopped after {elapsed} by a defect in pushback: {done_words}."));
    }
    let verb = verb?;
    if is(ExitCode::Success) || is(ExitCode::NoChanges) || is(ExitCode::Changes) {
        return Some(format!("{verb} in {elapsed}: {done_words}."));
    }
    if is(ExitCode::TimedOut) && unfinished.is_empty() && done.writes() == 0 {
        return Some("Stopped: nothing was written.".to_owned());
    }
    if is(ExitCode::Failed) || is(ExitCode::TimedOut) {
        return Some(format!("{verb} in {elapsed}, but {left}: {done_words}."));
    }
    if is(ExitCode::Partial) {
        return Some(format!("Unfinished after {elapsed}, {left}: {done_words}."));
    }
    if done.writes() == 0 {
        return Some("Stopped: nothing was written.".to_owned());
    }
    Some(format!("Ended ({}) after {elapsed}: {done_words}.", outcome.as_str()))
}

/// `2 not ready, 1 not applied`, in the order of the list.
fn left_words(unfinished: &[UnfinishedLine]) -> String {
    let mut states: Vec<(Unfinished, usize)> = Vec::new();
    for line in unfinished {
        match states.iter_mut().find(|(state, _)| *state == line.state) {
            Some((_, count)) => *count += 1,
            None => states.push((line.state, 1)),
        }
    }
    if states.is_empty() {
        return "not all is done".to_owned();
    }
    let words: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {}", unfinished_word(*state))).collect();
    words.join(", ")
}

/// State of an object that a run leaves unfinished; the one word for an object that is not ready is `waiting`.
fn unfinished_word(state: Unfinished) -> &'static str {
    if state == Unfinished::NotReady { "waiting" } else { state.as_str() }
}

fn unfinished_text(unfinished: &[UnfinishedLine], options: &RenderOptions, columns: Option<usize>) -> String {
    let theme = options.theme;
    let limit = if options.verbose { usize::MAX } else { UNFINISHED_ROWS };
    let shown = &unfinished[..unfinished.len().min(limit)];
    let waited = |line: &UnfinishedLine| line.elapsed.map(took).unwrap_or_default();
    let states = column_width(shown.iter().map(|line| unfinished_word(line.state)), STATE_WIDTH);
    let times: Vec<String> = shown.iter().map(waited).collect();
    let times_width = column_width(times.iter().map(String::as_str), STATE_WIDTH);
    // The waiting time column, if any object was waited for.
    let time_columns = if times_width > 0 { times_width + 2 } else { 0 };
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(2 + states + 2 + time_columns));
    let objects = ObjectColumns::new(shown.iter().map(|line| &line.object)).within(room);
    let mut text = String::new();
    for (line, waited) in shown.iter().zip(&times) {
        let cells = objects.cells(&line.object, room, theme.ellipsis());
        let state = theme.paint(Role::Bad, &pad(unfinished_word(line.state), states));
        let time = if times_width > 0 { format!("  {}", pad(waited, times_width)) } else { String::new() };
        let row = format!("  {state}  {cells}{time}");
        let message = terminal_safe(&shortened_message(&line.message)).into_owned();
        let fits = |columns: usize| measure_text_width(&row) + 2 + measure_text_width(&message) <= columns;
        if message.is_empty() || columns.is_none_or(fits) {
            let _ = writeln!(text, "{}", format!("{row}  {message}").trim_end());
        } else {
            let _ = writeln!(text, "{}", row.trim_end());
            text += &reasons_text(&[message], theme);
        }
        text += &reasons_text(&line.reasons, theme);
        text += &failed_containers(&line.containers, "      ");
    }
    if unfinished.len() > shown.len() {
        let more = format!("{} and {} more", theme.ellipsis(), unfinished.len() - shown.len());
        let _ = writeln!(text, "  {}", theme.paint(Role::Quiet, &more));
    }
    text
}

/// The first few causes, below a row.
#[must_use]
pub fn reasons_text(reasons: &[String], theme: Theme) -> String {
    let mut text = String::new();
    let shown = if reasons.len() <= REASON_ROWS + 1 { reasons.len() } else { REASON_ROWS };
    for reason in &reasons[..shown] {
        let _ = writeln!(text, "      {} {}", theme.branch(), terminal_safe(&shortened_message(reason)));
    }
    if shown < reasons.len() {
        let _ = writeln!(text, "      {} {} and {} more", theme.branch(), theme.ellipsis(), reasons.len() - shown);
    }
    text
}

fn figures(progress: &Progress, requests: u64, options: &RenderOptions) -> String {
    let theme = options.theme;
    let mut rows = Vec::new();
    let slowest: Vec<String> = progress
        .slowest
        .iter()
        .filter(|(elapsed, _)| elapsed.0 >= 1_000)
        .map(|(elapsed, object)| format!("{} {}", terminal_safe(&object.to_string()), took(*elapsed)))
        .collect();
    if !slowest.is_empty() {
        rows.push(format!("slowest   {}", slowest.join(", ")));
    }
    if progress.warnings > 0 {
        rows.push(format!("warnings  {}", progress.warnings));
    }
    if requests > 0 && options.verbose {
        rows.push(format!("requests  {requests}"));
    }
    rows.iter().map(|row| format!("  {}\n", theme.paint(Role::Quiet, row))).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_events::WaitOutcome;

    use super::*;
    use crate::fixture::{at, object, run_end, run_start, wait_done};

    fn ended(command: &str, event: &Event) -> String {
        let mut progress = Progress::default();
        progress.note(&run_start(command), at(0));
        progress.note(&wait_done(&object("apps", "Deployment", "web"), WaitOutcome::Ok, 41_200), at(50));
        end_text(
            event,
            &progress,
            &RenderOptions { theme: Theme { color: false, unicode: true }, ..Default::default() },
            None,
        )
    }

    fn unfinished(state: Unfinished, kind: &str, name: &str, message: &str, reasons: &[&str]) -> UnfinishedLine {
        UnfinishedLine {
            object: object("apps", kind, name),
            state,
            message: message.to_owned(),
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            containers: Vec::new(),
            elapsed: (state == Unfinished::NotReady).then_some(Millis(300_000)),
        }
    }

    #[test]
    fn success_says_what_was_done_and_what_took_long() {
        assert_snapshot!(ended("apply", &run_end(RunOutcome::Succeeded, ExitCode::Success, "", Vec::new())), @"
        Applied shop to kind-prod in 1m 12s: 1 created, 2 updated, 1 deleted, 18 unchanged.
          slowest   Deployment shop/web 41.2s
        hint: do the next thing
        ");
    }

    #[test]
    fn a_timeout_names_what_is_not_ready_and_why() {
        let left = vec![
            unfinished(
                Unfinished::NotReady,
                "Deployment",
                "web",
                "2/4 ready",
                &["pod web-a: CrashLoopBackOff (exit 1)", "pod web-b: pending"],
            ),
            unfinished(Unfinished::NotApplied, "Service", "web-old", "waits for Deployment shop/web", &[]),
        ];
        let end = run_end(RunOutcome::Failed, ExitCode::TimedOut, "1 object did not become ready within 5m", left);
        assert_snapshot!(ended("apply", &end), @"
        error: 1 object did not become ready within 5m
          waiting      Deployment  shop/web      5m 0s  2/4 ready
              └ pod web-a: CrashLoopBackOff (exit 1)
              └ pod web-b: pending
          not applied  Service     shop/web-old         waits for Deployment shop/web
        Applied shop to kind-prod in 1m 12s, but 1 waiting, 1 not applied: 1 created, 2 updated, 1 deleted, 18 unchanged.
          slowest   Deployment shop/web 41.2s
        hint: do the next thing
        ");
    }

    #[test]
    fn every_exit_code_that_is_no_success_says_so_for_a_run_that_writes() {
        let end = |code| ended("apply", &run_end(RunOutcome::Failed, code, "", Vec::new()));
        let refused = ended("apply", &run_end(RunOutcome::Refused, ExitCode::Refused, "", Vec::new()));
        assert_snapshot!(refused.lines().next().unwrap_or_default(), @"Refused: nothing was written.");
        assert_snapshot!(end(ExitCode::Interrupted).lines().next().unwrap_or_default(), @"Interrupted after 1m 12s: 1 created, 2 updated, 1 deleted, 18 unchanged.");
        assert_snapshot!(end(ExitCode::Partial).lines().next().unwrap_or_default(), @"Unfinished after 1m 12s, not all is done: 1 created, 2 updated, 1 deleted, 18 unchanged. Run again to resume.");
        assert_snapshot!(end(ExitCode::Defect).lines().next().unwrap_or_default(), @"Stopped after 1m 12s by a defect in pushback: 1 created, 2 updated, 1 deleted, 18 unchanged.");
    }

    #[test]
    fn a_plan_that_went_well_needs_no_more_words() {
        assert_eq!(
            ended("diff", &run_end(RunOutcome::Succeeded, ExitCode::Success, "", Vec::new())),
            "hint: do the next thing\n"
        );
    }

    #[test]
    fn a_long_list_of_unfinished_objects_is_counted() {
        let left =
            (0..25).map(|index| unfinished(Unfinished::NotApplied, "Pod", &format!("p{index}"), "", &[])).collect();
        let text = ended("apply", &run_end(RunOutcome::Failed, ExitCode::Partial, "", left));
        assert!(text.contains("shop/p19") && !text.contains("shop/p20"), "{text}");
        assert!(text.contains("  … and 5 more\n"), "{text}");
    }
}
