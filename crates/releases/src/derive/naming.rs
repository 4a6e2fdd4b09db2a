//! Names of a derived release, its operators and its components.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::hex;
use pushback_objects::object::ObjectExt;
use sha2::{Digest, Sha256};

use super::objects::{Index, Object, most_frequent};
use super::workload::{self, Workload};

const PART_OF: &str = "app.kubernetes.io/part-of";
/// Labels that name an app, the most specific first.
const NAMES: [&str; 4] = [PART_OF, "app.kubernetes.io/instance", "app.kubernetes.io/name", "app"];
/// Name of an app without one.
const UNNAMED: &str = "app";

/// The operator of each object. There are several only if workloads declare different ones: a single label, perhaps new
/// in a release, must not split an app.
#[derive(Debug)]
pub(super) struct OperatorNames<'a> {
    app: String,
    parts: BTreeSet<&'a str>,
}

impl<'a> OperatorNames<'a> {
    pub(super) fn new(app: &str, objects: &'a [Object], workloads: &[Workload<'a>]) -> Self {
        let named = workloads.iter().filter_map(|workload| workload.object.value.label(PART_OF));
        let parts: BTreeSet<&str> = named.filter(|name| !name.is_empty()).collect();
        let most = |label: &str| {
            let of_workloads = most_frequent(workloads.iter().filter_map(|it| it.object.value.label(label)));
            of_workloads.or_else(|| most_frequent(objects.iter().filter_map(|it| it.value.label(label))))
        };
        let own = || NAMES.iter().find_map(|label| most(label)).unwrap_or(UNNAMED);
        let app = if app.is_empty() { own() } else { app };
        Self { app: app.to_owned(), parts: if parts.len() > 1 { parts } else { BTreeSet::new() } }
    }

    pub(super) fn of(&self, object: &Object) -> String {
        let own = object.value.label(PART_OF).filter(|name| self.parts.contains(name));
        own.unwrap_or(&self.app).to_owned()
    }
}

/// Unique names for the components of workloads, within their operators.
pub(super) fn component_names(index: &Index<'_>, workloads: &[Workload<'_>], operators: &[String]) -> Vec<String> {
    let namespaces: Vec<&str> = workloads.iter().map(|workload| index.namespace_of(workload.at)).collect();
    let mut homes: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for (number, workload) in workloads.iter().enumerate() {
        homes.entry((&operators[number], workload.component_name())).or_default().insert(namespaces[number]);
    }
    let mut taken: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut names = Vec::with_capacity(workloads.len());
    for (number, workload) in workloads.iter().enumerate() {
        let (operator, plain) = (operators[number].as_str(), workload.component_name());
        let is_alone = homes.get(&(operator, plain.clone())).is_none_or(|homes| homes.len() == 1);
        let mut name = if is_alone { plain } else { format!("{}/{plain}", namespaces[number]) };
        if taken.contains(&(operator, name.clone())) {
            name = format!("{name}-{}", workload.object.reference.kind.to_lowercase());
        }
        while taken.contains(&(operator, name.clone())) {
            name.push_str("-other");
        }
        taken.insert((operator, name.clone()));
        names.push(name);
    }
    names
}

/// Name of the component for unclaimed objects.
pub(super) fn remainder(operator: &str, taken: &BTreeSet<String>) -> String {
    let mut name = format!("{operator}-shared");
    while taken.contains(&name) {
        name.push_str("-other");
    }
    name
}

/// The namespace of most workloads; without workloads, the one that most objects are in or create.
pub(super) fn namespace(index: &Index<'_>, workloads: &[&Workload<'_>], objects: &[usize]) -> String {
    let of_workloads = most_frequent(workloads.iter().map(|workload| index.namespace_of(workload.at)));
    let of_objects = || most_frequent(objects.iter().map(|at| index.all[*at].reference.namespace.as_str()));
    let made = || {
        let made = objects.iter().map(|at| &index.all[*at]).filter(|object| object.is("", "Namespace"));
        most_frequent(made.map(|object| object.reference.name.as_str()))
    };
    of_workloads.or_else(of_objects).or_else(made).unwrap_or_default().to_owned()
}

/// The version that most workloads declare: a label, the chart's version, or the tag of their image.
pub(super) fn version(workloads: &[&Workload<'_>], objects: &[&Object]) -> Option<String> {
    let by_label = |object: &&Object| object.value.label("app.kubernetes.io/version").map(ToOwned::to_owned);
    let by_chart = |object: &&Object| object.value.label("helm.sh/chart").and_then(chart_version);
    let own: Vec<&Object> = workloads.iter().map(|workload| workload.object).collect();
    let centre = if own.is_empty() { objects } else { &own };
    let tags = || {
        let tags = workloads.iter().filter_map(|workload| workload::tag(workload.main_image()));
        tags.filter(|tag| *tag != "latest").map(ToOwned::to_owned)
    };
    agreed(centre.iter().filter_map(by_label), centre.len())
        .or_else(|| agreed(centre.iter().filter_map(by_chart), centre.len()))
        .or_else(|| agreed(tags(), workloads.len()))
}

/// The value of more than half of them.
fn agreed(said: impl Iterator<Item = String>, of: usize) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for text in said {
        *counts.entry(text).or_default() += 1;
    }
    counts.into_iter().find(|(_, count)| count * 2 > of).map(|(text, _)| text)
}

/// `ingress-nginx-4.11.3` is version 4.11.3 of a chart: the version starts at the first part that is a number followed
/// by a dot.
fn chart_version(chart: &str) -> Option<String> {
    let starts = chart.match_indices('-').map(|(at, _)| &chart[at + 1..]);
    let is_version = |rest: &&str| {
        let rest = rest.strip_prefix('v').unwrap_or(rest);
        let major = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        major > 0 && rest[major..].starts_with('.')
    };
    starts.into_iter().find(is_version).map(|version| version.replace('_', "+"))
}

/// A version for a release that declares none: equal content, equal version.
pub(super) fn content_version(objects: &[Object]) -> String {
    let mut digest = Sha256::new();
    for object in objects {
        digest.update(object.value.to_string());
        digest.update([0]);
    }
    format!("sha-{}", hex::encode(&digest.finalize()[..6]))
}
