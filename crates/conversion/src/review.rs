//! Answers a ConversionReview, with which the API server asks a webhook to convert objects. Which objects it sends, and
//! what it checks of the answer, is in `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`.

use std::collections::BTreeMap;

use pushback_objects::object::{ObjectExt, describe, split_api_version};
use serde_json::{Value, json};

use super::converter::{Converter, NoPrograms, Why};
use super::plan::BagPlace;

/// `kind` of requests and answers.
const KIND: &str = "ConversionReview";

/// `apiVersion` of requests and answers; what is in them is the same in both.
const API_VERSIONS: [&str; 2] = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];

/// Bytes of a message. A hostile request decides what is in it.
const LONGEST_MESSAGE: usize = 4096;

/// What an answer repeats of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    api_version: &'static str,
    uid: String,
}

impl Envelope {
    fn around(&self, mut response: Value) -> Value {
        response["uid"] = self.uid.as_str().into();
        // Not by `json!`, which would copy the objects.
        let mut review = json!({"apiVersion": self.api_version, "kind": KIND});
        review["response"] = response;
        review
    }

    /// The answer if nothing is converted.
    #[must_use]
    pub fn failed(&self, message: &str) -> Value {
        self.around(json!({"result": {"status": "Failure", "message": shortened(message)}}))
    }

    fn converted(&self, objects: Vec<Value>) -> Value {
        let mut response = json!({"result": {"status": "Success"}});
        response["convertedObjects"] = Value::Array(objects);
        self.around(response)
    }
}

/// What the API server asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    envelope: Envelope,
    /// Wanted `apiVersion`, and the objects; or what is wrong with them.
    content: Result<(String, Vec<Value>), String>,
}

impl Request {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// Why it is none that could be answered.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
        let found = (review.text("/kind"), review.text("/apiVersion"));
        let known = API_VERSIONS.into_iter().find(|known| found == (KIND, *known));
        let Some(api_version) = known else {
            let (kind, version) = (shortened(found.0), shortened(found.1));
            return Err(format!("expected a {KIND} of {}, found kind {kind:?} in {version:?}", API_VERSIONS[0]));
        };
        let uid = review.text("/request/uid").to_owned();
        if uid.is_empty() {
            return Err("request.uid is missing".to_owned());
        }
        Ok(Self { envelope: Envelope { api_version, uid }, content: content(&mut review) })
    }

    /// What the answer repeats.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }
}

fn content(review: &mut Value) -> Result<(String, Vec<Value>), String> {
    let to = review.text("/request/desiredAPIVersion").to_owned();
    if to.is_empty() {
        return Err("request.desiredAPIVersion is missing".to_owned());
    }
    match review["request"]["objects"].take() {
        Value::Array(objects) => Ok((to, objects)),
        other => Err(format!("request.objects: expected a list, found {}", describe(&other))),
    }
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For whoever sent the request to the API server: names the object and says what to do.
    pub message: String,
    /// For a log: names object, versions and field, and quotes nothing of the object.
    pub about: String,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The review to send back.
    pub review: Value,
    /// What was done, or why nothing was.
    pub result: Result<Done, Refusal>,
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Number of objects, also those that had the wanted version.
    pub objects: usize,
    /// Fields that are not in the converted objects, by the reason.
    pub lost: BTreeMap<Why, usize>,
}

/// Converts objects of several kinds for the API server.
#[derive(Clone, Debug, Default)]
pub struct Reviewer {
    converters: Vec<Converter>,
}

impl Reviewer {
    /// Takes the conversions that it answers with. Values that a version has no field for go with its objects in an
    /// annotation: the API server hands the object back as its user sends it, and the way from a poorer version to a
    /// richer one needs them. A version whose schema has a field for them keeps them there.
    ///
    /// # Errors
    /// Everything in the plans that cannot be served.
    pub fn new(mut converters: Vec<Converter>) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        for converter in &mut converters {
            if let Some(program) = converter.programs().next() {
                errors.push(format!(
                    "{}: the plan hands objects to the program {program:?}, and a webhook runs none; say it as an \
                     expression",
                    converter.name()
                ));
            }
            match converter.place {
                BagPlace::Nowhere => errors.push(format!(
                    "{}: with `bag: nowhere` every write through a version that lacks a field would delete it; say \
                     `bag: annotation`, and `drop` for fields that are to go",
                    converter.name()
                )),
                BagPlace::Property | BagPlace::Annotation => converter.place = BagPlace::Annotation,
            }
        }
        for (index, converter) in converters.iter().enumerate() {
            let is_same = |other: &&Converter| (&other.group, &other.kind) == (&converter.group, &converter.kind);
            if let Some(earlier) = converters[..index].iter().find(is_same) {
                errors.push(format!("{} and {} define the same kind", earlier.name(), converter.name()));
            }
        }
        if errors.is_empty() { Ok(Self { converters }) } else { Err(errors) }
    }

    /// The conversions.
    #[must_use]
    pub fn converters(&self) -> &[Converter] {
        &self.converters
    }

    /// Converts the objects of a request, in their order. The first one that cannot be converted fails the request.
    #[must_use]
    pub fn answer(&self, request: Request) -> Answer {
        let Request { envelope, content } = request;
        let converted = content
            .map_err(|message| Refusal { about: message.clone(), message })
            .and_then(|(to, objects)| self.convert(objects, &to));
        match converted {
            Ok((objects, done)) => Answer { review: envelope.converted(objects), result: Ok(done) },
            Err(refusal) => Answer { review: envelope.failed(&refusal.message), result: Err(refusal) },
        }
    }

    fn convert(&self, mut objects: Vec<Value>, to: &str) -> Result<(Vec<Value>, Done), Refusal> {
        let mut done = Done { objects: objects.len(), lost: BTreeMap::new() };
        for (index, object) in objects.iter_mut().enumerate() {
            if object.text("/apiVersion") != to {
                self.object(object, to, &mut done).map_err(|failure| failure.of_item(index, to))?;
            }
        }
        Ok((objects, done))
    }

    fn object(&self, object: &mut Value, to: &str, done: &mut Done) -> Result<(), Failure> {
        if !object.is_object() {
            let message = format!("expected an object, found {}", describe(object));
            return Err(Failure::of(object).because("", &message, ""));
        }
        let Some(converter) = self.converters.iter().find(|converter| converter.is_for(object)) else {
            let message = "the server has no definition of this kind";
            return Err(Failure::of(object).because("", message, "start it with the definition (--crd)"));
        };
        let (group, version) = split_api_version(to);
        if group != converter.group() {
            let message = format!("{group:?} is another group");
            return Err(Failure::of(object).because("", &message, ""));
        }
        // What names the object is not converted, and its version is written last.
        let lost = converter.convert_in_place(object, version, &NoPrograms).map_err(|error| {
            let hint = "correct the field, or the conversion plan";
            Failure::of(object).because(&error.path, &error.message, hint)
        })?;
        for lost in lost {
            *done.lost.entry(lost.why).or_default() += 1;
        }
        Ok(())
    }
}

/// Why an object cannot be converted.
struct Failure {
    /// Kind and name, as far as there are any.
    object: String,
    from: String,
    path: String,
    message: String,
    hint: &'static str,
}

impl Failure {
    fn of(object: &Value) -> Self {
        let (kind, name) = (object.text("/kind"), object.full_name());
        let words: Vec<&str> = [kind, &name].into_iter().filter(|word| !word.is_empty()).collect();
        let from = object.text("/apiVersion").to_owned();
        Self { object: words.join(" "), from, path: String::new(), message: String::new(), hint: "" }
    }

    fn because(self, path: &str, message: &str, hint: &'static str) -> Self {
        Self { path: path.to_owned(), message: message.to_owned(), hint, ..self }
    }

    fn of_item(self, index: usize, to: &str) -> Refusal {
        let Self { object, from, path, message, hint } = self;
        let object = if object.is_empty() { format!("item {index} of the request") } else { object };
        let about = format!("{object} cannot be converted from {from} to {to}");
        let at = if path.is_empty() { String::new() } else { format!(": {path}") };
        let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
        Refusal {
            message: shortened(&format!("{about}{at}: {message}{hint}")).to_owned(),
            about: shortened(&format!("{about}{at}")).to_owned(),
        }
    }
}

/// As much of a text as a message may have.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
