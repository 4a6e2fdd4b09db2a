//! What a dry run says is what the run then does: the same writes, in the same order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Operator;
use crate::support::proxy::{Exchange, FaultProxy, Verb, writes};
use crate::support::pushback::finish;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_dry_run_lists_the_writes_of_the_run,
        Controllers: a_dry_run_lists_what_meets_an_upgrade,
    ]
}

/// A write: what, and to which object.
type Write = (String, String);

impl Operator {
    /// The report of a run, and its writes.
    fn recorded(&self, arguments: &[String], dry_run: bool) -> (Value, Vec<Exchange>) {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if dry_run {
            arguments.push("--dry-run");
        }
        let mut command = self.place.command(&arguments);
        command.env("KUBECONFIG", proxy.kubeconfig());
        let report = finish(command, b"").expect(0).json();
        assert!(!dry_run || proxy.count(&writes()) == 0, "{:?}", proxy.counts());
        (report, proxy.requests().into_iter().filter(Exchange::accepted).collect())
    }
}

/// The writes that a dry run foresees.
fn foreseen(report: &Value) -> Vec<Write> {
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let steps = report["steps"].as_array().expect("steps").iter();
    let writes =
        steps.filter(|step| ["create", "patch", "delete"].contains(&step["action"].as_str().unwrap_or_default()));
    let plural = |object: String| {
        let (kind, name) = object.split_once(' ').expect("a kind and a name");
        let kind = kind.to_lowercase();
        let kind = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
        let name = if name.contains('/') { name.to_owned() } else { format!("/{name}") };
        format!("{kind} {name}")
    };
    one_after_the_other(writes.map(|step| (text(step, "action"), plural(text(step, "object")))))
}

/// The writes of a run. How often it renews its locks is the machine's to say.
fn made(report: &Value, exchanges: &[Exchange]) -> Vec<Write> {
    let run = report["run"].as_str().expect("its id");
    let is_renewal =
        |exchange: &&Exchange| exchange.request.verb == Verb::Patch && exchange.request.resource == "leases";
    let exchanges = exchanges.iter().filter(|exchange| !is_renewal(exchange));
    one_after_the_other(exchanges.map(|one| (one.request.verb.to_string(), one.request.object().replace(run, "run"))))
}

/// Several patches of one object in a row are one step.
fn one_after_the_other(writes: impl Iterator<Item = Write>) -> Vec<Write> {
    let mut all: Vec<Write> = writes.collect();
    all.dedup();
    all
}

fn a_dry_run_lists_the_writes_of_the_run() {
    let operator = Operator::deploy();
    let before = operator.contents();
    for experiment in operator.experiments() {
        let name = experiment["metadata"]["name"].as_str().expect("a name");
        operator.place.write(&format!("suite/{name}.yaml"), experiment.to_string());
    }
    let arguments = operator.arguments("suite");
    let (dry, _) = operator.recorded(&arguments, true);
    let (report, exchanges) = operator.recorded(&arguments, false);
    assert_eq!(report["experiments"].as_array().map(Vec::len), Some(operator.experiments().len()));
    let foreseen = foreseen(&dry);
    assert!(foreseen.len() > 3 * operator.experiments().len(), "{foreseen:#?}");
    assert_eq!(foreseen, made(&report, &exchanges), "{report}");
    // Everything has its wait before and after, and values of Secrets are not shown.
    let steps = dry["steps"].as_array().expect("steps");
    let waits = steps.iter().filter(|step| step["action"] == "wait" && step["object"].is_null()).count();
    assert_eq!(waits, 2 * operator.experiments().len(), "{dry}");
    assert!(steps.iter().any(|step| step["detail"] == "data.mode set to \"chaos-drift\""), "{dry}");
    assert!(steps.iter().any(|step| step["detail"] == "data.password set"), "{dry}");
    operator.assert_as(&before, "run");
}

fn a_dry_run_lists_what_meets_an_upgrade() {
    let operator = Operator::deploy();
    operator.pre_upgrade_suite();
    operator.release(|text| text);
    let arguments = operator.upgrade_arguments();
    let (dry, _) = operator.recorded(&arguments, true);
    let (report, exchanges) = operator.recorded(&arguments, false);
    let foreseen = foreseen(&dry);
    let objects: BTreeSet<&str> = foreseen.iter().map(|(_, object)| object.as_str()).collect();
    let mut made = made(&report, &exchanges);
    // The deploy's own writes are those of `pushback apply`.
    made.retain(|(verb, object)| verb != "apply" && objects.contains(object.as_str()));
    made.dedup();
    assert_eq!(foreseen, made, "{report}");
    let steps = dry["steps"].as_array().expect("steps");
    let place = |wanted: &dyn Fn(&Value) -> bool| steps.iter().position(wanted).expect("the step");
    let upgrade = place(&|step| step["action"] == "apply");
    let taken_back = place(&|step| step["detail"] == "values and field managers as before");
    let injected = place(&|step| step["action"] == "patch");
    let partition = place(&|step| step["experiment"] == "partition");
    assert!(injected < upgrade && upgrade < taken_back && taken_back < partition, "{dry}");
}
