//! A CustomResourceDefinition as the checks see it: `v1`, or the older `v1beta1` with its fields for all versions.
//! Reading never fails: a field that is missing or of the wrong type reads as absent, and the checks report it.

use serde_json::Value;

use crate::path::PathSegment;
use crate::words;

/// API group of CustomResourceDefinition.
pub const GROUP: &str = "apiextensions.k8s.io";

/// The kind of a definition.
pub const KIND: &str = "CustomResourceDefinition";

words! {
    /// How objects are converted between versions.
    pub enum Strategy {
        /// Only `apiVersion` is rewritten.
        None = "None",
        /// A webhook converts objects.
        Webhook = "Webhook",
    }
}

/// A CustomResourceDefinition, borrowed from its value.
#[derive(Clone, Debug)]
pub struct Crd<'a> {
    /// The definition as given.
    pub value: &'a Value,
    /// The versions, in the order of the definition.
    pub versions: Vec<Version<'a>>,
}

/// One version of a definition.
#[derive(Clone, Debug)]
pub struct Version<'a> {
    /// Name, such as `v1beta1`.
    pub name: &'a str,
    /// Whether the API server serves the version.
    pub served: bool,
    /// Whether it is the storage version.
    pub storage: bool,
    /// Whether the API server warns clients that use it.
    pub deprecated: bool,
    /// The value of `openAPIV3Schema`.
    pub schema: Option<&'a Value>,
    /// Whether `status` is a subresource.
    pub status: bool,
    /// The scale subresource, if there is one.
    pub scale: Option<&'a Value>,
    /// JSON paths in `selectableFields`.
    pub selectable_fields: Vec<&'a str>,
    /// Names in `additionalPrinterColumns`.
    pub printer_columns: Vec<&'a str>,
}

impl<'a> Crd<'a> {
    /// Reads a definition. Versions without a name are left out.
    #[must_use]
    pub fn of(value: &'a Value) -> Self {
        let null = &Value::Null;
        let spec = value.get("spec").unwrap_or(null);
        let common = Common::of(value, spec);
        let mut versions: Vec<Version<'a>> = list(spec.get("versions"))
            .filter(|version| version.get("name").is_some_and(Value::is_string))
            .map(|version| Version::of(version, &common))
            .collect();
        // `v1beta1` may name its only version outside the list.
        if let (true, Some(name)) = (versions.is_empty(), spec.get("version").and_then(Value::as_str)) {
            versions.push(Version { name, served: true, storage: true, ..Version::of(null, &common) });
        }
        Self { value, versions }
    }

    /// The version with this name, if there is one.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<&Version<'a>> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// `spec.group`, or the empty string.
    #[must_use]
    pub fn group(&self) -> &'a str {
        text(self.value, "/spec/group")
    }

    /// `spec.scope`, or the empty string.
    #[must_use]
    pub fn scope(&self) -> &'a str {
        text(self.value, "/spec/scope")
    }

    /// `spec.names.kind`, or the empty string.
    #[must_use]
    pub fn kind(&self) -> &'a str {
        text(self.value, "/spec/names/kind")
    }

    /// `spec.names.plural`, or the empty string.
    #[must_use]
    pub fn plural(&self) -> &'a str {
        text(self.value, "/spec/names/plural")
    }

    /// `spec.names.listKind`, with the API server's default, `<kind>List`.
    #[must_use]
    pub fn list_kind(&self) -> String {
        match text(self.value, "/spec/names/listKind") {
            "" => format!("{}List", self.kind()),
            given => given.to_owned(),
        }
    }

    /// `spec.names.singular`, with the API server's default, the kind in lower case.
    #[must_use]
    pub fn singular(&self) -> String {
        match text(self.value, "/spec/names/singular") {
            "" => self.kind().to_lowercase(),
            given => given.to_owned(),
        }
    }

    /// The names in `spec.names.shortNames` or `spec.names.categories`.
    #[must_use]
    pub fn list_of_names(&self, key: &str) -> Vec<&'a str> {
        let names = self.value.pointer("/spec/names").and_then(|names| names.get(key));
        list(names).filter_map(Value::as_str).collect()
    }

    /// `spec.conversion.strategy`; `None` if it is absent.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        if text(self.value, "/spec/conversion/strategy") == "Webhook" { Strategy::Webhook } else { Strategy::None }
    }

    /// `spec.preserveUnknownFields`; true by default in `v1beta1` only.
    #[must_use]
    pub fn preserves_unknown_fields(&self) -> bool {
        let old_api = text(self.value, "/apiVersion") == "apiextensions.k8s.io/v1beta1";
        self.value.pointer("/spec/preserveUnknownFields").map_or(old_api, |value| value == &Value::Bool(true))
    }

    /// `status.storedVersions`; `None` if the definition has no status, as in a manifest.
    fn listed_as_stored(&self) -> Option<Vec<&'a str>> {
        let listed: Vec<&str> = list(self.value.pointer("/status/storedVersions")).filter_map(Value::as_str).collect();
        (!listed.is_empty()).then_some(listed)
    }

    /// Whether `status.storedVersions` is known.
    #[must_use]
    pub fn knows_stored_versions(&self) -> bool {
        self.listed_as_stored().is_some()
    }

    /// The versions that objects may be stored in: the listed ones, and the storage version, which every write since
    /// this definition was applied has used, whatever the status says.
    #[must_use]
    pub fn stored_versions(&self) -> Vec<&'a str> {
        let mut stored = self.listed_as_stored().unwrap_or_default();
        let storage = self.versions.iter().filter(|version| version.storage).map(|version| version.name);
        for name in storage {
            if !stored.contains(&name) {
                stored.push(name);
            }
        }
        stored
    }

    /// Path of a version in the definition; the path of the list if the version is not in it.
    #[must_use]
    pub fn path_of(&self, version: &str, rest: &[&str]) -> Vec<PathSegment> {
        let mut path: Vec<PathSegment> = vec!["spec".into(), "versions".into()];
        let index = list(self.value.pointer("/spec/versions")).position(|entry| text(entry, "/name") == version);
        if let Some(index) = index {
            path.push(index.into());
            path.extend(rest.iter().map(|key| PathSegment::from(*key)));
        }
        path
    }

    /// Path of a version's schema: in the version or, in `v1beta1`, once for all versions.
    #[must_use]
    pub fn path_of_schema(&self, version: &str) -> Vec<PathSegment> {
        let own = list(self.value.pointer("/spec/versions")).find(|entry| text(entry, "/name") == version);
        let is_own = own.is_some_and(|entry| entry.pointer("/schema/openAPIV3Schema").is_some());
        if !is_own && self.value.pointer("/spec/validation/openAPIV3Schema").is_some() {
            return ["spec", "validation", "openAPIV3Schema"].map(PathSegment::from).to_vec();
        }
        self.path_of(version, &["schema", "openAPIV3Schema"])
    }
}

/// The `v1beta1` fields that apply to all versions; in `v1` the server drops them.
#[derive(Default)]
struct Common<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    printer_columns: Option<&'a Value>,
}

impl<'a> Common<'a> {
    fn of(definition: &'a Value, spec: &'a Value) -> Self {
        if text(definition, "/apiVersion") == "apiextensions.k8s.io/v1" {
            return Self::default();
        }
        Self {
            schema: spec.pointer("/validation/openAPIV3Schema"),
            subresources: spec.get("subresources"),
            printer_columns: spec.get("additionalPrinterColumns"),
        }
    }
}

impl<'a> Version<'a> {
    fn of(value: &'a Value, common: &Common<'a>) -> Self {
        let flag = |key: &str| value.get(key) == Some(&Value::Bool(true));
        let subresources = value.get("subresources").or(common.subresources);
        let columns = value.get("additionalPrinterColumns").or(common.printer_columns);
        Self {
            name: value.get("name").and_then(Value::as_str).unwrap_or_default(),
            served: flag("served"),
            storage: flag("storage"),
            deprecated: flag("deprecated"),
            schema: value.pointer("/schema/openAPIV3Schema").or(common.schema),
            status: subresources.and_then(|all| all.get("status")).is_some_and(|status| !status.is_null()),
            scale: subresources.and_then(|all| all.get("scale")).filter(|scale| !scale.is_null()),
            selectable_fields: list(value.get("selectableFields"))
                .filter_map(|field| field.get("jsonPath").and_then(Value::as_str))
                .collect(),
            printer_columns: list(columns).filter_map(|column| column.get("name").and_then(Value::as_str)).collect(),
        }
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
