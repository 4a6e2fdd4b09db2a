//! Upgrades that are refused: before anything is injected, or once something is. No experiment says anything of them.

use serde_json::{Value, json};

use super::Operator;
use crate::support::proxy::{FaultProxy, Verb, matching, writes};
use crate::support::pushback::{Ran, finish};
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: what_preflight_refuses_is_told_with_its_findings_and_nothing_is_injected,
        Controllers: what_is_refused_once_something_is_injected_is_taken_back_at_once,
        Controllers: a_namespace_that_comes_or_goes_with_the_upgrade_may_be_named,
    ]
}

impl Operator {
    /// An experiment for each side of the upgrade, which nobody could wait for.
    fn patient_suite(&self) {
        for (file, name, phase) in [("a", "mutate", "pre-upgrade"), ("b", "partition", "post-upgrade")] {
            let mut experiment = self.experiment_named(name);
            experiment["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": phase});
            experiment["spec"]["hypothesis"]["recoveryTimeout"] = json!("1h");
            self.place.write(&format!("suite/{file}.yaml"), experiment.to_string());
        }
    }

    /// Runs the upgrade, with the whole rule set.
    fn upgraded(&self, proxy: &FaultProxy, more: &[&str]) -> Ran {
        let mut arguments = self.upgrade_arguments();
        if more.contains(&"--format") {
            arguments.retain(|argument| argument != "--format" && argument != "json");
        }
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        let mut command = self.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("KUBECONFIG", proxy.kubeconfig());
        finish(command, b"")
    }

    fn verdicts(report: &Value) -> Vec<(&str, &str)> {
        let outcomes = report["experiments"].as_array().expect("a list").iter();
        outcomes
            .map(|one| (one["name"].as_str().unwrap_or_default(), one["verdict"].as_str().unwrap_or_default()))
            .collect()
    }
}

fn what_preflight_refuses_is_told_with_its_findings_and_nothing_is_injected() {
    let operator = Operator::deploy();
    let before = operator.contents();
    operator.patient_suite();
    operator.release(|text| text.replace("maximum: 1000", "maximum: 500"));
    let switched_off = operator.place.read("new/config.yaml");
    operator.place.write("off.yaml", switched_off).write("new/config.yaml", "");
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    // A rule that is asked for refuses what no object would show.
    let asked = "--preflight=CRDUpgradeSafety";
    let ran = operator.upgraded(&proxy, &[asked]).expect(10);
    let report = ran.json();
    assert_eq!(proxy.count(&writes()), 0, "{:?}", proxy.counts());
    operator.assert_as(&before, "refused");
    assert_eq!((&report["outcome"], &report["upgrade"]["made"]), (&json!("NotUpgraded"), &json!(false)), "{report}");
    assert_eq!(Operator::verdicts(&report), [("mutate", "Skipped"), ("partition", "Skipped")]);
    let findings = report["upgrade"]["findings"].as_array().expect("findings");
    assert!(findings.iter().all(|finding| finding["rule"] == "CRDUpgradeSafety"), "{report}");
    let fingerprints: Vec<String> =
        findings.iter().map(|finding| finding["fingerprint"].as_str().expect("a fingerprint").to_owned()).collect();
    assert!(!fingerprints.is_empty());
    let reason = report["upgrade"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("preflight refused it: "), "{reason}");
    assert!(ran.stderr.contains(reason) && ran.stderr.contains("--waive FINGERPRINT=REASON"), "{}", ran.stderr);

    let table = operator.upgraded(&proxy, &[asked, "--format", "table"]).expect(10).stdout;
    assert!(table.contains("CRDUpgradeSafety/maximum") && table.contains("= cause:   "), "{table}");

    // Other rules, or a finding that is accepted, and it is made.
    let short = operator.place.read("suite/a.yaml").replace("\"1h\"", "\"1s\"");
    operator.place.write("suite/a.yaml", short);
    let short = operator.place.read("suite/b.yaml").replace("\"1h\"", "\"1s\"");
    operator.place.write("suite/b.yaml", short);
    let waivers: Vec<String> = fingerprints.iter().map(|fingerprint| format!("--waive={fingerprint}=tried")).collect();
    let waivers: Vec<&str> = waivers.iter().map(String::as_str).chain([asked]).collect();
    for more in [&waivers[..], &["--preflight=PermissionValidation"], &["--config=off.yaml"]] {
        let report = operator.upgraded(&proxy, more).expect(0).json();
        assert_eq!(report["upgrade"]["made"], true, "{more:?}: {report}");
        assert_eq!(Operator::verdicts(&report), [("mutate", "Resilient"), ("partition", "Inconclusive")], "{report}");
        operator.apply("operator").expect(0);
    }
}

/// Somebody makes an object of the new release while the run injects: then the upgrade would take it from them.
fn what_is_refused_once_something_is_injected_is_taken_back_at_once() {
    let operator = Operator::deploy();
    operator.patient_suite();
    operator.release(|text| text);
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wanted"}});
    operator.place.write("new/wanted.yaml", wanted.to_string());
    let before = operator.contents();
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"}, "metadata": {"name": "wanted",
        "namespace": operator.namespace, "labels": {"kapp.k14s.io/app": "another"}}});
    let api = operator.cluster.api();
    proxy.before(matching(Verb::Patch, "backups"), move |_| drop(api.apply(&theirs).ok()));
    let ran = operator.upgraded(&proxy, &[]).expect(1);
    let report = ran.json();
    assert_eq!((&report["outcome"], &report["upgrade"]["made"]), (&json!("NotUpgraded"), &json!(false)), "{report}");
    assert_eq!(Operator::verdicts(&report), [("mutate", "Inconclusive"), ("partition", "Skipped")]);
    assert_eq!(
        report["experiments"][0]["reason"], "the upgrade did not happen; the injections are reverted",
        "{report}"
    );
    let reason = report["upgrade"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("wanted") && ran.stderr.contains("the upgrade did not happen"), "{reason}: {}", ran.stderr);
    assert!(!ran.stderr.contains("nothing was written"), "{}", ran.stderr);
    api.delete(&format!("/api/v1/namespaces/{}/configmaps/wanted", operator.namespace)).ok();
    operator.assert_as(&before, "taken back");
}

fn a_namespace_that_comes_or_goes_with_the_upgrade_may_be_named() {
    let operator = Operator::deploy();
    let (old, new) = (format!("{}-old", operator.namespace), format!("{}-new", operator.namespace));
    let namespace =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
    operator.place.write("operator/namespace.yaml", namespace(&old));
    operator.apply("operator").expect(0);
    operator.release(|text| text);
    operator.place.write("new/namespace.yaml", namespace(&new));
    let mut experiment = operator.experiment_named("quota");
    experiment["metadata"]["namespace"] = json!(new);
    experiment["spec"]["blastRadius"]["allowedNamespaces"] = json!([new]);
    operator.place.write("suite/quota.yaml", experiment.to_string());
    let proxy = FaultProxy::start(operator.cluster.kubeconfig_path());
    let named = ["--allow-namespace", &old, "--allow-namespace", &new];
    let report = operator.upgraded(&proxy, &named).expect(0).json();
    assert_eq!(Operator::verdicts(&report), [("quota", "Resilient")], "{report}");
    assert_eq!(report["upgrade"]["passed"], true, "{report}");
    let api = operator.cluster.api();
    assert_eq!(api.get(&format!("/api/v1/namespaces/{old}")).status, 404);
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{new}/leases/pushback-experiments");
    assert_eq!(api.get(&lease).status, 404, "the lock is given back");
    api.delete(&format!("/api/v1/namespaces/{new}")).ok();
}
