//! The figures as a table, each beside its target.

use std::fmt::Write as _;
use std::time::Duration;

use super::app::Run;

/// What a run may cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Target {
    pub(crate) requests: Option<u64>,
    /// Times the raw limit.
    pub(crate) times_raw: Option<f64>,
    /// On top of it.
    pub(crate) plus: Duration,
    pub(crate) time: Option<Duration>,
    pub(crate) mebibytes: Option<u64>,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) target: Target,
    pub(crate) run: Run,
    pub(crate) raw: Option<Duration>,
}

/// The rows as Markdown.
pub(crate) fn runs(rows: &[Row]) -> String {
    let mut text = String::from(
        "| what | requests | time | raw | × raw | CPU | peak memory |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let usage = &row.run.usage;
        let raw = row.raw.map(seconds).unwrap_or_default();
        let times = row.raw.map(|raw| times(usage.wall, raw, row.target.plus));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {raw} | {} | {} | {} |",
            row.what,
            beside(
                &row.run.requests.to_string(),
                row.target.requests.map(|most| (row.run.requests <= most, most.to_string()))
            ),
            beside(&seconds(usage.wall), row.target.time.map(|most| (usage.wall <= most, seconds(most)))),
            times.map_or_else(String::new, |times| beside(
                &format!("{times:.2}"),
                row.target.times_raw.map(|most| (times <= most, format!("{most}")))
            )),
            seconds(usage.cpu),
            beside(
                &format!("{} MiB", usage.peak >> 20),
                row.target.mebibytes.map(|most| (usage.peak >> 20 <= most, most.to_string()))
            ),
        );
    }
    text
}

/// Single figures with their targets as Markdown.
pub(crate) fn figures(rows: &[(String, String, bool, String)]) -> String {
    let mut text = String::from("| what | figure | target |\n|---|---:|---:|\n");
    for (what, figure, met, target) in rows {
        let missed = if *met { "" } else { " **missed**" };
        let _ = writeln!(text, "| {what} | {figure}{missed} | {target} |");
    }
    text
}

/// A figure with its target.
pub(crate) fn beside(figure: &str, target: Option<(bool, String)>) -> String {
    match target {
        None => figure.to_owned(),
        Some((true, most)) => format!("{figure} (≤ {most})"),
        Some((false, most)) => format!("**{figure}** (≤ {most})"),
    }
}

fn times(wall: Duration, raw: Duration, plus: Duration) -> f64 {
    wall.saturating_sub(plus).as_secs_f64() / raw.as_secs_f64()
}

/// Seconds, or milliseconds where that is less than a tenth of one.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.1 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
