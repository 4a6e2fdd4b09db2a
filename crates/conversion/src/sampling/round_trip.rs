//! One object on its way: written at its version, stored, written back unchanged at another version, and read again.

use pushback_crd::definition::{Upgrade, not_kept};
use pushback_crd::path::{PathSegment, display_path, value_at};
use pushback_crd::schema::pipeline::{self, Path, Resource};
use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::Value;

use crate::converter::{ConversionError, Converter, Programs};
use crate::operation_list::OperationKind;
use crate::prune::OF_EVERY_RESOURCE;

/// The ways of objects through the versions of a definition.
#[derive(Clone, Copy)]
pub struct RoundTrips<'a> {
    pub(super) converter: &'a Converter,
    pub(super) upgrade: &'a Upgrade<'a>,
    pub(super) programs: &'a dyn Programs,
    pub(super) storage: &'a str,
}

impl std::fmt::Debug for RoundTrips<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoundTrips").field("definition", &self.converter.name()).finish_non_exhaustive()
    }
}

/// A field that does not come back as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its place.
    pub path: Path,
    /// Its value before.
    pub before: Option<Value>,
    /// Its value after.
    pub after: Option<Value>,
}

impl Difference {
    /// The path as reports show it: that of every item of a list.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text = String::new();
        let mut rest = self.path.as_slice();
        while let Some(at) = rest.iter().position(|segment| matches!(segment, PathSegment::Index(_))) {
            text.push_str(&joined(&text, &rest[..at]));
            text.push_str("[*]");
            rest = &rest[at + 1..];
        }
        text.push_str(&joined(&text, rest));
        text
    }
}

fn joined(before: &str, path: &[PathSegment]) -> String {
    let text = display_path(path);
    let needs_dot = !before.is_empty() && !text.is_empty() && !text.starts_with('[');
    if needs_dot { format!(".{text}") } else { text }
}

/// The end of a round trip.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundTrip {
    /// The object comes back as it was.
    Kept,
    /// The other version refuses it when it is written back, with this error.
    Refused(String),
    /// These fields are not as they were.
    Differs(Vec<Difference>),
}

impl<'a> RoundTrips<'a> {
    /// Names of the versions that are served or stored.
    #[must_use]
    pub fn versions(&self) -> Vec<&'a str> {
        let used = self.upgrade.new.versions.iter().filter(|version| version.served || version.storage);
        used.map(|version| version.name).collect()
    }

    /// Name of the storage version.
    #[must_use]
    pub fn storage(&self) -> &'a str {
        self.storage
    }

    pub(super) fn converter(&self) -> &'a Converter {
        self.converter
    }

    pub(super) fn resource(&self, version: &str) -> Option<Resource<'a>> {
        self.upgrade.new_resource(version)
    }

    /// Whether the API server accepts an object at its version.
    pub(super) fn is_valid(&self, version: &str, object: &Value) -> bool {
        let admitted = self.resource(version).map(|resource| pipeline::create(&resource, self.upgrade.server, object));
        admitted.is_some_and(|admission| admission.accepted() == Some(true))
    }

    /// Writes an object at its own version and back at another one. If that is the storage version, it only is stored
    /// and read again.
    ///
    /// # Errors
    /// A conversion fails: the API server cannot store the object, or cannot show it.
    pub fn through(&self, through: &str, object: &Value) -> Result<RoundTrip, ConversionError> {
        let from = split_api_version(object.text("/apiVersion")).1;
        let server = self.upgrade.server;
        let (Some(own), Some(other)) = (self.resource(from), self.resource(through)) else {
            return Ok(RoundTrip::Kept);
        };
        let convert = |object: Value, to: &str| {
            self.converter.convert(object, to, self.programs).map(|converted| converted.object)
        };
        let written = pipeline::create(&own, server, object).object;
        let stored = convert(written.clone(), self.storage)?;
        let shown = convert(stored.clone(), through)?;
        let back = if through == self.storage {
            stored
        } else {
            let admission = pipeline::write_back(&other, server, &shown);
            if let Some(error) = admission.errors.first() {
                return Ok(RoundTrip::Refused(format!("{}: {}", display_path(&error.path), error.message)));
            }
            convert(admission.object, self.storage)?
        };
        let after = pipeline::create(&own, server, &convert(back, from)?).object;
        let differences = self.differences(&written, &after);
        Ok(if differences.is_empty() { RoundTrip::Kept } else { RoundTrip::Differs(differences) })
    }

    /// What of the content differs, as its version shows it.
    fn differences(&self, before: &Value, after: &Value) -> Vec<Difference> {
        let content = |object: &Value| {
            let mut content = object.clone();
            if let Value::Object(fields) = &mut content {
                fields.retain(|name, _| !OF_EVERY_RESOURCE.contains(&name.as_str()));
            }
            content
        };
        let (before, after) = (content(before), content(after));
        let side = |path: &Path| (value_at(&before, path).cloned(), value_at(&after, path).cloned());
        let gone = not_kept(&before, &after).into_iter();
        let come = not_kept(&after, &before).into_iter().filter(|path| value_at(&before, path).is_none());
        let differences = gone.chain(come).map(|path| {
            let (before, after) = side(&path);
            Difference { path, before, after }
        });
        differences.filter(|difference| !self.is_left_of_a_move(difference)).collect()
    }

    /// Whether all that differs is an empty object: moves make objects, and leave out those that have become empty.
    fn is_left_of_a_move(&self, difference: &Difference) -> bool {
        let is_empty =
            |value: &Option<Value>| value.as_ref().is_none_or(|it| it.as_object().is_some_and(|it| it.is_empty()));
        is_empty(&difference.before)
            && is_empty(&difference.after)
            && self.converter.operations().iter().any(|operation| operation.kind == OperationKind::Move)
    }
}
