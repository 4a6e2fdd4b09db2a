//! Rule UpgradeDiff on a folder: it refuses an apply that drops a webhook, passes it with a waiver, writes the
//! experiments that test the change, and stands in every report.

use serde_json::Value;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_dropped_webhook_is_refused_and_passes_with_a_waiver,
        Nothing: what_is_wrong_with_a_model_is_an_error_of_the_input,
        Nothing: a_folder_with_other_files_is_left_alone,
    ]
}

const SHOP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: shop, image: 'registry.example/shop:1'}]
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {selector: {app: shop}, ports: [{port: 443}]}
";

const WEBHOOK: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shop}
webhooks:
- name: carts.shop.example
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: shop, name: shop, path: /validate}}
  rules: [{apiGroups: [shop.example], apiVersions: [v1], operations: [CREATE], resources: [carts]}]
";

const CONFIG_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-settings, namespace: shop, labels: {app: shop}}
data: {level: info}
";

fn config(waiver: &str) -> String {
    format!(
        "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: UpgradeDiff\n  config: {{experiments: out}}\n{waiver}"
    )
}

const WAIVER: &str = "\
preflightWaivers:
- {rule: UpgradeDiff, check: WebhookRemoved, reason: the definition's own rules check the same}
";

/// A folder in which the first release is applied, and the input of the second, which has no webhook.
fn upgraded(config: &str) -> Pushback {
    let pushback = Pushback::new();
    pushback.write("config.yaml", config);
    pushback.write("in/shop.yaml", SHOP);
    pushback.write("in/webhook.yaml", WEBHOOK);
    pushback.run(&["apply", "-a", "shop", "-f", "in", "--cluster", "dir:live", "--yes"]).expect(0);
    std::fs::remove_file(pushback.directory().join("in/webhook.yaml")).expect("removed");
    pushback.write("in/settings.yaml", CONFIG_MAP);
    pushback
}

const APPLY: &[&str] =
    &["apply", "-a", "shop", "-f", "in", "--config", "config.yaml", "--cluster", "dir:live", "--yes"];

fn a_dropped_webhook_is_refused_and_passes_with_a_waiver() {
    let pushback = upgraded(&config(""));
    let live = pushback.tree("live");
    let mut arguments = APPLY.to_vec();
    arguments.extend(["--report", "json=r.json", "--report", "sarif=r.sarif", "--report", "markdown=r.md"]);
    let refused = pushback.run(&arguments).expect(10);
    assert!(refused.stdout.contains("validating webhook carts.shop.example is gone"), "{}", refused.stdout);
    assert!(refused.stderr.contains("note 1 experiment written to out\n"), "{}", refused.stderr);
    assert_eq!(pushback.tree("live"), live, "nothing is written");
    let report: Value = serde_json::from_str(&pushback.read("r.json")).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["check"] == "WebhookRemoved" && finding["verdict"] == "breaking"));
    assert!(pushback.read("r.sarif").contains("UpgradeDiff/WebhookRemoved"));
    assert!(pushback.read("r.md").contains("carts.shop.example is gone"));
    let manifest = pushback.read("out/suite-manifest.yaml");
    assert!(manifest.contains("kind: UpgradeSuite"), "{manifest}");
    assert!(manifest.contains("ConfigDrift") && manifest.contains("ValidatingWebhookConfiguration shop"), "{manifest}");
    pushback.write("config.yaml", config(WAIVER));
    let passed = pushback.run(APPLY).expect(0);
    assert!(passed.stdout.contains("the definition's own rules check the same"), "{}", passed.stdout);
    assert_eq!(pushback.read("out/suite-manifest.yaml"), manifest, "the same changes, the same suite");
}

fn what_is_wrong_with_a_model_is_an_error_of_the_input() {
    let pushback = upgraded(&config("").replace("experiments: out", "model: model.yaml"));
    let missing = pushback.run(APPLY).expect(1);
    assert!(missing.stderr.contains("model.yaml"), "{}", missing.stderr);
    pushback.write("model.yaml", "operator: {name: shop, namespace: shop}\ncomponents: []\nrecover: {}\n");
    let wrong = pushback.run(APPLY).expect(1);
    assert!(wrong.stderr.contains("model.yaml:3:") && wrong.stderr.contains("recover"), "{}", wrong.stderr);
    pushback.write("model.yaml", CONFIG_MAP);
    let none = pushback.run(APPLY).expect(1);
    assert!(none.stderr.contains("holds no operator model"), "{}", none.stderr);
}

fn a_folder_with_other_files_is_left_alone() {
    let pushback = upgraded(&config(WAIVER));
    pushback.write("out/thesis.txt", "years of work");
    let live = pushback.tree("live");
    let refused = pushback.run(APPLY).expect(1);
    assert!(refused.stderr.contains("out"), "{}", refused.stderr);
    assert_eq!(pushback.read("out/thesis.txt"), "years of work");
    assert_eq!(pushback.tree("live"), live, "nothing is applied");
}
