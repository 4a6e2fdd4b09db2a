//! Applying small apps in tests: an input, one call, and questions to the events that came of it.

use serde_json::Value;

use super::TestCluster;
use super::pushback::{Pushback, Ran};

/// One app that a test works on.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) pushback: Pushback,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl TestApp {
    /// An app of the shared cluster's admin.
    pub(crate) fn new(name: &str, namespace: &str) -> Self {
        Self::of(Pushback::on(TestCluster::shared()), name, namespace)
    }

    /// An app of another user.
    pub(crate) fn of(pushback: Pushback, name: &str, namespace: &str) -> Self {
        Self { pushback, name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// Runs a command on the app, with JSON output and without questions.
    #[track_caller]
    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> Ran {
        let common = [command, "-a", &self.name, "-n", &self.namespace, "-o", "json"];
        self.pushback.run(&[&common[..], arguments].concat())
    }

    /// Applies a file `app.yaml` with this text.
    #[track_caller]
    pub(crate) fn apply(&self, input: &str, arguments: &[&str]) -> Ran {
        self.pushback.write("app.yaml", input);
        self.run("apply", &[&["-f", "app.yaml", "--yes"][..], arguments].concat())
    }

    /// Deletes the app.
    #[track_caller]
    pub(crate) fn delete(&self, arguments: &[&str]) -> Ran {
        self.run("delete", &[&["--yes"][..], arguments].concat())
    }

    /// The path of the app's record.
    pub(crate) fn record_path(&self) -> String {
        config_map_path(&self.namespace, &self.name)
    }

    /// The app's record.
    #[track_caller]
    pub(crate) fn record(&self) -> Value {
        TestCluster::shared().api().get(&self.record_path()).ok()
    }

    /// kapp's part of the record.
    #[track_caller]
    pub(crate) fn spec(&self) -> Value {
        parse_text(&self.record()["data"]["spec"])
    }

    /// The value of the app's label.
    #[track_caller]
    pub(crate) fn label(&self) -> String {
        self.spec()["labelValue"].as_str().expect("a label value").to_owned()
    }

    /// The app's history, oldest first.
    #[track_caller]
    pub(crate) fn history(&self) -> Vec<Value> {
        let selector = format!("kapp.k14s.io/app-change-app-label={}", self.label());
        let path = format!("/api/v1/namespaces/{}/configmaps?labelSelector={}", self.namespace, encode(&selector));
        let mut entries = TestCluster::shared().api().list(&path);
        entries.sort_by_key(|entry| parse_text(&entry["data"]["spec"])["startedAt"].to_string());
        entries
    }

    /// `Kind name` of what `inspect` shows of the app itself.
    #[track_caller]
    pub(crate) fn inspected(&self) -> Vec<String> {
        let report = self.run("inspect", &[]).expect(0).json();
        report["objects"].as_array().expect("objects").iter().map(|line| short(&line["object"])).collect()
    }
}

/// The path of a ConfigMap.
pub(crate) fn config_map_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

/// A ConfigMap manifest; `metadata` is put below `metadata` as flow YAML, `{labels: {a: b}}`.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value:?}\n")
}

/// A ConfigMap manifest with annotations, given as lines of YAML.
pub(crate) fn annotated(name: &str, annotations: &[(&str, &str)]) -> String {
    let lines: String = annotations.iter().map(|(key, value)| format!("    {key}: {value:?}\n")).collect();
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n{lines}data:\n  key: value\n"
    )
}

/// Text that holds JSON.
#[track_caller]
pub(crate) fn parse_text(text: &Value) -> Value {
    let text = text.as_str().unwrap_or_else(|| panic!("{text} is no text"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// `Kind name` of an object in an event or report.
pub(crate) fn short(object: &Value) -> String {
    format!("{} {}", object["kind"].as_str().unwrap_or_default(), object["name"].as_str().unwrap_or_default())
}

fn encode(selector: &str) -> String {
    url::form_urlencoded::byte_serialize(selector.as_bytes()).collect()
}

/// `create ConfigMap a`, … of the plan that was shown last, in its order.
#[track_caller]
pub(crate) fn planned(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let plan = events.iter().rfind(|event| event["type"] == "plan").expect("a plan");
    let changes = plan["changes"].as_array().expect("changes");
    changes
        .iter()
        .map(|change| format!("{} {}", change["operation"].as_str().unwrap_or_default(), short(&change["object"])))
        .collect()
}

/// The place of an event among all, by type and `Kind name`; fails where there is none.
#[track_caller]
pub(crate) fn moment(events: &[Value], kind: &str, object: &str) -> usize {
    events
        .iter()
        .position(|event| event["type"] == kind && short(&event["object"]) == object)
        .unwrap_or_else(|| panic!("no {kind} of {object} in {events:#?}"))
}

/// Fails unless the second change started after the first had ended.
#[track_caller]
pub(crate) fn assert_order(ran: &Ran, first: &str, second: &str) {
    let events = ran.events();
    let (done, start) = (moment(&events, "change.done", first), moment(&events, "change.start", second));
    assert!(done < start, "{second} was started before {first} was done");
}

/// The codes and messages of a run's warnings.
#[track_caller]
pub(crate) fn warnings(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let warnings = events.iter().filter(|event| event["type"] == "warning");
    warnings.map(|event| format!("{}: {}", event["code"], event["message"])).collect()
}

/// The error of the run's last event, with its hints.
#[track_caller]
pub(crate) fn error(ran: &Ran) -> String {
    let events = ran.events();
    let last = events.last().expect("events");
    assert_eq!(last["type"], "run.end");
    format!("{} {}", last["error"], last["hints"])
}
