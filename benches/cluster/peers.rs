//! The same objects by kapp (`PUSHBACK_KAPP` names its program) and by 16 plain workers, on the same control plane in the
//! same run, the tools by turns.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::app::{App, middle};
use super::delay;
use super::measure;
use super::objects;
use super::raw::Raw;
use super::support::{Options, TestCluster, wait_until};
use super::table::{beside, seconds};

/// Plain workers that write the objects, as a script would.
const WORKERS: usize = 16;

/// What is timed, and the most of kapp's time that it may take.
const STEPS: [(&str, Option<f64>); 4] =
    [("new", None), ("unchanged", Some(0.1)), ("one changed", None), ("deleted", Some(0.6))];

/// The most of the plain workers' time until everything is ready.
const FIRST: f64 = 1.25;

/// The figures, of so many objects.
pub(crate) fn tables(runtime: &tokio::runtime::Runtime, count: usize, rounds: usize) -> String {
    let kapp = std::env::var_os("PUSHBACK_KAPP").filter(|path| !path.is_empty()).map(PathBuf::from);
    let cluster = TestCluster::start(&Options::whole());
    let mut text = format!(
        "| {count} objects | pushback | kapp | × kapp | {WORKERS} plain workers | × plain |\n|---|---:|---:|---:|---:|---:|\n"
    );
    let kinds = [("ConfigMaps", objects::config_maps(count)), ("a mix, until ready", objects::mixed(count))];
    for (milliseconds, (kind, wanted)) in [0, 5].into_iter().flat_map(|far| kinds.iter().map(move |kind| (far, kind))) {
        let kubeconfig = delay::kubeconfig(runtime, cluster.kubeconfig_path(), Duration::from_millis(milliseconds));
        let (mut ours, mut theirs, mut plain) =
            (vec![Vec::new(); STEPS.len()], vec![Vec::new(); STEPS.len()], Vec::new());
        for _ in 0..rounds.max(1) {
            let namespace = cluster.namespace("plain");
            plain.push(by_workers(&Raw { runtime, kubeconfig: &kubeconfig, namespace: &namespace }, wanted));
            if wanted.iter().any(is_deployment) {
                clear(&cluster, &namespace);
            }
            let namespace = cluster.namespace("ours");
            let app = App { kubeconfig: &kubeconfig, namespace: &namespace };
            let changed = changed(wanted);
            let runs = [app.apply(wanted), app.apply(wanted), app.apply(&changed), app.delete()];
            ours.iter_mut().zip(runs).for_each(|(times, run)| times.push(run.wall()));
            if let Some(kapp) = &kapp {
                let namespace = cluster.namespace("theirs");
                let peer = Kapp { program: kapp, kubeconfig: &kubeconfig, namespace: &namespace };
                let runs = [peer.deploy(wanted), peer.deploy(wanted), peer.deploy(&changed), peer.delete()];
                theirs.iter_mut().zip(runs).for_each(|(times, time)| times.push(time));
            }
        }
        for (step, (what, most)) in STEPS.into_iter().enumerate() {
            let median = |times: &[Duration]| (!times.is_empty()).then(|| *middle(times, |time| *time));
            let ours = median(&ours[step]).expect("a run");
            let times = |peer: Option<Duration>, most: Option<f64>| {
                let times = peer.map(|peer| ours.as_secs_f64() / peer.as_secs_f64());
                let told =
                    |times: f64| beside(&format!("{times:.2}"), most.map(|most| (times <= most, most.to_string())));
                (peer.map(seconds).unwrap_or_default(), times.map(told).unwrap_or_default())
            };
            let (kapp_time, kapp_times) = times(median(&theirs[step]), most);
            let is_mixed = wanted.iter().any(is_deployment);
            let (plain_time, plain_times) = match step {
                0 => times(median(&plain), is_mixed.then_some(FIRST)),
                _ => (String::new(), String::new()),
            };
            let far = if milliseconds == 0 { String::new() } else { format!(", server {milliseconds} ms away") };
            let _ = writeln!(
                text,
                "| {kind}, {what}{far} | {} | {kapp_time} | {kapp_times} | {plain_time} | {plain_times} |",
                seconds(ours)
            );
        }
    }
    text
}

/// The objects with another value in the first ConfigMap.
fn changed(wanted: &[Value]) -> Vec<Value> {
    let mut changed = wanted.to_vec();
    if let Some(map) = changed.iter_mut().find(|object| object["kind"] == "ConfigMap") {
        map["data"]["level"] = json!("debug");
    }
    changed
}

/// Writes all objects, and waits until the Deployments among them are available.
fn by_workers(raw: &Raw<'_>, wanted: &[Value]) -> Duration {
    let began = Instant::now();
    raw.write_by(wanted, WORKERS);
    if wanted.iter().any(is_deployment) {
        raw.until_available();
    }
    began.elapsed()
}

/// Takes away what the workers have written: a Node runs so many Pods and no more.
fn clear(cluster: &TestCluster, namespace: &str) {
    let path = format!("/api/v1/namespaces/{namespace}");
    cluster.api().delete(&path).ok();
    let is_gone = || (cluster.api().get(&path).status == 404).then_some(());
    wait_until("the workers' namespace is gone", Duration::from_secs(300), is_gone);
}

fn is_deployment(object: &Value) -> bool {
    object["kind"] == "Deployment"
}

/// kapp, with an app of its own.
struct Kapp<'a> {
    program: &'a Path,
    kubeconfig: &'a Path,
    namespace: &'a str,
}

impl Kapp<'_> {
    fn deploy(&self, objects: &[Value]) -> Duration {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("app.yaml");
        std::fs::write(&file, objects::yaml(objects)).expect("manifests are written");
        self.run(&["deploy", "-f", file.to_str().expect("a path"), "--wait-timeout=10m"])
    }

    fn delete(&self) -> Duration {
        self.run(&["delete"])
    }

    fn run(&self, arguments: &[&str]) -> Duration {
        let common = ["-a", "bench", "-n", self.namespace, "--yes"];
        measure::run(self.program, &[arguments, &common].concat(), self.kubeconfig).wall
    }
}
