//! The pairs on a real API server: a witness is taken under the old definition and suffers under the new one; objects of
//! a safe pair are taken by both and stay as they are. A verdict that the server does not share is a defect of the tool.

use pushback_crd::schema::Schema;
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_crd::schema::testing::Generator;
use pushback_objects::Verdict;
use pushback_objects::finding::Finding;
use serde_json::{Value, json};

use super::definition::{Definition, content, keeps};
use super::{At, Pair, judge, pairs};
use crate::support::api::ApiClient;
use crate::support::case::{rounds, show};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_api_server_shares_every_verdict,
        ApiServer: server_side_apply_is_refused_where_it_is_said,
    ]
}

/// Definitions that are on the server at the same time.
const BATCH: usize = 60;
/// Of how many pairs one is tried in an ordinary run.
const SHARE: usize = 6;
/// The column that shows when it is in effect.
const NEW: &str = "New definition";
/// Objects of a safe pair.
const OBJECTS: usize = 4;
/// Pairs that fare otherwise on Kubernetes 1.34; the verdict is that of the newest. `docs/contributing/tests.md` says why.
const OTHERWISE_ON_1_34: [&str; 1] = ["maximum-beyond-int32"];

fn the_api_server_shares_every_verdict() {
    let api = TestCluster::shared().api();
    let every = rounds(SHARE, 1);
    let tried: Vec<Trial> = pairs()
        .into_iter()
        .enumerate()
        .filter(|(index, _)| index % every == 0)
        .filter_map(|(_, pair)| Trial::of(pair))
        .collect();
    let mut wrong = Vec::new();
    for batch in tried.chunks(BATCH) {
        wrong.extend(run(api, batch));
    }
    if std::env::var("PUSHBACK_TEST_KUBERNETES").is_ok_and(|minor| minor == "1.34") {
        wrong.retain(|told| !OTHERWISE_ON_1_34.iter().any(|pair| told.starts_with(&format!("{pair}:"))));
    }
    let count =
        |fate: Fate| tried.iter().flat_map(|trial| &trial.objects).filter(|(_, expected)| *expected == fate).count();
    show(&format!(
        "{} pairs: {} objects refused, {} changed, {} kept, {} otherwise",
        tried.len(),
        count(Fate::Refused),
        count(Fate::Changed),
        count(Fate::Kept),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{} of {} pairs fare otherwise:\n{}", wrong.len(), tried.len(), wrong.join("\n"));
}

/// What is expected of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Refused,
    Changed,
    Kept,
}

/// A pair with the objects that are tried.
struct Trial {
    pair: Pair,
    old: Value,
    new: Value,
    objects: Vec<(Value, Fate)>,
}

impl Trial {
    /// `None` where nothing can be tried: the definitions are not taken, or the verdict is about no object.
    fn of(pair: Pair) -> Option<Self> {
        if pair.refused.is_some() || pair.at == At::Definition {
            return None;
        }
        let objects = match pair.verdict.as_str() {
            "breaking" => judge(&pair.before(), &pair.after()).findings.iter().filter_map(witness).collect(),
            "safe" => kept(&pair),
            _ => Vec::new(),
        };
        (!objects.is_empty()).then(|| Self { old: pair.before(), new: pair.after(), pair, objects })
    }

    fn collection(&self) -> String {
        format!("/apis/{}/v1/foos", self.pair.group())
    }
}

/// The witness of a finding under a name of its own, unless names are what it is about.
fn witness(finding: &Finding) -> Option<(Value, Fate)> {
    if finding.verdict != Verdict::Breaking || is_of_apply(finding) {
        return None;
    }
    let fate = match finding.effect.as_deref()? {
        "rejected" => Fate::Refused,
        "pruned" | "altered" => Fate::Changed,
        _ => return None,
    };
    Some((finding.witness.as_deref()?.clone(), fate))
}

/// Whether only server-side apply refuses the object, which is tried by itself.
fn is_of_apply(finding: &Finding) -> bool {
    finding.blocks.as_deref() == Some("server-side apply")
}

/// One manager applies the `objects` of the pair one after the other, the last under the new definition: that is refused.
fn server_side_apply_is_refused_where_it_is_said() {
    let api = TestCluster::shared().api();
    let says = |pair: &Pair| judge(&pair.before(), &pair.after()).findings.iter().any(is_of_apply);
    let is_field = |pair: &Pair| pair.at == At::Field && pair.verdict == "breaking" && !pair.objects.is_empty();
    let pairs: Vec<Pair> = pairs().into_iter().filter(is_field).filter(says).collect();
    let mut wrong = Vec::new();
    let apply = |pair: &Pair, field: &Value| {
        let object = json!({
            "apiVersion": format!("{}/v1", pair.group()), "kind": "Foo", "metadata": {"name": "applied"},
            "spec": {"f": field},
        });
        api.apply(&object)
    };
    for pair in &pairs {
        let (old, new) = (pair.before(), pair.after());
        Definition(&old).create(api).unwrap_or_else(|fault| panic!("{}: {fault}", pair.name));
        Definition(&old).await_established(api);
        let (last, before) = pair.objects.split_last().expect("objects");
        for object in before {
            let answer = apply(pair, object);
            if answer.status >= 300 {
                wrong.push(format!("{}: {object} is refused before: {}", pair.name, answer.message()));
            }
        }
        Definition(&old).replace(api, Definition(&new), NEW).unwrap_or_else(|fault| panic!("{}: {fault}", pair.name));
        Definition(&new).await_in_effect(api, NEW);
        let answer = apply(pair, last);
        if answer.status < 400 {
            wrong.push(format!("{}: {last} is applied: {}", pair.name, answer.body));
        }
        Definition(&old).delete(api);
    }
    assert!(wrong.is_empty(), "{} of {} pairs:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
    assert!(pairs.len() > 4, "{} pairs", pairs.len());
}

/// Objects that the old definition takes as they are: those written down, and some that are made up.
fn kept(pair: &Pair) -> Vec<(Value, Fate)> {
    let object = |field: Option<&Value>| {
        let mut object = json!({
            "apiVersion": format!("{}/v1", pair.group()), "kind": "Foo", "metadata": {"name": "plain"},
        });
        if let (Some(field), At::Field) = (field, pair.at) {
            object["spec"] = json!({"f": field});
        }
        object
    };
    let mut objects: Vec<Value> = pair.objects.iter().map(|field| object(Some(field))).collect();
    objects.push(object(None));
    let definition = pair.before();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let read = Schema::of(schema);
    let group = pair.group();
    let resource = Resource {
        schema: &read,
        group: &group,
        version: "v1",
        kind: "Foo",
        status: false,
        scale: None,
        preserve_unknown_fields: false,
    };
    let mut generator = Generator::new(1);
    for _ in 0..200 {
        if objects.len() >= OBJECTS + pair.objects.len() {
            break;
        }
        let made = match pair.at {
            At::Field => object(Some(&generator.value(&pair.old))),
            _ => {
                let mut made = generator.object_of(schema);
                made["apiVersion"] = format!("{group}/v1").into();
                made["kind"] = "Foo".into();
                made
            }
        };
        let admission = pipeline::create(&resource, Server::default(), &made);
        let fits = admission.accepted() == Some(true) && !admission.loses() && is_plain(&made);
        if fits && !objects.contains(&admission.object) {
            objects.push(admission.object);
        }
    }
    // One that nothing fits, an object without the field at least, is not taken by some.
    let taken = |object: &Value| {
        let admission = pipeline::create(&resource, Server::default(), object);
        admission.accepted() == Some(true)
    };
    let written = pair.objects.len();
    objects
        .into_iter()
        .enumerate()
        .filter(|(index, object)| *index < written || taken(object))
        .map(|(_, object)| (object, Fate::Kept))
        .collect()
}

/// Whether no number is written as 2.0, which the server reads as 2 later on, and which its CEL takes for no integer.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.as_f64().is_some_and(|float| float.fract() != 0.0),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => fields.values().all(is_plain),
        _ => true,
    }
}

/// An object that the server has taken under the old definition.
struct Stored<'t> {
    trial: &'t Trial,
    /// As it was sent.
    sent: Value,
    fate: Fate,
    /// As it was read then.
    before: Value,
    /// Whether the old definition takes that back: 2.0 is read as 2, which is not the same to every keyword.
    could_be_written: bool,
}

/// What went otherwise, a line each. All pairs take each step together, so that the server works while others wait.
fn run(api: &ApiClient, trials: &[Trial]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open = Vec::new();
    for trial in trials {
        match Definition(&trial.old).create(api) {
            Ok(()) => open.push(trial),
            Err(fault) => wrong.push(format!("{}: the old definition is refused: {fault}", trial.pair.name)),
        }
    }
    open.iter().for_each(|trial| Definition(&trial.old).await_established(api));
    let mut stored = Vec::new();
    for trial in &open {
        for (index, (object, fate)) in trial.objects.iter().enumerate() {
            match store(api, trial, index, object, *fate) {
                Ok(taken) => stored.extend(taken),
                Err(fault) => wrong.push(format!("{}: the old definition refuses {object}: {fault}", trial.pair.name)),
            }
        }
    }
    open.retain(|trial| match Definition(&trial.old).replace(api, Definition(&trial.new), NEW) {
        Ok(()) => true,
        Err(fault) => {
            wrong.push(format!("{}: the new definition is refused: {fault}", trial.pair.name));
            false
        }
    });
    open.iter().for_each(|trial| Definition(&trial.new).await_in_effect(api, NEW));
    for object in stored.iter().filter(|object| open.iter().any(|trial| trial.pair.name == object.trial.pair.name)) {
        if let Some(fault) = object.fault(api) {
            let Pair { name, verdict, old, new, .. } = &object.trial.pair;
            let (sent, fate) = (&object.sent, object.fate);
            wrong.push(format!("{name}: {verdict}, {fate:?} expected, {fault}\n  {sent}\n  old {old}\n  new {new}"));
        }
    }
    trials.iter().for_each(|trial| Definition(&trial.old).delete(api));
    wrong
}

/// Creates an object; `None` where another of the pair has its name, which it needs.
fn store<'t>(
    api: &ApiClient,
    trial: &'t Trial,
    index: usize,
    object: &Value,
    fate: Fate,
) -> Result<Option<Stored<'t>>, String> {
    let mut sent = object.clone();
    if trial.pair.at == At::Field {
        sent["metadata"]["name"] = format!("object-{index}").into();
    }
    let answer = api.post(&trial.collection(), &sent);
    match answer.status {
        201 => {
            let name = sent["metadata"]["name"].as_str().unwrap_or_default();
            let before = content(api.get(&format!("{}/{name}", trial.collection())).ok());
            let mut stored = Stored { trial, sent, fate, before, could_be_written: false };
            stored.could_be_written = stored.write(api, &stored.before).is_ok();
            Ok(Some(stored))
        }
        409 => Ok(None),
        _ => Err(answer.message().to_owned()),
    }
}

impl Stored<'_> {
    /// What is otherwise than expected.
    fn fault(&self, api: &ApiClient) -> Option<String> {
        let name = self.sent["metadata"]["name"].as_str().unwrap_or_default();
        let now = content(api.get(&format!("{}/{name}", self.trial.collection())).ok());
        let (stored, sent) = (self.write(api, &self.before), self.write(api, &self.sent));
        match self.fate {
            Fate::Refused if stored.is_err() || sent.is_err() => None,
            Fate::Refused => Some("it is still taken".to_owned()),
            Fate::Changed => {
                let differs = |written: &Result<Option<Value>, String>| matches!(written, Ok(Some(written)) if *written != self.before);
                let changes = now != self.before || differs(&stored) || differs(&sent);
                (!changes).then(|| format!("it stays {now}"))
            }
            Fate::Kept => match (stored, sent) {
                (_, Err(fault)) => Some(format!("it is refused: {fault}")),
                (Err(fault), _) if self.could_be_written => Some(format!("it is refused: {fault}")),
                _ => (!keeps(&self.before, &now)).then(|| format!("it is {now} now")),
            },
        }
    }

    /// Creates it anew, without an effect: what would be stored; `None` where only its own name goes.
    fn write(&self, api: &ApiClient, object: &Value) -> Result<Option<Value>, String> {
        let mut object = object.clone();
        object["metadata"] = self.sent["metadata"].clone();
        if self.trial.pair.at == At::Field {
            object["metadata"]["name"] = "another".into();
        }
        let answer = api.post(&format!("{}?dryRun=All", self.trial.collection()), &object);
        match answer.status {
            201 => Ok(Some(content(answer.body))),
            // Found valid, and there already.
            409 => Ok(None),
            _ => Err(answer.message().to_owned()),
        }
    }
}
