//! What has moved since a plan was saved: each difference as one sentence that names it.

use std::collections::BTreeMap;

use pushback_events::FieldLine;
use pushback_objects::{ObjectKey, Position, Severity};
use pushback_preflight::Operation;

use super::{SavedFile, SavedFinding, SavedObject, SavedPolicy, SavedVerdict};

/// Fields named in one sentence.
const NAMED: usize = 3;

/// Differences between the files that were read then and now.
#[must_use]
pub fn files(then: &[SavedFile], now: &[SavedFile]) -> Vec<String> {
    let digests = |files: &[SavedFile]| files.iter().map(|file| file.digest.clone()).collect::<Vec<_>>();
    // The names may differ: a checkout in another folder.
    if digests(then) == digests(now) {
        return Vec::new();
    }
    let by_name = |files: &[SavedFile]| -> BTreeMap<String, String> {
        files.iter().map(|file| (file.name.clone(), file.digest.clone())).collect()
    };
    let (before, after) = (by_name(then), by_name(now));
    let mut moved = Vec::new();
    for file in then {
        match after.get(&file.name) {
            Some(digest) if *digest == file.digest => {}
            Some(_) => moved.push(format!("{} was edited", file.name)),
            None => moved.push(format!("{} is no longer among the input", file.name)),
        }
    }
    let new = now.iter().filter(|file| !before.contains_key(&file.name));
    moved.extend(new.map(|file| format!("{} is new among the input", file.name)));
    if moved.is_empty() {
        moved.push("the files of the input are in another order".to_owned());
    }
    moved
}

/// Differences between policies.
#[must_use]
pub fn policies(then: &SavedPolicy, now: &SavedPolicy) -> Vec<String> {
    let mut moved: Vec<String> = files(&then.files, &now.files).iter().map(|text| format!("policy: {text}")).collect();
    let origin = |policy: &SavedPolicy| policy.source.clone().unwrap_or_else(|| "the manifests".to_owned());
    // Files are known by their content, wherever they are; another source only by its name.
    let is_named = then.files.is_empty() || now.files.is_empty();
    if then.source.is_some() != now.source.is_some() || is_named && moved.is_empty() && origin(then) != origin(now) {
        moved.push(format!("the policy comes from {}, and not from {}", origin(now), origin(then)));
    }
    for (rule, settings) in &then.rules {
        match now.rules.get(rule) {
            None => moved.push(format!("rule {rule} does not run")),
            Some(other) if other != settings => moved.push(format!("rule {rule} has other settings")),
            Some(_) => {}
        }
    }
    let new = now.rules.keys().filter(|rule| !then.rules.contains_key(*rule));
    moved.extend(new.map(|rule| format!("rule {rule} runs as well")));
    if then.waivers != now.waivers {
        moved.push(format!("other waivers are in effect: {} instead of {}", now.waivers.len(), then.waivers.len()));
    }
    moved
}

/// What stands against the plan now and did not when it was saved, and what the plan shows of a finding that is not so:
/// the digest of a plan does not say who wrote it. A warning that is gone does not matter.
#[must_use]
pub fn verdicts(then: &SavedVerdict, now: &SavedVerdict, reasons: &[String]) -> Vec<String> {
    let find = |finding: &SavedFinding| then.findings.iter().find(|other| other.fingerprint == finding.fingerprint);
    let matters = |finding: &&SavedFinding| finding.severity != Severity::Info && finding.waived.is_none();
    let told = |finding: &SavedFinding| {
        let SavedFinding { rule, object, message, severity, .. } = finding;
        match find(finding) {
            Some(before) if before.waived.is_some() => {
                Some(format!("the waiver of finding {} no longer holds: {object}: {message}", finding.fingerprint))
            }
            Some(before) if before.severity == *severity => None,
            Some(_) => Some(format!("{rule} says more of {object} than it did: {message}")),
            None => Some(format!("{rule} says of {object}: {message}")),
        }
    };
    let mut moved: Vec<String> = now.findings.iter().filter(matters).filter_map(told).collect();
    moved.extend(then.findings.iter().filter_map(|finding| shown_otherwise(finding, now)));
    if moved.is_empty() && now.outcome > then.outcome && !now.outcome.refuses() {
        moved.push(format!(
            "the verdict is {} now, and the plan shows {}",
            now.outcome.as_str(),
            then.outcome.as_str()
        ));
    }
    if moved.is_empty() && now.outcome.refuses() && !then.outcome.refuses() {
        moved.extend(reasons.iter().cloned());
        if moved.is_empty() {
            moved.push("preflight refuses it".to_owned());
        }
    }
    moved
}

/// What the plan shows of a finding and is not so now.
fn shown_otherwise(then: &SavedFinding, now: &SavedVerdict) -> Option<String> {
    let SavedFinding { fingerprint, object, .. } = then;
    let Some(found) = now.findings.iter().find(|other| other.fingerprint == *fingerprint) else {
        let is_harmless = then.severity != Severity::Info && then.waived.is_none();
        return (!is_harmless)
            .then(|| format!("the plan shows finding {fingerprint} of {object}, and preflight does not find it now"));
    };
    let shown = |it: &SavedFinding| (it.rule.clone(), it.check.clone(), it.object.clone(), it.message.clone());
    let is_same_reason = found.waived.is_none() || found.waived == then.waived;
    let is_same = shown(then) == shown(found) && is_same_reason;
    (!is_same).then(|| {
        format!("the plan shows finding {fingerprint} in other words: it is about {}: {}", found.object, found.message)
    })
}

/// Differences between the objects. `files` has the present name of each file of the input by the one in the plan.
#[must_use]
pub fn objects(then: &[SavedObject], now: &[SavedObject], files: &BTreeMap<String, String>) -> Vec<String> {
    let by_key = |objects: &'_ [SavedObject]| -> BTreeMap<ObjectKey, usize> {
        objects.iter().enumerate().map(|(index, line)| (line.object.key(), index)).collect()
    };
    let (before, after) = (by_key(then), by_key(now));
    let mut moved = Vec::new();
    let repeated = then.iter().enumerate().filter(|(index, line)| before.get(&line.object.key()) != Some(index));
    moved.extend(repeated.map(|(_, line)| format!("{}: the plan has it twice", line.object)));
    for (key, index) in &before {
        match after.get(key) {
            Some(other) => moved.extend(object(&then[*index], &now[*other], files)),
            None => moved.push(gone(&then[*index])),
        }
    }
    for (key, index) in &after {
        if !before.contains_key(key) {
            let SavedObject { object, operation, .. } = &now[*index];
            moved.push(format!("{object}: the plan does not have it, and now it would be {}", done(*operation)));
        }
    }
    moved
}

fn gone(then: &SavedObject) -> String {
    let SavedObject { object, operation, .. } = then;
    match operation {
        Operation::Delete => format!("{object}: the plan deletes it, and it is gone or no longer the app's"),
        _ => format!("{object}: it is no longer among the app's objects"),
    }
}

fn object(then: &SavedObject, now: &SavedObject, files: &BTreeMap<String, String>) -> Option<String> {
    let name = &then.object;
    if then == now {
        return None;
    }
    if then.object.version != now.object.version {
        return Some(format!("{name}: its API version is {} now, and was {}", now.object.version, then.object.version));
    }
    if !then.uid.is_empty() && !now.uid.is_empty() && then.uid != now.uid {
        return Some(format!("{name}: it was deleted and created again"));
    }
    if (then.operation, then.orphaned) != (now.operation, now.orphaned) {
        let found = match (then.uid.is_empty(), now.uid.is_empty(), then.operation, now.operation) {
            (true, false, Operation::Create, _) => "it exists by now".to_owned(),
            (false, true, _, Operation::Create) => "it was deleted".to_owned(),
            _ => {
                let fields = named(if now.fields.is_empty() { &then.fields } else { &now.fields }, |_| true);
                format!("now it would be {}{fields}", done(now.operation))
            }
        };
        return Some(format!("{name}: the plan has it {}, and {found}", done(then.operation)));
    }
    if then.parts != now.parts {
        let changed = then.parts.keys().filter(|path| now.parts.get(*path) != then.parts.get(*path));
        let new = now.parts.keys().filter(|path| !then.parts.contains_key(*path));
        let paths: Vec<&str> = changed.chain(new).map(String::as_str).collect();
        return Some(format!("{name}: {} changed since the plan was made", listed(&paths)));
    }
    if then.change != now.change {
        let differs = |field: &FieldLine| !then.fields.contains(field) || !now.fields.contains(field);
        let of_now = named(&now.fields, differs);
        let of_then = named(&then.fields, differs);
        let fields = if of_now.is_empty() { of_then } else { of_now };
        return Some(format!("{name}: its change is another now{fields}"));
    }
    if then.manifest != now.manifest {
        return Some(format!("{name}: something else would be written"));
    }
    // What is only displayed is not in the digests above, and whoever approved the plan has seen nothing else. An
    // unchanged object stays unchanged whatever others set in it.
    if then.fields != now.fields {
        let differs = |field: &FieldLine| !then.fields.contains(field);
        return Some(format!("{name}: the plan shows other fields than it changes{}", named(&now.fields, differs)));
    }
    if then.notes != now.notes {
        let shown = |notes: &[String]| if notes.is_empty() { "none".to_owned() } else { notes.join("; ") };
        let (before, after) = (shown(&then.notes), shown(&now.notes));
        return Some(format!("{name}: its remarks are {after} now, and the plan shows {before}"));
    }
    let place = |position: &Position| {
        let file = files.get(&position.file).unwrap_or(&position.file).clone();
        (file, position.line, position.column)
    };
    let of_now = now.position.as_ref().map(|it| (it.file.clone(), it.line, it.column));
    (then.position.as_ref().map(place) != of_now).then(|| {
        let shown = |position: &Option<Position>| position.as_ref().map_or("nowhere".to_owned(), ToString::to_string);
        format!("{name}: it is at {}, and the plan shows {}", shown(&now.position), shown(&then.position))
    })
}

fn done(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "created",
        Operation::Update => "updated",
        Operation::Replace => "replaced",
        Operation::Delete => "deleted",
        Operation::Noop => "left as it is",
        Operation::Exists => "left to others",
    }
}

fn named(fields: &[FieldLine], is_wanted: impl Fn(&FieldLine) -> bool) -> String {
    let wanted: Vec<&FieldLine> = fields.iter().filter(|field| is_wanted(field)).collect();
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let one = |field: &&FieldLine| format!("{} {} → {}", field.path, word(&field.old), word(&field.new));
    let shown: Vec<String> = wanted.iter().take(NAMED).map(one).collect();
    match wanted.len() {
        0 => String::new(),
        count if count > NAMED => format!(": {} and {} more", shown.join(", "), count - NAMED),
        _ => format!(": {}", shown.join(", ")),
    }
}

fn listed(paths: &[&str]) -> String {
    match paths.len() {
        count if count > NAMED => format!("{} and {} more", paths[..NAMED].join(", "), count - NAMED),
        _ => paths.join(", "),
    }
}
