//! Evaluates the tree of a rule on an object as the API server does: logical operators and macros absorb errors,
//! everything else propagates them. Every step is charged to a budget.
//!
//! Follows the CEL specification, `doc/langdef.md`, section Evaluation, and cel-go `interpreter/interpretable.go`.

use std::rc::Rc;

use serde_json::Value as Json;

use super::charges;
use super::evaluator::Evaluator;
use super::stop::Stop;
use super::syntax::{Expression, Node};
use super::value::{List, Map, Outcome, Value};

/// The variables in scope, innermost last.
pub(super) type Scope<'a> = Vec<(&'a str, Value<'a>)>;

/// How the error about an absent field begins.
pub(super) const NO_SUCH_KEY: &str = "no such key: ";

/// Names before a dot that are part of a function name.
const NAMESPACES: [&str; 6] = ["optional", "format", "ip", "sets", "lists", "cidr"];

/// Returns the cost of a node on the server without its operands; calls and operators are charged by their sizes.
fn cost_of(expression: &Expression) -> u64 {
    match expression {
        Expression::Name(_) | Expression::Select { .. } | Expression::Index { .. } | Expression::Unary { .. } => 1,
        Expression::List(_) => 10,
        Expression::Map(_) => 30,
        _ => 0,
    }
}

/// Cost of adding an item to the result so far: a list of one item is made and appended.
const ADDED_ITEM: u64 = 12;

/// Returns the cost of one iteration of a macro, without its body: for the condition to continue, and for the
/// result so far.
fn cost_of_iteration(function: &str) -> u64 {
    match function {
        "all" => 3,
        "exists" => 4,
        // The count so far is read as part of a condition, which costs nothing.
        // Neither does a result that stays as it is.
        _ => 0,
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn value(&self, json: &'a Json) -> Outcome<'a> {
        Value::of(json, self.schema, self)
    }

    pub(super) fn evaluate(&self, node: &'a Node, scope: &mut Scope<'a>) -> Outcome<'a> {
        self.charge(1)?;
        self.costs(cost_of(&node.expression))?;
        match &node.expression {
            Expression::Null => Ok(Value::Null),
            Expression::Bool(value) => Ok(Value::Bool(*value)),
            Expression::Int(value) => Ok(Value::Int(*value)),
            Expression::Uint(value) => Ok(Value::Uint(*value)),
            Expression::Double(value) => Ok(Value::Double(*value)),
            Expression::String(value) => Ok(Value::text(value)),
            Expression::Bytes(value) => Ok(Value::Bytes(Rc::from(value.as_slice()))),
            Expression::Name(name) => name_value(name, scope),
            Expression::Select { operand, field, optional } => {
                let operand = self.evaluate(operand, scope)?;
                self.select(&operand, field, *optional)
            }
            Expression::Has { operand, field } => {
                let operand = self.evaluate(operand, scope)?;
                self.has(&operand, field)
            }
            Expression::Index { operand, index, optional } => {
                let operand = self.evaluate(operand, scope)?;
                let index = self.evaluate(index, scope)?;
                self.index(&operand, &index, *optional)
            }
            Expression::Call { function, target, arguments } => {
                self.call_node(function, target.as_deref(), arguments, scope)
            }
            Expression::Unary { operator, operand } => {
                let operand = self.evaluate(operand, scope)?;
                self.unary(operator, &operand)
            }
            // The server knows that nothing is in an empty list without evaluating the operand.
            Expression::Binary { operator: "in", right, .. } if matches!(&right.expression, Expression::List(items) if items.is_empty()) => {
                Ok(Value::Bool(false))
            }
            Expression::Binary { operator, left, right } => {
                let left = self.evaluate(left, scope)?;
                let right = self.evaluate(right, scope)?;
                self.costs(charges::of_operator(operator, &left, &right))?;
                self.binary(operator, &left, &right)
            }
            Expression::And(operands) => self.logical(operands, false, scope),
            Expression::Or(operands) => self.logical(operands, true, scope),
            Expression::Conditional { condition, then, otherwise } => match self.evaluate(condition, scope)? {
                Value::Bool(true) => self.evaluate(then, scope),
                Value::Bool(false) => self.evaluate(otherwise, scope),
                other => Err(self.no_overload("?:", &[&other])),
            },
            Expression::List(items) => self.list(items, scope),
            Expression::Map(entries) => self.map(entries, scope),
            Expression::Macro { function, range, variables, bodies } => {
                let expanded = match self.evaluate(range, scope) {
                    Ok(range) => self.expand(function, range, variables, bodies, scope),
                    Err(stop) => Err(stop),
                };
                match expanded {
                    Err(Stop::Error(message)) if *function == "sortBy" => Err(Stop::Abort(message)),
                    other => other,
                }
            }
        }
    }

    /// `&&`, decided by a false operand, and `||`, decided by a true one, even if others fail.
    fn logical(&self, operands: &'a [Node], deciding: bool, scope: &mut Scope<'a>) -> Outcome<'a> {
        let mut stopped: Option<Stop> = None;
        for operand in operands {
            let stop = match self.evaluate(operand, scope) {
                Ok(Value::Bool(value)) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => continue,
                Ok(other) => self.no_overload(if deciding { "||" } else { "&&" }, &[&other]),
                Err(stop @ (Stop::Budget | Stop::Cost | Stop::Abort(_))) => return Err(stop),
                Err(stop) => stop,
            };
            stopped = Some(match stopped {
                Some(before) => before.or(stop),
                None => stop,
            });
        }
        stopped.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    pub(super) fn select(&self, operand: &Value<'a>, field: &str, optional: bool) -> Outcome<'a> {
        match operand {
            Value::Map(map) => match (map.field(field, self)?, optional) {
                (found, true) => Ok(Value::Optional(found.map(Rc::new))),
                (Some(value), false) => Ok(value),
                (None, false) => Err(Stop::error(format!("{NO_SUCH_KEY}{field}"))),
            },
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => self.select(inner, field, true),
            other if optional && self.has_no_parts(other) => Ok(Value::Optional(None)),
            other => Err(self.no_overload("a field", &[other])),
        }
    }

    /// Whether a value without a schema has neither fields nor items, so that none is present in it (cel-go,
    /// `interpreter/attributes.go`, `refQualify`).
    fn has_no_parts(&self, value: &Value<'a>) -> bool {
        self.is_untyped && !matches!(value, Value::Map(_) | Value::List(_) | Value::Optional(_))
    }

    fn has(&self, operand: &Value<'a>, field: &str) -> Outcome<'a> {
        match operand {
            Value::Map(map) => Ok(Value::Bool(map.field(field, self)?.is_some())),
            Value::Optional(None) => Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => self.has(inner, field),
            other if self.has_no_parts(other) => Ok(Value::Bool(false)),
            other if self.is_untyped => Err(self.no_overload("a field", &[other])),
            other => Err(Stop::unknown(format!("a field of a {}", other.type_name()))),
        }
    }

    fn index(&self, operand: &Value<'a>, index: &Value<'a>, optional: bool) -> Outcome<'a> {
        let found = match (operand, index) {
            (Value::List(list), Value::Int(position)) => {
                list.in_order()?;
                let found = usize::try_from(*position).ok().and_then(|position| list.items.get(position)).cloned();
                if found.is_none() && !optional {
                    return Err(Stop::error(format!("index out of bounds: {position}")));
                }
                found
            }
            (Value::Map(map), key) => {
                let found = map.find(key, self)?;
                if found.is_none() && !optional {
                    return Err(Stop::error(format!("no such key: {}", key.shown())));
                }
                found
            }
            (Value::Optional(None), _) => None,
            (Value::Optional(Some(inner)), index) => return self.index(inner, index, true),
            (Value::List(_), Value::Double(_) | Value::Uint(_)) => {
                return Err(Stop::unknown("a position that is no integer"));
            }
            (Value::List(_), _) if !self.is_untyped => return Err(Stop::unknown("a position that is no integer")),
            (operand, _) if optional && self.has_no_parts(operand) => None,
            _ => return Err(self.no_overload("[]", &[operand, index])),
        };
        match (found, optional || matches!(operand, Value::Optional(_))) {
            (Some(value), false) => Ok(value),
            (found, _) => Ok(Value::Optional(found.map(Rc::new))),
        }
    }

    fn list(&self, items: &'a [(bool, Node)], scope: &mut Scope<'a>) -> Outcome<'a> {
        let mut values = Vec::with_capacity(items.len());
        for (optional, item) in items {
            match (self.evaluate(item, scope)?, optional) {
                (value, false) => values.push(value),
                (Value::Optional(Some(value)), true) => values.push((*value).clone()),
                (Value::Optional(None), true) => {}
                (other, true) => return Err(self.no_overload("[?]", &[&other])),
            }
        }
        Ok(Value::list(values))
    }

    fn map(&self, entries: &'a [(bool, Node, Node)], scope: &mut Scope<'a>) -> Outcome<'a> {
        let mut values: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (optional, key, value) in entries {
            let key = self.evaluate(key, scope)?;
            let value = match (self.evaluate(value, scope)?, optional) {
                (value, false) => value,
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (Value::Optional(None), true) => continue,
                (other, true) => return Err(self.no_overload("{?}", &[&other])),
            };
            for (before, _) in &values {
                if before.equals(&key, self)? {
                    return Err(Stop::unknown("a map that repeats a key"));
                }
            }
            values.push((key, value));
        }
        Ok(Value::Map(Map::Built(Rc::new(values))))
    }

    fn call_node(
        &self,
        function: &'a str,
        target: Option<&'a Node>,
        arguments: &'a [Node],
        scope: &mut Scope<'a>,
    ) -> Outcome<'a> {
        if let Some(Node { expression: Expression::Name(space), .. }) = target
            && NAMESPACES.contains(&space.as_str())
            && scope.iter().all(|(name, _)| name != space)
        {
            let arguments = self.all(arguments, scope)?;
            return self.call(&format!("{space}.{function}"), false, &arguments);
        }
        let mut values = Vec::with_capacity(arguments.len() + 1);
        if let Some(target) = target {
            let target = self.evaluate(target, scope).map_err(|stop| match stop {
                Stop::Error(message) if matches!(function, "sort" | "distinct") => Stop::Abort(message),
                other => other,
            })?;
            // These two evaluate their argument only if needed.
            if let ("orValue" | "or", Value::Optional(held), [alternative]) = (function, &target, arguments) {
                return match (held, function) {
                    (None, _) => self.evaluate(alternative, scope),
                    (Some(value), "orValue") => Ok((**value).clone()),
                    (Some(_), _) => Ok(target),
                };
            }
            values.push(target);
        }
        values.extend(self.all(arguments, scope)?);
        self.call(function, target.is_some(), &values)
    }

    fn all(&self, nodes: &'a [Node], scope: &mut Scope<'a>) -> Result<Vec<Value<'a>>, Stop> {
        nodes.iter().map(|node| self.evaluate(node, scope)).collect()
    }

    fn expand(
        &self,
        function: &'static str,
        range: Value<'a>,
        variables: &'a [String],
        bodies: &'a [Node],
        scope: &mut Scope<'a>,
    ) -> Outcome<'a> {
        let outside = scope.len();
        let outcome = match (function, range) {
            ("optMap" | "optFlatMap", Value::Optional(held)) => self.optional(function, held, variables, bodies, scope),
            (_, range) => match self.rounds(&range, variables) {
                Err(stop) => Err(stop),
                Ok(rounds) => {
                    let unordered = match &range {
                        Value::Map(map) => map.len() > 1,
                        Value::List(list) => list.unordered,
                        _ => false,
                    };
                    let iteration = cost_of_iteration(function);
                    let mut comprehension =
                        Comprehension { evaluator: self, rounds, bodies, scope, outside, iteration };
                    match function {
                        "all" => comprehension.quantifier(false),
                        "exists" => comprehension.quantifier(true),
                        "exists_one" => comprehension.exactly_one(),
                        "map" | "transformList" => comprehension.map(unordered),
                        "filter" => comprehension.filter(unordered),
                        "transformMap" => comprehension.transform_map(),
                        "sortBy" => comprehension.sort_by(unordered),
                        _ => Err(Stop::unknown(format!("{function}()"))),
                    }
                }
            },
        };
        scope.truncate(outside);
        outcome
    }

    fn optional(
        &self,
        function: &str,
        held: Option<Rc<Value<'a>>>,
        variables: &'a [String],
        bodies: &'a [Node],
        scope: &mut Scope<'a>,
    ) -> Outcome<'a> {
        let (Some(value), [variable], [body]) = (held, variables, bodies) else { return Ok(Value::Optional(None)) };
        scope.push((variable, (*value).clone()));
        let value = self.evaluate(body, scope)?;
        match (function, value) {
            ("optMap", value) => Ok(Value::some(value)),
            (_, value @ Value::Optional(_)) => Ok(value),
            (_, other) => Err(self.no_overload("optFlatMap", &[&other])),
        }
    }

    /// The values of the variables of a macro in each iteration.
    fn rounds(&self, range: &Value<'a>, variables: &'a [String]) -> Result<Vec<Round<'a>>, Stop> {
        let pairs: Vec<(Value<'a>, Option<Value<'a>>)> = match (range, variables.len()) {
            (Value::List(list), 1) => list.items.iter().map(|item| (item.clone(), None)).collect(),
            (Value::List(list), _) => {
                list.in_order()?;
                (0..).zip(list.items.iter()).map(|(index, item)| (Value::Int(index), Some(item.clone()))).collect()
            }
            (Value::Map(map), 1) => map.keys(self)?.into_iter().map(|key| (key, None)).collect(),
            (Value::Map(map), _) => {
                let mut pairs = Vec::new();
                for key in map.keys(self)? {
                    let value = map.find(&key, self)?;
                    pairs.push((key, value));
                }
                pairs
            }
            (other, _) if self.is_untyped => return Err(self.no_overload("a macro", &[other])),
            (other, _) => return Err(Stop::unknown(format!("the items of a {}", other.type_name()))),
        };
        self.charge(pairs.len())?;
        Ok(pairs
            .into_iter()
            .map(|(first, second)| {
                let second = variables.get(1).zip(second).map(|(name, value)| (name.as_str(), value));
                let name = variables.first().map_or("", String::as_str);
                Round { first: (name, first), second }
            })
            .collect())
    }
}

/// The variables of one iteration of a macro.
struct Round<'a> {
    first: (&'a str, Value<'a>),
    second: Option<(&'a str, Value<'a>)>,
}

/// A macro being evaluated on its range.
struct Comprehension<'e, 's, 'a> {
    evaluator: &'e Evaluator<'a>,
    rounds: Vec<Round<'a>>,
    bodies: &'a [Node],
    scope: &'s mut Scope<'a>,
    outside: usize,
    /// Cost of each iteration on the server.
    iteration: u64,
}

impl<'a> Comprehension<'_, '_, 'a> {
    fn enter(&mut self, round: &Round<'a>) {
        self.scope.truncate(self.outside);
        self.scope.push(round.first.clone());
        self.scope.extend(round.second.clone());
    }

    fn body(&mut self, position: usize) -> Outcome<'a> {
        self.evaluator.costs(if position == 0 { self.iteration } else { 0 })?;
        match self.bodies.get(position) {
            Some(body) => self.evaluator.evaluate(body, self.scope),
            None => Err(Stop::unknown("a macro without a body")),
        }
    }

    fn truth(&mut self, position: usize) -> Result<bool, Stop> {
        match self.body(position)? {
            Value::Bool(value) => Ok(value),
            other => Err(self.evaluator.no_overload("a condition", &[&other])),
        }
    }

    /// `all`, decided by a false item, and `exists`, decided by a true one; errors count if no item decides.
    fn quantifier(&mut self, deciding: bool) -> Outcome<'a> {
        let mut stopped: Option<Stop> = None;
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            match self.truth(0) {
                Ok(value) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(_) => {}
                Err(stop @ (Stop::Budget | Stop::Cost | Stop::Abort(_))) => return Err(stop),
                Err(stop) => {
                    stopped = Some(match stopped {
                        Some(before) => before.or(stop),
                        None => stop,
                    });
                }
            }
        }
        stopped.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn exactly_one(&mut self) -> Outcome<'a> {
        let mut count = 0;
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            if self.truth(0)? {
                // The next count is computed.
                self.evaluator.costs(2)?;
                count += 1;
            }
        }
        self.evaluator.costs(2)?;
        Ok(Value::Bool(count == 1))
    }

    fn map(&mut self, unordered: bool) -> Outcome<'a> {
        let mut items = Vec::new();
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            let last = self.bodies.len() - 1;
            if last == 0 || self.truth(0)? {
                self.evaluator.costs(ADDED_ITEM)?;
                items.push(self.body(last)?);
            }
        }
        Ok(Value::List(List::built(items, unordered)))
    }

    fn filter(&mut self, unordered: bool) -> Outcome<'a> {
        let mut items = Vec::new();
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            if self.truth(0)? {
                // The item itself is read as well.
                self.evaluator.costs(ADDED_ITEM + 1)?;
                items.push(round.first.1);
            }
        }
        Ok(Value::List(List::built(items, unordered)))
    }

    fn transform_map(&mut self) -> Outcome<'a> {
        let mut entries = Vec::new();
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            let last = self.bodies.len() - 1;
            if last == 0 || self.truth(0)? {
                entries.push((round.first.1, self.body(last)?));
            }
        }
        Ok(Value::Map(Map::Built(Rc::new(entries))))
    }

    fn sort_by(&mut self, unordered: bool) -> Outcome<'a> {
        let mut keyed = Vec::new();
        for round in std::mem::take(&mut self.rounds) {
            self.enter(&round);
            keyed.push((self.body(0)?, round.first.1));
        }
        let (keys, items): (Vec<_>, Vec<_>) = keyed.into_iter().unzip();
        let order = self.evaluator.sorted_positions(&keys)?;
        let items = order.into_iter().filter_map(|position| items.get(position).cloned()).collect();
        Ok(Value::List(List::built(items, unordered)))
    }
}

impl List<'_> {
    /// Stops if the result depends on the order and the server's order is unknown.
    pub(super) fn in_order(&self) -> Result<(), Stop> {
        if self.unordered && self.items.len() > 1 {
            Err(Stop::unknown("the order of the entries of a map"))
        } else {
            Ok(())
        }
    }
}

fn name_value<'a>(name: &'a str, scope: &Scope<'a>) -> Outcome<'a> {
    if let Some((_, value)) = scope.iter().rev().find(|(bound, _)| *bound == name) {
        return Ok(value.clone());
    }
    ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "optional_type"]
        .into_iter()
        .find(|known| *known == name)
        .map(Value::Type)
        .ok_or_else(|| Stop::unknown(format!("variable `{name}`")))
}
