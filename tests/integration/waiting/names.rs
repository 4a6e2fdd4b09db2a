//! Names of CRDs: the server judges them some time after a write, and its status shows those that it judged last.

use serde_json::{Value, json};

use super::{App, end};
use crate::support::{TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: crd_whose_names_are_not_accepted_fails_and_its_correction_passes,
        ApiServer: name_of_a_crd_that_is_deleted_in_the_run_is_waited_for,
    ]
}

fn crd(app: &App, plural: &str, short: &[&str]) -> Value {
    let group = format!("{}.example.com", app.namespace);
    let kind = plural.trim_end_matches('s').to_uppercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "shortNames": short},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

fn crd_whose_names_are_not_accepted_fails_and_its_correction_passes() {
    let app = App::new("names");
    app.write(&[crd(&app, "gizmos", &["gz"])]).apply(&[]).expect(0);
    app.write(&[crd(&app, "gizmos", &["gizmo", "gz"])]);
    let refused = app.apply(&[]).expect(10);
    assert!(refused.events().iter().any(|event| event["finding"]["check"] == "namesConflict"), "{}", refused.stdout);
    let failed = app.apply(&["--preflight=none"]).expect(21);
    assert!(end(&failed)["unfinished"][0]["message"].as_str().is_some_and(|it| it.contains("ShortNamesConflict")));
    // Twice, since the status of the names before is there for some time.
    for short in ["gz", "g"] {
        app.write(&[crd(&app, "gizmos", &[short])]).apply(&[]).expect(0);
    }
}

fn name_of_a_crd_that_is_deleted_in_the_run_is_waited_for() {
    let app = App::new("names-freed");
    let holder = crd(&app, "holders", &["thing"]);
    app.write(std::slice::from_ref(&holder)).apply(&[]).expect(0);
    app.write(&[crd(&app, "takers", &["thing"])]);
    app.apply(&["--preflight=none"]).expect(0);
}
