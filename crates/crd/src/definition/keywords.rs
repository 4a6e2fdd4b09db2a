//! The keywords of one node before and after, for reports of structural changes: each one that changed, and whether it allows
//! more or less. What a change does to objects is found and proved in `schema::contain::walk`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::structure::{Claim, Direction, Kind, Node};
use crate::order::{canonical, unordered};
use crate::schema::contain::branches_of;
use crate::schema::model::{Limit, ListType, MapType, Schema};

/// A keyword that changed.
pub(super) struct Changed<'u> {
    pub(super) kind: Kind,
    pub(super) keyword: &'u str,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    pub(super) claims: &'static [Claim],
}

/// All keywords of two nodes of the same type, except `required` and those that hold child nodes.
pub(super) fn compare<'u>(old: Node<'u>, new: Node<'u>) -> Vec<Changed<'u>> {
    let mut keywords = Keywords { old, new, found: Vec::new() };
    keywords.default();
    keywords.enumeration();
    keywords.scalars();
    keywords.sizes();
    keywords.combinators();
    keywords.structure();
    keywords.rules();
    keywords.unreadable();
    keywords.found
}

/// `additionalProperties` that is not a schema on at least one side.
pub(super) fn additional<'u>(old: Node<'u>, new: Node<'u>) -> Changed<'u> {
    let keyword = "additionalProperties";
    let shown = |node: Node<'_>| match node.keyword(keyword) {
        Some(Value::Object(_)) => Some(json!("a schema")),
        other => other.cloned(),
    };
    let kind = Kind::Keyword(Direction::Tighter);
    Changed { kind, keyword, old: shown(old), new: shown(new), claims: &[Claim::Keyword, Claim::FreeValues] }
}

struct Keywords<'u> {
    old: Node<'u>,
    new: Node<'u>,
    found: Vec<Changed<'u>>,
}

impl<'u> Keywords<'u> {
    fn push(&mut self, kind: Kind, keyword: &'u str, old: Option<Value>, new: Option<Value>) -> &mut Changed<'u> {
        self.found.push(Changed { kind, keyword, old, new, claims: &[Claim::Keyword] });
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn changed(&mut self, keyword: &'static str, old: Option<Value>, new: Option<Value>, direction: Direction) {
        if old != new {
            self.push(Kind::Keyword(direction), keyword, old, new);
        }
    }

    /// A keyword whose presence restricts; `is_wider` tells whether the new value allows more than the old one.
    fn narrowing(
        &mut self,
        keyword: &'static str,
        old: Option<impl Into<Value>>,
        new: Option<impl Into<Value>>,
        is_wider: fn(f64, f64) -> bool,
    ) {
        let (old, new): (Option<Value>, Option<Value>) = (old.map(Into::into), new.map(Into::into));
        let number = |value: &Value| value.as_f64();
        let direction = match (&old, &new) {
            (_, None) => Direction::Wider,
            (None, Some(_)) => Direction::Tighter,
            (Some(old), Some(new)) => {
                Direction::wider_if(number(old).zip(number(new)).is_some_and(|(old, new)| is_wider(old, new)))
            }
        };
        self.changed(keyword, old, new, direction);
    }

    /// A boolean keyword; `set` and `unset` are the effects of setting and clearing it.
    fn flag(&mut self, keyword: &'static str, old: bool, new: bool, [set, unset]: [Direction; 2]) {
        self.changed(keyword, Some(old.into()), Some(new.into()), if new { set } else { unset });
    }

    fn default(&mut self) {
        let value = |node: Node<'_>| node.schema.default.as_ref().map(canonical);
        let (old, new) = (value(self.old), value(self.new));
        if old != new {
            self.push(Kind::Default, "default", old, new);
        }
    }

    fn enumeration(&mut self) {
        let values = |node: Node<'_>| -> Option<BTreeMap<String, Value>> {
            let values = node.schema.enumeration.as_ref()?.iter().map(canonical);
            Some(values.map(|value| (value.to_string(), value)).collect())
        };
        let all = |values: BTreeMap<String, Value>| values.into_values().collect::<Value>();
        let only = |these: &BTreeMap<String, Value>, those: &BTreeMap<String, Value>| -> Vec<Value> {
            these.iter().filter(|(text, _)| !those.contains_key(*text)).map(|(_, value)| value.clone()).collect()
        };
        match (values(self.old), values(self.new)) {
            (Some(old), Some(new)) => {
                let (lost, added) = (only(&old, &new), only(&new, &old));
                // If values are removed too, a proof about the enum is attributed to those.
                let claims: &[Claim] = if lost.is_empty() { &[Claim::Keyword] } else { &[] };
                for value in lost {
                    self.push(Kind::EnumValue, "enum", Some(value), None);
                }
                for value in added {
                    self.push(Kind::EnumValue, "enum", None, Some(value)).claims = claims;
                }
            }
            (None, None) => {}
            (old, new) => drop(self.push(Kind::Enum, "enum", old.map(all), new.map(all))),
        }
    }

    fn scalars(&mut self) {
        use Direction::{Tighter, Wider};
        let (old, new) = (self.old.schema, self.new.schema);
        self.flag("nullable", old.nullable, new.nullable, [Wider, Tighter]);
        self.narrowing("format", old.format.as_deref(), new.format.as_deref(), |_, _| false);
        self.narrowing("pattern", old.pattern.as_deref(), new.pattern.as_deref(), |_, _| false);
        // Every multiple of 4 is a multiple of 2.
        self.narrowing("multipleOf", old.multiple_of, new.multiple_of, |old, new| {
            new != 0.0 && (old / new).fract() == 0.0
        });
        self.limit(["minimum", "exclusiveMinimum"], old.minimum, new.minimum, |old, new| new < old);
        self.limit(["maximum", "exclusiveMaximum"], old.maximum, new.maximum, |old, new| new > old);
    }

    fn limit(
        &mut self,
        [bound, exclusive]: [&'static str; 2],
        old: Option<Limit>,
        new: Option<Limit>,
        is_wider: fn(f64, f64) -> bool,
    ) {
        let shown = |limit: Limit| {
            let value = canonical(&json!(limit.value));
            if limit.exclusive { json!(format!("{value} (exclusive)")) } else { value }
        };
        let direction = match (old, new) {
            (Some(old), Some(new)) if old.value == new.value => {
                self.flag(exclusive, old.exclusive, new.exclusive, [Direction::Tighter, Direction::Wider]);
                return;
            }
            (Some(old), Some(new)) => Direction::wider_if(is_wider(old.value, new.value)),
            (_, new) => Direction::wider_if(new.is_none()),
        };
        self.changed(bound, old.map(shown), new.map(shown), direction);
    }

    fn sizes(&mut self) {
        let (old, new) = (self.old.schema, self.new.schema);
        for (least, most, before, after) in [
            ("minLength", "maxLength", old.length, new.length),
            ("minItems", "maxItems", old.item_count, new.item_count),
            ("minProperties", "maxProperties", old.property_count, new.property_count),
        ] {
            self.narrowing(least, before.least, after.least, |old, new| new < old);
            self.narrowing(most, before.most, after.most, |old, new| new > old);
        }
        self.flag("uniqueItems", old.unique_items, new.unique_items, [Direction::Tighter, Direction::Wider]);
    }

    fn combinators(&mut self) {
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            let (before, after) = (branches_of(self.old.schema, keyword), branches_of(self.new.schema, keyword));
            let digests = |branches: &[Schema]| branches.iter().map(|branch| branch.digest).collect::<BTreeSet<_>>();
            let (was, is) = (digests(before), digests(after));
            // A repeated branch matters only in `oneOf`.
            if was == is && (keyword != "oneOf" || before.len() == after.len()) {
                continue;
            }
            let is_wider = match keyword {
                _ if after.is_empty() => true,
                "allOf" => is.is_subset(&was),
                "anyOf" => !before.is_empty() && was.is_subset(&is),
                _ => false,
            };
            let kind = Kind::Branches {
                direction: Direction::wider_if(is_wider),
                count: [before.len(), after.len()],
                added: is.difference(&was).count(),
                removed: was.difference(&is).count(),
            };
            let [old, new] = [self.old, self.new].map(|node| node.keyword(keyword).map(unordered));
            self.push(kind, keyword, old, new);
        }
    }

    /// How the server treats the node: pruning and merging.
    fn structure(&mut self) {
        use Direction::{Drops, Tighter, Wider};
        let (old, new) = (self.old.schema, self.new.schema);
        let unset = if new.keeps_unknown() { Tighter } else { Drops };
        let keyword = "x-kubernetes-preserve-unknown-fields";
        self.flag(keyword, old.preserve_unknown, new.preserve_unknown, [Wider, unset]);
        // A value that is no longer a resource loses what the server knows about it: apiVersion, kind and metadata.
        let keyword = "x-kubernetes-embedded-resource";
        self.flag(keyword, old.embedded_resource, new.embedded_resource, [Tighter, Tighter]);
        // Ownership in server-side apply changes, even if the accepted values do not.
        let list = |schema: &Schema| match schema.list_type {
            None | Some(ListType::Atomic) => json!("atomic"),
            Some(ListType::Set) => json!("set"),
            Some(ListType::Map) => json!("map"),
        };
        self.changed("x-kubernetes-list-type", Some(list(old)), Some(list(new)), Tighter);
        let map = |schema: &Schema| json!(if schema.map_type == Some(MapType::Atomic) { "atomic" } else { "granular" });
        self.changed("x-kubernetes-map-type", Some(map(old)), Some(map(new)), Tighter);
        let keys = |schema: &Schema| (!schema.list_map_keys.is_empty()).then(|| json!(schema.list_map_keys));
        self.changed("x-kubernetes-list-map-keys", keys(old), keys(new), Tighter);
        let items = |schema: &Schema| schema.items.is_some().then(|| json!("a schema"));
        self.changed("items", items(old), items(new), Direction::wider_if(new.items.is_none()));
    }

    /// CEL rules, one by one; their messages do not matter.
    fn rules(&mut self) {
        const KEYWORD: &str = "x-kubernetes-validations";
        let rules = |schema: &Schema| -> BTreeSet<(String, bool)> {
            schema.rules.iter().map(|rule| (rule.rule.clone(), rule.optional_old_self)).collect()
        };
        let (was, is) = (rules(self.old.schema), rules(self.new.schema));
        // If rules are added too, a proof about the rules is attributed to those.
        let claims: &[Claim] = if is.is_subset(&was) { &[Claim::Keyword] } else { &[] };
        for rule in is.difference(&was) {
            self.push(Kind::Rule, KEYWORD, None, Some(json!([rule.0, rule.1])));
        }
        for rule in was.difference(&is) {
            self.push(Kind::Rule, KEYWORD, Some(json!([rule.0, rule.1])), None).claims = claims;
        }
    }

    /// Keywords that structural schemas do not have, or whose value is of the wrong type: their meaning is unknown.
    fn unreadable(&mut self) {
        let (old, new) = (self.old, self.new);
        let names: BTreeSet<&String> = old.schema.unreadable.iter().chain(&new.schema.unreadable).collect();
        for name in names {
            // A value that is not a schema, or is too deeply nested, has no keywords: it is compared as a whole.
            let value = |node: Node<'_>| match node.keyword(name) {
                Some(value) => Some(canonical(value)),
                None if node.schema.unreadable.contains(name) => Some(canonical(node.written)),
                None => None,
            };
            let (before, after) = (value(old), value(new));
            if before != after {
                self.push(Kind::Unreadable, name, before, after).claims = &[Claim::Keyword, Claim::Unhandled];
            }
        }
    }
}
