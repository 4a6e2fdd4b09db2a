//! The types of a rule, as the API server's checker infers them (cel-go, checker/checker.go): which overloads apply,
//! and the first type error.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::declare::Declaration;
use super::expand::{Id, Literal, Loop, Term, Terms};
use super::functions::{Overload, VARIABLES, overloads};
use super::types::{Mapping, Type, most_general};

/// Why a rule does not type-check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server rejects it, with the reason.
    Refused(String),
    /// Whether it does is unknown, with the reason.
    Unknown(String),
}

fn refused<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Refused(message.into()))
}

fn unknown<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Unknown(message.into()))
}

/// The inferred types of a rule.
#[derive(Debug)]
pub(super) struct Types {
    /// The type of each node.
    pub(super) types: Vec<Option<Type>>,
    /// The possible overloads of each call.
    pub(super) overloads: BTreeMap<Id, Vec<&'static Overload>>,
    /// Calls whose target is only the first part of the function name, with the full name.
    pub(super) qualified: BTreeMap<Id, String>,
}

/// Type names that rules may use.
const TYPES: [&str; 12] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint", "optional_type", "dyn"];

/// First parts of qualified names of types and constants of libraries, which are not resolved here.
const NAMESPACES: [&str; 4] = ["google", "kubernetes", "net", "cel"];

/// Names that CEL reserves; fields of these names may be written unescaped.
pub(super) struct Checker<'t> {
    terms: &'t Terms,
    structs: BTreeMap<Rc<str>, Rc<Declaration>>,
    scope: Vec<(String, Type)>,
    mapping: Mapping,
    fresh: u32,
    found: Types,
}

impl<'t> Checker<'t> {
    /// A checker with the variables `self` and `oldSelf` of these types.
    pub(super) fn new(terms: &'t Terms, this: &Rc<Declaration>, old: Type) -> Self {
        let mut checker = Self::over(terms, [("self", Rc::clone(this))]);
        checker.scope.push(("oldSelf".to_owned(), old));
        checker
    }

    /// A checker with these variables.
    pub(super) fn over(terms: &'t Terms, variables: impl IntoIterator<Item = (&'static str, Rc<Declaration>)>) -> Self {
        let (mut structs, mut scope) = (BTreeMap::new(), Vec::new());
        for (name, declaration) in variables {
            declaration.structs(&mut structs);
            scope.push((name.to_owned(), declaration.kind.clone()));
        }
        let found = Types { types: vec![None; terms.len()], overloads: BTreeMap::new(), qualified: BTreeMap::new() };
        Self { terms, structs, scope, mapping: Mapping::default(), fresh: 0, found }
    }

    /// Infers the types of all nodes below `root`.
    pub(super) fn check(mut self, root: Id) -> Result<Types, Fault> {
        self.node(root)?;
        let Self { mapping, mut found, .. } = self;
        for one in found.types.iter_mut().flatten() {
            *one = mapping.resolve(one, true);
        }
        alike(self.terms, &found, root)?;
        Ok(found)
    }

    fn variable(&mut self) -> Type {
        self.fresh += 1;
        Type::Variable(self.fresh - 1)
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        self.mapping.assign(std::slice::from_ref(one), std::slice::from_ref(other))
    }

    fn node(&mut self, id: Id) -> Result<Type, Fault> {
        let terms = self.terms;
        let found = match terms.get(id) {
            Term::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Uint => Type::Uint,
                Literal::Double => Type::Double,
                Literal::String(_) => Type::String,
                Literal::Bytes(_) => Type::Bytes,
            },
            Term::Name(name) => self.name(name)?,
            Term::Select { operand, field, is_test } => {
                let selected = self.select(*operand, field)?;
                if *is_test { Type::Bool } else { self.mapping.resolve(&selected, false) }
            }
            Term::Call { function, target, arguments } => self.call(id, function, *target, arguments)?,
            Term::List(items) => {
                let mut joined = None;
                for (is_optional, item) in items {
                    let item = self.node(*item)?;
                    joined = Some(self.joined(joined, self_or_value(item, *is_optional)?));
                }
                let of = joined.unwrap_or_else(|| self.variable());
                Type::list(of)
            }
            Term::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for (is_optional, key, value) in entries {
                    let key = self.node(*key)?;
                    keys = Some(self.joined(keys, key));
                    let value = self.node(*value)?;
                    values = Some(self.joined(values, self_or_value(value, *is_optional)?));
                }
                let key = keys.unwrap_or_else(|| self.variable());
                let value = values.unwrap_or_else(|| self.variable());
                Type::Map(Rc::new(key), Rc::new(value))
            }
            Term::Loop(inner) => self.repeated(inner)?,
        };
        self.found.types[id] = Some(found.clone());
        Ok(found)
    }

    fn name(&self, name: &str) -> Result<Type, Fault> {
        if let Some((_, known)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Ok(known.clone());
        }
        match name {
            name if TYPES.contains(&name) => Ok(Type::Meta),
            name if NAMESPACES.contains(&name) => unknown(format!("the name `{name}` is not looked up")),
            name => refused(format!("undeclared reference to `{name}`")),
        }
    }

    fn select(&mut self, operand: Id, field: &str) -> Result<Type, Fault> {
        let operand = self.node(operand)?;
        let operand = self.mapping.resolve(&operand, false);
        let (target, is_optional) = match &operand {
            Type::Optional(of) => ((**of).clone(), true),
            other => (other.clone(), false),
        };
        let selected = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => self.field(name, field)?,
            Type::Variable(_) => {
                self.fits(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn => Type::Dyn,
            other => return refused(format!("a value of type {} has no field `{field}`", other.shown())),
        };
        Ok(if is_optional { Type::optional(selected) } else { selected })
    }

    fn field(&self, name: &str, field: &str) -> Result<Type, Fault> {
        let Some(declaration) = self.structs.get(name) else {
            return refused(format!("undefined field `{field}`"));
        };
        let kept = || format!("__{field}__");
        let found = declaration.fields.get(field).or_else(|| {
            let is_reserved = super::super::names::RESERVED.contains(&field);
            is_reserved.then(|| declaration.fields.get(&kept())).flatten()
        });
        match found {
            Some(found) => Ok(found.kind.clone()),
            None => refused(format!("undefined field `{field}`")),
        }
    }

    fn call(&mut self, id: Id, function: &str, target: Option<Id>, arguments: &[Id]) -> Result<Type, Fault> {
        if function == "_?._" {
            return self.optional_field(id, arguments);
        }
        let mut given = Vec::new();
        for argument in arguments {
            given.push(self.node(*argument)?);
        }
        let Some(target) = target else { return self.resolve(id, function, None, &given) };
        // A name before the dot may be part of the function name.
        if let Some(prefix) = qualified_name(self.terms, target) {
            let name = format!("{prefix}.{function}");
            if overloads(&name).is_some() {
                self.found.qualified.insert(id, name.clone());
                return self.resolve(id, &name, None, &given);
            }
        }
        let target = self.node(target)?;
        self.resolve(id, function, Some(target), &given)
    }

    fn optional_field(&mut self, id: Id, arguments: &[Id]) -> Result<Type, Fault> {
        let [operand, name] = *arguments else { return unknown("an optional field".to_owned()) };
        let Term::Literal(Literal::String(field)) = self.terms.get(name) else {
            return unknown("an optional field".to_owned());
        };
        let selected = self.select(operand, field)?;
        self.found.overloads.insert(id, Vec::new());
        self.found.types[name] = Some(Type::String);
        let selected = match selected {
            Type::Optional(_) if matches!(self.found.types[operand], Some(Type::Optional(_))) => selected,
            other => Type::optional(other),
        };
        Ok(self.mapping.resolve(&selected, false))
    }

    fn resolve(&mut self, id: Id, function: &str, target: Option<Type>, given: &[Type]) -> Result<Type, Fault> {
        let Some(all) = overloads(function) else {
            return unknown(format!("the function `{function}` is not known here"));
        };
        // The server does not create keys of other types when it plans the rule, or rejects them.
        if function == "_[_]"
            && let [_, index] = given
            && matches!(self.mapping.resolve(index, false), Type::Duration | Type::Timestamp | Type::Bytes | Type::Meta)
        {
            return unknown("an index that is no number, text or bool".to_owned());
        }
        if matches!(function, "_&&_" | "_||_") {
            for one in given {
                if !self.fits(one, &Type::Bool) {
                    let shown = self.mapping.resolve(one, true).shown();
                    return refused(format!(
                        "a bool is expected beside `{}`, this is {shown}",
                        function.trim_matches('_')
                    ));
                }
            }
            self.found.overloads.insert(id, all.iter().collect());
            return Ok(Type::Bool);
        }
        let is_member = target.is_some();
        let types: Vec<Type> = target.into_iter().chain(given.iter().cloned()).collect();
        let (mut result, mut meant) = (None, Vec::new());
        for overload in all.iter().filter(|overload| overload.is_member == is_member) {
            let (parameters, gives) = overload.signature(self.fresh);
            self.fresh += VARIABLES;
            if !self.mapping.assign(&types, &parameters) {
                continue;
            }
            meant.push(overload);
            let gives = self.mapping.resolve(&gives, false);
            result = Some(match result {
                None => gives,
                Some(known) if known == Type::Dyn || gives == known => known,
                Some(_) => Type::Dyn,
            });
        }
        self.found.overloads.insert(id, meant);
        match result {
            Some(result) => Ok(result),
            None => {
                let shown: Vec<String> = types.iter().map(|one| self.mapping.resolve(one, true).shown()).collect();
                refused(format!("`{function}` does not take ({})", shown.join(", ")))
            }
        }
    }

    /// Whether literals are homogeneous is checked once all types are known.
    fn joined(&mut self, known: Option<Type>, next: Type) -> Type {
        let Some(known) = known else { return next };
        if self.fits(&known, &next) { most_general(&known, &next) } else { Type::Dyn }
    }

    fn repeated(&mut self, inner: &Loop) -> Result<Type, Fault> {
        let range = self.node(inner.range)?;
        let first = self.node(inner.first)?;
        let range = self.mapping.resolve(&range, false);
        let (key, value) = match &range {
            Type::List(of) => (Type::Int, (**of).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Variable(_) => {
                self.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => return refused(format!("a value of type {} cannot be gone through", other.shown())),
        };
        let outside = self.scope.len();
        self.scope.push((inner.result_name.clone(), first.clone()));
        match inner.variables.as_slice() {
            [one] => {
                let of = if matches!(range, Type::List(_)) { value } else { key };
                self.scope.push((one.clone(), of));
            }
            [one, other] => self.scope.extend([(one.clone(), key), (other.clone(), value)]),
            _ => return unknown("a macro with other variables".to_owned()),
        }
        let condition = self.node(inner.condition)?;
        if !self.fits(&Type::Bool, &condition) {
            return refused("a condition is no bool".to_owned());
        }
        let step = self.node(inner.step)?;
        if !self.fits(&first, &step) {
            let shown = self.mapping.resolve(&step, true).shown();
            return refused(format!("a macro cannot gather values of type {shown}"));
        }
        self.scope.truncate(outside + 1);
        let result = self.node(inner.result)?;
        self.scope.truncate(outside);
        Ok(self.mapping.resolve(&result, false))
    }
}

/// The type of an item of a literal; an optional item contributes its value.
fn self_or_value(item: Type, is_optional: bool) -> Result<Type, Fault> {
    match (item, is_optional) {
        (item, false) => Ok(item),
        (Type::Optional(of), true) => Ok((*of).clone()),
        (Type::Dyn, true) => Ok(Type::Dyn),
        (other, true) => refused(format!("an optional value is expected, this is {}", other.shown())),
    }
}

/// `a.b.c`, if the node is just a qualified name.
fn qualified_name(terms: &Terms, id: Id) -> Option<String> {
    match terms.get(id) {
        Term::Name(name) => Some(name.clone()),
        Term::Select { operand, field, is_test: false } => {
            Some(format!("{}.{field}", qualified_name(terms, *operand)?))
        }
        _ => None,
    }
}

/// Checks that list and map literals are homogeneous, except arguments of `format`.
fn alike(terms: &Terms, found: &Types, id: Id) -> Result<(), Fault> {
    let kind = |id: Id| found.types[id].as_ref();
    let one_type = |ids: Vec<Id>| {
        let mut kinds = ids.into_iter().filter_map(kind);
        let Some(first) = kinds.next() else { return Ok(()) };
        match kinds.find(|other| *other != first) {
            None => Ok(()),
            Some(other) if first.is_certain() && other.is_certain() => {
                refused(format!("a list or map holds both {} and {}", first.shown(), other.shown()))
            }
            Some(_) => unknown("a list or map of several types".to_owned()),
        }
    };
    match terms.get(id) {
        Term::List(items) => one_type(items.iter().map(|(_, item)| *item).collect())?,
        Term::Map(entries) => {
            one_type(entries.iter().map(|(_, key, _)| *key).collect())?;
            one_type(entries.iter().map(|(_, _, value)| *value).collect())?;
        }
        Term::Call { function, target: Some(target), .. } if function == "format" => {
            return alike(terms, found, *target);
        }
        _ => {}
    }
    terms.below(id).into_iter().try_for_each(|inner| alike(terms, found, inner))
}
