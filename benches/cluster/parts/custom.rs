//! A definition that becomes stricter while there are objects of its kind: what it costs to look at all of them.

use serde_json::{Value, json};

use super::super::app::{App, Run, middle};
use super::super::progress;
use super::super::raw::Raw;
use super::super::support::{Options, TestCluster};
use super::super::table::{self, Row, Target};
use super::Bench;

const GROUP: &str = "bench.example.com";
/// How many objects hold more than the stricter definition allows.
const HARMED: usize = 3;
/// Objects in one answer.
const PAGE: usize = 250;

impl Bench {
    /// An apply that warns of the objects that it harms.
    pub(crate) fn custom(&self) -> String {
        let cluster = TestCluster::start(&Options::default());
        let count = self.size(5_000);
        progress(&format!("  {count} custom resources"));
        let namespace = cluster.namespace("notes");
        let kubeconfig = cluster.kubeconfig_path();
        let app = App { kubeconfig, namespace: &namespace };
        let raw = Raw { runtime: &self.runtime, kubeconfig, namespace: &namespace };
        app.apply(&[definition(20)]);
        raw.create(&(0..count).map(note).collect::<Vec<_>>());
        let (mut runs, mut times) = (Vec::new(), Vec::new());
        for _ in 0..if self.quick { 1 } else { self.rounds } {
            times.push(raw.list_all(&format!("/apis/{GROUP}/v1/notes"), PAGE));
            let run = app.apply(&[config(), definition(10)]);
            let counted = format!("\"affected\":{HARMED},\"examined\":{count}");
            assert!(run.usage.stdout.contains(&counted), "no {counted} in {}", run.usage.stdout);
            runs.push(run);
            app.apply(&[definition(20)]);
        }
        let target =
            Target { requests: Some(count.div_ceil(PAGE) as u64 + 30), mebibytes: Some(120), ..Target::default() };
        let what = format!("a stricter definition, {HARMED} of its {count} objects harmed");
        table::runs(&[Row { what, target, run: Run::median(&runs), raw: Some(*middle(&times, |time| *time)) }])
    }
}

/// Harm is told and not refused: the run goes on.
fn config() -> Value {
    let rule = json!({"name": "CRDUpgradeSafety", "config": {"mode": "warn"}});
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": [rule]})
}

fn definition(most: usize) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("notes.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "notes", "singular": "note", "kind": "Note"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "text": {"type": "string", "maxLength": most},
                }}},
            }}}],
        },
    })
}

fn note(number: usize) -> Value {
    let text = if number < HARMED { "much too long" } else { "short" };
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Note", "metadata": {"name": format!("note-{number:05}")},
        "spec": {"text": text},
    })
}
