//! Combines all inputs of a run: unique objects, Config documents and warnings, or every error at once.

mod compared;
pub mod content;
mod normalize;
mod path;
mod validate;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use pushback_conversion as conversion;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, Position, Positions};
use pushback_preflight::parallel;
use pushback_releases::model_file;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::input::{FileDigest, Input, InputError, InputWarning, Manifest, error_in};
use super::layout::Reading;
use super::limits::{Limits, Usage, size};
use super::options::{ComparedSide, LoadOptions, SideRole};
use super::render::{ResolvedSource, Trace};
use super::source;
use super::yaml::{self, Document};

/// The label of ConfigMaps that carry a Config document.
const CONFIG_LABEL: &str = "kapp.k14s.io/config";

/// Bytes of files held in memory at once, to be parsed in parallel.
const BATCH_BYTES: usize = 16 << 20;

/// Stack of a parser thread: only dropping a value uses stack in proportion to its nesting.
const STACK: usize = 8 << 20;

const ALLOW_EMPTY: &str = "To go on with no objects at all, say --dangerous-allow-empty-list-of-resources.";

/// Largest model file in bytes, the limit of the original tool; people write these by hand.
const MAX_MODEL_BYTES: usize = 1 << 20;

/// Why the inputs of `-f` could not be read.
#[derive(Debug)]
pub struct LoadError {
    /// Every problem, sorted by file and line.
    pub errors: Vec<InputError>,
    /// Whether the problem is that there is no object.
    pub is_empty: bool,
    /// True if there are files without any object; an empty directory has none.
    pub is_without_objects: bool,
    /// True if a side of a comparison has to be rendered first.
    pub must_be_rendered: bool,
    /// Whether nothing was named to be read.
    pub no_inputs: bool,
    /// What is wrong with objects, in input order.
    pub problems: Vec<Problem>,
}

/// An object that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is known of the object.
    pub object: ObjectRef,
    /// The file.
    pub file: String,
    /// The number of the document in the file, from 1.
    pub document: usize,
    /// Required fields that are missing, or hold no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<&'static str>,
}

/// The fields without which an object cannot be named, as far as they are missing.
fn missing_fields(value: &Value) -> Vec<&'static str> {
    let fields = [("/kind", "kind"), ("/apiVersion", "apiVersion"), ("/metadata/name", "metadata.name")];
    fields.into_iter().filter(|(pointer, _)| value.text(pointer).is_empty()).map(|(_, name)| name).collect()
}

impl std::ops::Deref for LoadError {
    type Target = [InputError];

    fn deref(&self) -> &Self::Target {
        &self.errors
    }
}

impl From<LoadError> for Vec<InputError> {
    fn from(error: LoadError) -> Self {
        error.errors
    }
}

/// Reads the inputs of `-f`: objects in input order, each identity once. Does not apply the default namespace.
///
/// # Errors
/// Every problem, sorted by file and line.
pub fn load(inputs: &[String], options: &LoadOptions) -> Result<Input, LoadError> {
    let mut collector = Collector::with_options(options);
    let empty_directories = collector.read(inputs, options);
    let is_empty = collector.input.manifests.is_empty() && collector.input.models.is_empty();
    if is_empty {
        collector.declare_new_base(inputs);
    }
    if collector.errors.is_empty() && is_empty && !options.allow_empty && !collector.is_missing {
        collector.is_empty = true;
        let mut error = match (options.compared, inputs) {
            (Some(side), [input]) if collector.files_read > 0 => collector.nothing_to_compare(side, input),
            _ => nothing_found(inputs, &empty_directories),
        };
        // Without any input argument, the user most likely forgot it.
        let is_applied =
            !options.models && !matches!(options.compared, Some(ComparedSide { role: SideRole::Base { .. }, .. }));
        if is_applied && !inputs.is_empty() {
            error.hints.push(ALLOW_EMPTY.to_owned());
        }
        collector.errors.push(error);
    }
    let may_be_missing = Some(SideRole::Base { may_be_missing: true });
    if options.compared.map(|side| side.role) == may_be_missing && !collector.is_missing {
        collector.input.warnings.extend(inputs.iter().map(|input| compared::needless_new_base(input)));
    }
    for directory in empty_directories {
        let error = no_manifest_files(&directory);
        collector.input.warnings.push(InputWarning {
            code: "empty-directory",
            message: error.message,
            position: error.position,
        });
    }
    let (is_empty, problems) = (collector.is_empty, std::mem::take(&mut collector.problems));
    let is_without_objects = is_empty && collector.files_read > 0;
    let must_be_rendered = collector.must_be_rendered;
    collector.finish().map_err(|errors| LoadError {
        errors,
        is_empty,
        is_without_objects,
        must_be_rendered,
        no_inputs: inputs.is_empty(),
        problems,
    })
}

/// Finds the files of an input and reads none of them.
///
/// # Errors
/// A folder has to be rendered first.
pub fn check_rendered(input: &str, options: &LoadOptions) -> Result<(), LoadError> {
    let found = source::find(&[input.to_owned()], options);
    if !found.must_be_rendered {
        return Ok(());
    }
    Err(LoadError {
        errors: found.errors,
        is_empty: false,
        is_without_objects: false,
        must_be_rendered: true,
        no_inputs: false,
        problems: Vec::new(),
    })
}

/// Reads one file that is compared.
///
/// # Errors
/// Every problem, sorted by line.
pub(super) fn load_text(name: &str, bytes: Vec<u8>, side: ComparedSide) -> Result<Input, Vec<InputError>> {
    let mut collector = Collector { compared: Some(side), ..Collector::default() };
    collector.files(
        &[File { name: name.to_owned(), is_found: true, reading: Reading::Objects, path: None, trace: None, bytes }],
        &Limits::default(),
    );
    collector.finish()
}

/// Reads the files of `--config`, which hold nothing but Config documents and conversion plans.
///
/// # Errors
/// Every problem, sorted by file and line.
pub fn load_config_files(paths: &[String]) -> Result<Input, Vec<InputError>> {
    let mut collector = Collector { only_configs: true, ..Collector::default() };
    for directory in collector.read(paths, &LoadOptions { digests: true, ..LoadOptions::default() }) {
        collector.errors.push(no_manifest_files(&directory));
    }
    collector.finish()
}

/// Reads the texts of files of `--config`, as [`load_config_files`] does.
///
/// # Errors
/// Every problem, sorted by file and line.
pub fn load_config_texts(files: Vec<(String, Vec<u8>)>) -> Result<Input, Vec<InputError>> {
    let mut collector = Collector { only_configs: true, ..Collector::default() };
    let file =
        |(name, bytes)| File { name, is_found: false, reading: Reading::Objects, path: None, trace: None, bytes };
    collector.files(&files.into_iter().map(file).collect::<Vec<_>>(), &Limits::default());
    collector.finish()
}

/// The Config documents, and ConfigMaps that carry one, in these (name, text) files. Other documents are ignored.
///
/// # Errors
/// A file cannot be parsed.
pub fn configs_among(files: &[(String, String)]) -> Result<Vec<Manifest>, Vec<InputError>> {
    let mut collector = Collector { configs_among: true, ..Collector::default() };
    let file = |(name, text): &(String, String)| File {
        name: name.clone(),
        is_found: false,
        reading: Reading::Objects,
        path: None,
        trace: None,
        bytes: text.clone().into_bytes(),
    };
    collector.files(&files.iter().map(file).collect::<Vec<_>>(), &Limits::default());
    collector.finish().map(|input| input.configs)
}

/// Normalizes an object of the base as if it were among the manifests. One that is not valid stays as it is.
pub fn normalize_object(object: &mut Value) {
    let positions = Positions::of_file("");
    let _ = normalize::normalize(object, &positions);
}

/// Rewrites a document of a folder in the form that manifests have: Secrets with `data`, items of typed lists with their
/// kind, lists without lists inside. Fields that a server sets stay.
pub fn normalize_stored(document: &mut Value) {
    if !is_list(document) {
        return normalize::normalize_stored(document);
    }
    flatten(document);
    document.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(normalize::normalize_stored);
}

/// Moves the items of lists inside a list to the list itself, and gives items their kind. Recursion is bounded by the
/// nesting that the reader accepts.
pub fn flatten(list: &mut Value) {
    let (api_version, kind) = (list.text("/apiVersion").to_owned(), list.text("/kind").to_owned());
    let Some(Value::Array(items)) = list.get_mut("items") else { return };
    let mut flat = Vec::with_capacity(items.len());
    for mut item in std::mem::take(items) {
        inherit_type(&mut item, &api_version, &kind);
        if is_list(&item) && item.name().is_empty() {
            flatten(&mut item);
            flat.extend(item.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default());
        } else {
            flat.push(item);
        }
    }
    *items = flat;
}

fn is_list(value: &Value) -> bool {
    value.text("/kind").ends_with("List") && value.get("items").is_some_and(Value::is_array)
}

/// The content of one input file.
#[derive(Debug)]
struct File {
    name: String,
    /// True if it was found in a folder, so that nobody has named it.
    is_found: bool,
    /// The documents that are read.
    reading: Reading,
    path: Option<PathBuf>,
    /// The way from positions in a rendered text to source files.
    trace: Option<Trace>,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Collector {
    input: Input,
    errors: Vec<InputError>,
    identities: HashMap<ObjectKey, usize>,
    only_configs: bool,
    configs_among: bool,
    /// True if a ConfigMap that carries a Config is not read from this file.
    only_documents: bool,
    models: bool,
    is_empty: bool,
    problems: Vec<Problem>,
    /// The number of the document that is read, within its file.
    document: usize,
    /// True if an input does not exist, and need not.
    is_missing: bool,
    /// The side of a comparison that is read, if any.
    compared: Option<ComparedSide>,
    /// True if the file that is read is compared and was found in a folder.
    is_found: bool,
    /// Documents that are not objects.
    left_out: Vec<Position>,
    /// Number of files that were found or named.
    files_read: usize,
    /// Number of manifest files that were found or named.
    manifests_read: usize,
    /// True if there are manifest files among them.
    has_manifests: bool,
    /// True if a folder has to be rendered first.
    must_be_rendered: bool,
    usage: Usage,
}

impl Collector {
    /// Reads the inputs one by one; returns the directories that hold no manifest file.
    fn read(&mut self, inputs: &[String], options: &LoadOptions) -> Vec<String> {
        let found = source::find(inputs, options);
        self.errors.extend(found.errors);
        self.is_missing = !found.missing.is_empty();
        self.must_be_rendered = found.must_be_rendered;
        self.input.rendered = found.rendered;
        if options.digests {
            self.input.digests.extend(self.input.rendered.iter().filter_map(digest_of_artifact));
        }
        self.files_read = found.files_in_folders;
        self.has_manifests = found.manifests_in_folders > 0;
        self.manifests_read = found.manifests_in_folders;
        self.input.missing = found.missing;
        self.input.warnings.extend(self.input.missing.iter().map(|input| compared::new_base(input)));
        self.input.warnings.extend(found.warnings);
        let mut given = options.stdin.as_deref();
        let mut own = io::stdin();
        let standard_input: &mut dyn Read = match given.as_mut() {
            Some(bytes) => bytes,
            None => &mut own,
        };
        let (mut total, mut together) = (0, 0);
        let mut read: Vec<File> = Vec::new();
        for mut source in found.sources {
            let (name, is_found, path) = (source.name.clone(), source.is_found, source.local_path());
            let reading = source.reading;
            let trace = source.trace.take();
            match source.read(standard_input, options.limits.bytes) {
                Ok(bytes) => {
                    if options.digests {
                        let sha256 = Sha256::digest(&bytes).into();
                        self.input.digests.push(FileDigest { name: name.clone(), sha256 });
                    }
                    total += bytes.len();
                    if total > options.total_bytes {
                        let limit = size(options.total_bytes);
                        let message = format!("with this file the input is larger than {limit}, the limit of all");
                        self.errors.push(error_in(&name, message, &["Deploy it as several apps."]));
                        break;
                    }
                    together += bytes.len();
                    self.files_read += usize::from(!is_found);
                    self.has_manifests |= !is_found;
                    self.manifests_read += usize::from(!is_found);
                    read.push(File { name, is_found, reading, path, trace, bytes });
                    if together >= BATCH_BYTES {
                        self.files(&std::mem::take(&mut read), &options.limits);
                        together = 0;
                    }
                }
                Err(error) => self.errors.push(error),
            }
        }
        self.files(&read, &options.limits);
        self.finish_compared();
        found.empty_directories
    }

    fn files(&mut self, files: &[File], limits: &Limits) {
        let loaded = parallel::map_heaviest_first(
            files,
            |file| file.bytes.len(),
            STACK,
            |file| {
                let mut usage = Usage::default();
                yaml::load_next(&file.name, &file.bytes, limits, &mut usage).map(|loaded| (loaded, usage))
            },
        );
        for (file, loaded) in files.iter().zip(loaded) {
            if let Some(path) = &file.path {
                self.input.sources.note(&file.name, path, &file.bytes);
            }
            // Each file was parsed as if it were the only one; the limits apply to all together.
            let loaded = match loaded {
                Ok((loaded, usage)) if self.usage.plus(usage).is_within(limits) => {
                    self.usage = self.usage.plus(usage);
                    Ok(loaded)
                }
                _ => yaml::load_next(&file.name, &file.bytes, limits, &mut self.usage),
            };
            match loaded {
                Ok(loaded) => {
                    self.is_found = file.is_found && self.compared.is_some();
                    let configs_among = self.configs_among;
                    self.configs_among |= file.reading != Reading::Objects;
                    self.only_documents = file.reading == Reading::Configs;
                    self.input.warnings.extend(loaded.warnings);
                    for (number, document) in loaded.documents.into_iter().enumerate() {
                        self.document = number + 1;
                        let document = match &file.trace {
                            Some(trace) => traced(document, trace),
                            None => document,
                        };
                        if self.models && file.reading == Reading::Objects && model_file::is_model(&document.value) {
                            self.model(document, file.bytes.len());
                        } else {
                            self.document(document);
                        }
                    }
                    self.configs_among = configs_among;
                }
                // Nothing of it belongs to the set.
                Err(_) if file.reading != Reading::Objects => {}
                Err(error) => self.errors.push(error),
            }
        }
    }

    fn model(&mut self, document: Document, file_bytes: usize) {
        let Document { value, positions } = document;
        if file_bytes > MAX_MODEL_BYTES {
            let message = format!("larger than {}, the limit of a file with a model", size(MAX_MODEL_BYTES));
            let hint = "Split it: documents of one operator are merged.";
            return self.errors.push(error_in(positions.file(), message, &[hint]));
        }
        self.input.models.push(pushback_objects::source::Document { value, positions: Arc::new(positions) });
    }

    /// Adds one document: nothing, an object, or a list of objects.
    fn document(&mut self, document: Document) {
        // A stack instead of recursion: lists may contain lists.
        let mut open = vec![document];
        while let Some(Document { mut value, positions }) = open.pop() {
            if value.is_null() {
                continue;
            }
            let kind = value.text("/kind").to_owned();
            let is_empty_list = kind == "List" && value.get("items").is_none_or(Value::is_null);
            if is_list(&value) || is_empty_list {
                let api_version = value.text("/apiVersion").to_owned();
                let items = value.get_mut("items").map(Value::take);
                let Some(Value::Array(items)) = items else { continue };
                let places = positions.elements(&["items".into()]);
                let start = open.len();
                for (mut value, positions) in items.into_iter().zip(places) {
                    inherit_type(&mut value, &api_version, &kind);
                    open.push(Document { value, positions });
                }
                open[start..].reverse();
            } else {
                self.object(value, positions);
            }
        }
    }

    fn object(&mut self, mut value: Value, positions: Positions) {
        if is_config(&value) {
            let object = ObjectRef::of(&value);
            self.input.configs.push(Manifest { object, value, positions: Arc::new(positions) });
            return;
        }
        if conversion::is_plan(&value) && !self.configs_among {
            self.input.plans.push(pushback_objects::source::Document { value, positions: Arc::new(positions) });
            return;
        }
        if self.configs_among {
            if carries_config(&value) && !self.only_documents {
                let object = ObjectRef::of(&value);
                self.input.configs.push(Manifest { object, value, positions: Arc::new(positions) });
            }
            return;
        }
        if self.leaves_out(&value, &positions.start()) {
            return;
        }
        if value.text("/kind") == "Secret" {
            self.input.sources.hide(positions.file());
        }
        if self.only_configs {
            self.errors.push(InputError {
                message: "expected a Config document or a ConversionPlan".to_owned(),
                position: positions.start(),
                hints: vec![
                    "It starts with `apiVersion: pushback.dev/v1alpha1` (or kapp.k14s.io/v1alpha1) and `kind: Config`."
                        .to_owned(),
                    "Objects to apply are given with `-f`.".to_owned(),
                ],
            });
            return;
        }
        let mut errors = validate::validate(&value, &positions);
        if let Some(first) = errors.first_mut() {
            if self.models && value.get("apiVersion").is_none() {
                first.hints.push("A model is a document with `operator:` and `components:`.".to_owned());
            }
            self.errors.extend(errors);
            let missing = missing_fields(&value);
            if !missing.is_empty() {
                self.problem(ObjectRef::of(&value), &positions, missing);
            }
            return;
        }
        let is_base = matches!(self.compared, Some(ComparedSide { role: SideRole::Base { .. }, .. }));
        let normalized = if is_base { normalize::normalize_base } else { normalize::normalize };
        match normalized(&mut value, &positions) {
            Ok(warnings) => self.input.warnings.extend(warnings),
            Err(errors) => return self.errors.extend(errors),
        }
        let object = ObjectRef::of(&value);
        let manifest = Manifest { object, value, positions: Arc::new(positions) };
        match self.identities.entry(manifest.object.key()) {
            Entry::Vacant(slot) => {
                slot.insert(self.input.manifests.len());
                if carries_config(&manifest.value) {
                    self.input.configs.push(manifest.clone());
                }
                self.input.manifests.push(manifest);
            }
            Entry::Occupied(slot) => {
                let earlier = *slot.get();
                if self.input.manifests[earlier].value != manifest.value && self.keeps_variant(&manifest, earlier) {
                    return;
                }
                // The file is left out, and with it any Config that masks its values.
                self.input.sources.hide(manifest.positions.file());
                let earlier = &self.input.manifests[earlier];
                let (object, place) = (&manifest.object, earlier.positions.start());
                let position = manifest.positions.start();
                if earlier.value == manifest.value {
                    let message = format!("{object} is given a second time, with the same content as at {place}");
                    self.input.warnings.push(InputWarning { code: "duplicate-object", message, position });
                } else {
                    let object = object.clone();
                    self.problem(object.clone(), &manifest.positions, Vec::new());
                    self.errors.push(InputError {
                        message: format!("{object} is given a second time, with other content than at {place}"),
                        position,
                        hints: vec!["Remove one of them, or give them different names or namespaces.".to_owned()],
                    });
                }
            }
        }
    }

    fn problem(&mut self, object: ObjectRef, positions: &Positions, missing: Vec<&'static str>) {
        let (file, document) = (positions.file().to_owned(), self.document);
        self.problems.push(Problem { object, file, document, missing });
    }

    fn finish(mut self) -> Result<Input, Vec<InputError>> {
        if self.errors.is_empty() {
            return Ok(self.input);
        }
        self.errors.sort_by(|one, other| one.position.cmp(&other.position));
        Err(self.errors)
    }
}

/// The digest of an artifact's manifest, which covers all its files.
fn digest_of_artifact(source: &ResolvedSource) -> Option<FileDigest> {
    match source {
        ResolvedSource::Artifact { name, digest } => Some(FileDigest { name: name.clone(), sha256: digest.bytes() }),
        ResolvedSource::Rendered(_) => None,
    }
}

/// The document with the positions of the file that people edit, if it is known.
fn traced(document: Document, trace: &Trace) -> Document {
    let positions = trace.positions(&document.value, &document.positions);
    Document { positions: positions.unwrap_or(document.positions), ..document }
}

/// Items of a typed list, such as `ConfigMapList`, may omit what the list already says.
fn inherit_type(item: &mut Value, api_version: &str, list_kind: &str) {
    let kind = list_kind.strip_suffix("List").unwrap_or_default();
    let Some(item) = item.as_object_mut() else { return };
    if !kind.is_empty() && !item.contains_key("kind") && !item.contains_key("apiVersion") {
        item.insert("apiVersion".to_owned(), api_version.into());
        item.insert("kind".to_owned(), kind.into());
    }
}

fn is_config(value: &Value) -> bool {
    value.text("/kind") == "Config"
        && matches!(value.text("/apiVersion"), "kapp.k14s.io/v1alpha1" | "pushback.dev/v1alpha1")
}

/// Whether this is a ConfigMap that carries a Config document.
fn carries_config(value: &Value) -> bool {
    value.text("/kind") == "ConfigMap" && value.label(CONFIG_LABEL).is_some()
}

fn no_manifest_files(directory: &str) -> InputError {
    error_in(
        directory,
        "the directory holds no .yaml, .yml or .json file",
        &["Only files with these endings are read from a directory; name others one by one."],
    )
}

/// An empty input would delete the whole app. Usually the command that produced it failed.
fn nothing_found(inputs: &[String], empty_directories: &[String]) -> InputError {
    match (inputs, empty_directories) {
        ([], _) => error_in("-f", "no input is given", &["Give files, directories or URLs with `-f`, or `-f -`."]),
        ([_], [directory]) => no_manifest_files(directory),
        ([input], _) => error_in(input, "the input holds no object", &["Did the command that made it fail?"]),
        ([input, ..], _) => error_in(
            input,
            format!("{} inputs hold no object", inputs.len()),
            &["Did the command that made them fail?"],
        ),
    }
}

#[cfg(test)]
mod tests;
