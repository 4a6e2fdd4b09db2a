//! An upgrade on a real API server: the old definition is created and objects with it, the new one takes its place, and
//! every finding is held against what the server then does.

use pushback_objects::Verdict;
use pushback_objects::finding::Finding;
use serde_json::{Value, json};

use super::definition::{Definition, comes_to_answer, content, keeps};
use super::places::{Place, differences, losses, meet, place};
use super::verdicts::line;
use crate::support::api::{Answer, ApiClient};

/// Columns that show which definition is in effect.
const OLD: &str = "Old definition";
const NEW: &str = "New definition";
/// Checks that the server makes itself: it does not take the new definition.
const REFUSED: [&str; 4] = ["scope", "group", "names", "storedVersionRemoval"];

/// An upgrade and what is said of it.
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) old: Value,
    pub(super) new: Value,
    pub(super) findings: Vec<Finding>,
    /// Objects by version that both definitions take and keep where nothing breaks.
    pub(super) plain: Vec<(String, Value)>,
}

/// How findings fared.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The server does to the witness what the finding says.
    pub(super) witnesses: usize,
    /// The server refuses the definition, or no longer serves what the finding names.
    pub(super) definitions: usize,
    /// Nothing could be seen: the server refused the definition, as another finding says.
    pub(super) masked: usize,
    /// Objects that stayed as they were.
    pub(super) kept: usize,
    /// What went otherwise, a line each.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.witnesses += other.witnesses;
        self.definitions += other.definitions;
        self.masked += other.masked;
        self.kept += other.kept;
        self.wrong.extend(other.wrong);
    }

    fn note(&mut self, trial: &Trial, finding: &Finding, seen: Result<(), String>) {
        match seen {
            Ok(()) if finding.witness.is_some() => self.witnesses += 1,
            Ok(()) => self.definitions += 1,
            Err(fault) => {
                let blocks = finding.blocks.as_deref().unwrap_or_default();
                let effect = finding.effect.as_deref().unwrap_or_default();
                let line = line(finding);
                self.wrong.push(format!("{}: {effect} ({blocks}) expected, {fault}: {line}", trial.name));
            }
        }
    }
}

/// Runs upgrades of definitions with different names. All take each step together, so that the server works while others
/// wait.
pub(super) fn run(api: &ApiClient, namespace: &str, trials: &[Trial]) -> Tally {
    let mut tally = Tally::default();
    let mut open: Vec<Scene<'_>> = Vec::new();
    for trial in trials {
        let origin = origin(trial);
        match Definition(&origin).create(api) {
            Ok(()) => open.push(Scene { api, namespace, trial, origin, stored: Vec::new() }),
            Err(fault) => tally.wrong.push(format!("{}: the old definition is refused: {fault}", trial.name)),
        }
    }
    for scene in &mut open {
        tally.wrong.extend(scene.store());
    }
    let replaced: Vec<bool> = open.iter().map(|scene| scene.replace(&mut tally)).collect();
    for (scene, _) in open.iter().zip(&replaced).filter(|(_, replaced)| **replaced) {
        scene.after().await_in_effect(api, NEW);
        scene.look(&mut tally);
    }
    open.iter().for_each(|scene| Definition(&scene.origin).delete(api));
    open.iter().for_each(|scene| scene.before().await_gone(api));
    tally
}

/// The definition that comes before the old one: where that has a version that is not served any more, and objects are
/// wanted in it, this one serves it and stores objects in it.
fn origin(trial: &Trial) -> Value {
    let old = Definition(&trial.old);
    let of_findings = trial.findings.iter().filter(|finding| finding.witness.is_some()).map(version_of);
    let mut versions = of_findings.chain(trial.plain.iter().map(|(version, _)| version.as_str()));
    let unserved = versions.find(|version| old.version(version).is_some() && !old.serves(version));
    let mut origin = trial.old.clone();
    let Some(unserved) = unserved else { return origin };
    for version in origin["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let wanted = version["name"] == unserved;
        version["storage"] = wanted.into();
        version["served"] = (wanted || version["served"] == true).into();
    }
    origin["status"] = Value::Null;
    origin
}

/// An object that the server has taken under the old definition, or before it.
struct Stored {
    of: Of,
    sent: Value,
    /// The version in which it is read.
    seen_in: String,
    /// As it was read then.
    before: Value,
}

/// Why an object is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// It is the witness of this finding.
    Finding(usize),
    /// It is one of those that stay as they are.
    Plain,
}

struct Scene<'t> {
    api: &'t ApiClient,
    namespace: &'t str,
    trial: &'t Trial,
    /// The definition before the old one.
    origin: Value,
    stored: Vec<Stored>,
}

impl<'t> Scene<'t> {
    fn before(&self) -> Definition<'t> {
        Definition(&self.trial.old)
    }

    fn after(&self) -> Definition<'t> {
        Definition(&self.trial.new)
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("{}/{name}", self.before().collection(version, self.namespace))
    }

    /// What the old definition is to hold.
    fn objects(&self) -> Vec<(Of, &'t str, Value)> {
        let of_finding = |(index, finding): (usize, &'t Finding)| {
            let version = version_of(finding);
            // What is lost between versions is lost under the new definition alone, where it can be written there.
            let needed = !is_between_versions(finding) || !self.after().serves(version);
            let witness = finding.witness.as_ref().filter(|_| needed)?;
            let name = if is_of_names(finding) { name_of(witness).to_owned() } else { format!("witness-{index}") };
            Some((Of::Finding(index), version, named(witness, &name)))
        };
        let plain = |(index, (version, object)): (usize, &'t (String, Value))| {
            (Of::Plain, version.as_str(), named(object, &format!("plain-{index}")))
        };
        let of_findings = self.trial.findings.iter().enumerate().filter_map(of_finding);
        of_findings.chain(self.trial.plain.iter().enumerate().map(plain)).collect()
    }

    /// Creates all objects, those in a version that the old definition does not serve before it; what goes wrong comes
    /// back.
    fn store(&mut self) -> Vec<String> {
        let (trial, old, origin) = (self.trial, self.before(), Definition(&self.origin));
        origin.await_established(self.api);
        let objects = self.objects();
        let (now, earlier): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(_, version, _)| old.serves(version));
        let mut written = Vec::new();
        for (definition, objects) in [(origin, earlier), (old, now)] {
            if self.origin["spec"] != trial.old["spec"] && definition.0 == &trial.old {
                if let Err(fault) = origin.replace(self.api, old, OLD) {
                    return vec![format!("{}: the old definition is refused: {fault}", trial.name)];
                }
                old.await_in_effect(self.api, OLD);
            }
            for (of, version, object) in objects {
                written.push((of, version, self.write(definition, version, &object), object));
            }
        }
        let mut wrong = Vec::new();
        for (of, version, written, sent) in written {
            let of_both = old.readable().find(|version| self.after().serves(version)).unwrap_or(version);
            let is_of_both = old.serves(version) && self.after().serves(version);
            let seen_in = if is_of_both || !old.serves(of_both) { version } else { of_both }.to_owned();
            let read = written.map(|()| content(self.api.get(&self.path(&seen_in, name_of(&sent))).ok()));
            match read {
                Ok(before) if keeps(&body(&sent), &before) => self.stored.push(Stored { of, sent, seen_in, before }),
                Ok(before) => wrong.push(format!("{}: the old definition makes {before} of {sent}", trial.name)),
                Err(fault) => wrong.push(format!("{}: the old definition refuses ({fault}) {sent}", trial.name)),
            }
        }
        wrong
    }

    /// Creates an object, its status too where that is written by itself.
    fn write(&self, definition: Definition<'_>, version: &str, object: &Value) -> Result<(), String> {
        let answer = self.api.post(&definition.collection(version, self.namespace), object);
        if answer.status != 201 {
            return Err(answer.message().to_owned());
        }
        if object.get("status").is_none() || !definition.has_status(version) {
            return Ok(());
        }
        let mut whole = answer.body;
        whole["status"] = object["status"].clone();
        let answer = self.api.put(&format!("{}/status", self.path(version, name_of(object))), &whole);
        if answer.status == 200 { Ok(()) } else { Err(answer.message().to_owned()) }
    }

    /// Puts the new definition in its place: whether it is there now.
    fn replace(&self, tally: &mut Tally) -> bool {
        let (refusing, others): (Vec<&Finding>, Vec<&Finding>) = self
            .trial
            .findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Breaking)
            .partition(|finding| REFUSED.contains(&finding.check.as_str()));
        match self.before().replace(self.api, self.after(), NEW) {
            Ok(()) if refusing.is_empty() => return true,
            Ok(()) => {
                for finding in refusing {
                    tally.note(self.trial, finding, Err("the new definition is taken".to_owned()));
                }
            }
            Err(fault) if refusing.is_empty() => {
                tally.wrong.push(format!("{}: the new definition is refused: {fault}", self.trial.name));
            }
            Err(_) => {
                refusing.into_iter().for_each(|finding| tally.note(self.trial, finding, Ok(())));
                tally.masked += others.len();
            }
        }
        false
    }

    /// Holds every finding against the server.
    fn look(&self, tally: &mut Tally) {
        for (index, finding) in self.trial.findings.iter().enumerate() {
            if let Some(seen) = self.seen(index, finding) {
                tally.note(self.trial, finding, seen);
            }
        }
        if self.trial.findings.iter().any(|finding| finding.verdict != Verdict::Change) {
            return;
        }
        let is_served = |stored: &&Stored| stored.of == Of::Plain && self.after().serves(&stored.seen_in);
        for stored in self.stored.iter().filter(is_served) {
            match self.kept(stored) {
                Ok(()) => tally.kept += 1,
                Err(fault) => tally.wrong.push(format!("{}: {} {fault}", self.trial.name, stored.sent)),
            }
        }
    }

    fn kept(&self, stored: &Stored) -> Result<(), String> {
        let path = self.path(&stored.seen_in, name_of(&stored.sent));
        let read = self.api.get(&path).ok();
        let now = content(read.clone());
        if !keeps(&stored.before, &now) {
            return Err(format!("is {now} now"));
        }
        let written = self.api.put(&path, &labelled(read));
        if written.status == 200 { Ok(()) } else { Err(written.message().to_owned()) }
    }

    /// Whether the server does what a finding says; `None` where the finding is about nothing that it does.
    fn seen(&self, index: usize, finding: &Finding) -> Option<Result<(), String>> {
        let version = finding.version.as_deref().unwrap_or_default();
        let answers = |path: String, status: u16| {
            let comes = comes_to_answer(self.api, &path, status);
            if comes { Ok(()) } else { Err(format!("{path} never comes to answer {status}")) }
        };
        let collection = self.before().collection(version, self.namespace);
        let of_plain = |part: &str| {
            let plain = self.stored.iter().find(|stored| stored.of == Of::Plain && stored.seen_in == version);
            format!("{}/{part}", self.path(version, plain.map_or("", |plain| name_of(&plain.sent))))
        };
        match finding.check.as_str() {
            "servedVersionRemoval" | "servedVersionUnserved" => Some(answers(collection, 404)),
            "statusSubresource" if finding.new.is_none() => Some(answers(of_plain("status"), 404)),
            // It may be created, but not with its status.
            "statusSubresource" if finding.verdict == Verdict::Breaking && finding.old.is_none() => {
                let mut anew = named(finding.witness.as_ref()?, "anew");
                anew["apiVersion"] = format!("{}/{version}", self.after().group()).into();
                let answer = self.api.post(&format!("{collection}?dryRun=All"), &anew);
                let is_so = match finding.effect.as_deref() {
                    Some("pruned") => answer.status == 201 && answer.body.get("status").is_none(),
                    _ => answer.status == 422,
                };
                Some(if is_so { Ok(()) } else { Err(format!("it is answered by {}", answer.body)) })
            }
            "scaleSubresource" if finding.new.is_none() => Some(answers(of_plain("scale"), 404)),
            "scaleSubresource" if finding.effect.as_deref() == Some("rejected") => Some(self.rejects(index, finding)),
            "scaleSubresource" if finding.verdict == Verdict::Breaking => Some(self.scales_otherwise(index, finding)),
            "selectableFields" => {
                let field = finding.old.as_ref().and_then(Value::as_str).unwrap_or_default().trim_start_matches('.');
                Some(answers(format!("{collection}?fieldSelector={field}%3Da"), 400))
            }
            "storageVersionChange" => {
                let stored = self.after().stored_versions(self.api);
                let both = [&finding.old, &finding.new].into_iter().flatten();
                let listed = both.into_iter().all(|one| stored.as_array().is_some_and(|all| all.contains(one)));
                Some(if listed { Ok(()) } else { Err(format!("status.storedVersions is {stored}")) })
            }
            "crossVersionLoss" if finding.verdict == Verdict::Breaking => self.between(index, finding),
            "crossVersionRejection" => self.between(index, finding),
            _ if finding.verdict != Verdict::Breaking => None,
            // What was wrong before the upgrade is told already.
            _ => {
                let witness = self.stored.iter().find(|stored| stored.of == Of::Finding(index));
                witness.map(|stored| self.suffers(finding, stored))
            }
        }
    }

    /// Returns whether the server rejects a witness as it is, and every edit of it.
    fn rejects(&self, index: usize, finding: &Finding) -> Result<(), String> {
        let stored = self.stored.iter().find(|stored| stored.of == Of::Finding(index)).ok_or("there is no witness")?;
        let path = self.path(&stored.seen_in, name_of(&stored.sent));
        let edited = self.api.put(&path, &labelled(self.api.get(&path).ok()));
        // Without the status, it may be created.
        let is_of_status = stored.sent.get("status").is_some();
        let collection = self.before().collection(version_of(finding), self.namespace);
        let created = self.api.post(&format!("{collection}?dryRun=All"), &named(&stored.sent, "anew"));
        let is_so = edited.status == 422 && (is_of_status || created.status == 422);
        if is_so {
            Ok(())
        } else {
            Err(format!("an edit is answered by {}, a create by {}", edited.status, created.status))
        }
    }

    /// Whether the scale subresource of a witness no longer shows what the object holds at the old path.
    fn scales_otherwise(&self, index: usize, finding: &Finding) -> Result<(), String> {
        let stored = self.stored.iter().find(|stored| stored.of == Of::Finding(index)).ok_or("there is no witness")?;
        let old = finding.old.as_ref().and_then(Value::as_str).unwrap_or_default();
        let scale = &self.before().version(version_of(finding)).ok_or("no version")?["subresources"]["scale"];
        let shown = [
            ("specReplicasPath", "/spec/replicas"),
            ("statusReplicasPath", "/status/replicas"),
            ("labelSelectorPath", "/status/selector"),
        ];
        let (_, pointer) = shown.into_iter().find(|(key, _)| scale[*key] == old).ok_or("no such path")?;
        let answer = self.api.get(&format!("{}/scale", self.path(&stored.seen_in, name_of(&stored.sent))));
        let held = stored.before.pointer(&old.replace('.', "/"));
        if answer.status == 200 && answer.body.pointer(pointer) == held {
            return Err(format!("it scales as before: {}", answer.body));
        }
        Ok(())
    }

    /// An object that is written in one version and read in another; `None` where its own version refuses it now as well,
    /// which another finding says.
    fn between(&self, index: usize, finding: &Finding) -> Option<Result<(), String>> {
        let Some(witness) = &finding.witness else { return Some(Err("there is no witness".to_owned())) };
        let (from, new) = (version_of(finding), self.after());
        let sent = named(witness, &format!("witness-{index}"));
        if new.serves(from)
            && let Err(fault) = self.write(new, from, &sent)
        {
            let breaks_from = |other: &Finding| {
                other.verdict == Verdict::Breaking && !is_between_versions(other) && version_of(other) == from
            };
            let is_told = self.trial.findings.iter().any(breaks_from);
            return (!is_told).then(|| Err(format!("\"{from}\" refuses it: {fault}")));
        }
        Some(self.met(finding, &sent))
    }

    /// How an object that is there fares in the other version.
    fn met(&self, finding: &Finding, sent: &Value) -> Result<(), String> {
        let (from, to) = (version_of(finding), finding.version.as_deref().unwrap_or_default());
        let new = self.after();
        let met_in = if new.serves(to) { to } else { from };
        let met = content(self.api.get(&self.path(met_in, name_of(sent))).ok());
        if finding.check == "crossVersionLoss" {
            let at = place(finding.path.as_deref().unwrap_or_default());
            let is_lost = losses(&content(sent.clone()), &met).iter().any(|place| meet(place, &at));
            // A default that only the one version has is lost on the way, too: what was written, not what is read, has it.
            let read = self.api.get(&self.path(from, name_of(sent)));
            let was_set = read.status == 200 && has_set(&read.body, &at) && met.pointer(&pointer("", &at)).is_none();
            let fault = || format!("it is {met} in \"{met_in}\"");
            return if is_lost || was_set { Ok(()) } else { Err(fault()) };
        }
        let mut anew = named(sent, "anew");
        anew["apiVersion"] = format!("{}/{to}", new.group()).into();
        let answer = self.api.post(&format!("{}?dryRun=All", new.collection(to, self.namespace)), &anew);
        let suffers = answer.status != 201 || content(answer.body.clone()) != content(anew);
        if suffers { Ok(()) } else { Err(format!("\"{to}\" takes it: {}", answer.body)) }
    }

    fn suffers(&self, finding: &Finding, stored: &Stored) -> Result<(), String> {
        let version = version_of(finding);
        let path = self.path(&stored.seen_in, name_of(&stored.sent));
        let read = self.api.get(&path).ok();
        let now = content(read.clone());
        let at = place(finding.path.as_deref().unwrap_or_default());
        let is_there = |places: &[Place]| places.iter().any(|place| meet(place, &at));
        let shown = |places: &[Place]| places.iter().map(|place| place.join(".")).collect::<Vec<_>>().join(", ");
        match finding.effect.as_deref().unwrap_or_default() {
            "rejected" => {
                let refusals = [&stored.sent, &stored.before].map(|object| self.refusal(finding, version, object));
                let Some(places) = refusals.iter().flatten().find(|places| is_there(places)) else {
                    return Err(match refusals.into_iter().flatten().next() {
                        Some(places) => format!("it is refused at {}", shown(&places)),
                        None => "it is still taken".to_owned(),
                    });
                };
                // The server forgives what was wrong with a field before, as long as it is left alone.
                let of_a_part = ["create", "create, edit of the field", "create, any edit of the list"];
                let is_of_the_field = of_a_part.map(Some).contains(&finding.blocks.as_deref());
                let only = places.iter().all(|place| meet(place, &at));
                let written = self.api.put(&path, &labelled(read));
                if is_of_the_field && only && written.status != 200 {
                    return Err(format!("even its labels cannot be edited: {}", written.message()));
                }
                Ok(())
            }
            "pruned" => {
                let lost = losses(&stored.before, &now);
                if !is_there(&lost) {
                    return Err(format!("it only loses [{}]", shown(&lost)));
                }
                let written = self.api.put(&path, &labelled(read));
                let back = losses(&stored.before, &content(written.body));
                if written.status == 200 && !is_there(&back) {
                    return Err("it is there again when it is written back".to_owned());
                }
                Ok(())
            }
            "altered" => {
                let changed = differences(&stored.before, &now);
                if is_there(&changed) { Ok(()) } else { Err(format!("it only changes at [{}]", shown(&changed))) }
            }
            effect => Err(format!("{effect:?} is no effect")),
        }
    }

    /// Where the server says that an object is wrong that is created now; `None` where it takes it.
    fn refusal(&self, finding: &Finding, version: &str, object: &Value) -> Option<Vec<Place>> {
        let name = if is_of_names(finding) { name_of(object) } else { "anew" };
        let object = named(object, name);
        let collection = self.after().collection(version, self.namespace);
        let of_status = finding.path.as_deref().is_some_and(|path| path.starts_with("status"));
        let answer = if of_status && self.after().has_status(version) {
            let created = self.api.post(&collection, &object);
            let mut whole = created.body.clone();
            if created.status != 201 {
                return Some(causes(&created));
            }
            whole["status"] = object["status"].clone();
            let answer = self.api.put(&format!("{collection}/{name}/status?dryRun=All"), &whole);
            self.api.delete(&format!("{collection}/{name}"));
            answer
        } else {
            self.api.post(&format!("{collection}?dryRun=All"), &object)
        };
        // A conflict is found after everything else: it is there already.
        (!matches!(answer.status, 200 | 201 | 409)).then(|| causes(&answer))
    }
}

/// Whether the server has noted that the writer of an object set a field, if only by a default.
fn has_set(object: &Value, at: &Place) -> bool {
    object["metadata"]["managedFields"][0]["fieldsV1"].pointer(&pointer("f:", at)).is_some()
}

fn pointer(prefix: &str, at: &Place) -> String {
    at.iter().map(|step| format!("/{prefix}{step}")).collect()
}

/// The places that a refusal names.
fn causes(answer: &Answer) -> Vec<Place> {
    let causes = answer.body["details"]["causes"].as_array();
    causes.into_iter().flatten().map(|cause| place(cause["field"].as_str().unwrap_or_default())).collect()
}

pub(super) fn is_between_versions(finding: &Finding) -> bool {
    finding.check.starts_with("crossVersion")
}

/// The version of the witness.
fn version_of(finding: &Finding) -> &str {
    let from = finding.old.as_ref().filter(|_| is_between_versions(finding)).and_then(Value::as_str);
    from.or(finding.version.as_deref()).unwrap_or_default()
}

/// Whether it is about what an object is called.
fn is_of_names(finding: &Finding) -> bool {
    finding.path.as_deref().is_some_and(|path| path.starts_with("metadata"))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The object but for what every version and every server writes otherwise.
fn body(object: &Value) -> Value {
    let mut body = content(object.clone());
    if let Some(fields) = body.as_object_mut() {
        fields.shift_remove("apiVersion");
    }
    body
}

fn named(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = name.into();
    object
}

fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({"edited": "yes"});
    object
}
