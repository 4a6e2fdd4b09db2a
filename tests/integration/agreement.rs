//! `diff`, `check`, `upgrade diff` and `upgrade diff-crds` name the same removed and changed objects, on pairs of folders:
//! real releases, CRDs, and random removals. What `upgrade diff` calls a breaking removal is at least a warning in `check`.
//!
//! `PUSHBACK_PAIRS` adds folders of projects, each with a folder for every release, or with `old.yaml` and `new.yaml`.
//! `PUSHBACK_SHOW=1` prints the figures.

mod pairs;
mod removals;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::pairs::{Pair, pairs};
use crate::support::case::show;
use crate::support::{Pushback, Ran, TestCase, cases, rounds};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: commands_agree_on_every_pair_of_releases,
        Nothing: commands_agree_on_random_removals,
        Nothing: commands_agree_on_removed_webhooks,
        Nothing: commands_agree_on_removed_admission_policies,
        Nothing: every_release_is_equal_to_itself,
    ]
}

fn commands_agree_on_every_pair_of_releases() {
    let mut count = Count::default();
    for pair in pairs() {
        count.compare(&pair);
        // A large release takes seconds.
        if pair.is_small() || rounds(0, 1) > 0 {
            count.compare(&pair.reversed());
        }
    }
    assert!(count.pairs > 40, "{count:?}");
    count.finish();
}

fn commands_agree_on_random_removals() {
    let mut count = Count::default();
    for seed in 0..rounds(6, 200) {
        count.compare(&removals::pair(seed as u64));
    }
    count.finish();
}

fn commands_agree_on_removed_webhooks() {
    let mut count = Count::default();
    for (pair, removed) in removals::of_webhooks() {
        count.compare(&pair);
        let pushback = Pushback::new();
        pair.write(&pushback);
        let runs = Runs::of(&pushback);
        let of_diff =
            runs.components.iter().filter(|it| it["type"] == "WebhookRemoved" && it["severity"] == "breaking");
        assert_eq!(of_diff.count(), removed, "{}: {:?}", pair.name, runs.components);
        let of_check = runs.findings.iter().filter(|it| it["check"] == "webhookRemoved");
        let named: usize = of_check.map(|finding| list(&finding["old"]).len()).sum();
        assert_eq!(named, removed, "{}: {:?}", pair.name, runs.findings);
    }
    count.finish();
}

fn commands_agree_on_removed_admission_policies() {
    let mut count = Count::default();
    let pair = removals::of_policies();
    count.compare(&pair);
    count.finish();
    let pushback = Pushback::new();
    pair.write(&pushback);
    let runs = Runs::of(&pushback);
    let warned =
        runs.findings.iter().filter(|it| it["check"] == "admissionPolicyRemoved" && it["severity"] == "warning");
    assert_eq!(warned.count(), 4, "{:?}", runs.findings);
}

fn every_release_is_equal_to_itself() {
    for pair in pairs().into_iter().filter(|pair| !pair.is_small()) {
        let pushback = Pushback::new();
        let itself = Pair { new: pair.old.clone(), ..pair };
        itself.write(&pushback);
        let runs = Runs::of(&pushback);
        if runs.codes().contains(&1) {
            continue;
        }
        assert!(runs.plan.is_empty(), "{}: {:?}", itself.name, runs.plan.keys());
        assert!(runs.components.is_empty() && runs.crds.is_empty(), "{}", itself.name);
        let told = runs.findings.iter().filter(|it| it["check"] != "invalid" && it["severity"] != "info");
        assert_eq!(told.count(), 0, "{}: {:?}", itself.name, runs.findings);
    }
}

/// How many pairs and commands there were, and every disagreement.
#[derive(Debug, Default)]
struct Count {
    pairs: usize,
    commands: usize,
    disagreements: Vec<String>,
}

impl Count {
    fn compare(&mut self, pair: &Pair) {
        let pushback = Pushback::new();
        pair.write(&pushback);
        let runs = Runs::of(&pushback);
        self.pairs += 1;
        self.commands += runs.exits.len();
        let told = disagreements(&runs);
        self.disagreements.extend(told.into_iter().map(|told| format!("{}: {told}", pair.name)));
    }

    fn finish(self) {
        let Self { pairs, commands, disagreements } = self;
        show(&format!("{pairs} pairs, {commands} commands, {} disagreements", disagreements.len()));
        assert!(disagreements.is_empty(), "{pairs} pairs, {commands} commands:\n{}", disagreements.join("\n"));
    }
}

/// Group, kind, namespace and name. Objects of namespaced kinds that name no namespace are in `default`.
type Key = (String, String, String, String);

/// The four commands on `old` and `new`.
struct Runs {
    exits: BTreeMap<&'static str, i32>,
    complaints: String,
    /// Operation and changed paths of each planned object, unchanged ones left out.
    plan: BTreeMap<Key, (String, Vec<String>)>,
    /// Findings of `check`.
    findings: Vec<Value>,
    /// Changes of components, from `upgrade diff`.
    components: Vec<Value>,
    /// Changes of CRDs, from `upgrade diff`.
    crds: Vec<Value>,
    /// CRDs of `upgrade diff-crds`; `None` if no side has one.
    listed: Option<Vec<Value>>,
}

impl Runs {
    fn of(pushback: &Pushback) -> Self {
        let base = ["-f", "new", "--cluster", "dir:old", "-o", "json"];
        let sides = ["--from", "old", "--to", "new", "--format", "json", "--fail-on", "never"];
        let diff = pushback.run(&[&["diff"][..], &base].concat());
        let check = pushback.run(&[&["check"][..], &base].concat());
        let upgrade = pushback.run(&[&["upgrade", "diff"][..], &sides].concat());
        let crds = pushback.run(&[&["upgrade", "diff-crds"][..], &sides].concat());
        let has_no_crd = crds.code == 1 && crds.stderr.contains("holds a CustomResourceDefinition");
        let code = if has_no_crd { 0 } else { crds.code };
        let exits = [("diff", diff.code), ("check", check.code), ("upgrade diff", upgrade.code), ("diff-crds", code)];
        let complaints = [&diff, &check, &upgrade, &crds].map(Ran::complaints).concat();
        let report = |ran: &Ran| -> Value { serde_json::from_str(&ran.stdout).unwrap_or_default() };
        let (check, upgrade, crds) = (report(&check), report(&upgrade), report(&crds));
        let components = list(&upgrade["componentChanges"]).into_iter().flat_map(|it| list(&it["changes"]));
        Self {
            exits: exits.into(),
            complaints,
            plan: if diff.code == 1 { BTreeMap::new() } else { planned(&diff) },
            findings: list(&check["findings"]),
            components: components.filter(|it| it["type"] != "CRDSchemaChange").collect(),
            crds: list(&upgrade["crdChanges"]),
            listed: (!has_no_crd).then(|| list(&crds["crds"])),
        }
    }

    fn codes(&self) -> BTreeSet<i32> {
        self.exits.values().map(|code| i32::from(*code == 1)).collect()
    }

    /// Errors and warnings about an object of this kind and name.
    fn alarms<'r>(&'r self, kind: &'r str, name: &'r str) -> impl Iterator<Item = &'r Value> {
        self.findings
            .iter()
            .filter(|finding| finding["severity"] == "error" || finding["severity"] == "warning")
            .filter(move |finding| finding["object"]["kind"] == kind && finding["object"]["name"] == name)
    }
}

fn planned(diff: &Ran) -> BTreeMap<Key, (String, Vec<String>)> {
    let plans = diff.events_of("plan");
    let changes = plans.iter().flat_map(|plan| list(&plan["changes"]));
    let change = |change: Value| {
        let paths = list(&change["fields"]).iter().map(|field| text(&field["path"])).collect();
        (key(&change["object"]), (text(&change["operation"]), paths))
    };
    changes.map(change).collect()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

const CLUSTER_SCOPED: [&str; 12] = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
];

fn key(object: &Value) -> Key {
    let kind = text(&object["kind"]);
    let namespace = match text(&object["namespace"]) {
        _ if CLUSTER_SCOPED.contains(&kind.as_str()) => String::new(),
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    (text(&object["group"]), kind, namespace, text(&object["name"]))
}

fn is_crd(key: &Key) -> bool {
    key.1 == "CustomResourceDefinition"
}

/// Every fact that one command tells and another one denies.
fn disagreements(runs: &Runs) -> Vec<String> {
    if runs.codes().len() > 1 {
        return vec![format!("exit codes {:?}\n{}", runs.exits, runs.complaints)];
    }
    let mut told = Vec::new();
    if runs.codes().contains(&1) {
        return told;
    }
    of_crds(runs, &mut told);
    of_removed_fields(runs, &mut told);
    of_objects(runs, &mut told);
    of_breaking_removals(runs, &mut told);
    told
}

/// The CRDs that are removed and changed.
fn of_crds(runs: &Runs, told: &mut Vec<String>) {
    let planned = |operation: &str| -> BTreeSet<String> {
        let crds = runs.plan.iter().filter(|(key, (done, _))| is_crd(key) && done == operation);
        crds.map(|(key, _)| key.3.clone()).collect()
    };
    let named = |change: &str| -> BTreeSet<String> {
        let of_type = runs.crds.iter().filter(|it| it["type"] == change);
        of_type.map(|it| text(&it["crdName"])).collect()
    };
    let listed = |change: &str| -> BTreeSet<String> {
        let crds = runs.listed.iter().flatten().filter(|it| it["changeType"] == change);
        crds.map(|it| text(&it["crdName"])).collect()
    };
    for (operation, change, list) in [("delete", "CRDRemoved", "Removed"), ("create", "CRDAdded", "Added")] {
        let (planned, named, listed) = (planned(operation), named(change), listed(list));
        if planned != named || named != listed {
            told.push(format!("{change}: plan {planned:?}, upgrade diff {named:?}, diff-crds {listed:?}"));
        }
    }
    for name in planned("delete") {
        if runs.alarms("CustomResourceDefinition", &name).all(|finding| finding["check"] != "crdDeletion") {
            told.push(format!("{name} is deleted without a finding"));
        }
    }
    let in_list = runs.listed.iter().flatten().flat_map(|crd| {
        let versions = list(&crd["apiVersions"]).into_iter().flat_map(|version| list(&version["schemaChanges"]));
        list(&crd["changes"]).into_iter().chain(versions)
    });
    let in_list: BTreeSet<String> = in_list.map(|change| text(&change["id"])).collect();
    let in_diff: BTreeSet<String> = runs.crds.iter().map(|change| text(&change["id"])).collect();
    if in_list != in_diff {
        told.push(format!(
            "upgrade diff and diff-crds list other changes: {:?}",
            in_list.symmetric_difference(&in_diff)
        ));
    }
    let (updated, modified) = (planned("update"), listed("Modified"));
    told.extend(modified.difference(&updated).map(|name| format!("{name} is changed, and not in the plan")));
    // What diff-crds leaves out, descriptions and the like, must be without consequences.
    for name in updated.difference(&modified) {
        let alarms = runs.alarms("CustomResourceDefinition", name).filter(|finding| finding["check"] != "invalid");
        told.extend(alarms.map(|finding| format!("{name}: not in diff-crds: {}", finding["message"])));
    }
}

/// Removed fields and versions, by CRD, version and path. A CRD that no server accepts has no other findings.
fn of_removed_fields(runs: &Runs, told: &mut Vec<String>) {
    let place = |change: &Value, name: String| (name, text(&change["version"]), text(&change["path"]));
    let invalid: BTreeSet<String> = runs
        .findings
        .iter()
        .filter(|finding| finding["check"] == "invalid")
        .map(|finding| text(&finding["object"]["name"]))
        .collect();
    // A field that is removed and kept as an unknown one may be breaking for a default below it, which `check` names.
    let has_another_reason = |change: &Value| {
        let same = runs.findings.iter().find(|it| it["message"] == change["reason"]);
        change["type"] == "FieldRemoved"
            && same.is_some_and(|it| it["check"] != "existingFieldRemoval" && it["severity"] != "info")
    };
    let of_diff = |change: &str| -> BTreeSet<(String, String, String)> {
        let removed = runs.crds.iter().filter(|it| it["type"] == change && it["verdict"] == "breaking");
        let removed = removed.filter(|it| !has_another_reason(it));
        removed.map(|it| place(it, text(&it["crdName"]))).filter(|(name, ..)| !invalid.contains(name)).collect()
    };
    let of_check = |checks: &[&str]| -> BTreeSet<(String, String, String)> {
        let found = runs.findings.iter().filter(|it| checks.iter().any(|check| it["check"] == *check));
        let found = found.filter(|it| it["severity"] != "info").map(|it| place(it, text(&it["object"]["name"])));
        found.filter(|(name, ..)| !invalid.contains(name)).collect()
    };
    let removals = ["storedVersionRemoval", "servedVersionRemoval", "unservedVersionRemoval", "servedVersionUnserved"];
    for (change, checks) in [("FieldRemoved", &["existingFieldRemoval"][..]), ("APIVersionRemoved", &removals)] {
        let (diff, check) = (of_diff(change), of_check(checks));
        told.extend(diff.difference(&check).map(|place| format!("{change} {place:?} is not in check")));
        told.extend(check.difference(&diff).map(|place| format!("{place:?} of check is not {change} in upgrade diff")));
    }
}

/// Removed and changed objects other than CRDs.
fn of_objects(runs: &Runs, told: &mut Vec<String>) {
    let mut named: BTreeSet<Key> = BTreeSet::new();
    for change in &runs.components {
        if change["object"].is_object() {
            named.insert(key(&change["object"]));
        }
        let configuration = text(&change["webhook"]["configuration"]);
        for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
            let group = "admissionregistration.k8s.io".to_owned();
            named.insert((group, kind.to_owned(), String::new(), configuration.clone()));
        }
        // A renamed or moved object is named by its new identity.
        if change["type"] == "ResourceRenamed" || change["type"] == "ResourceMoved" {
            let (group, kind, namespace, name) = key(&change["object"]);
            let is_renamed = change["type"] == "ResourceRenamed";
            let (namespace, name) = match (is_renamed, text(&change["old"])) {
                (_, old) if old.is_empty() => (namespace, name),
                (true, old) => (namespace, old),
                (false, old) => (old, name),
            };
            named.insert((group, kind, namespace, name));
        }
    }
    for (key, (operation, paths)) in runs.plan.iter().filter(|(key, _)| !is_crd(key)) {
        let is_told = match operation.as_str() {
            "create" => true,
            "delete" => named.contains(key),
            // The version of the release is in the header of the comparison.
            _ => named.contains(key) || paths.iter().all(|path| is_version_label(path)),
        };
        if !is_told {
            told.push(format!("upgrade diff lacks: {operation} {key:?} {paths:?}"));
        }
    }
    for change in runs.components.iter().filter(|it| it["type"] == "ResourceRemoved") {
        let key = key(&change["object"]);
        let is_elsewhere = text(&change["message"]).contains("still by component");
        if !is_elsewhere && runs.plan.get(&key).is_none_or(|(operation, _)| operation != "delete") {
            told.push(format!("the plan lacks: delete {key:?}"));
        }
    }
}

fn is_version_label(path: &str) -> bool {
    path.starts_with("metadata.labels")
        && (path.contains("app.kubernetes.io/version") || path.contains("helm.sh/chart"))
}

/// What `upgrade diff` calls a breaking removal is at least a warning in `check`.
fn of_breaking_removals(runs: &Runs, told: &mut Vec<String>) {
    // Removed objects with data, also under their old name or in their old namespace.
    let of_data = ["Namespace", "PersistentVolume", "PersistentVolumeClaim"];
    let is_gone = |change: &&Value| {
        let kinds = ["ResourceRemoved", "ResourceRenamed", "ResourceMoved"];
        change["severity"] == "breaking" && kinds.contains(&text(&change["type"]).as_str())
    };
    for change in runs.components.iter().filter(is_gone) {
        let (kind, name) = (text(&change["object"]["kind"]), text(&change["object"]["name"]));
        let is_renamed = change["type"] == "ResourceRenamed";
        let name = if is_renamed { text(&change["old"]) } else { name };
        if of_data.contains(&kind.as_str()) && runs.alarms(&kind, &name).next().is_none() {
            told.push(format!("no warning in check: {} {}", change["path"], change["message"]));
        }
    }
    for change in runs.components.iter().filter(|it| it["severity"] == "breaking" && it["type"] == "WebhookRemoved") {
        let webhook = &change["webhook"];
        let (kind, name) = match text(&webhook["type"]).as_str() {
            "validating" => ("ValidatingWebhookConfiguration", text(&webhook["configuration"])),
            "mutating" => ("MutatingWebhookConfiguration", text(&webhook["configuration"])),
            _ => ("CustomResourceDefinition", text(&webhook["name"])),
        };
        if runs.alarms(kind, &name).next().is_none() {
            told.push(format!("no warning in check: {kind} {name}: {} {}", change["path"], change["message"]));
        }
    }
    // Manifests do not show finalizers, so that no other component change is a breaking removal.
    let is_known = |change: &Value| {
        let known = ["ComponentRemoved", "ResourceRemoved", "WebhookRemoved"];
        !text(&change["type"]).ends_with("Removed") || known.contains(&text(&change["type"]).as_str())
    };
    for change in runs.components.iter().filter(|it| it["severity"] == "breaking" && !is_known(it)) {
        told.push(format!("a kind of removal that is not compared with check: {}", change["type"]));
    }
    let is_removal = |change: &&Value| change["severity"] == "breaking" && text(&change["type"]).ends_with("Removed");
    for change in runs.crds.iter().filter(is_removal) {
        if change["verdict"] != "safe"
            && runs.alarms("CustomResourceDefinition", &text(&change["crdName"])).next().is_none()
        {
            told.push(format!("no warning in check: {} {} {}", change["crdName"], change["path"], change["detail"]));
        }
    }
}
