//! The maximum cost of a rule as the API server estimates it (cel-go checker/cost.go, `pkg/cel/library/cost.go`):
//! exactly, or not at all.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::checker::Types;
use super::declare::Declaration;
use super::expand::{Id, Literal, Loop, Term, Terms};
use super::functions::{Overload, Price};
use super::types::Type;

const OF_LIST: u64 = 10;
const OF_MAP: u64 = 30;
const OF_TEXT: f64 = 0.1;
const OF_PATTERN: f64 = 0.25;
/// The server's assumed maximum pattern length of a named format.
const OF_FORMAT: f64 = 128.0;

/// Minimum and maximum size of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    least: u64,
    most: u64,
}

impl Size {
    const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    fn of(size: usize) -> Self {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        Self { least: size, most: size }
    }

    fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    fn times(self, other: Self) -> Self {
        Self { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// The cost of a size at this price per unit.
#[expect(clippy::cast_precision_loss, reason = "the server computes in floating point")]
fn priced(size: u64, factor: f64) -> u64 {
    let size = size as f64;
    let limit = u64::MAX as f64;
    if size > 0.0 && factor > 0.0 && size > limit / factor {
        return u64::MAX;
    }
    whole((size * factor).ceil())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is whole, not negative, and compared with the limit"
)]
fn whole(number: f64) -> u64 {
    if number >= u64::MAX as f64 { u64::MAX } else { number as u64 }
}

/// Sizes of the keys and values of a list or map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Size,
    value: Size,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

type Path = Vec<String>;

/// The meaning of a name inside a macro.
#[derive(Clone, Debug)]
struct Local {
    name: String,
    path: Path,
    size: Option<Size>,
    entries: Option<Entries>,
}

/// A function whose cost is not estimated here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unpriced(pub(super) String);

/// An operand of a call.
#[derive(Clone, Copy)]
struct Operand {
    id: Id,
    size: Option<Size>,
}

pub(super) struct Estimate<'t> {
    terms: &'t Terms,
    types: &'t Types,
    root: Rc<Declaration>,
    paths: BTreeMap<Id, Path>,
    sizes: BTreeMap<Id, Size>,
    entries: BTreeMap<Id, Entries>,
    locals: Vec<Local>,
}

impl<'t> Estimate<'t> {
    pub(super) fn new(terms: &'t Terms, types: &'t Types, root: &Rc<Declaration>) -> Self {
        Self {
            terms,
            types,
            root: Rc::clone(root),
            paths: BTreeMap::new(),
            sizes: BTreeMap::new(),
            entries: BTreeMap::new(),
            locals: Vec::new(),
        }
    }

    /// The maximum cost of the node.
    pub(super) fn cost(&mut self, id: Id) -> Result<u64, Unpriced> {
        let terms = self.terms;
        Ok(match terms.get(id) {
            Term::Literal(_) => 0,
            Term::Name(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(id, path);
                1
            }
            Term::Select { operand, is_test: true, .. } => self.cost(*operand)?,
            Term::Select { operand, field, is_test: false } => {
                let mut cost = self.cost(*operand)?;
                if matches!(self.kind(*operand), Type::Map(..) | Type::Struct(_)) {
                    cost = cost.saturating_add(1);
                }
                let mut path = self.path(*operand);
                path.push(field.clone());
                self.paths.insert(id, path);
                cost
            }
            Term::Call { function, target, arguments } => self.call(id, function, *target, arguments)?,
            Term::List(items) => {
                let (mut cost, mut held) = (0_u64, None);
                for (_, item) in items {
                    cost = cost.saturating_add(self.cost(*item)?);
                    let size = self.size_or_unknown(*item);
                    held = Some(held.map_or(size, |held: Size| held.or(size)));
                }
                let value = held.unwrap_or(Size { least: 0, most: 0 });
                self.entries.insert(id, Entries { is_list: true, key: Size::of(1), value });
                cost.saturating_add(OF_LIST)
            }
            Term::Map(entries) => {
                let (mut cost, mut keys, mut values) = (0_u64, None, None);
                for (_, key, value) in entries {
                    cost = cost.saturating_add(self.cost(*key)?).saturating_add(self.cost(*value)?);
                    for (held, id) in [(&mut keys, key), (&mut values, value)] {
                        let size = self.size_or_unknown(*id);
                        *held = Some(held.map_or(size, |held: Size| held.or(size)));
                    }
                }
                let none = Size { least: 0, most: 0 };
                let (key, value) = (keys.unwrap_or(none), values.unwrap_or(none));
                self.entries.insert(id, Entries { is_list: false, key, value });
                cost.saturating_add(OF_MAP)
            }
            Term::Loop(inner) => self.repeated(id, inner)?,
        })
    }

    fn kind(&self, id: Id) -> Type {
        self.types.types[id].clone().unwrap_or(Type::Dyn)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, id: Id) -> Path {
        if let Term::Name(name) = self.terms.get(id)
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&id).cloned().unwrap_or_default()
    }

    /// The size that the schema declares for a path, whose first part is the variable.
    fn declared(&self, path: &[String]) -> Option<Size> {
        let (_, below) = path.split_first()?;
        let mut node = &self.root;
        for name in below {
            node = match name.as_str() {
                "@items" | "@values" => node.items.as_ref()?,
                "@keys" => node.key.as_ref()?,
                name => node.fields.get(name)?,
            };
        }
        Some(Size { least: 0, most: node.most })
    }

    fn size(&mut self, id: Id) -> Option<Size> {
        if let Some(size) = self.sizes.get(&id) {
            return Some(*size);
        }
        let own = match self.terms.get(id) {
            Term::Literal(Literal::String(text)) => Some(Size::of(text.chars().count())),
            Term::Literal(Literal::Bytes(length)) => Some(Size::of(*length)),
            Term::Literal(_) => Some(Size::of(1)),
            Term::List(items) => Some(Size::of(items.len())),
            Term::Map(entries) => Some(Size::of(entries.len())),
            _ => None,
        };
        if own.is_some() {
            return own;
        }
        if let Some(size) = self.declared(&self.path(id)) {
            self.sizes.insert(id, size);
            return Some(size);
        }
        if self.kind(id).is_scalar() {
            return Some(Size::of(1));
        }
        match self.terms.get(id) {
            Term::Name(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, id: Id) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    fn entries(&self, id: Id) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&id) {
            return Some(*entries);
        }
        match self.terms.get(id) {
            Term::Name(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn push(&mut self, name: &str, path: Path, size: Option<Size>, entries: Option<Entries>) {
        self.locals.push(Local { name: name.to_owned(), path, size, entries });
    }

    fn repeated(&mut self, id: Id, inner: &Loop) -> Result<u64, Unpriced> {
        let mut cost = self.cost(inner.range)?.saturating_add(self.cost(inner.first)?);
        let (path, size, entries) = (self.path(inner.first), self.size(inner.first), self.entries(inner.first));
        self.push(&inner.result_name, path, size, entries);
        if inner.is_binding {
            cost = cost.saturating_add(self.cost(inner.result)?);
            self.locals.pop();
            if let Some(size) = self.size(inner.result) {
                self.sizes.insert(id, size);
            }
            if let Some(entries) = self.entries(inner.result) {
                self.entries.insert(id, entries);
            }
            return Ok(cost);
        }
        let held = self.entries(inner.range);
        let is_list = held.map_or_else(|| matches!(self.kind(inner.range), Type::List(_)), |held| held.is_list);
        let key = (if is_list { "@indices" } else { "@keys" }, held.map(|held| held.key));
        let value = (if is_list { "@items" } else { "@values" }, held.map(|held| held.value));
        let locals = match inner.variables.len() {
            1 => vec![if is_list { value } else { key }],
            _ => vec![key, value],
        };
        for (name, (step, size)) in inner.variables.iter().zip(locals) {
            let mut path = self.path(inner.range);
            path.push(step.to_owned());
            self.push(name, path, size, None);
        }
        let each = self.cost(inner.condition)?.saturating_add(self.cost(inner.step)?);
        self.locals.truncate(self.locals.len() - inner.variables.len());
        cost = cost.saturating_add(self.cost(inner.result)?);
        self.locals.pop();
        let count = self.size_or_unknown(inner.range);
        match self.terms.get(inner.first) {
            Term::Literal(_) => {
                let size = self.size(inner.first);
                self.sizes.extend(size.map(|size| (id, size)));
            }
            Term::List(_) | Term::Map(_) => {
                self.sizes.insert(id, count);
                let entries = self.entries(inner.step);
                self.entries.extend(entries.map(|entries| (id, entries)));
            }
            _ => {}
        }
        Ok(cost.saturating_add(count.most.saturating_mul(each)))
    }

    fn call(&mut self, id: Id, function: &str, target: Option<Id>, arguments: &[Id]) -> Result<u64, Unpriced> {
        if function == "dyn"
            && let [argument] = *arguments
        {
            let cost = self.cost(argument)?;
            if let Some(size) = self.size(argument) {
                self.sizes.insert(id, size);
            }
            if let Some(entries) = self.entries(argument) {
                self.entries.insert(id, entries);
            }
            return Ok(cost.saturating_add(1));
        }
        let mut costs = Vec::new();
        let mut operands = Vec::new();
        for argument in arguments {
            costs.push(self.cost(*argument)?);
            let size = self.size(*argument);
            operands.push(Operand { id: *argument, size });
        }
        if function == "_?._" {
            let size = self.size(id);
            self.sizes.extend(size.map(|size| (id, size)));
            return Ok(costs.into_iter().fold(1, u64::saturating_add));
        }
        let types = self.types;
        let qualified = types.qualified.get(&id);
        let function = qualified.map_or(function, String::as_str);
        let mut cost = 0_u64;
        let target = match target.filter(|_| qualified.is_none()) {
            Some(target) => {
                cost = self.cost(target)?;
                Some(Operand { id: target, size: self.size(target) })
            }
            None => None,
        };
        let of_arguments = costs.iter().copied().fold(0, u64::saturating_add);
        let overloads = types.overloads.get(&id).map(Vec::as_slice).unwrap_or_default();
        let (mut most, mut result) = (0_u64, None);
        for overload in overloads {
            let (price, size) = match function {
                "_&&_" | "_||_" => (of_arguments, None),
                _ if overload.price == Price::Condition => {
                    let [condition, then, otherwise] = costs.as_slice() else { return Err(unpriced(function)) };
                    let size = sized(operands[1]).or(sized(operands[2]));
                    let both = self.entries(operands[1].id).zip(self.entries(operands[2].id));
                    if let Some((one, other)) = both {
                        self.entries.insert(id, one.or(other));
                    }
                    (condition.saturating_add(*then.max(otherwise)), Some(size))
                }
                _ => {
                    let (price, size) = self.priced(id, function, overload, target, &operands)?;
                    (price.saturating_add(of_arguments), size)
                }
            };
            most = most.max(price);
            if let Some(size) = size {
                result = Some(result.map_or(size, |known: Size| known.or(size)));
            }
            let of_index = match overload.price {
                Price::IndexList => Some("@items"),
                Price::IndexMap => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(operand)) = (of_index, operands.first()) {
                result = self.entries(operand.id).map(|entries| entries.value);
                let mut path = self.path(operand.id);
                path.push(step.to_owned());
                self.paths.insert(id, path);
            }
            if result.is_none() {
                result = self.size(id);
            }
        }
        self.sizes.extend(result.map(|size| (id, size)));
        Ok(cost.saturating_add(most))
    }

    /// The size that a library sees: the computed one, or that of the schema.
    fn library_size(&self, operand: Operand) -> Size {
        operand.size.or_else(|| self.declared(&self.path(operand.id))).unwrap_or(Size::UNKNOWN)
    }

    /// The size of a list's items, and whether they are strings; `None` if it is not a list.
    fn items(&self, list: Operand) -> Option<(bool, Size)> {
        let of = match self.kind(list.id) {
            Type::List(of) | Type::Optional(of) | Type::Map(of, _) => of,
            _ => return None,
        };
        let mut path = self.path(list.id);
        let is_known = !path.is_empty();
        path.push("@items".to_owned());
        let size = if is_known { self.declared(&path) } else { None };
        Some((matches!(*of, Type::String | Type::Bytes), size.unwrap_or(Size::UNKNOWN)))
    }

    /// The cost of a call, without that of its arguments.
    fn priced(
        &mut self,
        id: Id,
        function: &str,
        overload: &Overload,
        target: Option<Operand>,
        arguments: &[Operand],
    ) -> Result<(u64, Option<Size>), Unpriced> {
        let reads = |size: Size, factor: f64| priced(size.most, factor);
        if overload.price == Price::Unknown {
            return Err(unpriced(function));
        }
        if let Price::Sets(factor) = overload.price
            && let [one, other] = *arguments
        {
            let size = self.library_size(one).times(self.library_size(other));
            return Ok((priced(size.most, f64::from(factor)).saturating_add(1), None));
        }
        if let Some(size) = self.new_list(overload.price, function, target, arguments) {
            let factor = match overload.price {
                Price::ComparedItems => 2.0,
                Price::ComparedTexts => 2.0 + OF_TEXT,
                _ => self.depth(function, arguments),
            };
            let size = if overload.price == Price::NewList { size } else { size.times(size) };
            return Ok((reads(size, factor).saturating_add(1 + OF_LIST), Some(size)));
        }
        match (function, target, arguments) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let size = self.library_size(target);
                let cost = match self.items(target) {
                    Some((true, item)) => size.most.saturating_mul(reads(item, OF_TEXT).saturating_add(1)),
                    Some((false, _)) => size.most,
                    None => reads(size, OF_TEXT),
                };
                return Ok((cost, None));
            }
            ("url", _, [text]) => {
                let size = self.library_size(*text);
                return Ok((reads(size, OF_TEXT), Some(size)));
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                let size = self.library_size(target);
                return Ok((reads(size, OF_TEXT), Some(size)));
            }
            ("replace", Some(target), [replaced, by, ..]) => {
                let (size, replaced, by) =
                    (self.library_size(target), self.library_size(*replaced), self.library_size(*by));
                return Ok((reads(size, 2.0 * OF_TEXT), Some(replacement(size, replaced, by))));
            }
            ("split", Some(target), _) => {
                let size = self.library_size(target);
                let limit = arguments.get(1).map(|limit| self.terms.get(limit.id));
                let most = match limit {
                    #[expect(clippy::cast_sign_loss, reason = "as the server does it")]
                    Some(Term::Literal(Literal::Int(limit))) => *limit as u64,
                    _ => size.most,
                };
                return Ok((reads(size, 2.0 * OF_TEXT), Some(Size { least: 0, most })));
            }
            ("join", Some(target), _) => {
                let list = self.library_size(target);
                let items = self.items(target).map_or(Size { least: 0, most: 0 }, |(_, item)| list.times(item));
                let between = Size { least: list.least.saturating_sub(1), most: list.most.saturating_sub(1) };
                let separators = arguments.first().map(|separator| self.library_size(*separator).times(between));
                let size = separators.map_or(items, |separators| items.plus(separators));
                return Ok((reads(size, OF_TEXT), Some(size)));
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let (size, pattern) = (self.library_size(target), self.library_size(*pattern));
                let cost = reads(size.plus(Size::of(1)), OF_TEXT).saturating_mul(reads(pattern, OF_PATTERN));
                return Ok((cost, Some(Size { least: 0, most: size.most })));
            }
            ("ip", _, _) if overload.price == Price::Part => return Ok((1, None)),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", _, [text, ..]) => {
                return Ok((reads(self.library_size(*text), OF_TEXT), None));
            }
            ("ip.isCanonical", _, [text]) => return Ok((reads(self.library_size(*text), 2.0 * OF_TEXT), None)),
            ("containsIP" | "containsCIDR", _, [other]) => {
                // Addresses have at most 16 bytes and are compared once or, if masked, twice.
                let mut cost = priced(32, OF_TEXT);
                if function == "containsCIDR" {
                    cost += priced(16, OF_TEXT) + 1;
                }
                if overload.price == Price::WithText {
                    cost = cost.saturating_add(reads(self.library_size(*other), OF_TEXT));
                }
                return Ok((cost, None));
            }
            ("validate", Some(_), [text]) => {
                let cost = reads(self.library_size(*text), OF_TEXT);
                return Ok((priced(cost, OF_FORMAT * OF_PATTERN), None));
            }
            ("_==_", _, [one, other]) if self.kind(one.id) == self.kind(other.id) => match self.kind(one.id) {
                Type::Opaque(_) => return Ok((1, None)),
                Type::Struct(name) => match &*name {
                    "kubernetes.Quantity" | "kubernetes.Semver" => return Ok((1, None)),
                    "kubernetes.NamedFormat" | "kubernetes.URL" => return Err(unpriced("_==_ of formats and URLs")),
                    _ => {}
                },
                _ => {}
            },
            _ => {}
        }
        self.standard(id, function, overload, target, arguments)
    }

    /// The size of a new list, or of one whose items are compared; `None` for other functions (cel-go `ext/lists.go`).
    fn new_list(&self, price: Price, function: &str, target: Option<Operand>, arguments: &[Operand]) -> Option<Size> {
        let fixed = |size: u64| Size { least: size, most: size };
        let number = |index: usize, otherwise: u64| match arguments.get(index).map(|it| self.terms.get(it.id)) {
            Some(Term::Literal(Literal::Int(number))) => u64::try_from(*number).unwrap_or_default(),
            _ => otherwise,
        };
        match (price, function, target) {
            (Price::NewList, "lists.range", _) => Some(fixed(number(0, u64::MAX))),
            (Price::NewList, "slice", Some(target)) => {
                let whole = self.library_size(target);
                // The server subtracts without checking for overflow.
                Some(fixed(number(1, whole.most).wrapping_sub(number(0, 0))))
            }
            (Price::NewList | Price::ComparedItems | Price::ComparedTexts, _, Some(target)) => {
                Some(self.library_size(target))
            }
            _ => None,
        }
    }

    /// How often a new list is copied.
    #[expect(clippy::cast_precision_loss, reason = "the server computes in floating point")]
    fn depth(&self, function: &str, arguments: &[Operand]) -> f64 {
        match (function, arguments.first().map(|it| self.terms.get(it.id))) {
            ("flatten", Some(Term::Literal(Literal::Int(depth)))) => u64::try_from(*depth).unwrap_or_default() as f64,
            ("flatten", Some(_)) => u64::MAX as f64,
            _ => 1.0,
        }
    }

    /// CEL's own estimate for an overload.
    fn standard(
        &mut self,
        id: Id,
        function: &str,
        overload: &Overload,
        target: Option<Operand>,
        arguments: &[Operand],
    ) -> Result<(u64, Option<Size>), Unpriced> {
        Ok(match (overload.price, target, arguments) {
            (Price::Format, Some(target), _) => (priced(sized(target).most, OF_TEXT), None),
            (Price::TextToBytes, _, [text]) => {
                let size = sized(*text);
                // The server multiplies without checking for overflow.
                let result = Size { least: size.least, most: size.most.wrapping_mul(4) };
                (priced(size.most, OF_TEXT), Some(result))
            }
            (Price::BytesToText, _, [bytes]) => {
                let size = sized(*bytes);
                (priced(size.most, OF_TEXT), Some(Size { least: size.least / 4, most: size.most }))
            }
            (Price::StartsOrEnds, _, [text]) => (priced(sized(*text).most, OF_TEXT), None),
            (Price::Contained, _, [_, list]) => (priced(sized(*list).most, 1.0), None),
            (Price::Matches, Some(target), [pattern]) => {
                let text = priced(sized(target).plus(Size::of(1)).most, OF_TEXT);
                (text.saturating_mul(priced(sized(*pattern).most, OF_PATTERN)), None)
            }
            (Price::Contains, Some(target), [part]) => {
                (priced(sized(target).most, OF_TEXT).saturating_mul(priced(sized(*part).most, OF_TEXT)), None)
            }
            (Price::AddText | Price::AddList, _, [one, other]) => {
                let size = sized(*one).plus(sized(*other));
                if let Some((one, other)) = self.entries(one.id).zip(self.entries(other.id)) {
                    self.entries.insert(id, one.or(other));
                }
                let cost = if overload.price == Price::AddList { 1 } else { priced(size.most, OF_TEXT) };
                (cost, Some(size))
            }
            (Price::Compare, _, [one, other]) => (priced(sized(*one).most.min(sized(*other).most), OF_TEXT), None),
            (Price::Plain | Price::IndexList | Price::IndexMap, ..) => (1, None),
            _ => return Err(unpriced(function)),
        })
    }
}

fn sized(operand: Operand) -> Size {
    operand.size.unwrap_or(Size::UNKNOWN)
}

fn unpriced(function: &str) -> Unpriced {
    Unpriced(function.to_owned())
}

/// The length of a string after a replacement.
#[expect(clippy::cast_precision_loss, reason = "the server computes in floating point")]
fn replacement(size: Size, replaced: Size, by: Size) -> Size {
    let (mut count, mut kept) = (Size { least: 0, most: 0 }, Size { least: 0, most: 0 });
    if replaced.least == 0 {
        (count.most, kept.most) = (size.most.saturating_add(1), size.most);
    } else if by.most <= replaced.least {
        kept.most = size.most;
    } else {
        count.most = whole((size.most as f64 / replaced.least as f64).ceil());
    }
    if replaced.most == 0 {
        (count.least, kept.least) = (size.least.saturating_add(1), size.least);
    } else if replaced.most <= by.least {
        kept.least = size.least;
    } else {
        count.least = whole((size.least as f64 / replaced.most as f64).ceil());
    }
    count.times(by).plus(kept)
}
