//! Values that depend on the cluster, the kubeconfig, the policy and the change: apps, namespaces, contexts, rules, fingerprints.
//! Whatever fails, or takes too long, completes nothing.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches as _};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter as _};
use pushback_cluster as cluster;
use pushback_preflight::registry;
use serde_json::Value;

use super::line::Line;
use crate::cli::arguments::GlobalArgs;
use crate::cli::command;
use crate::run::connect::ClusterOptions;
use crate::run::list::List;
use crate::run::options::NamespaceOptions;
use crate::run::{names, policy};

/// How long a cluster has.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long a check has, whose findings have fingerprints.
const CHECK_DEADLINE: Duration = Duration::from_secs(3);

/// A kind of value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    App,
    Cluster,
    Context,
    Fingerprint,
    Namespace,
    Rule,
    RuleList,
}

impl Kind {
    fn of(command: &str, option: &str) -> Option<Self> {
        Some(match option {
            "app" => Self::App,
            "cluster" => Self::Cluster,
            "kubeconfig_context" => Self::Context,
            "waive" => Self::Fingerprint,
            "namespace" | "app_namespace" | "into_ns" => Self::Namespace,
            "name" if command == "rules" => Self::Rule,
            "preflight" => Self::RuleList,
            _ => return None,
        })
    }
}

/// The command line with completers for the values of its options.
pub(super) fn completed(command: Command, line: &Line) -> Command {
    fn add(command: Command, line: &Arc<Line>) -> Command {
        let name = command.get_name().to_owned();
        let command = command.mut_args(|argument: Arg| {
            let Some(kind) = Kind::of(&name, argument.get_id().as_str()) else { return argument };
            let line = Arc::clone(line);
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| candidates(kind, &line, typed)))
        });
        command.mut_subcommands(|subcommand| add(subcommand, line))
    }
    add(command, &Arc::new(line.clone()))
}

fn candidates(kind: Kind, line: &Line, typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    if matches!(kind, Kind::Cluster) {
        return clusters(typed);
    }
    let (before, typed) = match kind {
        // A list: only its last item is completed.
        Kind::RuleList => typed.rfind(',').map_or(("", typed), |at| typed.split_at(at + 1)),
        _ => ("", typed),
    };
    let line = line.clone();
    let found = within(move || found(kind, &line)).unwrap_or_default();
    let matching = found.into_iter().filter(|(text, _)| text.starts_with(typed));
    matching
        .map(|(text, help)| CompletionCandidate::new(format!("{before}{text}")).help(help.map(Into::into)))
        .collect()
}

/// What `--cluster` can name.
fn clusters(typed: &str) -> Vec<CompletionCandidate> {
    for (scheme, paths) in [("dir:", PathCompleter::dir()), ("file:", PathCompleter::file())] {
        if let Some(path) = typed.strip_prefix(scheme) {
            return paths.complete(OsStr::new(path)).into_iter().map(|found| found.add_prefix(scheme)).collect();
        }
    }
    let schemes = ["kube", "dir:", "file:", "git:"].into_iter().filter(|scheme| scheme.starts_with(typed));
    schemes.map(CompletionCandidate::new).collect()
}

/// Texts, with a line about each.
type Found = Vec<(String, Option<String>)>;

/// Runs on a thread of its own, which ends with the process: not even a file system that hangs holds up a shell.
fn within(work: impl FnOnce() -> Found + Send + 'static) -> Option<Found> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(CHECK_DEADLINE + Duration::from_millis(500)).ok()
}

fn found(kind: Kind, line: &Line) -> Found {
    let matches = command().ignore_errors(true).try_get_matches_from(line.complete_words());
    let Ok(matches) = matches else { return Vec::new() };
    let (path, innermost) = innermost(&matches);
    let found = match kind {
        Kind::Rule => Some(rules(innermost)),
        Kind::RuleList => Some([default_set()].into_iter().chain(rules(innermost)).collect()),
        Kind::Context => {
            GlobalArgs::from_arg_matches(&matches).ok().and_then(|global| match global.cluster().ok()? {
                ClusterOptions::Server(options) => Some(plain(cluster::contexts(&options))),
                _ => None,
            })
        }
        Kind::Fingerprint => fingerprints(&matches, path, innermost),
        Kind::App | Kind::Namespace | Kind::Cluster => of_cluster(kind, &matches, innermost),
    };
    found.unwrap_or_default()
}

fn plain(texts: Vec<String>) -> Found {
    texts.into_iter().map(|text| (text, None)).collect()
}

/// The subcommand that is typed, and what was given to it.
fn innermost(matches: &ArgMatches) -> (Option<&str>, &ArgMatches) {
    let (mut name, mut innermost) = (None, matches);
    while let Some((below, given)) = innermost.subcommand() {
        (name, innermost) = (Some(below), given);
    }
    (name, innermost)
}

fn given<'m>(matches: &'m ArgMatches, option: &str) -> Vec<&'m String> {
    matches.try_get_many::<String>(option).ok().flatten().into_iter().flatten().collect()
}

fn rules(matches: &ArgMatches) -> Found {
    let files: Vec<String> = given(matches, "config").into_iter().cloned().collect();
    let custom = policy::custom_rules(&files).unwrap_or_default();
    let rules = registry::RULES.iter().chain(&custom).map(|rule| rule.meta());
    rules.map(|meta| (meta.name.to_owned(), Some(meta.summary.to_owned()))).collect()
}

/// The word for the default set in a list of rules.
fn default_set() -> (String, Option<String>) {
    (registry::DEFAULT.to_owned(), Some("the rules that are on by default".to_owned()))
}

fn of_cluster(kind: Kind, matches: &ArgMatches, innermost: &ArgMatches) -> Option<Found> {
    let mut cluster = GlobalArgs::from_arg_matches(matches).ok()?.cluster().ok()?;
    if let ClusterOptions::Server(options) = &mut cluster {
        options.request_timeout = DEADLINE;
    }
    let one = |option: &str| given(innermost, option).first().map(|name| (*name).clone());
    let namespace = NamespaceOptions { namespace: one("namespace"), app_namespace: one("app_namespace") };
    in_time(DEADLINE, async move {
        if matches!(kind, Kind::Namespace) {
            return names::namespaces(&cluster).await.ok().map(plain);
        }
        let list = List { cluster, namespace, all_namespaces: false, filter: <_>::default() };
        let apps = list.run(&names::Silent).await.ok()?.apps;
        Some(plain(apps.iter().filter_map(|app| app["name"].as_str().map(str::to_owned)).collect()))
    })
}

fn in_time(deadline: Duration, work: impl Future<Output = Option<Found>>) -> Option<Found> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
    let found = runtime.block_on(async { tokio::time::timeout(deadline, work).await.ok().flatten() });
    runtime.shutdown_background();
    found
}

/// Options that say nothing of what is judged, or that would write.
const NOT_FOR_CHECK: [&str; 8] = ["color", "facts_out", "help", "output", "report", "verbose", "witness_dir", "yes"];

/// Fingerprints of what the check of this very command line finds; the check is a process of its own, which can be ended.
fn fingerprints(matches: &ArgMatches, path: Option<&str>, innermost: &ArgMatches) -> Option<Found> {
    let files = given(innermost, "files");
    // What comes from elsewhere is not fetched because somebody presses a key.
    if !matches!(path, Some("apply" | "check" | "diff" | "plan"))
        || files.iter().any(|file| *file == "-" || file.contains("://"))
    {
        return None;
    }
    let mut tree = command();
    tree.build();
    let check = tree.find_subcommand("check")?;
    let arguments = check.get_arguments().filter(|argument| !NOT_FOR_CHECK.contains(&argument.get_id().as_str()));
    let repeated: Vec<OsString> = arguments.flat_map(|argument| repeated(argument, matches, innermost)).collect();
    let answer = in_time_json(&repeated)?;
    let findings = answer["findings"].as_array()?;
    let refusing = findings.iter().filter(|finding| finding["severity"] == "error" && finding["waiver"].is_null());
    let mut found: Found = refusing
        .filter_map(|finding| {
            let fingerprint = finding["fingerprint"].as_str()?;
            let message = finding["message"].as_str().unwrap_or_default();
            let object = finding["object"]["name"].as_str().unwrap_or_default();
            Some((format!("{fingerprint}="), Some(format!("{object}: {message}"))))
        })
        .collect();
    found.sort();
    found.dedup();
    Some(found)
}

/// An option as it was given, for another command line.
fn repeated(argument: &Arg, matches: &ArgMatches, innermost: &ArgMatches) -> Vec<OsString> {
    let id = argument.get_id().as_str();
    let holder = [innermost, matches].into_iter().find(|holder| matches!(holder.try_contains_id(id), Ok(true)));
    let (Some(holder), Some(long)) = (holder, argument.get_long()) else { return Vec::new() };
    if holder.value_source(id) != Some(ValueSource::CommandLine) {
        return Vec::new();
    }
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        return vec![format!("--{long}").into()];
    }
    let values = holder.get_raw(id).into_iter().flatten();
    let option = |value: &OsStr| {
        let mut option = OsString::from(format!("--{long}="));
        option.push(value);
        option
    };
    values.map(option).collect()
}

fn in_time_json(arguments: &[OsString]) -> Option<Value> {
    let program = std::env::current_exe().ok()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
    let output = runtime.block_on(async {
        let mut command = tokio::process::Command::new(program);
        command.arg("check").args(arguments).arg("--output=json").kill_on_drop(true);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        tokio::time::timeout(CHECK_DEADLINE, command.output()).await.ok()?.ok()
    });
    runtime.shutdown_background();
    serde_json::from_slice(&output?.stdout).ok()
}
