//! Storage versions: what it costs to move objects, to look at a cluster with many definitions, and to deploy many
//! definitions with another storage version.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::app::{App, middle};
use super::super::measure::{self, Usage};
use super::super::progress;
use super::super::raw::Raw;
use super::super::support::{Options, TestCluster, wait_until};
use super::super::table::seconds;
use super::{Bench, mebibytes};

const GROUP: &str = "stored.example.com";
/// As many as `storage migrate` has by default.
const WORKERS: usize = 8;
/// The definitions of a cluster with much installed, and those of them with objects in an old version.
const DEFINITIONS: usize = 1_000;
const WITH_DEBT: usize = 5;
/// The definitions of a release that moves its versions, and the objects of each.
const MOVED: usize = 300;
const OBJECTS_OF_EACH: usize = 5;

/// For a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

impl Bench {
    /// Objects of about 1 KiB moved to the other version and back, beside plain patches that do the same.
    pub(crate) fn migrate(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let kubeconfig = cluster.kubeconfig_path();
        let mut text = String::from(
            "| objects moved | write pass | proof | plain patches, 8 at a time | rate, × plain | peak memory |\n\
             |---:|---:|---:|---:|---:|---:|\n",
        );
        let rounds = if self.quick { 1 } else { self.rounds };
        for (count, rounds) in [(self.size(5_000), rounds), (self.size(50_000), 1)] {
            progress(&format!("  {count} objects of 1 KiB"));
            let namespace = cluster.namespace("moved");
            let raw = Raw { runtime: &self.runtime, kubeconfig, namespace: &namespace };
            let name = format!("notes.{namespace}.{GROUP}");
            let group = format!("{namespace}.{GROUP}");
            let write = |storage: &str| write_definition(&cluster, &definition("note", &group, storage));
            write("v1");
            raw.write(&(0..count).map(|number| object("note", &group, "v1", number)).collect::<Vec<_>>());
            let mut times = Vec::new();
            for _ in 0..rounds {
                write("v2");
                let all = storage(&["migrate", &name, "-n", &namespace], kubeconfig);
                assert!(all.stdout.contains(&format!("\"rewritten\": {count}")), "{}", all.stdout);
                // The same as the second pass of a migration, start and end of the process included.
                let proof = storage(&["verify", &name, "-n", &namespace], kubeconfig);
                write("v1");
                let objects: Vec<Value> = (0..count).map(|number| object("note", &group, "v1", number)).collect();
                let plain = raw.patch(&objects, WORKERS);
                times.push((all.wall.saturating_sub(proof.wall), proof.wall, plain, all.peak.max(proof.peak)));
            }
            let (written, proof, plain, _) = *middle(&times, |times| times.0);
            let peak = times.iter().map(|times| times.3).max().unwrap_or_default();
            let rate = plain.as_secs_f64() / written.as_secs_f64();
            let _ = writeln!(
                text,
                "| {count} | {} | {} (≤ write pass{}) | {} | {} | {} |",
                seconds(written),
                seconds(proof),
                if proof <= written { "" } else { ": missed" },
                seconds(plain),
                met(&format!("{rate:.2}"), rate >= 0.9, "≥ 0.9"),
                met(&mebibytes(peak), peak <= 60 << 20, "≤ 60"),
            );
        }
        text
    }

    /// A release of many definitions, and a cluster with many.
    pub(crate) fn definitions(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let kubeconfig = cluster.kubeconfig_path();
        let namespace = cluster.namespace("many");
        let raw = Raw { runtime: &self.runtime, kubeconfig, namespace: &namespace };
        let app = App { kubeconfig, namespace: &namespace };
        let (moved, all) = (self.size(MOVED), self.size(DEFINITIONS));
        let names: Vec<String> = (0..all).map(|number| format!("part{number}x")).collect();
        let release =
            |storage: &str| names[..moved].iter().map(|name| definition(name, GROUP, storage)).collect::<Vec<_>>();
        let mut rows: Vec<(String, u64, Usage)> = Vec::new();

        progress(&format!("  a release of {moved} definitions"));
        app.apply(&release("v1"));
        let each = names[..moved].iter();
        each.clone().for_each(|name| await_served(&cluster, GROUP, name, "v1"));
        let of_each =
            |name: &String| (0..OBJECTS_OF_EACH).map(|number| object(name, GROUP, "v1", number)).collect::<Vec<_>>();
        raw.write(&each.flat_map(of_each).collect::<Vec<_>>());
        for (storage, policy) in [("v2", "--storage=migrate"), ("v1", "--storage=defer")] {
            let run = app.apply_with(&release(storage), &[policy]);
            let what = format!(
                "release of {moved} definitions with another storage version, {OBJECTS_OF_EACH} objects each, `{policy}`"
            );
            rows.push((what, run.requests, run.usage));
        }
        let counted = |arguments: &[&str]| {
            let before = requests(&cluster);
            let usage = storage(arguments, kubeconfig);
            (requests(&cluster) - before, usage)
        };
        let (requests, usage) = counted(&["migrate", "--all-debt", "-n", &namespace]);
        rows.push((format!("`storage migrate --all-debt` of what was deferred, {moved} definitions"), requests, usage));

        progress(&format!("  {all} definitions"));
        for name in &names[moved..] {
            cluster.api().apply_with(&definition(name, GROUP, "v1"), "fieldManager=raw&force=true").ok();
        }
        names[moved..].iter().for_each(|name| await_served(&cluster, GROUP, name, "v1"));
        for name in &names[..WITH_DEBT] {
            write_definition(&cluster, &definition(name, GROUP, "v2"));
        }
        let (requests, usage) = counted(&["status"]);
        let report: Value = serde_json::from_str(&usage.stdout).expect("a report");
        let listed = report["definitions"].as_array().into_iter().flatten();
        let in_debt = listed.filter(|definition| definition["objects"].is_number()).count();
        assert_eq!(in_debt, WITH_DEBT, "definitions with debt");
        rows.push((format!("`storage status` with {all} definitions, {WITH_DEBT} of them with debt"), requests, usage));

        let mut text = String::from("| what | requests | time | CPU | peak memory |\n|---|---:|---:|---:|---:|\n");
        for (what, requests, usage) in rows {
            let (time, cpu, peak) = (seconds(usage.wall), seconds(usage.cpu), mebibytes(usage.peak));
            let _ = writeln!(text, "| {what} | {requests} | {time} | {cpu} | {peak} |");
        }
        text
    }
}

fn met(figure: &str, is_met: bool, target: &str) -> String {
    if is_met { format!("{figure} ({target})") } else { format!("**{figure}** ({target})") }
}

/// Runs a `storage` command of the real binary.
fn storage(arguments: &[&str], kubeconfig: &Path) -> Usage {
    measure::run(&measure::binary(), &[&["storage"], arguments, &["-o", "json"]].concat(), kubeconfig)
}

/// The requests that the server has answered so far about definitions, custom resources, records of progress and rights.
fn requests(cluster: &TestCluster) -> u64 {
    let metrics = cluster.api().get("/metrics").body;
    let lines = metrics.as_str().expect("a text").lines();
    let counted = lines.filter(|line| {
        let resources = ["customresourcedefinitions", "configmaps", "selfsubjectaccessreviews"];
        let is_ours = line.contains(&format!("group=\"{GROUP}\""))
            || resources.iter().any(|resource| line.contains(&format!("resource=\"{resource}\"")));
        line.starts_with("apiserver_request_total{") && is_ours && !line.contains("verb=\"WATCH\"")
    });
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).expect("a number");
    counted.map(count).sum::<f64>() as u64
}

fn definition(name: &str, group: &str, storage: &str) -> Value {
    let version = |version: &str| {
        json!({
            "name": version, "served": true, "storage": version == storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
            }}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": format!("{name}s"), "singular": name, "kind": capitalised(name)},
            "versions": [version("v1"), version("v2")],
        },
    })
}

fn object(name: &str, group: &str, version: &str, number: usize) -> Value {
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": capitalised(name),
        "metadata": {"name": format!("object-{number:05}")}, "spec": {"text": "some text ".repeat(60)},
    })
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// Writes a definition with plain requests, and waits until its objects are served.
fn write_definition(cluster: &TestCluster, definition: &Value) {
    cluster.api().apply_with(definition, "fieldManager=raw&force=true").ok();
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).expect("a name").to_owned();
    for version in ["v1", "v2"] {
        await_served(cluster, &text("/spec/group"), &text("/spec/names/singular"), version);
    }
}

fn await_served(cluster: &TestCluster, group: &str, name: &str, version: &str) {
    let path = format!("/apis/{group}/{version}/{name}s?limit=1");
    wait_until("the objects are served", DEADLINE, || (cluster.api().get(&path).status == 200).then_some(()));
}
