//! An app that is applied and deleted by the real binary, and what each run took.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::measure::{self, Usage};
use super::objects;

/// Time for everything to become ready on a loaded machine.
const WAIT: &str = "--wait-timeout=10m";

/// No renewals of the lock: how many requests a run takes does not go by how fast the machine is.
const LEASE: &str = "--lock-lease=30m";

/// One run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) usage: Usage,
    /// Requests, by the run's own count.
    pub(crate) requests: u64,
    /// Objects that were written.
    pub(crate) writes: u64,
}

/// One app in a namespace of its own.
#[derive(Debug)]
pub(crate) struct App<'a> {
    pub(crate) kubeconfig: &'a Path,
    pub(crate) namespace: &'a str,
}

impl App<'_> {
    pub(crate) fn apply(&self, objects: &[Value]) -> Run {
        self.apply_with(objects, &[])
    }

    pub(crate) fn apply_with(&self, objects: &[Value], arguments: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("app.yaml");
        std::fs::write(&file, objects::yaml(objects)).expect("manifests are written");
        self.run(&[&["apply", "-f", file.to_str().expect("a path")], arguments].concat())
    }

    pub(crate) fn delete(&self) -> Run {
        self.run(&["delete"])
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let common = ["-a", "bench", "-n", self.namespace, "--yes", "-o", "json", WAIT, LEASE];
        let usage = measure::run(&measure::binary(), &[arguments, &common].concat(), self.kubeconfig);
        let end = events(&usage.stdout).pop().expect("a last event");
        let done = |operation: &str| end["done"][operation].as_u64().unwrap_or_default();
        Run {
            requests: end["requests"].as_u64().expect("a number"),
            writes: ["create", "update", "replace", "delete"].map(done).iter().sum(),
            usage,
        }
    }
}

impl Run {
    pub(crate) fn wall(&self) -> Duration {
        self.usage.wall
    }

    /// The events of the run.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.usage.stdout)
    }

    /// Of several runs, each figure's middle one.
    pub(crate) fn median(runs: &[Self]) -> Self {
        let middle_run = middle(runs, |run| run.usage.wall);
        let mut median = middle_run.clone();
        median.usage.cpu = middle(runs, |run| run.usage.cpu).usage.cpu;
        median.usage.peak = middle(runs, |run| run.usage.peak).usage.peak;
        median.requests = middle(runs, |run| run.requests).requests;
        median
    }
}

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

/// The one in the middle.
pub(crate) fn middle<T, K: Ord>(of: &[T], key: impl Fn(&T) -> K) -> &T {
    let mut sorted: Vec<&T> = of.iter().collect();
    sorted.sort_by_key(|one| key(one));
    sorted[sorted.len() / 2]
}
