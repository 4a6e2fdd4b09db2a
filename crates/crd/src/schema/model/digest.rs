//! The digest of a schema: the keywords of a node, serialised unambiguously, with its children as their digests, and
//! hashed. The hash is cryptographic, so that no two different schemas can be made to look equal.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Additional, Limit, ListType, MapType, Schema, Type, Window};
use crate::order::in_order;

/// Initial buffer size in bytes, enough for most nodes.
const USUAL: usize = 128;

/// Digest of a node whose children have theirs already.
pub(super) fn of(schema: &Schema) -> u128 {
    let mut statement = Statement(Vec::with_capacity(USUAL));
    statement.values(schema);
    statement.structure(schema);
    let digest = Sha256::digest(&statement.0);
    digest.iter().take(16).fold(0, |number, byte| (number << 8) | u128::from(*byte))
}

/// The serialised node. Each part is a tag and as many bytes as its tag or length says; absent parts take none.
struct Statement(Vec<u8>);

impl Statement {
    fn values(&mut self, schema: &Schema) {
        self.text(b'k', schema.kind.map(Type::as_str));
        self.text(b'f', schema.format.as_deref());
        self.text(b'd', schema.default.as_ref().map(in_order).as_deref());
        self.set(b'e', schema.enumeration.iter().flatten().map(in_order).collect());
        self.text(b'p', schema.pattern.as_deref());
        self.limit(b'<', schema.minimum);
        self.limit(b'>', schema.maximum);
        self.bytes(b'm', schema.multiple_of.map(|number| number.to_bits().to_be_bytes()));
        self.window([b'l', b'L'], schema.length);
        self.window([b'i', b'I'], schema.item_count);
        self.window([b'o', b'O'], schema.property_count);
        self.flag(b'n', schema.nullable);
        self.flag(b'u', schema.unique_items);
        self.flag(b'x', schema.preserve_unknown);
        self.flag(b's', schema.int_or_string);
        self.flag(b'r', schema.embedded_resource);
        self.flag(b'S', schema.list_type == Some(ListType::Set));
        self.flag(b'M', schema.list_type == Some(ListType::Map));
        self.flag(b'A', schema.map_type == Some(MapType::Atomic));
        self.texts(b'K', &schema.list_map_keys);
        self.texts(b'R', &schema.required);
        self.texts(b'U', &schema.unreadable);
        self.texts(b'V', schema.unread.iter().map(Value::to_string));
        let rule = |rule: &super::CelRule| format!("{}{}", u8::from(rule.optional_old_self), rule.rule);
        let mut rules: Vec<String> = schema.rules.iter().map(rule).collect();
        rules.sort();
        self.texts(b'c', rules);
    }

    fn structure(&mut self, schema: &Schema) {
        for (name, property) in &schema.properties {
            self.text(b'P', Some(name));
            self.0.extend(property.digest.to_be_bytes());
        }
        for (tag, group) in [(b'a', &schema.all_of), (b'y', &schema.any_of), (b'1', &schema.one_of)] {
            for branch in group {
                self.bytes(tag, Some(branch.digest.to_be_bytes()));
            }
        }
        match &schema.additional {
            None => {}
            Some(Additional::Anything) => self.flag(b'*', true),
            Some(Additional::Nothing) => self.flag(b'-', true),
            Some(Additional::Schema(inner)) => self.bytes(b'+', Some(inner.digest.to_be_bytes())),
        }
        for (tag, one) in [(b'[', &schema.items), (b'!', &schema.not)] {
            self.bytes(tag, one.as_ref().map(|inner| inner.digest.to_be_bytes()));
        }
    }

    fn flag(&mut self, tag: u8, is_set: bool) {
        if is_set {
            self.0.push(tag);
        }
    }

    fn bytes<const N: usize>(&mut self, tag: u8, bytes: Option<[u8; N]>) {
        if let Some(bytes) = bytes {
            self.0.push(tag);
            self.0.extend(bytes);
        }
    }

    fn text(&mut self, tag: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.bytes(tag, Some((text.len() as u64).to_be_bytes()));
            self.0.extend(text.as_bytes());
        }
    }

    fn texts<T: AsRef<str>>(&mut self, tag: u8, texts: impl IntoIterator<Item = T>) {
        texts.into_iter().for_each(|text| self.text(tag, Some(text.as_ref())));
    }

    /// Texts whose order and repetition do not matter.
    fn set(&mut self, tag: u8, mut texts: Vec<String>) {
        texts.sort();
        texts.dedup();
        self.texts(tag, texts);
    }

    fn limit(&mut self, tag: u8, limit: Option<Limit>) {
        if let Some(Limit { value, exclusive }) = limit {
            self.bytes(tag, Some(value.to_bits().to_be_bytes()));
            self.0.push(u8::from(exclusive));
        }
    }

    fn window(&mut self, [least, most]: [u8; 2], window: Window) {
        self.bytes(least, window.least.map(i64::to_be_bytes));
        self.bytes(most, window.most.map(i64::to_be_bytes));
    }
}
