//! Reads and writes objects, using the index and the files behind it.
//! If a file has changed since it was read, a write is a conflict, and everything is read again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pushback_manifest::collect;
use pushback_objects::object::{ObjectExt, split_api_version};
use pushback_objects::{ObjectKey, hex};
use pushback_preflight::selector::LabelSelector;
use serde_json::Value;

use super::discovery::is_crd;
use super::folder::Folder;
use super::index::{Entry, Index};
use super::layout::{self, RECORDS};
use super::present::{self, RECORD_LABELS};
use super::selector::field_selector;
use super::source::Source;
use super::{edit, read};
use crate::json_patch;
use crate::{Address, ClusterError, DeleteOptions, ErrorKind, Kinds, ListQuery, Page, Patch, Written};

/// The objects of a folder or git ref.
#[derive(Debug)]
pub(super) struct Store {
    source: Source,
    /// `None` until first used, and after a conflict.
    index: Mutex<Option<Index>>,
}

impl Store {
    pub(super) fn new(source: Source) -> Self {
        Self { source, index: Mutex::new(None) }
    }

    /// Holds these objects; nothing is read.
    pub(super) fn with_objects(
        description: String,
        objects: Vec<Value>,
        place: &dyn Fn(&str) -> String,
    ) -> Result<Self, ClusterError> {
        let source = Source::Objects(description);
        let index = Index::with_objects(objects, place, &source)?;
        Ok(Self { source, index: Mutex::new(Some(index)) })
    }

    pub(super) fn kinds(&self) -> Result<Arc<Kinds>, ClusterError> {
        self.with(|index| Ok(Arc::clone(&index.kinds)))
    }

    /// The files that contain a word, by their displayed names; app records are left out.
    pub(super) fn texts_with(&self, word: &str) -> Result<Vec<(String, String)>, ClusterError> {
        self.with(|index| {
            let files =
                index.files.iter().filter(|(path, file)| !path.starts_with(RECORDS) && file.text.contains(word));
            Ok(files.map(|(path, file)| (self.source.shown(path), file.text.clone())).collect())
        })
    }

    pub(super) fn get(&self, address: &Address) -> Result<Option<Arc<Value>>, ClusterError> {
        let key = key_of(address)?;
        self.with(|index| Ok(current(index, &key).map(|current| current.object)))
    }

    pub(super) fn list(&self, query: &ListQuery) -> Result<Page, ClusterError> {
        let labels = LabelSelector::parse(&query.label_selector)
            .map_err(|error| ClusterError::new(ErrorKind::Invalid, error.to_string()))?;
        let fields = field_selector(&query.field_selector)?;
        let records_too = RECORD_LABELS.iter().any(|label| labels.requires(label));
        let kind = &query.kind;
        let namespace = query.namespace.as_deref().filter(|namespace| kind.namespaced && !namespace.is_empty());
        self.with(|index| {
            let mut page = Page::default();
            let mut versions = String::new();
            for (key, entry) in index.of_kind(&kind.group, &kind.kind) {
                let is_record = entry.file.starts_with(RECORDS) || present::is_record(&entry.object);
                let key = understood(key, kind.namespaced);
                let wanted = namespace.is_none_or(|namespace| key.namespace == namespace)
                    && (records_too || !is_record)
                    && labels.matches(&entry.object)
                    && fields(&entry.object);
                if wanted {
                    let object = shown_as(&entry.object, &key);
                    versions.push_str(object.resource_version());
                    page.items.push(object);
                }
            }
            page.resource_version = digest(&versions);
            Ok(page)
        })
    }

    pub(super) fn create(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError> {
        self.folder_unless(dry_run)?;
        let mut key = key_of(address)?;
        let mut body = body.clone();
        self.with(|index| {
            if key.name.is_empty() {
                key.name = match body.name() {
                    "" => generated_name(index, &key, body.text("/metadata/generateName"))?,
                    name => name.to_owned(),
                };
                if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("name".to_owned(), key.name.clone().into());
                }
            }
            check_body(&key, &body)?;
            if current(index, &key).is_some() {
                return Err(ClusterError::new(ErrorKind::AlreadyExists, format!("{key} exists already")));
            }
            self.put(index, &key, None, present::stored(&body, &key), dry_run)
        })
    }

    /// Stores the body as the object: a folder has no defaults and no other managers. A status missing from the body is
    /// kept, as on a server.
    pub(super) fn apply(&self, address: &Address, body: &Value, dry_run: bool) -> Result<Written, ClusterError> {
        self.folder_unless(dry_run)?;
        let key = key_of(address)?;
        check_body(&key, body)?;
        self.with(|index| self.apply_in(index, &key, body, dry_run))
    }

    /// The answer to a dry-run if no file access is needed: everything has been read, and no write is in progress. A
    /// refusal is left to [`Store::apply`], which checks again.
    pub(super) fn dry_apply_at_once(&self, address: &Address, body: &Value) -> Option<Written> {
        let key = key_of(address).ok()?;
        check_body(&key, body).ok()?;
        let mut index = self.index.try_lock().ok()?;
        self.apply_in(index.as_mut()?, &key, body, true).ok()
    }

    fn apply_in(
        &self,
        index: &mut Index,
        key: &ObjectKey,
        body: &Value,
        dry_run: bool,
    ) -> Result<Written, ClusterError> {
        let current = current(index, key);
        let object = current.as_ref().map(|current| current.object.as_ref());
        check_preconditions(key, object, body.uid(), body.resource_version())?;
        let mut document = present::stored(body, key);
        if let (Some(status), Some(map)) = (object.and_then(|object| object.get("status")), document.as_object_mut()) {
            map.entry("status").or_insert_with(|| status.clone());
        }
        self.put(index, key, current, document, dry_run)
    }

    pub(super) fn patch(&self, address: &Address, patch: &Patch, dry_run: bool) -> Result<Written, ClusterError> {
        self.folder_unless(dry_run)?;
        let key = key_of(address)?;
        self.with(|index| {
            let current = current(index, &key)
                .ok_or_else(|| ClusterError::new(ErrorKind::NotFound, format!("{key} does not exist")))?;
            let mut patched = current.object.as_ref().clone();
            match patch {
                Patch::Json(operations) => json_patch::apply(&mut patched, operations)?,
                Patch::Merge(merged) => json_patch::merge(&mut patched, merged),
            }
            // The uid and resourceVersion in a patch are preconditions.
            check_preconditions(&key, Some(&current.object), patched.uid(), patched.resource_version())?;
            check_body(&key, &patched)?;
            self.put(index, &key, Some(current), present::stored(&patched, &key), dry_run)
        })
    }

    pub(super) fn delete(
        &self,
        address: &Address,
        options: &DeleteOptions,
    ) -> Result<Option<Arc<Value>>, ClusterError> {
        let key = key_of(address)?;
        self.with(|index| {
            let folder = self.folder_unless(options.dry_run)?;
            let Some(current) = current(index, &key) else { return Ok(None) };
            check_preconditions(&key, Some(&current.object), &options.uid, &options.resource_version)?;
            if let Some(folder) = folder {
                self.remove(folder, index, &key, &current.entry)?;
                if is_crd(&key.group, &key.kind) {
                    index.definitions_changed(&current.object);
                }
            }
            Ok(Some(current.object))
        })
    }

    /// Runs `work` with the index, which is read first if necessary.
    fn with<R>(&self, work: impl FnOnce(&mut Index) -> Result<R, ClusterError>) -> Result<R, ClusterError> {
        let mut guard = self.index.lock().unwrap_or_else(|poisoned| {
            self.index.clear_poison();
            let mut guard = PoisonError::into_inner(poisoned);
            *guard = None;
            guard
        });
        let result = match guard.as_mut() {
            Some(index) => work(index),
            None => work(guard.insert(Index::load(&self.source)?)),
        };
        // These errors leave everything unchanged; after any other the files may differ from the index.
        let harmless = [ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::Invalid, ErrorKind::Unsupported];
        let is_read = !matches!(self.source, Source::Objects(_));
        if is_read && result.as_ref().is_err_and(|error| !harmless.contains(&error.kind)) {
            *guard = None;
        }
        result
    }

    /// Stores a document, unless it is equal to the existing one.
    fn put(
        &self,
        index: &mut Index,
        key: &ObjectKey,
        current: Option<StoredObject>,
        document: Value,
        dry_run: bool,
    ) -> Result<Written, ClusterError> {
        let folder = self.folder_unless(dry_run)?;
        let created = current.is_none();
        // The resourceVersion of a returned object is the digest of its content.
        let version = present::content_digest(&document, key);
        if let Some(current) = current.as_ref().filter(|current| current.object.resource_version() == version) {
            return Ok(Written { object: Arc::clone(&current.object), created, warnings: Vec::new() });
        }
        let Some(folder) = folder else {
            let object = Arc::new(present::live_of_version(document, key, version));
            return Ok(Written { object, created, warnings: Vec::new() });
        };
        let object = Arc::new(present::live_of_version(document.clone(), key, version));
        match current {
            Some(current) => self.edit(folder, index, &current.entry, Some(document))?,
            None => self.add(folder, index, key, &document)?,
        }
        if is_crd(&key.group, &key.kind) {
            index.definitions_changed(&object);
        }
        Ok(Written { object, created, warnings: Vec::new() })
    }

    /// The folder to write to; `None` for a dry-run, which a git ref also supports.
    fn folder_unless(&self, dry_run: bool) -> Result<Option<&Folder>, ClusterError> {
        if dry_run { Ok(None) } else { self.source.writable().map(Some) }
    }

    fn add(&self, folder: &Folder, index: &mut Index, key: &ObjectKey, document: &Value) -> Result<(), ClusterError> {
        let first = if present::is_record(document) { layout::record_path(key) } else { layout::object_path(key) };
        let path = free_path(folder, index, &first)?;
        let text = edit::new_file(document, &folder.shown(&path))?;
        let private = is_secret(document) || present::is_record(document);
        folder.write(&path, &text, private)?;
        index.file_added(&path, text, &self.source)
    }

    fn remove(&self, folder: &Folder, index: &mut Index, key: &ObjectKey, entry: &Entry) -> Result<(), ClusterError> {
        let only = index.files.get(&entry.file).is_some_and(|file| file.documents.len() == 1);
        if !only || entry.item.is_some() {
            return self.edit(folder, index, entry, None);
        }
        check_unchanged(folder, index, &entry.file)?;
        // A folder is ours to remove if the file is at the path that we assign.
        let ours = entry.file == layout::object_path(key) || entry.file == layout::record_path(key);
        folder.remove(&entry.file, ours)?;
        index.file_removed(&entry.file);
        Ok(())
    }

    /// Replaces a document, or an item of a List; `None` removes it.
    fn edit(
        &self,
        folder: &Folder,
        index: &mut Index,
        entry: &Entry,
        replacement: Option<Value>,
    ) -> Result<(), ClusterError> {
        check_unchanged(folder, index, &entry.file)?;
        let shown = folder.shown(&entry.file);
        let (Some(file), Some((position, document))) = (index.files.get(&entry.file), index.document(entry)) else {
            return Err(changed_meanwhile(folder, &entry.file));
        };
        let part = &document.part;
        let replacement = match entry.item {
            None => replacement,
            Some(number) => {
                let list = read::parse(&file.text[part.segment.clone()], &shown)?.pop();
                list.and_then(|(_, mut list)| {
                    collect::flatten(&mut list);
                    edit_item(list, number, replacement)
                })
            }
        };
        let removed = replacement.is_none();
        let text = match replacement {
            Some(value) => edit::replace(&file.text, part, &value, &shown)?,
            None => edit::remove(&file.text, part, &shown),
        };
        if removed && file.documents.len() == 1 {
            folder.remove(&entry.file, false)?;
            index.file_removed(&entry.file);
            return Ok(());
        }
        folder.write(&entry.file, &text, false)?;
        index.document_changed(&entry.file, position, text, removed, &self.source)
    }
}

/// An existing object and its location.
struct StoredObject {
    object: Arc<Value>,
    entry: Entry,
}

fn current(index: &Index, key: &ObjectKey) -> Option<StoredObject> {
    let unscoped = || {
        let unscoped = ObjectKey { namespace: String::new(), ..key.clone() };
        let unknown = index.kinds.versions(&key.group, &key.kind).iter().all(|kind| kind.is_guessed());
        index.objects.get(&unscoped).filter(|_| unknown && *key == understood(&unscoped, !key.namespace.is_empty()))
    };
    let entry = index.objects.get(key).or_else(unscoped)?.clone();
    Some(StoredObject { object: shown_as(&entry.object, key), entry })
}

/// The key as stored: without its CRD here, a document may omit the default namespace.
fn understood(key: &ObjectKey, namespaced: bool) -> ObjectKey {
    let mut key = key.clone();
    if namespaced && key.namespace.is_empty() {
        "default".clone_into(&mut key.namespace);
    }
    key
}

fn shown_as(object: &Arc<Value>, key: &ObjectKey) -> Arc<Value> {
    if object.namespace() == key.namespace {
        Arc::clone(object)
    } else {
        Arc::new(present::live(object.as_ref().clone(), key))
    }
}

/// The identity behind an address, if objects of the kind can be stored.
fn key_of(address: &Address) -> Result<ObjectKey, ClusterError> {
    let kind = &address.kind;
    let unsupported = |what: &str| {
        let message = format!("{} is not supported in a folder: {what}", address.kind.kind);
        Err(ClusterError::new(ErrorKind::Unsupported, message))
    };
    if !address.subresource.is_empty() {
        return unsupported(&format!("it has no subresource {:?}", address.subresource));
    }
    if !kind.verbs.is_empty() && !kind.offers("get") {
        return unsupported("it is a question to a server, not an object that is stored");
    }
    let key = ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: if kind.namespaced { address.namespace.clone() } else { String::new() },
        name: address.name.clone(),
    };
    Ok(understood(&key, kind.namespaced))
}

/// Checks that a body is of the object that it is sent for.
fn check_body(key: &ObjectKey, body: &Value) -> Result<(), ClusterError> {
    let (group, version) = split_api_version(body.text("/apiVersion"));
    let namespace = body.namespace();
    let problem = if !body.get("metadata").is_some_and(Value::is_object) {
        "it has no metadata"
    } else if group != key.group || body.text("/kind") != key.kind || version.is_empty() {
        "its apiVersion or kind is another"
    } else if body.name() != key.name || key.name.is_empty() {
        "its metadata.name is another"
    } else if !(namespace.is_empty() || key.namespace.is_empty() || namespace == key.namespace) {
        "its metadata.namespace is another"
    } else {
        return Ok(());
    };
    Err(ClusterError::new(ErrorKind::Invalid, format!("the body does not fit {key}: {problem}")))
}

/// Empty preconditions always hold. A uid requires an existing object; a resourceVersion alone may create.
fn check_preconditions(key: &ObjectKey, object: Option<&Value>, uid: &str, version: &str) -> Result<(), ClusterError> {
    let problem = match object {
        None if !uid.is_empty() => "does not exist any more",
        Some(object) if !uid.is_empty() && object.uid() != uid => "is another object of the same name",
        Some(object) if !version.is_empty() && object.resource_version() != version => "has changed since it was read",
        _ => return Ok(()),
    };
    Err(ClusterError::new(ErrorKind::Conflict, format!("{key} {problem}")))
}

/// Uses the number after the highest existing one: no randomness, and never a name that was just assigned.
fn generated_name(index: &Index, key: &ObjectKey, prefix: &str) -> Result<String, ClusterError> {
    if prefix.is_empty() {
        let message = format!("a {} needs metadata.name or metadata.generateName", key.kind);
        return Err(ClusterError::new(ErrorKind::Invalid, message));
    }
    let used = index
        .of_kind(&key.group, &key.kind)
        .filter(|(other, _)| other.namespace == key.namespace)
        .filter_map(|(other, _)| other.name.strip_prefix(prefix)?.parse::<u64>().ok());
    let next = used.max().unwrap_or(0).saturating_add(1);
    Ok(format!("{prefix}{next}"))
}

/// The List with one item replaced or removed; `None` if none is left.
fn edit_item(mut list: Value, number: usize, replacement: Option<Value>) -> Option<Value> {
    let items = list.get_mut("items")?.as_array_mut()?;
    match replacement {
        Some(value) => *items.get_mut(number)? = value,
        None if number < items.len() => drop(items.remove(number)),
        None => return None,
    }
    (!items.is_empty()).then_some(list)
}

fn is_secret(document: &Value) -> bool {
    document.text("/kind") == "Secret"
}

/// The path derived from the identity, or the next one if another file is there.
fn free_path(folder: &Folder, index: &Index, first: &Path) -> Result<PathBuf, ClusterError> {
    for number in 1..1000 {
        let path = layout::alternative(first, number);
        if index.files.contains_key(&path) {
            continue;
        }
        let Some(metadata) = folder.metadata(&path) else { return Ok(path) };
        let folded = path.to_string_lossy().to_lowercase();
        let known = index.files.keys().any(|known| known.to_string_lossy().to_lowercase() == folded);
        if metadata.is_file() && !known {
            return Err(changed_meanwhile(folder, &path));
        }
    }
    let message = format!("{}: no free file name beside it", folder.shown(first));
    Err(ClusterError::new(ErrorKind::Server, message))
}

fn check_unchanged(folder: &Folder, index: &Index, path: &Path) -> Result<(), ClusterError> {
    let read = index.files.get(path).map(|file| file.text.as_bytes());
    if folder.read(path)?.as_deref() == read { Ok(()) } else { Err(changed_meanwhile(folder, path)) }
}

fn changed_meanwhile(folder: &Folder, path: &Path) -> ClusterError {
    let message = format!("{}: was changed by somebody else since it was read", folder.shown(path));
    ClusterError::new(ErrorKind::Conflict, message)
}

fn digest(text: &str) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(&Sha256::digest(text)[..10])
}
