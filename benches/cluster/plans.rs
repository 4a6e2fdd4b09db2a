//! Saved plans: carrying one out, beside the same apply without one; the plan's file for each object.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::app::{App, Run};
use super::support::{Options, TestCluster};
use super::{objects, table};

/// An apply with a plan takes at most so much of one without.
const MOST: f64 = 1.1;

/// The figures, of an app of so many objects.
pub(crate) fn tables(count: usize, rounds: usize) -> String {
    let cluster = TestCluster::start(&Options::default());
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| place.path().join(name);
    let same = objects::config_maps(count);
    let mut text = String::from(
        "| of an app of ConfigMaps | without a plan | with one | × | requests | memory | the plan's file |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (what, every) in [("none changes", usize::MAX), ("one of ten changes", 10), ("all change", 1)] {
        let (mut without, mut with, mut size) = (Vec::new(), Vec::new(), 0);
        for round in 0..rounds.max(1) {
            let namespaces = [cluster.namespace("bench"), cluster.namespace("bench")];
            let [plain, planned] = [&namespaces[0], &namespaces[1]]
                .map(|namespace| App { kubeconfig: cluster.kubeconfig_path(), namespace });
            let mut changed = same.clone();
            let chosen = changed.iter_mut().enumerate().filter(|(index, _)| every != usize::MAX && index % every == 0);
            chosen.for_each(|(_, object)| object["data"]["level"] = json!(format!("round-{round}")));
            plain.apply(&same);
            planned.apply(&same);
            let (input, plan) = (path("app.yaml"), path("app.plan"));
            std::fs::write(&input, objects::yaml(&changed)).expect("manifests are written");
            let (input, plan_file) = (text_of(&input), text_of(&plan));
            planned.plan(&["plan", "-f", input, "--out", plan_file]);
            size = std::fs::metadata(&plan).expect("a plan").len();
            with.push(planned.carry_out(plan_file));
            without.push(plain.apply(&changed));
        }
        let (without, with) = (Run::median(&without), Run::median(&with));
        let times = with.wall().as_secs_f64() / without.wall().as_secs_f64();
        let _ = writeln!(
            text,
            "| {count}, {what} | {} | {} | {} | {} + {} | {} MiB, {} MiB | {size} bytes, {} an object |",
            table::seconds(without.wall()),
            table::seconds(with.wall()),
            table::beside(&format!("{times:.2}"), Some((times <= MOST, MOST.to_string()))),
            without.requests,
            with.requests - without.requests,
            without.usage.peak >> 20,
            with.usage.peak >> 20,
            usize::try_from(size).unwrap_or(usize::MAX) / count,
        );
    }
    text
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

impl App<'_> {
    fn plan(&self, arguments: &[&str]) {
        let common = ["-a", "bench", "-n", self.namespace, "-o", "json"];
        super::measure::run(&super::measure::binary(), &[arguments, &common].concat(), self.kubeconfig);
    }

    fn carry_out(&self, plan: &str) -> Run {
        self.run(&["apply", "--plan", plan])
    }
}
