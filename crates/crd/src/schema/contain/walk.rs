//! Walks two schemas side by side: every difference that can reject, prune or alter an old object becomes a formula for
//! such an object. Equal subtrees are skipped by their digests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::branches::{after, digests_of, number_of};
use super::defaults::{counts_defaults, defaults_of, gains};
use super::formula::child;
use super::formula::{Formula, Level, Role, Unique, free_values, types_of};
use super::listed::Listed;
use super::retyped::computes_otherwise;
use super::step::Step;
use super::types::Types;
use super::values::ValueSet;
use super::ways::{above, below, combinator_ways, no_multiple, outside_of_types};
use crate::order::canonical;
use crate::schema::model::{Additional, CelRule, Limit, Schema, Window};

/// What the server accepts for a field that it knows without a schema: null is dropped when the object is decoded.
static ANYTHING: LazyLock<Schema> =
    LazyLock::new(|| Schema::of(&json!({"x-kubernetes-preserve-unknown-fields": true})));

/// The fields that every resource has, whatever its schema says.
pub(super) const BUILT_IN: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A difference, and the question whether it affects an old object.
#[derive(Debug)]
pub(super) struct Suspect<'s> {
    pub(super) steps: Vec<Step<'s>>,
    pub(super) keyword: &'static str,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    pub(super) question: Question<'s>,
}

/// The question about a difference.
#[derive(Debug)]
pub(super) enum Question<'s> {
    /// None: it accepts more, or affects no object.
    Harmless,
    /// Does such an old object exist?
    Exists(Formula<'s>),
    /// Does one exist without the field, so that a different default, or none, is filled in?
    Default(Formula<'s>),
    /// What does server-side apply do to old lists, whose items are now correlated in this way?
    Merged(Unique<'s>),
    /// Effect of server-side apply on old maps, whose fields are now owned one by one.
    Granular,
    /// Does an old object violate one of the new rules?
    Rules,
    /// The difference cannot be judged.
    Undecidable,
}

/// All differences between the old and the new schema. `status` tells whether it is a subresource of the new version.
pub(super) fn suspects<'s>(old: &'s Schema, new: &'s Schema, status: bool) -> Vec<Suspect<'s>> {
    let mut walk = Walk { found: Vec::new(), steps: Vec::new(), status };
    walk.nodes(old, new, Level::Root);
    walk.found
}

struct Walk<'s> {
    found: Vec<Suspect<'s>>,
    steps: Vec<Step<'s>>,
    /// Whether an object is created without `status`, whatever its default.
    status: bool,
}

impl<'s> Walk<'s> {
    fn nodes(&mut self, old: &'s Schema, new: &'s Schema, place: Level) {
        if old.digest == new.digest {
            return;
        }
        let at = Pair { old, new, place };
        let disjoint = Types::meant_by(old).and(Types::meant_by(new)) == Types::NONE;
        self.types(at);
        if disjoint {
            self.null_alone(at);
        } else {
            self.scalars(at);
            self.sizes(at);
            self.lists(at);
            self.required(at);
            self.combinators(at);
            self.rules(at);
            self.openness(at);
            self.fields(at);
            self.other_fields(at);
            self.items(at);
        }
        if old.unreadable != new.unreadable || !new.unreadable.is_empty() {
            let listed = |schema: &Schema| Some(json!(schema.unreadable));
            self.note("unhandled", listed(old), listed(new), Question::Undecidable);
        }
    }

    fn note(&mut self, keyword: &'static str, old: Option<Value>, new: Option<Value>, question: Question<'s>) {
        self.found.push(Suspect { steps: self.steps.clone(), keyword, old, new, question });
    }

    /// A boolean keyword that changed.
    fn flag(&mut self, keyword: &'static str, old: bool, new: bool, question: Question<'s>) {
        self.note(keyword, Some(old.into()), Some(new.into()), question);
    }

    fn below(&mut self, step: Step<'s>, look: impl FnOnce(&mut Self)) {
        self.steps.push(step);
        look(self);
        self.steps.pop();
    }

    /// A scalar keyword; `violates` is the formula of violating the new one.
    fn keyword<T: PartialEq>(
        &mut self,
        keyword: &'static str,
        (old, new): (&'s Option<T>, &'s Option<T>),
        show: impl Fn(&T) -> Value,
        violates: impl FnOnce(&'s T) -> Formula<'s>,
    ) {
        if old != new {
            let question = new.as_ref().map_or(Question::Harmless, |new| Question::Exists(violates(new)));
            self.note(keyword, old.as_ref().map(&show), new.as_ref().map(&show), question);
        }
    }

    fn types(&mut self, at: Pair<'s>) {
        let Pair { old, new, place } = at;
        let is_any = |schema: &Schema| schema.kind.is_none() && !schema.int_or_string;
        let word = |schema: &Schema| kind_of(schema).filter(|_| !is_any(schema));
        let null = Types::NULL;
        if word(old) != word(new) {
            let outside = outside_of_types(new, Types::meant_by(new).or(null));
            let keyword = if old.kind == new.kind { "x-kubernetes-int-or-string" } else { "type" };
            self.note(keyword, word(old), word(new), Question::Exists(outside));
        }
        if old.nullable != new.nullable || (word(old) != word(new) && types_of(old, Role::Stored(place)).has(null)) {
            let allowed = types_of(new, Role::Stored(place)).has(null);
            let question = if allowed { Question::Harmless } else { Question::Exists(Formula::Types(null)) };
            if old.nullable != new.nullable || !allowed {
                self.flag("nullable", old.nullable, new.nullable, question);
            }
        }
    }

    /// Constraints on null, if no value of another type is still allowed.
    fn null_alone(&mut self, at: Pair<'s>) {
        let Pair { old, new, place } = at;
        let null = |schema: &Schema| types_of(schema, Role::Stored(place)).has(Types::NULL);
        if !null(old) || !null(new) {
            return;
        }
        if let Some(values) = &new.enumeration {
            // Null never matches an element of an enum.
            let shown = old.enumeration.clone().map(Value::Array);
            let question = Question::Exists(Formula::Types(Types::NULL));
            self.note("enum", shown, Some(Value::Array(values.clone())), question);
        }
    }

    fn scalars(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        if !same_values(old.enumeration.as_deref(), new.enumeration.as_deref()) {
            let list = |values: &Vec<Value>| Value::Array(values.clone());
            let unlisted = |values: &'s Vec<Value>| Formula::IsUnlisted(Listed::of(values));
            self.keyword("enum", (&old.enumeration, &new.enumeration), list, unlisted);
        } else if new.enumeration.is_some() && gains(Some(old), new) {
            // Defaults turn a listed value into a different one.
            let question = Question::Exists(Formula::Types(Types::OBJECT.or(Types::ARRAY)));
            let list = new.enumeration.clone().map(Value::Array);
            self.note("enum", list.clone(), list, question);
        }
        self.limit(["minimum", "exclusiveMinimum"], (old.minimum, new.minimum), |limit| below(new, limit));
        self.limit(["maximum", "exclusiveMaximum"], (old.maximum, new.maximum), |limit| above(new, limit));
        self.keyword("multipleOf", (&old.multiple_of, &new.multiple_of), |it| json!(it), |it| no_multiple(new, *it));
        self.keyword("pattern", (&old.pattern, &new.pattern), |it| json!(it), |it| Formula::IsNoMatch(it));
        if old.format != new.format {
            let violates = |format: &'s str| Formula::IsAgainstFormat(format, new);
            // A format also decides whether a list is accepted for a string.
            let others = Types::allowed_by(old).and(Types::allowed_by(new).not());
            let is_of_the_format = Types::meant_by(old) == Types::meant_by(new) || new.kind.is_none();
            let ways = new.format.as_deref().map(violates).into_iter();
            let ways: Vec<_> =
                ways.chain((is_of_the_format && others != Types::NONE).then_some(Formula::Types(others))).collect();
            let question = if ways.is_empty() { Question::Harmless } else { Question::Exists(Formula::Any(ways)) };
            self.note("format", old.format.clone().map(Value::from), new.format.clone().map(Value::from), question);
        }
    }

    fn limit(
        &mut self,
        [bound, exclusive]: [&'static str; 2],
        (old, new): (Option<Limit>, Option<Limit>),
        violates: impl FnOnce(Limit) -> Formula<'static>,
    ) {
        if old == new {
            return;
        }
        let question = new.map_or(Question::Harmless, |new| Question::Exists(violates(new)));
        match (old, new) {
            (Some(before), Some(after)) if before.value == after.value => {
                self.flag(exclusive, before.exclusive, after.exclusive, question);
            }
            _ => {
                let show = |limit: Option<Limit>| limit.map(|limit| canonical(&json!(limit.value)));
                self.note(bound, show(old), show(new), question);
            }
        }
    }

    fn sizes(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        let least = |least: i64| Window { least: Some(least), most: None };
        let most = |most: i64| Window { least: None, most: Some(most) };
        let show = |it: &i64| json!(it);
        let (was, is) = (&old.length, &new.length);
        self.keyword("minLength", (&was.least, &is.least), show, |it| Formula::IsOfLengthOutside(least(*it)));
        self.keyword("maxLength", (&was.most, &is.most), show, |it| Formula::IsOfLengthOutside(most(*it)));
        let (was, is) = (&old.item_count, &new.item_count);
        self.keyword("minItems", (&was.least, &is.least), show, |it| Formula::HasCountOutside(least(*it)));
        self.keyword("maxItems", (&was.most, &is.most), show, |it| Formula::HasCountOutside(most(*it)));
        // Defaults are filled in before fields are counted.
        let filled = at.filled();
        let added = i64::try_from(filled.iter().filter(|name| child(old, name).is_none()).count()).unwrap_or(i64::MAX);
        let present = |count: Formula<'s>| {
            let existing = filled.iter().filter(|name| child(old, name).is_some());
            let present = existing.map(|name| Formula::has(name, Formula::anything()));
            Formula::All(present.chain([count]).collect())
        };
        let (was, is) = (&old.property_count, &new.property_count);
        self.keyword("minProperties", (&was.least, &is.least), show, |it| {
            present(Formula::HasAtMost(it.saturating_sub(1).saturating_sub(added)))
        });
        if was.most == is.most && is.most.is_some() && added == 0 {
            return;
        }
        if let Some(most) = is.most {
            let question = Question::Exists(present(Formula::HasAtLeast(most.saturating_add(1).saturating_sub(added))));
            self.note("maxProperties", was.most.map(Value::from), Some(most.into()), question);
        } else if was.most.is_some() {
            self.note("maxProperties", was.most.map(Value::from), None, Question::Harmless);
        }
    }

    fn lists(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        let (was, is) = (Unique::of(old), Unique::of(new));
        let word = |schema: &Schema| {
            Some(json!(match Unique::of(schema) {
                None => "atomic",
                Some(Unique::Items) => "set",
                Some(Unique::Keys(_)) => "map",
            }))
        };
        let keys = |schema: &Schema| Some(json!(schema.list_map_keys));
        if word(old) != word(new) {
            let question = is.clone().map_or(Question::Undecidable, Question::Merged);
            self.note("x-kubernetes-list-type", word(old), word(new), question);
        } else if was != is {
            let these: BTreeSet<&String> = old.list_map_keys.iter().collect();
            let question = match is {
                Some(unique) if !these.iter().all(|key| new.list_map_keys.contains(key)) => Question::Merged(unique),
                // More keys reject nothing, but the ownership of items in server-side apply changes.
                Some(_) if new.list_map_keys.iter().any(|key| !these.contains(key)) => Question::Undecidable,
                _ => Question::Harmless,
            };
            self.note("x-kubernetes-list-map-keys", keys(old), keys(new), question);
        }
        if old.unique_items != new.unique_items {
            let question = if new.unique_items {
                Question::Exists(Formula::HasRepeated(Unique::Items))
            } else {
                Question::Harmless
            };
            self.flag("uniqueItems", old.unique_items, new.unique_items, question);
        }
        let atomic = |schema: &Schema| schema.map_type == Some(crate::schema::model::MapType::Atomic);
        if atomic(old) != atomic(new) {
            let word = |schema: &Schema| Some(json!(if atomic(schema) { "atomic" } else { "granular" }));
            let question = if atomic(old) { Question::Granular } else { Question::Undecidable };
            self.note("x-kubernetes-map-type", word(old), word(new), question);
        }
    }

    fn required(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        for name in new.required.difference(&old.required) {
            let given = new.properties.get(name).is_some_and(|field| field.default.is_some());
            let dropped = self.status && at.place == Level::Root && name == "status";
            let question = if dropped {
                // Every object is created without it.
                Question::Exists(Formula::anything())
            } else if given {
                Question::Harmless
            } else {
                Question::Exists(Formula::lacks(name))
            };
            self.note("required", None, Some(json!([name])), question);
        }
        for name in old.required.difference(&new.required) {
            self.note("required", Some(json!([name])), None, Question::Harmless);
        }
    }

    fn combinators(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        let ways = combinator_ways(new, Some(new));
        // A combinator sees the defaults of all descendants.
        let filled = !ways.is_empty() && gains(Some(old), new);
        for (keyword, formula) in ways {
            if digests_of(old, keyword) != digests_of(new, keyword) || filled {
                let question = Question::Exists(formula);
                self.note(keyword, number_of(old, keyword), after(old, new, keyword), question);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            if !digests_of(old, keyword).is_empty() && digests_of(new, keyword).is_empty() {
                self.note(keyword, number_of(old, keyword), None, Question::Harmless);
            }
        }
    }

    fn rules(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        fn identity(rule: &CelRule) -> (&str, bool) {
            (&rule.rule, rule.optional_old_self)
        }
        let only_in = |these: &'s [CelRule], those: &[CelRule]| -> Vec<&'s str> {
            let known: BTreeSet<(&str, bool)> = those.iter().map(identity).collect();
            these.iter().filter(|rule| !known.contains(&identity(rule))).map(|rule| &*rule.rule).collect()
        };
        let (added, removed) = (only_in(&new.rules, &old.rules), only_in(&old.rules, &new.rules));
        let list = |rules: &[&str]| (!rules.is_empty()).then(|| json!(rules));
        if added.is_empty() && removed.is_empty() {
            let retyped = new.rules.iter().filter(|rule| computes_otherwise(rule, old, new));
            let rules = list(&retyped.map(|rule| &*rule.rule).collect::<Vec<_>>());
            if rules.is_some() {
                self.note("x-kubernetes-validations", rules.clone(), rules, Question::Rules);
            }
            return;
        }
        let question = if added.is_empty() { Question::Harmless } else { Question::Rules };
        self.note("x-kubernetes-validations", list(&removed), list(&added), question);
    }

    /// What happens to fields that the schema does not name.
    fn openness(&mut self, at: Pair<'s>) {
        let Pair { old, new, place } = at;
        if place == Level::Metadata {
            return;
        }
        if old.embedded_resource != new.embedded_resource {
            let formula = if new.embedded_resource {
                Formula::Any(super::embedded::ways_to_be_none())
            } else {
                // A field that the server knew in a resource is now like any other.
                let lost = BUILT_IN.iter().filter_map(|name| match child(new, name) {
                    Some(after) => Some(Formula::has(name, Formula::Damaged(after, Level::Field))),
                    None if new.keeps_unknown() => None,
                    None => Some(Formula::has(name, Formula::anything())),
                });
                Formula::Any(lost.collect())
            };
            let (was, is) = (old.embedded_resource, new.embedded_resource);
            self.flag("x-kubernetes-embedded-resource", was, is, Question::Exists(formula));
        }
        if old.preserve_unknown != new.preserve_unknown {
            let question = if old.preserve_unknown && !new.keeps_unknown() {
                Question::Exists(Formula::HasOther(self.named(at), Box::new(Formula::anything())))
            } else {
                Question::Harmless
            };
            let (was, is) = (old.preserve_unknown, new.preserve_unknown);
            self.flag("x-kubernetes-preserve-unknown-fields", was, is, question);
        }
    }

    /// The schemas whose declared names do not count as other fields.
    fn named(&self, at: Pair<'s>) -> Vec<&'s Schema> {
        static RESOURCE: LazyLock<Schema> =
            LazyLock::new(|| Schema::of(&json!({"properties": {"apiVersion": {}, "kind": {}, "metadata": {}}})));
        let mut named = vec![at.old, at.new];
        if at.place == Level::Root || at.new.embedded_resource {
            named.push(&RESOURCE);
        }
        named
    }

    fn fields(&mut self, at: Pair<'s>) {
        let Pair { old, new, place } = at;
        for (name, before) in &old.properties {
            let built_in = place == Level::Root && BUILT_IN.contains(&name.as_str());
            match child(new, name) {
                Some(after) => {
                    if before.digest == after.digest && !new.properties.contains_key(name) {
                        // A default below `additionalProperties` does not create a key.
                        self.default(name, before.default.as_ref(), None);
                    }
                    self.field(at, name, before, after);
                }
                None if new.keeps_unknown()
                    || built_in
                    || place == Level::Metadata
                    || (new.embedded_resource && BUILT_IN.contains(&name.as_str())) =>
                {
                    self.lose_defaults(vec![Step::Field(name)], before);
                }
                None => self.below(Step::Field(name), |walk| {
                    // Asked of the parent, as the field has no node any more.
                    walk.note("existingFieldRemoval", kind_of(before), None, Question::Exists(Formula::anything()));
                }),
            }
        }
        for (name, after) in new.properties.iter().filter(|(name, _)| !old.properties.contains_key(*name)) {
            let built_in = (place == Level::Root || old.embedded_resource) && BUILT_IN.contains(&name.as_str());
            if let Some(before) = free_values(old) {
                if before.digest == after.digest {
                    // A default below `additionalProperties` did not create a key; this one does.
                    self.default(name, None, after.default.as_ref());
                }
                self.field(at, name, before, after);
            } else if built_in || place == Level::Metadata {
                self.field(at, name, &ANYTHING, after);
            } else {
                let keeps_unknown = old.keeps_unknown();
                self.below(Step::Field(name), |walk| walk.new_field(keeps_unknown, after));
            }
        }
    }

    /// A field that only the new schema names; whether the old one kept it nevertheless.
    fn new_field(&mut self, was_kept: bool, field: &'s Schema) {
        if was_kept {
            let damaged = Question::Exists(Formula::Damaged(field, Level::Field));
            return self.note("fieldDeclared", None, kind_of(field), damaged);
        }
        self.note("fieldAdded", None, kind_of(field), Question::Harmless);
        if field.default.is_some() {
            // Every object gets it, with the defaults below filled in; the server validates it without them.
            let counts = counts_defaults(field);
            let question = if counts { Question::Default(Formula::anything()) } else { Question::Harmless };
            self.note("defaultOfNewField", None, field.default.clone(), question);
        }
    }

    fn field(&mut self, at: Pair<'s>, name: &'s str, before: &'s Schema, after: &'s Schema) {
        if before.digest == after.digest {
            return;
        }
        let metadata = name == "metadata" && (at.place == Level::Root || at.old.embedded_resource);
        let place = if metadata { Level::Metadata } else { Level::Field };
        self.default(name, before.default.as_ref(), after.default.as_ref());
        self.below(Step::Field(name), |walk| walk.nodes(before, after, place));
    }

    /// The default of a field before and after.
    fn default(&mut self, name: &'s str, old: Option<&Value>, new: Option<&Value>) {
        if old != new {
            let question = Question::Default(Formula::lacks(name));
            self.below(Step::Field(name), |walk| walk.note("default", old.cloned(), new.cloned(), question));
        }
    }

    /// The defaults of a node at these further steps that nothing describes any more: they are no longer filled in.
    fn lose_defaults(&mut self, steps: Vec<Step<'s>>, node: &'s Schema) {
        for lost in defaults_of(steps, node) {
            let place = self.steps.len();
            self.steps.extend(lost.steps);
            let question = Question::Default(Formula::lacks(lost.name));
            self.note("default", Some(lost.default.clone()), None, question);
            self.steps.truncate(place);
        }
    }

    /// Fields with names that neither schema declares.
    fn other_fields(&mut self, at: Pair<'s>) {
        let Pair { old, new, .. } = at;
        let named = self.named(at);
        let shown = |schema: &Schema| match &schema.additional {
            Some(Additional::Schema(values)) => kind_of(values),
            Some(_) => Some(true.into()),
            None => None,
        };
        match (free_values(old), free_values(new)) {
            (Some(before), Some(after)) => {
                self.below(Step::Other(named), |walk| walk.nodes(before, after, Level::Field));
            }
            (None, Some(after)) if old.preserve_unknown => {
                let damaged = Question::Exists(Formula::Damaged(after, Level::Field));
                let (was, is) = (Some(true.into()), shown(new));
                self.below(Step::Other(named), |walk| walk.note("additionalProperties", was, is, damaged));
            }
            (Some(_), None) if !new.preserve_unknown => {
                let pruned = Question::Exists(Formula::HasOther(named, Box::new(Formula::anything())));
                self.note("additionalProperties", shown(old), None, pruned);
            }
            (before, after) if before.is_some() != after.is_some() => {
                self.note("additionalProperties", shown(old), shown(new), Question::Harmless);
                if let Some(before) = free_values(old) {
                    self.lose_defaults(vec![Step::Other(named)], before);
                }
            }
            _ => {}
        }
    }

    fn items(&mut self, at: Pair<'s>) {
        match (&at.old.items, &at.new.items) {
            (Some(before), Some(after)) => {
                self.below(Step::Item, |walk| walk.nodes(before, after, Level::Item));
            }
            (None, Some(after)) => {
                let damaged = Formula::HasItem(Box::new(Formula::Damaged(after, Level::Item)));
                self.note("items", None, kind_of(after), Question::Exists(damaged));
            }
            (Some(before), None) => {
                // Values without a schema are emptied, item by item.
                let emptied = Formula::HasItem(Box::new(has_data(before)));
                let question = if at.new.preserve_unknown { Question::Harmless } else { Question::Exists(emptied) };
                self.note("items", kind_of(before), None, question);
                self.lose_defaults(vec![Step::Item], before);
            }
            (None, None) => {}
        }
    }
}

#[derive(Clone, Copy)]
struct Pair<'s> {
    old: &'s Schema,
    new: &'s Schema,
    place: Level,
}

impl<'s> Pair<'s> {
    /// Fields that get a default and had none.
    fn filled(self) -> Vec<&'s str> {
        let had = |name: &str| child(self.old, name).is_some_and(|field| field.default.is_some());
        let fields = self.new.properties.iter().filter(|(_, field)| field.default.is_some());
        fields.map(|(name, _)| name.as_str()).filter(|name| !had(name)).collect()
    }
}

fn same_values(one: Option<&[Value]>, other: Option<&[Value]>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let within = |these: &[Value], those: &[Value]| {
                let those = ValueSet::of(those);
                these.iter().all(|value| those.contains(value))
            };
            within(one, other) && within(other, one)
        }
        (one, other) => one.is_some() == other.is_some(),
    }
}

/// Values that are emptied where nothing describes them, at any depth of lists.
fn has_data(node: &Schema) -> Formula<'_> {
    let fields = Formula::HasAtLeast(1);
    match &node.items {
        Some(items) => Formula::Any(vec![fields, Formula::HasItem(Box::new(has_data(items)))]),
        None => fields,
    }
}

/// The type of a node, in a word.
fn kind_of(schema: &Schema) -> Option<Value> {
    Some(schema.type_name().into())
}
