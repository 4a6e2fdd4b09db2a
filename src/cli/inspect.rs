//! `pushback inspect`: an app's objects, as a tree, with how they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pushback_preflight::{ObjectExt, ObjectRef};
use serde_json::{Value, json};

use super::arguments::{AppArgs, GlobalArgs, OutputFormat};
use super::screen::note;
use crate::app::record::{Observed, observe};
use crate::apply::readiness::{self, State};
use crate::plan::live::{self, Live};
use crate::report::escape::terminal_safe_json;
use crate::report::table::Table;
use crate::run::connect::reach;
use crate::run::error::CommandError;
use crate::run::unknown_app;

/// Show an app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback inspect -a shop
  pushback inspect -a shop --tree --status

Exit codes: 0 shown, 1 no such app or wrong input, 13 no cluster.")]
pub struct InspectArgs {
    #[command(flatten)]
    app: AppArgs,
    /// Show what the objects have made too: ReplicaSets, Pods
    #[arg(long, short = 't')]
    tree: bool,
    /// Show each object's status
    #[arg(long)]
    status: bool,
}

/// Runs the command.
///
/// # Errors
/// The cluster's; no such app.
pub async fn run(global: &GlobalArgs, arguments: InspectArgs) -> anyhow::Result<String> {
    let app = arguments.app.resolve();
    let (cluster, kinds, namespaces) = reach(&global.cluster()?, &app.namespace, &|text| note(global, text)).await?;
    let observed = observe(&*cluster, &namespaces.app(&app.name)).await.map_err(CommandError::from)?;
    if observed.record.is_none() {
        return Err(CommandError::usage_with_hint(
            unknown_app::message(&*cluster, &observed.app).await,
            "`pushback list -A` shows all apps",
        )
        .into());
    }
    let mut live = live::read(&*cluster, &kinds, &observed, &[]).await.map_err(CommandError::from)?;
    if arguments.tree {
        live.derived.extend(live::children(&*cluster, &observed, &live).await);
    }
    let server = cluster.capabilities().server;
    let lines = lines(&live, arguments.tree, server);
    if global.output_format() == Some(OutputFormat::Json) {
        return as_json(&observed, &lines);
    }
    Ok(as_text(&observed, &lines, arguments.status, server))
}

struct Line {
    depth: usize,
    object: ObjectRef,
    owner: &'static str,
    state: &'static str,
    message: String,
    status: Value,
}

fn lines(live: &Live, tree: bool, server: bool) -> Vec<Line> {
    let mut children: BTreeMap<&str, Vec<&Arc<Value>>> = BTreeMap::new();
    for child in &live.derived {
        let owner = child.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str).unwrap_or_default();
        children.entry(owner).or_default().push(child);
    }
    let mut lines = Vec::new();
    for object in live.objects.values() {
        add(&mut lines, object, "app", 0, if tree { Some(&children) } else { None }, server);
    }
    lines
}

fn add(
    lines: &mut Vec<Line>,
    object: &Value,
    owner: &'static str,
    depth: usize,
    children: Option<&BTreeMap<&str, Vec<&Arc<Value>>>>,
    server: bool,
) {
    let (state, message) = if server { judged(object) } else { ("", String::new()) };
    let status = object.get("status").cloned().unwrap_or(Value::Null);
    lines.push(Line { depth, object: ObjectRef::of(object), owner, state, message, status });
    // An owner chain is as deep as controllers make it: Deployment, ReplicaSet, Pod.
    if let (Some(children), true) = (children, depth < 8 && !object.uid().is_empty()) {
        for child in children.get(object.uid()).into_iter().flatten() {
            add(lines, child, "cluster", depth + 1, Some(children), server);
        }
    }
}

fn judged(object: &Value) -> (&'static str, String) {
    if object.is_terminating() {
        return ("deleting", readiness::deletion_blockers(object));
    }
    let context =
        readiness::Context { waited: Duration::from_secs(3600), unchanged: true, ..readiness::Context::default() };
    let status = readiness::assess(object, &context);
    let state = match status.state {
        State::Ready => "ok",
        State::InProgress | State::Unblocked => "ongoing",
        State::Failed => "failed",
    };
    (state, if state == "ok" { String::new() } else { status.message })
}

fn as_text(observed: &Observed, lines: &[Line], with_status: bool, server: bool) -> String {
    let mut table = Table::new(&["NAMESPACE", "NAME", "KIND", "OWNER", "STATE", "MESSAGE"]);
    for line in lines {
        let namespace = if line.object.namespace.is_empty() { "(cluster)" } else { &line.object.namespace };
        let indent = if line.depth == 0 { String::new() } else { format!("{}L ", "  ".repeat(line.depth - 1)) };
        let name = format!("{indent}{}", line.object.name);
        let state = if server { line.state } else { "-" };
        table.row(&[namespace, &name, &line.object.kind, line.owner, state, &line.message]);
    }
    let mut text = format!("App {} in namespace {}\n", observed.app.name, observed.app.namespace);
    if let Some(lock) = observed.record.as_ref().and_then(|record| record.lock.as_ref()) {
        text.push_str(&format!("Locked by {}\n", crate::report::escape::terminal_safe(&lock.describe())));
    }
    if lines.is_empty() {
        text.push_str("no objects\n");
        return text;
    }
    text.push_str(&table.text());
    if with_status {
        for line in lines.iter().filter(|line| !line.status.is_null()) {
            let status = serde_yaml::to_string(&line.status).unwrap_or_default();
            let status = crate::report::escape::terminal_safe_lines(&status).into_owned();
            text.push_str(&format!("\n# {}\n{status}", line.object));
        }
    }
    text
}

fn as_json(observed: &Observed, lines: &[Line]) -> anyhow::Result<String> {
    let objects: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!({"object": line.object, "depth": line.depth, "owner": line.owner, "state": line.state, "message": line.message})
        })
        .collect();
    let report = json!({
        "schemaVersion": 1, "app": observed.app.name, "namespace": observed.app.namespace, "objects": objects,
    });
    Ok(terminal_safe_json(&serde_json::to_string_pretty(&report)?) + "\n")
}
