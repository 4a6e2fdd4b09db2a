//! Converts a tree to its value and positions: follows aliases, merges merge keys, resolves scalars.
//! Not recursive, so that depth uses no stack.

use std::collections::HashMap;
use std::sync::Arc;
use std::vec;

use pushback_objects::PathSegment;
use pushback_objects::source::PositionsBuilder;
use serde_json::{Map, Value};

use super::document::{Document, Loaded};
use super::fault::{Fault, Place};
use super::scalar::{self, Surprise, Tag};
use super::tree::{Kind, Node, Tree, too_deep};
use crate::input::InputWarning;
use crate::limits::{Limits, Usage, size};

/// Adds the document of `tree` to `loaded`, warnings in the order of the text.
pub(super) fn construct(
    file: &Arc<str>,
    tree: &Tree<'_>,
    limits: &Limits,
    usage: &mut Usage,
    loaded: &mut Loaded,
) -> Result<(), Fault> {
    if loaded.documents.len() >= limits.documents {
        let place = tree.nodes.first().map_or(Place { line: 0, column: 0 }, |root| root.place);
        return Err(
            Fault::new(place, format!("the file has more than {} documents", limits.documents)).hint("Split the file.")
        );
    }
    let mut constructor = Constructor {
        file,
        tree,
        limits,
        positions: PositionsBuilder::new(Arc::clone(file)),
        warnings: Vec::new(),
        alias_bytes: usage.alias_bytes,
    };
    let value = constructor.document()?;
    usage.alias_bytes = constructor.alias_bytes;
    constructor.warnings.sort_by_key(|warning| (warning.position.line, warning.position.column));
    loaded.warnings.append(&mut constructor.warnings);
    loaded.documents.push(Document { value, positions: constructor.positions.finish() });
    Ok(())
}

struct Constructor<'tree, 'input> {
    file: &'tree Arc<str>,
    tree: &'tree Tree<'input>,
    limits: &'tree Limits,
    positions: PositionsBuilder,
    warnings: Vec<InputWarning>,
    /// Bytes that aliases have added so far.
    alias_bytes: usize,
}

/// A collection whose children are being read.
enum Frame {
    Sequence { next: usize, end: usize, items: Vec<Value>, alias: Option<Place> },
    Mapping { entries: vec::IntoIter<Entry>, map: Map<String, Value>, key: String },
}

/// A key of a mapping, and the node of its value.
struct Entry {
    key: String,
    place: Place,
    value: usize,
    /// Position of the alias that led here; everything below it is reported there.
    alias: Option<Place>,
    merged: bool,
}

/// Maps with up to this many keys are searched linearly; most are that small.
const MAX_UNINDEXED: usize = 8;

/// Index of each known key among the entries of a map.
#[derive(Default)]
struct KeyIndex(HashMap<String, usize>);

impl KeyIndex {
    /// Finds the earlier entry with this key. Called once for every key, with the entries so far.
    fn find(&mut self, key: &str, entries: &[Entry]) -> Option<usize> {
        if entries.len() <= MAX_UNINDEXED {
            return entries.iter().position(|entry| entry.key == key);
        }
        for (index, entry) in entries.iter().enumerate().skip(self.0.len()) {
            self.0.insert(entry.key.clone(), index);
        }
        self.0.get(key).copied()
    }
}

impl<'tree> Constructor<'tree, '_> {
    fn document(&mut self) -> Result<Value, Fault> {
        let Some(root) = self.tree.nodes.first() else { return Ok(Value::Null) };
        let mut frames: Vec<Frame> = Vec::new();
        self.positions.open(&PathSegment::Index(0), root.place.line, root.place.column);
        let mut done = self.enter(0, None, "", &mut frames)?;
        loop {
            if let Some(value) = done.take() {
                self.positions.close();
                match frames.last_mut() {
                    None => return Ok(value),
                    Some(Frame::Sequence { items, .. }) => items.push(value),
                    Some(Frame::Mapping { map, key, .. }) => {
                        map.insert(std::mem::take(key), value);
                    }
                }
            }
            done = match frames.last_mut() {
                None => return Ok(Value::Null),
                Some(Frame::Sequence { next, end, items, alias }) if *next < *end => {
                    let (index, alias) = (*next, *alias);
                    *next = self.node(index).end;
                    let place = alias.unwrap_or(self.node(index).place);
                    self.positions.open(&PathSegment::Index(items.len()), place.line, place.column);
                    self.enter(index, alias, "", &mut frames)?
                }
                Some(Frame::Mapping { entries, .. }) if entries.len() > 0 => {
                    let Some(entry) = entries.next() else { continue };
                    let place = entry.alias.unwrap_or(entry.place);
                    self.positions.open_key(&entry.key, place.line, place.column);
                    let mapping = frames.len() - 1;
                    let done = self.enter(entry.value, entry.alias, &entry.key, &mut frames)?;
                    if let Some(Frame::Mapping { key, .. }) = frames.get_mut(mapping) {
                        *key = entry.key;
                    }
                    done
                }
                Some(_) => frames.pop().map(|frame| match frame {
                    Frame::Sequence { items, .. } => Value::Array(items),
                    Frame::Mapping { map, .. } => Value::Object(map),
                }),
            };
        }
    }

    /// Reads a scalar, or opens a collection.
    fn enter(
        &mut self,
        index: usize,
        alias: Option<Place>,
        key: &str,
        frames: &mut Vec<Frame>,
    ) -> Result<Option<Value>, Fault> {
        let (index, alias) = self.follow(index, alias);
        let node = self.node(index);
        if let Some(place) = alias {
            let text = if let Kind::Scalar { text, .. } = &node.kind { text.len() } else { 0 };
            self.charge(text, place)?;
        }
        if !matches!(node.kind, Kind::Scalar { .. }) && frames.len() >= self.limits.depth {
            return Err(too_deep(self.limits, alias.unwrap_or(node.place)));
        }
        match &node.kind {
            Kind::Scalar { text, plain, tag } => {
                let value = self.scalar(node, text, *plain, *tag)?;
                if alias.is_none() && *plain && *tag == Tag::None {
                    self.warn_about_value(text, &value, key, node.place);
                }
                let value = scalar::to_value(value).ok_or_else(|| {
                    Fault::new(node.place, "infinity and not-a-number have no JSON form, so no API accepts them")
                        .hint("Put the text in quotes if it is meant as text.")
                })?;
                Ok(Some(value))
            }
            Kind::Sequence => {
                frames.push(Frame::Sequence { next: index + 1, end: node.end, items: Vec::new(), alias });
                Ok(None)
            }
            Kind::Mapping => {
                let entries = self.entries(index, alias)?;
                let map = Map::with_capacity(entries.len());
                frames.push(Frame::Mapping { entries: entries.into_iter(), map, key: String::new() });
                Ok(None)
            }
            Kind::Alias(_) => Err(Fault::new(node.place, "the alias leads to no node")),
        }
    }

    /// The entries of a mapping, each key once: the last one wins, at the position of the first.
    /// A merge key is read where it appears and overrides what precedes it, as in kubectl.
    fn entries(&mut self, mapping: usize, alias: Option<Place>) -> Result<Vec<Entry>, Fault> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut known = KeyIndex::default();
        let mut open = vec![(mapping + 1, self.node(mapping).end, alias, false)];
        while let Some((next, end, alias, merged)) = open.pop() {
            if next >= end {
                continue;
            }
            let value = self.node(next).end;
            open.push((self.node(value).end, end, alias, merged));
            if self.is_merge(next) {
                self.open_merge(value, alias, &mut open)?;
                continue;
            }
            let key = self.key(next, alias)?;
            let place = self.node(next).place;
            if let Some(place) = alias {
                self.charge(key.len(), place)?;
            }
            let entry = Entry { key, place, value, alias, merged };
            match known.find(&entry.key, &entries) {
                None => entries.push(entry),
                Some(earlier) => {
                    let earlier = &mut entries[earlier];
                    if let Some(warning) = overridden(earlier, &entry) {
                        self.warnings.push(InputWarning { position: warning.1.in_file(self.file), ..warning.0 });
                    }
                    *earlier = entry;
                }
            }
        }
        Ok(entries)
    }

    fn is_merge(&self, key: usize) -> bool {
        match &self.node(key).kind {
            Kind::Scalar { text, plain, tag } => text == "<<" && ((*plain && *tag == Tag::None) || *tag == Tag::Merge),
            _ => false,
        }
    }

    /// Pushes the mappings of a merge key onto the stack of nodes to read; the first of a list wins.
    fn open_merge(
        &mut self,
        value: usize,
        alias: Option<Place>,
        open: &mut Vec<(usize, usize, Option<Place>, bool)>,
    ) -> Result<(), Fault> {
        let place = alias.unwrap_or(self.node(value).place);
        let refused = || {
            Fault::new(place, "the value of the merge key `<<` is neither a map nor a list of maps").hint(
                "Write `<<: *anchor`, where the anchor names a map; or put `<<` in quotes if it is meant as a key.",
            )
        };
        let (source, source_alias) = self.follow(value, alias);
        let node = self.node(source);
        match node.kind {
            Kind::Mapping => open.push((source + 1, node.end, source_alias, true)),
            // kubectl also refuses an alias to a list.
            Kind::Sequence if source == value => {
                let mut next = source + 1;
                while next < node.end {
                    let (item, item_alias) = self.follow(next, alias);
                    if !matches!(self.node(item).kind, Kind::Mapping) {
                        return Err(refused());
                    }
                    if let Some(place) = item_alias {
                        self.charge(0, place)?;
                    }
                    open.push((item + 1, self.node(item).end, item_alias, true));
                    next = self.node(next).end;
                }
                // The last one pushed is read first, and the last one read wins: the first of the list.
            }
            _ => return Err(refused()),
        }
        if let Some(place) = source_alias {
            self.charge(0, place)?;
        }
        Ok(())
    }

    fn key(&mut self, index: usize, alias: Option<Place>) -> Result<String, Fault> {
        let (target, key_alias) = self.follow(index, alias);
        let node = self.node(target);
        let Kind::Scalar { text, plain, tag } = &node.kind else {
            return Err(Fault::new(alias.unwrap_or(node.place), "a map or list cannot be a key")
                .hint("If this is a template such as `{{ .Values.x }}`, render it first and pass the result.")
                .hint("If the braces are meant as text, put the value in quotes."));
        };
        let value = self.scalar(node, text, *plain, *tag)?;
        let surprise = if *plain && *tag == Tag::None { scalar::surprise(text, &value) } else { None };
        let key = scalar::to_key(value).map_err(|what| {
            Fault::new(key_alias.unwrap_or(node.place), format!("{what} cannot be a key"))
                .hint("Put the key in quotes, or complete the line.")
        })?;
        if let (Some(surprise), None) = (surprise, key_alias) {
            let code = match surprise {
                Surprise::Boolean => "yaml-boolean",
                Surprise::Octal => "yaml-octal",
            };
            self.warn(
                code,
                format!("the key `{text}` is read as \"{key}\"; quote it if it is meant as text"),
                node.place,
            );
        }
        Ok(key)
    }

    fn scalar(&self, node: &Node<'_>, text: &str, plain: bool, tag: Tag) -> Result<scalar::Scalar, Fault> {
        scalar::resolve(text, plain, tag)
            .map_err(|message| Fault::new(node.place, message).hint("Remove the tag, or write a value of its type."))
    }

    fn warn_about_value(&mut self, text: &str, value: &scalar::Scalar, key: &str, place: Place) {
        match scalar::surprise(text, value) {
            Some(Surprise::Boolean) => {
                let read = if *value == scalar::Scalar::Bool(true) { "true" } else { "false" };
                self.warn(
                    "yaml-boolean",
                    format!("`{text}` is read as {read}; quote it if it is meant as text"),
                    place,
                );
            }
            // File modes are octal by convention; everywhere else a leading zero is a mistake.
            Some(Surprise::Octal) if !matches!(key, "mode" | "defaultMode") => {
                // The digits are not shown: they may be secret.
                let octal = scalar::resolve(&text.replacen('0', "0o", 1), true, Tag::None).as_ref() == Ok(value);
                let read = if octal { "in base 8" } else { "in base 10, without the zero" };
                let message = format!("a number with a leading zero is read {read}; quote it if it is meant as text");
                self.warn("yaml-octal", message, place);
            }
            _ => {}
        }
    }

    fn warn(&mut self, code: &'static str, message: String, place: Place) {
        self.warnings.push(InputWarning { code, message, position: place.in_file(self.file) });
    }

    /// The node that an alias refers to, and the position to report for it.
    fn follow(&self, index: usize, alias: Option<Place>) -> (usize, Option<Place>) {
        let node = self.node(index);
        match node.kind {
            Kind::Alias(target) => (target, alias.or(Some(node.place))),
            _ => (index, alias),
        }
    }

    /// Counts a node that an alias copied, so that a small input cannot expand without limit.
    fn charge(&mut self, text: usize, place: Place) -> Result<(), Fault> {
        const NODE: usize = 64;
        self.alias_bytes = self.alias_bytes.saturating_add(NODE + text);
        if self.alias_bytes > self.limits.alias_bytes {
            let limit = size(self.limits.alias_bytes);
            return Err(Fault::new(place, format!("aliases make the input grow by more than {limit}"))
                .hint("Anchors that refer to each other multiply; write the values out."));
        }
        Ok(())
    }

    fn node(&self, index: usize) -> &'tree Node<'tree> {
        &self.tree.nodes[index]
    }
}

/// Code of the warning for a key that a map has twice.
pub const DUPLICATE_KEY: &str = "yaml-duplicate-key";

/// The warning for an entry that overrides an earlier one with the same key, unless that is conventional.
fn overridden(earlier: &Entry, later: &Entry) -> Option<(InputWarning, Place)> {
    let key = &later.key;
    let first = earlier.place.line;
    let (code, message) = match (earlier.merged, later.merged) {
        (false, false) if later.alias.is_none() => {
            (DUPLICATE_KEY, format!("the key `{key}` is already given in line {first}; the value here replaces it"))
        }
        (false, true) => (
            "yaml-merge-override",
            format!("the merge key replaces `{key}`, which line {first} gives; put `<<` first to keep that"),
        ),
        _ => return None,
    };
    let position = pushback_objects::Position::default();
    Some((InputWarning { code, message, position }, later.alias.unwrap_or(later.place)))
}
