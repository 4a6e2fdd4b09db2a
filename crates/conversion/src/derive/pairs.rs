//! Pairs the fields of two objects: by what the plan says, by name, and by name ignoring case.

use std::collections::{BTreeMap, HashSet};

use pushback_crd::schema::{Additional, Schema};

use super::super::execute::object;
use super::super::operation_list::{Loss, OperationKind};
use super::super::path::FieldPath;
use super::super::plan::Unassessed;
use super::super::step::{Aside, Convert, Field, Move, ObjectStep, Pull, Rest, Shape};
use super::{Deriver, Leftover, Pair};

/// Both directions of a conversion: to the newer version and to the older one.
pub(super) type Both = (Convert, Convert);

/// Fields of a resource that conversions leave alone.
const OF_EVERY_RESOURCE: [&str; 3] = ["apiVersion", "kind", "metadata"];

type Fields<'s> = BTreeMap<&'s str, &'s Schema>;

fn fields(schema: &Schema, is_resource: bool) -> Fields<'_> {
    let all = schema.properties.iter().map(|(name, schema)| (name.as_str(), schema));
    all.filter(|(name, _)| !is_resource || !OF_EVERY_RESOURCE.contains(name)).collect()
}

impl Deriver<'_> {
    /// Pairs two objects with fields.
    pub(super) fn object(
        &mut self,
        older: &Schema,
        newer: &Schema,
        path: &FieldPath,
        new_path: &FieldPath,
    ) -> Result<Both, String> {
        let is_same = older.digest == newer.digest && !self.is_declared_below(path, new_path);
        let position = self.pairs.len();
        self.pairs.push(Pair { older: path.clone(), newer: new_path.clone(), is_same });
        if is_same {
            return Ok((Convert::Same, Convert::Same));
        }
        let is_resource = |path: &FieldPath, schema: &Schema| path.is_root() || schema.embedded_resource;
        let mut left = fields(older, is_resource(path, older));
        let mut right = fields(newer, is_resource(new_path, newer));
        let (all_left, all_right) = (left.clone(), right.clone());
        let errors = self.errors.len();
        let pairs = self.pair(&mut left, &mut right, &all_left, &all_right, path, new_path);
        let moves = &self.plan.moves;
        let has_moves =
            moves.iter().any(|entry| entry.path.below(path).is_some() || entry.value.below(new_path).is_some());
        // `spec` is what a kind is about, whatever is in it.
        let is_undecided = self.errors.len() > errors || has_moves;
        if pairs.is_empty() && !is_undecided && path.steps().len() > 1 && !all_left.is_empty() && !all_right.is_empty()
        {
            self.pairs.truncate(position);
            return Err("the two have no field in common".to_owned());
        }
        let (mut up, mut down) = (ObjectStep::default(), ObjectStep::default());
        for (name, new_name) in pairs {
            let (Some(one), Some(other)) = (all_left.get(name), all_right.get(new_name)) else { continue };
            let (below, new_below) = (path.field(name), new_path.field(new_name));
            match self.value(one, other, &below, &new_below) {
                Ok(both) => {
                    if name != new_name {
                        self.operation(OperationKind::Rename, &below, &new_below, Loss::None);
                    }
                    self.keep((&mut up, &mut down), (name, one), (new_name, other), both);
                }
                Err(why) => {
                    let declared = self.plan.renames.iter().find(|entry| entry.path == below);
                    if self.unassessed == Unassessed::Error || declared.is_some() {
                        let place = declared.map_or_else(|| self.position.clone(), |entry| entry.position.clone());
                        let message =
                            format!("{below} of {} and {new_below} of {}: {why}", self.older.name, self.newer.name);
                        self.error(&place, message, &[
                            "say under coerce, enums or lists how one becomes the other, or list it under removed with a reason",
                        ]);
                    }
                    left.insert(name, one);
                    right.insert(new_name, other);
                }
            }
        }
        // What keeps any field has a place for all of the other's.
        let is_open = |schema: &Schema| schema.preserve_unknown && schema.properties.is_empty();
        if !is_open(older) && !is_open(newer) {
            self.leave((&mut up, &mut down), (&left, &right), (&all_left, &all_right), (path, new_path));
        }
        self.attach_moves((&mut up, &mut down), (older, newer), (path, new_path), &all_left, &all_right);
        self.attach_hooks((&mut up, &mut down), (older, newer), (path, new_path));
        rest(&mut up, &mut down, (older, &self.older.name), newer);
        rest(&mut down, &mut up, (newer, &self.newer.name), older);
        let needs_bag = |step: &ObjectStep| {
            step.rest.is_some()
                || !step.pulls.is_empty()
                || step.moves.iter().any(|moving| moving.aside.is_some() || moving.originals.is_some())
        };
        if needs_bag(&up) || needs_bag(&down) {
            self.bags.push((path.clone(), new_path.clone()));
        }
        Ok((object(up), object(down)))
    }

    /// Which fields correspond to each other. What is paired or moved is taken out of both sides.
    fn pair<'s>(
        &mut self,
        left: &mut Fields<'s>,
        right: &mut Fields<'s>,
        all_left: &Fields<'s>,
        all_right: &Fields<'s>,
        path: &FieldPath,
        new_path: &FieldPath,
    ) -> Vec<(&'s str, &'s str)> {
        let plan = self.plan;
        for entry in &plan.moves {
            if let Some((_, name)) = entry.path.split_field().filter(|(parent, _)| parent == path) {
                left.remove(name);
            }
            if let Some((_, name)) = entry.value.split_field().filter(|(parent, _)| parent == new_path) {
                right.remove(name);
            }
        }
        let mut pairs = Vec::new();
        for (index, entry) in plan.renames.iter().enumerate() {
            let Some((_, name)) = entry.path.split_field().filter(|(parent, _)| parent == path) else { continue };
            self.used.insert(("renames", index));
            let Some((_, new_name)) = entry.value.split_field().filter(|(parent, _)| parent == new_path) else {
                let message = format!("{} is renamed to {}, which is in another object", entry.path, entry.value);
                self.error(&entry.position, message, &["list it under moves"]);
                continue;
            };
            let Some((name, _)) = all_left.get_key_value(name) else {
                self.missing(&entry.position, &entry.path, false);
                continue;
            };
            let Some((new_name, _)) = all_right.get_key_value(new_name) else {
                self.missing(&entry.position, &entry.value, true);
                continue;
            };
            if left.remove(name).is_none() || right.remove(new_name).is_none() {
                let message = format!("{} would have two sources", entry.value);
                self.error(&entry.position, message, &["remove one of the entries that lead to it"]);
                continue;
            }
            pairs.push((*name, *new_name));
        }
        let is_removed = |name: &str| plan.removed.iter().any(|entry| entry.path == path.field(name));
        let names: Vec<&'s str> = left.keys().copied().filter(|name| !is_removed(name)).collect();
        for &name in &names {
            if right.remove(name).is_some() {
                left.remove(name);
                pairs.push((name, name));
            } else if let Some(taken) = pairs.iter().find(|(_, new_name)| *new_name == name) {
                let message = format!(
                    "{} would have two sources, {} and {}",
                    new_path.field(name),
                    path.field(taken.0),
                    path.field(name)
                );
                let old = path.field(taken.0);
                let place = plan.renames.iter().find(|entry| entry.path == old);
                let place = place.map_or_else(|| self.position.clone(), |entry| entry.position.clone());
                self.error(
                    &place,
                    message,
                    &["say what becomes of the second one: rename it too, or list it under removed"],
                );
            }
        }
        let mut by_case: BTreeMap<String, (Vec<&'s str>, Vec<&'s str>)> = BTreeMap::new();
        for name in left.keys().copied().filter(|name| !is_removed(name)) {
            by_case.entry(name.to_lowercase()).or_default().0.push(name);
        }
        for name in right.keys().copied() {
            by_case.entry(name.to_lowercase()).or_default().1.push(name);
        }
        for (ones, others) in by_case.into_values() {
            match (ones.as_slice(), others.as_slice()) {
                (_, []) | ([], _) => {}
                ([name], [new_name]) => {
                    left.remove(name);
                    right.remove(new_name);
                    pairs.push((*name, *new_name));
                }
                _ => {
                    let named = |path: &FieldPath, names: &[&str]| {
                        let paths: Vec<String> = names.iter().map(|name| path.field(name).to_string()).collect();
                        paths.join(" and ")
                    };
                    let message = format!(
                        "{} of {}, and {} of {} differ only in case: which is which?",
                        named(path, &ones),
                        self.older.name,
                        named(new_path, &others),
                        self.newer.name
                    );
                    let position = self.position.clone();
                    self.error(&position, message, &["list them under renames"]);
                }
            }
        }
        pairs
    }

    /// Adds a field that both versions have.
    fn keep(
        &mut self,
        (up, down): (&mut ObjectStep, &mut ObjectStep),
        (name, older): (&str, &Schema),
        (new_name, newer): (&str, &Schema),
        (mut there, mut back): Both,
    ) {
        if older.nullable && !newer.nullable {
            there = Convert::NotNull(there.into());
        }
        if newer.nullable && !older.nullable {
            back = Convert::NotNull(back.into());
        }
        let old_key = format!("{name}@{}", self.older.name);
        let new_key = format!("{new_name}@{}", self.newer.name);
        one_way((up, down), (name, new_name), (&there, &back), &old_key);
        one_way((down, up), (new_name, name), (&back, &there), &new_key);
    }

    /// Says what becomes of fields that only one version has.
    fn leave(
        &mut self,
        (up, down): (&mut ObjectStep, &mut ObjectStep),
        (left, right): (&Fields<'_>, &Fields<'_>),
        (all_left, all_right): (&Fields<'_>, &Fields<'_>),
        (path, new_path): (&FieldPath, &FieldPath),
    ) {
        let plan = self.plan;
        for (&name, &schema) in left {
            let below = path.field(name);
            let found = plan.removed.iter().enumerate().find(|(_, entry)| entry.path == below);
            let (mut drops, mut assessed) = (false, false);
            if let Some((index, entry)) = found {
                self.used.insert(("removed", index));
                (drops, assessed) = (entry.value.drop, entry.value.assessed);
                if drops && !self.acknowledged(&below) {
                    let message = format!("{below} is dropped, and no conversion brings it back");
                    self.error(
                        &entry.position,
                        message,
                        &["say under acknowledge why that is right, or leave out drop"],
                    );
                }
            }
            let is_told = all_right.contains_key(name) && right.contains_key(name);
            if !assessed && self.unassessed == Unassessed::Error && !is_told {
                self.unassessed(&below, right, new_path, found.map(|(_, entry)| &entry.position));
            }
            if drops {
                up.fields.insert(name.to_owned(), Field::Drop);
                up.rewrites = true;
                self.operation(OperationKind::Drop, &below, new_path, Loss::Lost);
                self.leftover(false, (path, new_path), name, None, schema);
                continue;
            }
            let key = self.key(name, &below, all_right.contains_key(name), false);
            stash((up, down), name, &key, schema);
            self.operation(OperationKind::Stash, &below, new_path, Loss::InBag);
            self.leftover(false, (path, new_path), name, Some(key), schema);
        }
        for (&name, &schema) in right {
            let below = new_path.field(name);
            let key = self.key(name, &below, all_left.contains_key(name), true);
            stash((down, up), name, &key, schema);
            self.operation(OperationKind::Unstash, path, &below, Loss::InBag);
            self.leftover(true, (path, new_path), name, Some(key), schema);
        }
    }

    fn unassessed(
        &mut self,
        below: &FieldPath,
        right: &Fields<'_>,
        new_path: &FieldPath,
        entry: Option<&pushback_objects::source::Position>,
    ) {
        let name = below.split_field().map(|(_, name)| name.to_owned()).unwrap_or_default();
        let similar = pushback_objects::suggest::nearest(&name, right.keys().copied());
        let guess =
            similar.map(|similar| format!("was it renamed to {}? then list it under renames", new_path.field(similar)));
        let hints: Vec<&str> =
            guess.as_deref().into_iter().chain(["list it under removed of this step with a reason"]).collect();
        let position = entry.unwrap_or(&self.position).clone();
        let message =
            format!("{below} of {} is not in {}, and the plan does not say why", self.older.name, self.newer.name);
        self.error(&position, message, &hints);
    }

    /// The key of a field in the bag: with its version where the other one calls something else by this name.
    fn key(&mut self, name: &str, path: &FieldPath, is_taken: bool, is_newer: bool) -> String {
        let separate = self.plan.separate.iter().position(|entry| entry.path == *path);
        if let Some(index) = separate {
            self.used.insert(("separate", index));
        }
        if is_taken || separate.is_some() {
            let version = if is_newer { &self.newer.name } else { &self.older.name };
            format!("{name}@{version}")
        } else {
            name.to_owned()
        }
    }

    fn leftover(
        &mut self,
        is_newer: bool,
        (path, new_path): (&FieldPath, &FieldPath),
        name: &str,
        key: Option<String>,
        schema: &Schema,
    ) {
        let parents = (path.clone(), new_path.clone());
        self.leftovers.push(Leftover { is_newer, parents, name: name.to_owned(), key, schema: schema.clone() });
    }

    /// Adds the moves for which this is the innermost object that holds both ends.
    fn attach_moves(
        &mut self,
        (up, down): (&mut ObjectStep, &mut ObjectStep),
        (older, newer): (&Schema, &Schema),
        (path, new_path): (&FieldPath, &FieldPath),
        all_left: &Fields<'_>,
        all_right: &Fields<'_>,
    ) {
        let plan = self.plan;
        for (index, entry) in plan.moves.iter().enumerate() {
            if self.used.contains(&("moves", index)) {
                continue;
            }
            let (Some(from), Some(to)) = (entry.path.below(path), entry.value.below(new_path)) else { continue };
            self.used.insert(("moves", index));
            let (Some(from_names), Some(to_names)) = (from.names(), to.names()) else {
                let message = format!("{} is moved to {}, out of or into the items of a list", entry.path, entry.value);
                self.error(
                    &entry.position,
                    message,
                    &["keep both ends within one item, or set the field by an expression"],
                );
                continue;
            };
            let source = resolve(older, &from_names).filter(|_| all_left.contains_key(from_names[0].as_str()));
            let Some(source) = source else {
                self.missing(&entry.position, &entry.path, false);
                continue;
            };
            let target = resolve(newer, &to_names).filter(|_| all_right.contains_key(to_names[0].as_str()));
            let Some(target) = target else {
                self.missing(&entry.position, &entry.value, true);
                continue;
            };
            if plan.moves[..index].iter().any(|earlier| earlier.value == entry.value) {
                let message = format!("{} would have two sources", entry.value);
                self.error(&entry.position, message, &["remove one of the entries that lead to it"]);
                continue;
            }
            match self.value(source, target, &entry.path, &entry.value) {
                Ok((there, back)) => {
                    self.operation(OperationKind::Move, &entry.path, &entry.value, Loss::None);
                    let key = |names: &[String], version: &str| format!("{}@{version}", names.join("."));
                    let (old, new) = (key(&from_names, &self.older.name), key(&to_names, &self.newer.name));
                    let aside = |convert: &Convert, key: &str, other: &Convert| {
                        convert.is_partial().then(|| Aside { key: key.to_owned(), back: other.clone() })
                    };
                    up.moves.push(Move {
                        from: from_names.clone(),
                        to: to_names.clone(),
                        convert: there.clone(),
                        aside: aside(&there, &old, &back),
                        originals: aside(&back, &new, &back),
                    });
                    down.moves.push(Move {
                        from: to_names,
                        to: from_names,
                        convert: back.clone(),
                        aside: aside(&back, &new, &there),
                        originals: aside(&there, &old, &there),
                    });
                }
                Err(why) => self.error(&entry.position, format!("{} and {}: {why}", entry.path, entry.value), &[]),
            }
        }
    }
}

/// Adds one direction of a field that both versions have.
fn one_way(
    (here, other): (&mut ObjectStep, &mut ObjectStep),
    (name, to): (&str, &str),
    (convert, back): (&Convert, &Convert),
    key: &str,
) {
    if convert.is_same() && name == to {
        return;
    }
    let aside = convert.is_partial().then(|| Aside { key: key.to_owned(), back: back.clone() });
    here.rewrites |= name != to || aside.is_some();
    if aside.is_some() {
        let pull = Pull::Original { to: name.to_owned(), there: convert.clone(), back: back.clone() };
        other.pulls.insert(key.to_owned(), pull);
    }
    here.fields.insert(name.to_owned(), Field::Keep { to: to.to_owned(), convert: convert.clone(), aside });
}

/// Puts a field into the bag in one direction, and takes it out in the other.
fn stash((here, other): (&mut ObjectStep, &mut ObjectStep), name: &str, key: &str, schema: &Schema) {
    let raw = schema.kind == Some(pushback_crd::schema::Type::String) && !schema.nullable && !schema.int_or_string;
    here.fields.insert(name.to_owned(), Field::Stash { key: key.to_owned(), raw });
    here.rewrites = true;
    let shape = match schema.kind {
        _ if schema.int_or_string => Shape::Scalar,
        None => Shape::Any,
        Some(pushback_crd::schema::Type::Object) => Shape::Object,
        Some(pushback_crd::schema::Type::Array) => Shape::List,
        Some(_) => Shape::Scalar,
    };
    other.pulls.insert(key.to_owned(), Pull::Field { to: name.to_owned(), raw, shape });
}

/// Keeps fields that only one side keeps without a schema.
fn rest(here: &mut ObjectStep, other: &mut ObjectStep, (from, version): (&Schema, &str), to: &Schema) {
    if !from.preserve_unknown {
        return;
    }
    let names = |schema: &Schema| schema.properties.keys().cloned().collect::<HashSet<_>>();
    let known = if from.properties.is_empty() { names(to) } else { names(from) };
    let taken = to.preserve_unknown.then(|| names(to));
    if taken.as_ref().is_some_and(|taken| taken.is_subset(&known)) {
        return;
    }
    let key = format!("*@{version}");
    here.rest = Some(Rest { known, taken, key: key.clone() });
    here.rewrites = true;
    other.pulls.insert(key, Pull::Rest);
}

fn resolve<'s>(schema: &'s Schema, names: &[String]) -> Option<&'s Schema> {
    names.iter().try_fold(schema, |schema, name| schema.properties.get(name))
}

/// Whether a node keeps anything, without saying what.
pub(super) fn is_opaque(schema: &Schema) -> bool {
    let is_object = matches!(schema.kind, None | Some(pushback_crd::schema::Type::Object));
    is_object
        && !schema.int_or_string
        && schema.properties.is_empty()
        && !matches!(schema.additional, Some(Additional::Schema(_)))
}
