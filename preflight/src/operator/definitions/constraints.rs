//! The keywords that narrow what a field may hold, and those that say how the server treats it. What lets in less than
//! before, or cannot be compared, is a warning; what lets in more is for information; what drops data is breaking.

use std::collections::BTreeSet;

use pushback_crd::schema::contain::SchemaStep;
use pushback_crd::schema::model::{Limit, ListType, MapType, Schema};
use serde_json::{Value, json};

use super::draft::Draft;
use super::schema::{Node, Pair, Walk};
use super::words::{canonical, short, unordered};
use crate::operator::difference::{ChangeType, Severity};

/// What a change of a keyword does to what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// More is allowed.
    Wider,
    /// Less is allowed, or something else.
    Tighter,
    /// Data is dropped.
    Drops,
}

impl Effect {
    fn tighter_if(is_tighter: bool) -> Self {
        if is_tighter { Self::Tighter } else { Self::Wider }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Wider => Severity::Info,
            Self::Tighter => Severity::Warning,
            Self::Drops => Severity::Breaking,
        }
    }
}

/// Compares all of them at one node.
pub(super) fn compare(walk: &mut Walk<'_>, at: Pair<'_>) {
    let mut keywords = Keywords { walk, at };
    keywords.scalars();
    keywords.sizes();
    keywords.combinators();
    keywords.structure();
    keywords.rules();
    keywords.unreadable();
}

/// Free keys of one kind or another on both sides.
pub(super) fn free_fields(walk: &mut Walk<'_>, at: Pair<'_>) {
    let shown = |written: Option<&Value>| match written {
        Some(Value::Object(_)) => Some(json!("a schema")),
        other => other.cloned(),
    };
    let (before, after) = (at.old.keyword("additionalProperties"), at.new.keyword("additionalProperties"));
    let (before, after) = (shown(before), shown(after));
    let claim = walk.claim_below(SchemaStep::Additional);
    Keywords { walk, at }.changed("additionalProperties", before, after, Effect::Tighter).claims.push(claim);
}

struct Keywords<'w, 'v, 's> {
    walk: &'w mut Walk<'v>,
    at: Pair<'s>,
}

impl Keywords<'_, '_, '_> {
    /// Tells a keyword that changed.
    fn changed(&mut self, keyword: &str, old: Option<Value>, new: Option<Value>, effect: Effect) -> &mut Draft {
        let detail = match (&old, &new) {
            (Some(old), Some(new)) => format!("{keyword} changed from {} to {}", short(old), short(new)),
            (None, Some(new)) => format!("{keyword} {} added", short(new)),
            (Some(old), None) => format!("{keyword} {} removed", short(old)),
            (None, None) => format!("{keyword} changed"),
        };
        self.tell(keyword, detail, [old, new], effect)
    }

    fn tell(&mut self, keyword: &str, detail: String, values: [Option<Value>; 2], effect: Effect) -> &mut Draft {
        let claim = self.walk.claim(keyword);
        let [old, new] = values.map(|value| value.map_or_else(String::new, |value| canonical(&value).to_string()));
        let change = ChangeType::ConstraintChanged;
        let draft = self.walk.note(self.at, change, effect.severity(), keyword, detail, &[&old, &new]);
        keyword.clone_into(&mut draft.keyword);
        draft.claims.push(claim);
        draft
    }

    /// A keyword that narrows by being there; `wider` says whether another value of it lets in more.
    fn narrowing<T: PartialEq + Clone + Into<Value>>(
        &mut self,
        keyword: &str,
        old: Option<&T>,
        new: Option<&T>,
        wider: impl FnOnce(&T, &T) -> bool,
    ) {
        if old == new {
            return;
        }
        let effect = match (old, new) {
            (_, None) => Effect::Wider,
            (None, Some(_)) => Effect::Tighter,
            (Some(old), Some(new)) => Effect::tighter_if(!wider(old, new)),
        };
        self.changed(keyword, old.cloned().map(Into::into), new.cloned().map(Into::into), effect);
    }

    /// A flag; `set` is what setting it does.
    fn flag(&mut self, keyword: &str, old: bool, new: bool, set: Effect, unset: Effect) {
        if old != new {
            let effect = if new { set } else { unset };
            self.changed(keyword, Some(old.into()), Some(new.into()), effect);
        }
    }

    fn scalars(&mut self) {
        let (old, new) = (self.at.old.schema, self.at.new.schema);
        self.flag("nullable", old.nullable, new.nullable, Effect::Wider, Effect::Tighter);
        self.narrowing("format", old.format.as_ref(), new.format.as_ref(), |_, _| false);
        self.narrowing("pattern", old.pattern.as_ref(), new.pattern.as_ref(), |_, _| false);
        // All multiples of a multiple are multiples.
        self.narrowing("multipleOf", old.multiple_of.as_ref(), new.multiple_of.as_ref(), |old, new| {
            *new != 0.0 && (old / new).fract() == 0.0
        });
        self.limit(["minimum", "exclusiveMinimum"], old.minimum, new.minimum, |old, new| new < old);
        self.limit(["maximum", "exclusiveMaximum"], old.maximum, new.maximum, |old, new| new > old);
    }

    fn limit(
        &mut self,
        [bound, exclusive]: [&str; 2],
        old: Option<Limit>,
        new: Option<Limit>,
        wider: impl FnOnce(f64, f64) -> bool,
    ) {
        if old == new {
            return;
        }
        let shown = |limit: Option<Limit>| {
            let value = canonical(&json!(limit?.value));
            Some(if limit?.exclusive { json!(format!("{value} (exclusive)")) } else { value })
        };
        match (old, new) {
            (Some(old), Some(new)) if old.value == new.value => {
                self.flag(exclusive, old.exclusive, new.exclusive, Effect::Tighter, Effect::Wider);
            }
            (Some(before), Some(after)) => {
                let effect = Effect::tighter_if(!wider(before.value, after.value));
                self.changed(bound, shown(old), shown(new), effect);
            }
            (_, after) => {
                self.changed(bound, shown(old), shown(new), Effect::tighter_if(after.is_some()));
            }
        }
    }

    fn sizes(&mut self) {
        let (old, new) = (self.at.old.schema, self.at.new.schema);
        for (least, most, before, after) in [
            ("minLength", "maxLength", old.length, new.length),
            ("minItems", "maxItems", old.item_count, new.item_count),
            ("minProperties", "maxProperties", old.property_count, new.property_count),
        ] {
            self.narrowing(least, before.least.as_ref(), after.least.as_ref(), |old, new| new < old);
            self.narrowing(most, before.most.as_ref(), after.most.as_ref(), |old, new| new > old);
        }
        self.flag("uniqueItems", old.unique_items, new.unique_items, Effect::Tighter, Effect::Wider);
    }

    fn combinators(&mut self) {
        let (old, new) = (self.at.old.schema, self.at.new.schema);
        let digests = |branches: &[Schema]| branches.iter().map(|branch| branch.digest).collect::<BTreeSet<_>>();
        let groups: [(&str, &[Schema], &[Schema]); 4] = [
            ("allOf", &old.all_of, &new.all_of),
            ("anyOf", &old.any_of, &new.any_of),
            ("oneOf", &old.one_of, &new.one_of),
            ("not", single(old), single(new)),
        ];
        for (keyword, before, after) in groups {
            let (was, is) = (digests(before), digests(after));
            // A repeated branch makes a difference to `oneOf` alone.
            if was == is && (keyword != "oneOf" || before.len() == after.len()) {
                continue;
            }
            let effect = match keyword {
                _ if after.is_empty() => Effect::Wider,
                "allOf" => Effect::tighter_if(!is.is_subset(&was)),
                "anyOf" => Effect::tighter_if(before.is_empty() || !was.is_subset(&is)),
                _ => Effect::Tighter,
            };
            let (fresh, gone) = (is.difference(&was).count(), was.difference(&is).count());
            let detail = match (before.len(), after.len()) {
                (0, count) => format!("{keyword} with {} added", branches(count)),
                (count, 0) => format!("{keyword} with {} removed", branches(count)),
                (count, now) => {
                    format!("{keyword} changed: {} are {now} now, {fresh} of them new, {gone} gone", branches(count))
                }
            };
            let values = [self.at.old, self.at.new].map(|node| node.keyword(keyword).map(unordered));
            self.tell(keyword, detail, values, effect);
        }
    }

    /// How the server treats the node: what it keeps, how it merges.
    fn structure(&mut self) {
        let (old, new) = (self.at.old.schema, self.at.new.schema);
        let lost = if new.keeps_unknown() { Effect::Tighter } else { Effect::Drops };
        let keyword = "x-kubernetes-preserve-unknown-fields";
        self.flag(keyword, old.preserve_unknown, new.preserve_unknown, Effect::Wider, lost);
        let keyword = "x-kubernetes-embedded-resource";
        // What is no resource any more loses what the server knew of it: apiVersion, kind and metadata.
        self.flag(keyword, old.embedded_resource, new.embedded_resource, Effect::Tighter, Effect::Tighter);
        // Owners in server-side apply change, whatever is allowed.
        let list = |schema: &Schema| match schema.list_type {
            None | Some(ListType::Atomic) => "atomic",
            Some(ListType::Set) => "set",
            Some(ListType::Map) => "map",
        };
        self.word("x-kubernetes-list-type", list(old), list(new));
        let map = |schema: &Schema| if schema.map_type == Some(MapType::Atomic) { "atomic" } else { "granular" };
        self.word("x-kubernetes-map-type", map(old), map(new));
        if old.list_map_keys != new.list_map_keys {
            let keys = |schema: &Schema| (!schema.list_map_keys.is_empty()).then(|| json!(schema.list_map_keys));
            self.changed("x-kubernetes-list-map-keys", keys(old), keys(new), Effect::Tighter);
        }
        if old.items.is_some() != new.items.is_some() {
            let shown = |schema: &Schema| schema.items.is_some().then(|| json!("a schema"));
            self.changed("items", shown(old), shown(new), Effect::tighter_if(new.items.is_some()));
        }
    }

    fn word(&mut self, keyword: &str, old: &str, new: &str) {
        if old != new {
            self.changed(keyword, Some(old.into()), Some(new.into()), Effect::Tighter);
        }
    }

    /// CEL rules, one by one; their messages decide nothing.
    fn rules(&mut self) {
        const KEYWORD: &str = "x-kubernetes-validations";
        let rules = |schema: &Schema| -> BTreeSet<(String, bool)> {
            schema.rules.iter().map(|rule| (rule.rule.clone(), rule.optional_old_self)).collect()
        };
        let (was, is) = (rules(self.at.old.schema), rules(self.at.new.schema));
        let shown = |(rule, optional): &(String, bool)| {
            let rule = short(&Value::from(rule.as_str()));
            if *optional { format!("{rule} with optionalOldSelf") } else { rule }
        };
        let value = |rule: &(String, bool)| Some(json!([rule.0, rule.1]));
        for rule in is.difference(&was) {
            let detail = format!("rule {} added", shown(rule));
            self.tell(KEYWORD, detail, [None, value(rule)], Effect::Tighter);
        }
        let adds = is.difference(&was).next().is_some();
        for rule in was.difference(&is) {
            let detail = format!("rule {} removed", shown(rule));
            let draft = self.tell(KEYWORD, detail, [value(rule), None], Effect::Wider);
            // Where rules are added too, whatever is said of the rules is said of those.
            if adds {
                draft.claims.clear();
            }
        }
    }

    /// Keywords that no structural schema has, or that have a value of the wrong type: what they mean is not known.
    fn unreadable(&mut self) {
        let at = self.at;
        let names: BTreeSet<&String> = at.old.schema.unreadable.iter().chain(&at.new.schema.unreadable).collect();
        for name in names {
            // A schema that is none, or is nested too deeply, has no keyword of that name: it is compared as a whole.
            let value = |node: Node<'_>| match node.keyword(name) {
                Some(value) => Some(canonical(value)),
                None if node.schema.unreadable.contains(name) => Some(canonical(node.written)),
                None => None,
            };
            let (before, after) = (value(at.old), value(at.new));
            if before != after {
                let detail = format!("{} changed, and cannot be judged", short(&Value::from(name.as_str())));
                let claim = self.walk.claim("unhandled");
                self.tell(name, detail, [before, after], Effect::Tighter).claims.push(claim);
            }
        }
    }
}

fn single(schema: &Schema) -> &[Schema] {
    schema.not.as_deref().map_or(&[], std::slice::from_ref)
}

fn branches(count: usize) -> String {
    if count == 1 { "1 branch".to_owned() } else { format!("{count} branches") }
}
