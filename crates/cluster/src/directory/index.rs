//! All objects of a folder by identity, each with the document that contains it.
//! Built once from all files; a write updates only the file that it touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pushback_manifest::collect;
use pushback_manifest::files::SourceFile;
use pushback_objects::ObjectKey;
use pushback_objects::object::{ObjectExt, split_api_version};
use pushback_preflight::parallel;
use serde_json::Value;

use super::discovery::{defined_kind, kinds_of};
use super::present;
use super::read::{self, Part};
use super::source::Source;
use crate::{ClusterError, ErrorKind, Kinds};

/// Namespace of a namespaced object whose document gives none.
const DEFAULT_NAMESPACE: &str = "default";

/// Stack of a parser thread: only dropping a value uses stack in proportion to its nesting.
const STACK: usize = 8 << 20;

/// The content of a folder.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub files: BTreeMap<PathBuf, FileText>,
    pub objects: BTreeMap<ObjectKey, Entry>,
    pub kinds: Arc<Kinds>,
    next_document: u64,
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct FileText {
    pub text: String,
    /// Documents with content, in order; including those that are not Kubernetes objects.
    pub documents: Vec<Document>,
}

/// A document of a file.
#[derive(Debug)]
pub(super) struct Document {
    /// Unchanged while other documents are added and removed.
    id: u64,
    pub part: Part,
    /// Identities of the objects in it: none, one, or those of a List.
    keys: Vec<ObjectKey>,
}

/// An object and its location.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The object as it is returned.
    pub object: Arc<Value>,
    pub file: PathBuf,
    document: u64,
    /// Index in the List, if the document is one.
    pub item: Option<usize>,
}

impl Index {
    /// Parses every file.
    pub(super) fn load(source: &Source) -> Result<Self, ClusterError> {
        let mut index = Self::default();
        let as_text = |file: SourceFile| match String::from_utf8(file.bytes) {
            Ok(text) => Ok((file.path, text)),
            Err(_) => {
                let message = format!("{}: cannot be read: it is not UTF-8 text", source.shown(&file.path));
                Err(ClusterError::new(ErrorKind::Configuration, message))
            }
        };
        let files = source.read_all()?.into_iter().map(as_text).collect::<Result<Vec<_>, _>>()?;
        let parse = |(path, text): &(PathBuf, String)| documents(text, &source.shown(path));
        let read = parallel::map_heaviest_first(&files, |(_, text)| text.len(), STACK, parse);
        let mut parsed = Vec::new();
        for ((path, text), read) in files.into_iter().zip(read) {
            let mut documents = Vec::new();
            for (part, value) in read? {
                let id = index.new_id();
                documents.push(Document { id, part, keys: Vec::new() });
                parsed.push((path.clone(), documents.len() - 1, value));
            }
            index.files.insert(path, FileText { text, documents });
        }
        // The scope of every kind must be known before the first identity.
        let items = parsed.iter().flat_map(|(_, _, value)| items(value)).map(|(_, value)| value);
        index.kinds = Arc::new(kinds_of(items));
        let versions = parallel::map(&parsed, STACK, |(_, _, value)| versions(value, &index.kinds));
        for ((path, position, value), versions) in parsed.into_iter().zip(versions) {
            index.add_document(&path, position, value, versions, source)?;
        }
        Ok(index)
    }

    /// Indexes objects that were read already; `place` returns the namespace of an object whose manifest has this one.
    pub(super) fn with_objects(
        objects: Vec<Value>,
        place: &dyn Fn(&str) -> String,
        source: &Source,
    ) -> Result<Self, ClusterError> {
        let kinds = Arc::new(kinds_of(objects.iter()));
        let mut index = Self { kinds, ..Self::default() };
        for value in objects {
            let mut key = key_of(&value, &index.kinds);
            if !key.namespace.is_empty() {
                let placed = ObjectKey { namespace: place(value.namespace()), ..key.clone() };
                // An option can put objects of several namespaces into one.
                if !index.objects.contains_key(&placed) {
                    key = placed;
                }
            }
            if index.objects.contains_key(&key) {
                let message = format!("{key} is given twice in {}; keep one of them", source.shown(Path::new("")));
                return Err(ClusterError::new(ErrorKind::Configuration, message));
            }
            let object = Arc::new(present::live(value, &key));
            index.objects.insert(key, Entry { object, file: PathBuf::new(), document: 0, item: None });
        }
        Ok(index)
    }

    fn new_id(&mut self) -> u64 {
        self.next_document += 1;
        self.next_document
    }

    /// Adds the objects of a document that is already listed in its file; `versions` are theirs.
    fn add_document(
        &mut self,
        path: &Path,
        position: usize,
        value: Value,
        versions: Vec<String>,
        source: &Source,
    ) -> Result<(), ClusterError> {
        let Some(document) = self.files.get_mut(path).and_then(|file| file.documents.get_mut(position)) else {
            return Ok(());
        };
        let (id, line) = (document.id, document.part.line);
        for ((item, value), version) in into_items(value).into_iter().zip(versions) {
            let key = key_of(&value, &self.kinds);
            if let Some(other) = self.objects.get(&key) {
                let message = format!(
                    "{key} is given twice: in {} and in {}:{line}; keep one of them",
                    self.place(other, source),
                    source.shown(path)
                );
                return Err(ClusterError::new(ErrorKind::Configuration, message));
            }
            let object = Arc::new(present::live_of_version(value, &key, version));
            self.objects.insert(key.clone(), Entry { object, file: path.to_owned(), document: id, item });
            if let Some(document) = self.files.get_mut(path).and_then(|file| file.documents.get_mut(position)) {
                document.keys.push(key);
            }
        }
        Ok(())
    }

    fn place(&self, entry: &Entry, source: &Source) -> String {
        let line = self.document(entry).map_or(0, |(_, document)| document.part.line);
        format!("{}:{line}", source.shown(&entry.file))
    }

    /// The document of an entry, and its index in the file.
    pub(super) fn document(&self, entry: &Entry) -> Option<(usize, &Document)> {
        let documents = &self.files.get(&entry.file)?.documents;
        documents.iter().enumerate().find(|(_, document)| document.id == entry.document)
    }

    /// The objects of one kind, in all namespaces.
    pub(super) fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        let first = ObjectKey { group: group.to_owned(), kind: kind.to_owned(), ..ObjectKey::default() };
        let end = (first.group.clone(), first.kind.clone());
        self.objects.range(first..).take_while(move |(key, _)| key.group == end.0 && key.kind == end.1)
    }

    /// Adds a new file with one object.
    pub(super) fn file_added(&mut self, path: &Path, text: String, source: &Source) -> Result<(), ClusterError> {
        let parsed = documents(&text, &source.shown(path))?;
        self.files.insert(path.to_owned(), FileText { text, documents: Vec::new() });
        for (position, (part, value)) in parsed.into_iter().enumerate() {
            let id = self.new_id();
            if let Some(file) = self.files.get_mut(path) {
                file.documents.push(Document { id, part, keys: Vec::new() });
            }
            let versions = versions(&value, &self.kinds);
            self.add_document(path, position, value, versions, source)?;
        }
        Ok(())
    }

    /// Updates a file in which one document was replaced (`text` has its new form) or removed. The others only move,
    /// and are not parsed again.
    pub(super) fn document_changed(
        &mut self,
        path: &Path,
        position: usize,
        text: String,
        removed: bool,
        source: &Source,
    ) -> Result<(), ClusterError> {
        let Some(file) = self.files.get_mut(path).filter(|file| position < file.documents.len()) else { return Ok(()) };
        let old = file.documents.remove(position);
        let lines = |text: &str| text.matches('\n').count();
        let (old_length, new_length) = (file.text.len(), text.len());
        let (old_lines, new_lines) = (lines(&file.text), lines(&text));
        for document in &mut file.documents[position..] {
            document.part.move_by(old_length, new_length, old_lines, new_lines);
        }
        let segment = old.part.segment.start..(old.part.segment.end + new_length).saturating_sub(old_length);
        file.text = text;
        for key in &old.keys {
            self.objects.remove(key);
        }
        if removed {
            return Ok(());
        }
        let mut parsed = documents(&file.text[segment.clone()], &source.shown(path))?;
        if let Some((mut part, value)) = parsed.pop() {
            part.move_by(0, segment.start, 0, old.part.body_line.saturating_sub(1) as usize);
            file.documents.insert(position, Document { id: old.id, part, keys: Vec::new() });
            let versions = versions(&value, &self.kinds);
            self.add_document(path, position, value, versions, source)?;
        }
        Ok(())
    }

    /// Removes a deleted file.
    pub(super) fn file_removed(&mut self, path: &Path) {
        for document in self.files.remove(path).into_iter().flat_map(|file| file.documents) {
            for key in document.keys {
                self.objects.remove(&key);
            }
        }
    }

    /// Updates the kinds after a CRD was added, changed or removed, and the identities of its objects, whose scope may
    /// have changed.
    pub(super) fn definitions_changed(&mut self, definition: &Value) {
        self.kinds = Arc::new(kinds_of(self.objects.values().map(|entry| entry.object.as_ref())));
        let (group, kind) = defined_kind(definition);
        let stale: Vec<ObjectKey> = self.of_kind(group, kind).map(|(key, _)| key.clone()).collect();
        for old in stale {
            let Some(entry) = self.objects.get(&old) else { continue };
            let new = key_of(&entry.object, &self.kinds);
            if new == old || self.objects.contains_key(&new) {
                continue;
            }
            let Some(mut entry) = self.objects.remove(&old) else { continue };
            entry.object = Arc::new(present::live(entry.object.as_ref().clone(), &new));
            let documents = self.files.get_mut(&entry.file).map(|file| file.documents.iter_mut());
            for key in documents.into_iter().flatten().flat_map(|document| document.keys.iter_mut()) {
                if *key == old {
                    *key = new.clone();
                }
            }
            self.objects.insert(new, entry);
        }
    }
}

/// Parses all documents of a file that have content, in the form that manifests have.
fn documents(text: &str, file: &str) -> Result<Vec<(Part, Value)>, ClusterError> {
    let mut parsed = read::parse(text, file)?;
    parsed.iter_mut().for_each(|(_, value)| collect::normalize_stored(value));
    Ok(parsed)
}

/// The identity of a stored or returned object, according to the scope of its kind. If that is unknown, the document's
/// own namespace is used.
fn key_of(object: &Value, kinds: &Kinds) -> ObjectKey {
    let (group, _) = split_api_version(object.text("/apiVersion"));
    let kind = object.text("/kind");
    let namespace = match (kinds.preferred(group, kind), object.namespace()) {
        (Some(known), _) if !known.namespaced => "",
        (Some(_), "") => DEFAULT_NAMESPACE,
        (_, namespace) => namespace,
    };
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: object.name().to_owned(),
    }
}

/// The resourceVersion of every object in a document.
fn versions(document: &Value, kinds: &Kinds) -> Vec<String> {
    items(document).map(|(_, value)| present::content_digest(value, &key_of(value, kinds))).collect()
}

/// The items of a document that is a `List`: it has items, and no name of its own.
fn list_items(document: &Value) -> Option<&Vec<Value>> {
    let is_list = document.text("/kind").ends_with("List") && document.name().is_empty();
    document.get("items")?.as_array().filter(|_| is_list)
}

/// The objects in a document, each with its index if the document is a List.
fn items(document: &Value) -> impl Iterator<Item = (Option<usize>, &Value)> {
    let many = list_items(document);
    let one = many.is_none().then_some((None, document));
    let many = many.into_iter().flatten().enumerate().map(|(number, item)| (Some(number), item));
    one.into_iter().chain(many).filter(|(_, value)| present::is_object(value))
}

fn into_items(document: Value) -> Vec<(Option<usize>, Value)> {
    if list_items(&document).is_none() {
        return if present::is_object(&document) { vec![(None, document)] } else { Vec::new() };
    }
    items(&document).map(|(number, item)| (number, item.clone())).collect()
}
