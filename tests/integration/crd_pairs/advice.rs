//! The advice of every finding on real upgrades, followed: the step that `fix` names is not taken yet, it removes the finding,
//! and no other check objects to it. `PUSHBACK_CRDS` as in `upgrades`.

use std::collections::BTreeMap;

use pushback_objects::Verdict;
use pushback_objects::finding::Finding;
use serde_json::{Map, Value, json};

use super::judge;
use super::upgrades::upgrades;
use crate::support::case::show;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![Nothing: advice_on_real_upgrades_can_be_followed]
}

/// What came of following advice, by check: followed, and too vague to be followed by a machine.
type Counts = BTreeMap<String, [usize; 2]>;

fn advice_on_real_upgrades_can_be_followed() {
    let (mut counts, mut wrong) = (Counts::new(), Vec::new());
    for upgrade in upgrades() {
        for (old, new) in &upgrade.changed {
            let findings = judge(old, new).findings;
            // The same advice at the same place is followed once; a definition may have thousands of findings.
            let advised = findings.iter().filter(|finding| finding.verdict == Verdict::Breaking);
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for finding in advised {
                let count = seen.entry(&finding.check).or_default();
                *count += 1;
                if *count > MOST {
                    continue;
                }
                let followed = follow(old, new, finding);
                counts.entry(finding.check.clone()).or_default()[usize::from(followed.is_none())] += 1;
                let told =
                    |fault: String| format!("{}: {} {}: {fault}", upgrade.name, old["metadata"]["name"], line(finding));
                match followed {
                    Some(after) => wrong.extend(fault(old, new, &after, &findings, finding).map(told)),
                    None => wrong.extend(vague(old, new, finding).map(told)),
                }
            }
        }
    }
    for (check, [followed, vague]) in &counts {
        show(&format!("{check}: {followed} followed, {vague} by hand"));
    }
    assert!(wrong.is_empty(), "{} of {counts:?}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.values().map(|[followed, _]| followed).sum::<usize>() > 0, "no advice was followed");
}

/// Findings of one check that are followed for one definition.
const MOST: usize = 12;

fn line(finding: &Finding) -> String {
    let Finding { check, version, path, remedy, .. } = finding;
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{check} {} {}: fix: {}", or_nothing(version), or_nothing(path), or_nothing(remedy))
}

/// What is wrong with advice that was followed.
fn fault(old: &Value, new: &Value, after: &Value, before: &[Finding], finding: &Finding) -> Option<String> {
    if new == after {
        return Some("it is so already".to_owned());
    }
    let refuses = |finding: &&Finding| finding.verdict != Verdict::Change;
    let key = |finding: &Finding| (finding.check.clone(), finding.version.clone(), finding.path.clone());
    let left = judge(old, after).findings;
    if left.iter().filter(refuses).any(|left| key(left) == key(finding) && left.new == finding.new) {
        return Some("the finding is still there".to_owned());
    }
    let is_new = |left: &&Finding| !before.iter().filter(refuses).any(|known| key(known) == key(left));
    let other = left.iter().filter(refuses).find(is_new)?;
    Some(format!("and then: {} {}", line(other), other.message))
}

/// What is wrong with advice that takes a person: it names a version or a field that is not there, or none at all.
fn vague(old: &Value, new: &Value, finding: &Finding) -> Option<String> {
    let remedy = finding.remedy.as_deref().filter(|remedy| !remedy.is_empty());
    let Some(remedy) = remedy else { return Some("no advice".to_owned()) };
    let is_there = |name: &str| [old, new].iter().any(|side| version(side, name).is_some());
    let quoted = remedy.split('"').skip(1).step_by(2);
    quoted.into_iter().find(|name| !is_there(name)).map(|name| format!("there is no version {name:?}"))
}

fn version<'v>(definition: &'v Value, name: &str) -> Option<&'v Value> {
    definition["spec"]["versions"].as_array()?.iter().find(|version| version["name"] == name)
}

fn version_mut<'v>(definition: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    definition["spec"]["versions"].as_array_mut()?.iter_mut().find(|version| version["name"] == name)
}

/// The new definition with the first step of the advice taken; `None` where that takes a person.
fn follow(old: &Value, new: &Value, finding: &Finding) -> Option<Value> {
    let remedy = finding.remedy.as_deref()?;
    let name = finding.version.as_deref()?;
    let mut after = new.clone();
    if remedy.starts_with("keep serving ") || remedy.starts_with("keep \"") {
        keep_version(old, &mut after, name, remedy)?;
        for (field, other) in fields_to_add(remedy) {
            copy_field(old, name, &mut after, other, field)?;
        }
        return Some(after);
    }
    let path = finding.path.as_deref().unwrap_or_default();
    let before = node(version(old, name)?.pointer("/schema/openAPIV3Schema")?, path);
    let keep = |after: &mut Value, keyword: &str| {
        let now = node_mut(version_mut(after, name)?.pointer_mut("/schema/openAPIV3Schema")?, path)?;
        match before?.get(keyword) {
            Some(value) => now[keyword] = value.clone(),
            None => drop(now.as_object_mut()?.shift_remove(keyword)),
        }
        Some(())
    };
    match finding.check.as_str() {
        "type" if remedy.starts_with("leave the list as it was") => {
            let list = path.strip_suffix("[*]")?;
            let kept = node(version(old, name)?.pointer("/schema/openAPIV3Schema")?, list)?.clone();
            *node_mut(version_mut(&mut after, name)?.pointer_mut("/schema/openAPIV3Schema")?, list)? = kept;
        }
        "required" => {
            let names = finding.new.clone()?;
            let now = node_mut(version_mut(&mut after, name)?.pointer_mut("/schema/openAPIV3Schema")?, path)?;
            let required = now.get_mut("required")?.as_array_mut()?;
            required.retain(|name| !names.as_array().is_some_and(|names| names.contains(name)));
        }
        "existingFieldRemoval" => {
            let kept = remedy.split(", deprecated in").next()?;
            let others = kept.split('"').skip(1).step_by(2).filter(|other| *other != name);
            [name].into_iter().chain(others).try_for_each(|to| copy_field(old, name, &mut after, to, path))?;
        }
        "crossVersionLoss" if remedy.starts_with("name the field in the schema of") => {
            copy_field(old, finding.old.as_ref()?.as_str()?, &mut after, name, path)?;
        }
        "crossVersionLoss" if remedy.starts_with("set `nullable: true`") => {
            let root = version_mut(&mut after, name)?.pointer_mut("/schema/openAPIV3Schema")?;
            node_mut(root, path)?["nullable"] = json!(true);
        }
        "enum" if before?.get("enum").is_some() => {
            let values = before?.get("enum")?.as_array()?.clone();
            let now = node_mut(version_mut(&mut after, name)?.pointer_mut("/schema/openAPIV3Schema")?, path)?;
            let listed = now.get_mut("enum")?.as_array_mut()?;
            listed.extend(values.iter().filter(|value| !listed.contains(value)).cloned().collect::<Vec<_>>());
        }
        "fieldDeclared" => {
            let root = version_mut(&mut after, name)?.pointer_mut("/schema/openAPIV3Schema")?;
            *node_mut(root, path)? = json!({"x-kubernetes-preserve-unknown-fields": true});
        }
        "x-kubernetes-list-type" => {
            keep(&mut after, "x-kubernetes-list-type")?;
            keep(&mut after, "x-kubernetes-list-map-keys")?;
        }
        "default" | "nullable" | "x-kubernetes-map-type" | "x-kubernetes-preserve-unknown-fields" => {
            keep(&mut after, &finding.check)?;
        }
        keyword if remedy.starts_with(&format!("leave {keyword} ")) => keep(&mut after, keyword)?,
        _ => return None,
    }
    Some(after)
}

/// The fields that other versions need too, as `spec.a` and "v1".
fn fields_to_add(remedy: &str) -> Vec<(&str, &str)> {
    let clause = remedy.split_once(", and keep `").and_then(|(_, rest)| rest.split_once("\" too")).map(|(it, _)| it);
    let entries = clause.into_iter().flat_map(|clause| clause.split("\", `"));
    entries.filter_map(|entry| entry.split_once("` in \"")).collect()
}

/// Adds a field of the old definition to a version of the new one, with the objects that it is in.
fn copy_field(old: &Value, from: &str, after: &mut Value, to: &str, path: &str) -> Option<()> {
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
    let source = version(old, from)?.pointer("/schema/openAPIV3Schema")?;
    let kept = node(source, path)?.clone();
    if node(version(after, to)?.pointer("/schema/openAPIV3Schema")?, parent).is_none() {
        copy_field(old, from, after, to, parent)?;
        return Some(());
    }
    let root = version_mut(after, to)?.pointer_mut("/schema/openAPIV3Schema")?;
    let parent = node_mut(root, parent)?;
    if parent.get("properties").is_none() {
        parent["properties"] = Value::Object(Map::new());
    }
    parent["properties"][field] = kept;
    Some(())
}

/// The version as it was, stored in no more; what else the advice says of it.
fn keep_version(old: &Value, after: &mut Value, name: &str, remedy: &str) -> Option<()> {
    let mut kept = version(old, name)?.clone();
    if remedy.contains("mark it `deprecated: true`") {
        kept["deprecated"] = json!(true);
    }
    let versions = after["spec"]["versions"].as_array_mut()?;
    let is_stored = versions.iter().any(|version| version["name"] != name && version["storage"] == true);
    kept["storage"] = json!(!is_stored);
    versions.retain(|version| version["name"] != name);
    versions.push(kept);
    Some(())
}

/// The node of a schema that a finding names: `spec.disks[*].size`; `None` where a name is quoted.
fn node<'v>(schema: &'v Value, path: &str) -> Option<&'v Value> {
    steps(path)?.iter().try_fold(schema, |node, step| match step {
        Some(name) => node.get("properties")?.get(name),
        None => node.get("items").or_else(|| node.get("additionalProperties")),
    })
}

fn node_mut<'v>(schema: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    steps(path)?.iter().try_fold(schema, |node, step| match step {
        Some(name) => node.get_mut("properties")?.get_mut(name),
        None if node.get("items").is_some() => node.get_mut("items"),
        None => node.get_mut("additionalProperties"),
    })
}

/// Names of fields, and `None` for items and values.
fn steps(path: &str) -> Option<Vec<Option<&str>>> {
    if path.contains('"') {
        return None;
    }
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let name = part.trim_end_matches("[*]");
        steps.extend((!name.is_empty()).then_some(Some(name)));
        steps.extend((0..(part.len() - name.len()) / "[*]".len()).map(|_| None));
    }
    Some(steps)
}
