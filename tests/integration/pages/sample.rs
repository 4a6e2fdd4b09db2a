//! Pages of real refusals, and of one with as many findings as wanted.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::refusal_pages::unpacked;
use crate::support::Pushback;
use crate::support::browser::Browser;

/// An app and two of its releases.
pub(super) type Releases = (&'static str, [&'static str; 2]);

pub(super) const ARGO_CD: Releases = ("argo-cd", ["v2.14.21", "v3.5.1"]);
pub(super) const STRIMZI: Releases = ("strimzi", ["0.48.0", "1.0.0"]);

/// A folder with a page in it.
pub(super) struct Sample {
    pub(super) pushback: Pushback,
    file: &'static str,
}

impl Sample {
    /// The refusal of an upgrade, on a folder.
    pub(super) fn refusal(releases: &Releases) -> Self {
        Self::of(unpacked(releases.0, releases.1))
    }

    /// What an upgrade changes.
    pub(super) fn upgrade_diff(releases: &Releases) -> Self {
        let pushback = unpacked(releases.0, releases.1);
        let diff = ["upgrade", "diff", "--from", "old", "--to", "new", "--fail-on", "never", "--output", "diff.html"];
        pushback.run(&diff).expect(0);
        Self { pushback, file: "diff.html" }
    }

    /// The refusal of a definition that loses these fields.
    pub(super) fn removed_fields(names: impl IntoIterator<Item = String>) -> Self {
        let fields: serde_json::Map<String, Value> =
            names.into_iter().map(|name| (name, json!({"type": "string"}))).collect();
        let definition = |fields: Value| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "foos.ex.com"},
                "spec": {
                    "group": "ex.com", "scope": "Namespaced",
                    "names": {"kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                            "type": "object", "properties": fields,
                        }}}},
                    }],
                },
            })
            .to_string()
        };
        let pushback = Pushback::new();
        pushback.write("old/crd.yaml", definition(Value::Object(fields)));
        pushback.write("new/crd.yaml", definition(json!({"kept": {"type": "string"}})));
        Self::of(pushback)
    }

    fn of(pushback: Pushback) -> Self {
        let sample = Self { pushback, file: "report.html" };
        sample.again();
        sample
    }

    /// Checks anew, and reads the page.
    pub(super) fn again(&self) -> String {
        let reports = ["--report", "html=report.html", "--report", "json=report.json"];
        let refused = [&["check", "-f", "new", "--cluster", "dir:old"][..], &reports].concat();
        self.pushback.run(&refused).expect(10);
        self.pushback.read(self.file)
    }

    /// The same report as JSON.
    pub(super) fn report(&self) -> Value {
        self.pushback.read_json("report.json")
    }

    /// The page's path.
    pub(super) fn path(&self) -> PathBuf {
        self.pushback.directory().join(self.file)
    }

    /// The page in a browser, at a place in it.
    pub(super) fn open(&self, fragment: &str) -> Browser {
        Browser::open(&self.path(), fragment)
    }
}
