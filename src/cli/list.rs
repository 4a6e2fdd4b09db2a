//! `pushback list`: the apps of a namespace.

use clap::Args;
use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use super::arguments::{GlobalArgs, NamespaceArgs, OutputFormat};
use super::screen::note;
use crate::app::identity::RECORD_LABEL;
use crate::app::record::config_map_kind;
use crate::cluster::{ListQuery, list_all};
use crate::report::escape::terminal_safe_json;
use crate::report::table::Table;
use crate::run::connect::reach;
use crate::run::error::CommandError;

/// List apps.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback list
  pushback list -A -o json

Exit codes: 0 listed, 1 wrong input, 13 no cluster.")]
pub struct ListArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Apps of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

/// Runs the command.
///
/// # Errors
/// The cluster's.
pub async fn run(global: &GlobalArgs, arguments: ListArgs) -> anyhow::Result<String> {
    let (cluster, _, namespaces) =
        reach(&global.cluster()?, &arguments.namespace.resolve(), &|text| note(global, text)).await?;
    let namespace = (!arguments.all_namespaces).then_some(namespaces.record.as_str());
    let query = ListQuery::new(config_map_kind(), namespace, RECORD_LABEL);
    let page = list_all(&*cluster, &query).await.map_err(CommandError::from)?;
    let mut apps: Vec<Value> = page.items.iter().map(|record| app(record)).collect();
    apps.sort_by_key(|app| (app.text("/namespace").to_owned(), app.text("/name").to_owned()));
    if global.output_format() == Some(OutputFormat::Json) {
        let text = serde_json::to_string_pretty(&json!({"schemaVersion": 1, "apps": apps}))?;
        return Ok(terminal_safe_json(&text) + "\n");
    }
    let mut table = Table::new(&["NAMESPACE", "NAME", "NAMESPACES", "LAST CHANGE", "AT"]);
    for app in &apps {
        let spaces = app
            .get("namespaces")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","));
        table.row(&[
            app.text("/namespace"),
            app.text("/name"),
            &spaces.unwrap_or_default(),
            app.text("/state"),
            &to_the_second(app.text("/finishedAt")),
        ]);
    }
    Ok(if apps.is_empty() { "no apps\n".to_owned() } else { table.text() })
}

/// `2026-11-21T10:23:10Z`; a time that cannot be read stays as it is.
fn to_the_second(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => time.to_owned(),
    }
}

/// What a run is at, or was killed at, `applying` or `deleting`: what the record says of its last change is of the one
/// before. kapp knows nothing of it, and where it has written since, neither do we.
fn phase(record: &Value, spec: &Value) -> String {
    let own: Value = serde_json::from_str(record.text("/data/pushback")).unwrap_or(Value::Null);
    let is_known = own.text("/lastChangeName") == spec.text("/lastChangeName");
    let phase = own.text("/phase");
    if is_known && matches!(phase, "applying" | "deleting") { phase.to_owned() } else { String::new() }
}

fn app(record: &Value) -> Value {
    let spec: Value = serde_json::from_str(record.text("/data/spec")).unwrap_or(Value::Null);
    let successful = spec.pointer("/lastChange/successful").filter(|_| phase(record, &spec).is_empty());
    let state = match (phase(record, &spec).as_str(), successful.and_then(Value::as_bool)) {
        // A record is deleted last: what it names has been asked to go.
        ("deleting", _) => "deleting",
        (_, Some(true)) => "succeeded",
        (_, Some(false)) => "failed",
        (_, None) => "unfinished",
    };
    json!({
        "namespace": record.namespace(),
        "name": record.name().strip_suffix(".apps.k14s.io").unwrap_or(record.name()),
        "label": spec.text("/labelValue"),
        "namespaces": spec.pointer("/lastChange/namespaces"),
        "state": state,
        "successful": successful,
        "startedAt": spec.pointer("/lastChange/startedAt"),
        "finishedAt": spec.pointer("/lastChange/finishedAt"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_not_come_to_its_end_is_no_success() {
        let record = |phase: &str, change: &str| {
            let spec = json!({"lastChangeName": "app-change-1", "lastChange": {"successful": true}});
            let own = json!({"phase": phase, "lastChangeName": change});
            json!({"metadata": {"name": "app"}, "data": {"spec": spec.to_string(), "pushback": own.to_string()}})
        };
        for phase in ["applying", "deleting"] {
            assert_eq!(app(&record(phase, "app-change-1"))["successful"], Value::Null, "{phase}");
        }
        assert_eq!(app(&record("done", "app-change-1"))["successful"], true);
        // kapp has been here since.
        assert_eq!(app(&record("applying", "app-change-0"))["successful"], true);
    }
}
