//! Real upgrades: the definitions of consecutive releases of projects. `PUSHBACK_CRDS` names folders of projects, each with
//! a folder for every release; without it the few in `tests/data/crds` are taken. `PUSHBACK_SHOW=1` prints the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pushback_manifest::yaml;
use pushback_objects::Verdict;
use pushback_objects::finding::Finding;
use serde_json::{Value, json};

use super::verdicts::{lacks_witness, line};
use super::{judge, verdict};
use crate::support::case::show;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![Nothing: real_upgrades_are_judged_with_evidence]
}

/// The definitions of a release, by channel and name.
type Release = BTreeMap<String, Value>;

/// Two releases of a project, one after the other.
pub(super) struct Upgrade {
    /// Project and versions.
    pub(super) name: String,
    /// The definitions that both have and that differ.
    pub(super) changed: Vec<(Value, Value)>,
    gone: usize,
}

fn real_upgrades_are_judged_with_evidence() {
    let upgrades = upgrades();
    let mut wrong = Vec::new();
    show("project and releases | changed | verdict | breaking | unknown | change | gone | time");
    let mut changed = 0;
    for upgrade in &upgrades {
        changed += upgrade.changed.len();
        let start = Instant::now();
        let judged: Vec<Vec<Finding>> = upgrade.changed.iter().map(|(old, new)| judge(old, new).findings).collect();
        let findings = judged.concat();
        show(&row(upgrade, &findings, start.elapsed()));
        findings.iter().for_each(|finding| show(&format!("    {} {}", finding.object.name, line(finding))));
        for finding in findings.iter().filter(|finding| lacks_witness(finding)) {
            wrong.push(format!("{}: no witness: {}", upgrade.name, line(finding)));
        }
        for (old, _) in &upgrade.changed {
            let itself = judge(old, old).findings;
            wrong.extend(itself.iter().map(|finding| format!("{}: against itself: {}", upgrade.name, line(finding))));
        }
    }
    assert!(changed > 0, "no definition changes between the releases that were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn row(upgrade: &Upgrade, findings: &[Finding], time: Duration) -> String {
    let count = |verdict: Verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    format!(
        "{} | {} | {} | {} | {} | {} | {} | {} ms",
        upgrade.name,
        upgrade.changed.len(),
        verdict(findings),
        count(Verdict::Breaking),
        count(Verdict::Unknown),
        count(Verdict::Change),
        upgrade.gone,
        time.as_millis()
    )
}

/// All pairs of consecutive releases.
pub(super) fn upgrades() -> Vec<Upgrade> {
    let mut found = Vec::new();
    for (project, releases) in projects() {
        let releases: Vec<(&Vec<u64>, &(String, Release))> = releases.iter().collect();
        for pair in releases.windows(2) {
            let [(_, (before, old)), (_, (after, new))] = pair else { continue };
            let both = old.iter().filter_map(|(name, old)| Some((installed(old), new.get(name)?.clone())));
            let changed = both.filter(|(old, new)| old["spec"] != new["spec"]).collect();
            let gone = old.keys().filter(|name| !new.contains_key(*name)).count();
            found.push(Upgrade { name: format!("{project} {before} to {after}"), changed, gone });
        }
    }
    found
}

/// As a cluster has it on which this release was the first.
fn installed(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let stored: Vec<&Value> =
        versions.iter().filter(|version| version["storage"] == true).map(|version| &version["name"]).collect();
    definition["status"] = json!({"storedVersions": stored});
    definition
}

/// By project, then by the numbers in the version.
type Projects = BTreeMap<String, BTreeMap<Vec<u64>, (String, Release)>>;

fn projects() -> Projects {
    let mut projects = Projects::new();
    let Some(given) = std::env::var_os("PUSHBACK_CRDS") else {
        let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crds");
        for file in files(&known) {
            // gateway-api-1.1.1-standard-referencegrants.json
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let parts: Vec<&str> = name.split('-').collect();
            let Some(place) = parts.iter().position(|part| part.starts_with(|first: char| first.is_ascii_digit()))
            else {
                continue;
            };
            add(&mut projects, &parts[..place].join("-"), parts[place], &parts[place + 1..].join("-"), &file);
        }
        return projects;
    };
    for root in std::env::split_paths(&given) {
        for project in folders(&root) {
            for release in folders(&project) {
                for file in files(&release) {
                    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    // Gateway API has two channels with definitions of the same names.
                    let channel =
                        name(&file).split_once('_').map(|(channel, _)| channel.to_owned()).unwrap_or_default();
                    add(&mut projects, &name(&project), &name(&release), &channel, &file);
                }
            }
        }
    }
    projects
}

fn add(projects: &mut Projects, project: &str, version: &str, channel: &str, file: &Path) {
    let shown = file.display().to_string();
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let loaded = yaml::load(&shown, &bytes, &yaml::Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let numbers: Vec<u64> =
        version.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
    let releases = projects.entry(project.to_owned()).or_default();
    let (_, release) = releases.entry(numbers).or_insert_with(|| (version.to_owned(), Release::new()));
    let definitions = loaded
        .documents
        .into_iter()
        .map(|document| document.value)
        .filter(|it| it["kind"] == "CustomResourceDefinition");
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        release.insert(format!("{channel} {name}"), definition);
    }
}

fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    let listed = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    listed.map(|entry| entry.expect("an entry").path()).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// YAML and JSON, in folders below too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let is_read = |path: &Path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "json");
    entries(folder)
        .into_iter()
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| is_read(path))
        .collect()
}
