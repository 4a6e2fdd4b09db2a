//! Expressions over several values without a schema, as in a ValidatingAdmissionPolicy: every value has the type that it
//! has in JSON, and what does not fit is an error when the expression is evaluated.
//!
//! Follows k8s.io/apiserver `pkg/admission/plugin/cel/compile.go` and `condition.go`.

use std::rc::Rc;

use serde_json::Value as Json;

use super::check::{self, Declaration, Gives};
use super::evaluator::Evaluator;
use super::stop::Stop;
use super::syntax::{Expression as Tree, Node};
use super::value::{Outcome, Value};
use super::{Computed, Hints, Objection, Truth, hints, libraries, parser};

/// A variable of an expression.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The schema of its value; `None` for any value.
    pub schema: Option<Json>,
}

/// Why an expression is not accepted, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// Description of the error.
    pub message: String,
    /// Offset in the expression, in bytes, if it cannot be parsed.
    pub offset: Option<usize>,
}

/// An expression that was checked.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
    text: String,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Expression {
    /// Parses an expression and checks its types. `gives` is the required type of the result, if there is one.
    ///
    /// # Errors
    /// If the text is not valid CEL, names a variable or function that does not exist, or has another result.
    pub fn compile(text: &str, variables: &[Variable], gives: Option<Gives>) -> Result<Self, Invalid> {
        let invalid = |message: String| Invalid { message, offset: None };
        let root = parser::parse(text).map_err(|error| Invalid {
            message: format!("{} at byte {}", error.message, error.offset),
            offset: Some(error.offset),
        })?;
        unknown_function(&root, variables)
            .map_or(Ok(()), |name| Err(invalid(format!("there is no function {name}()"))))?;
        let declared = variables.iter().map(|variable| (variable.name, declaration(variable)));
        match check::accept(text, declared, gives) {
            Err(Objection::Refused(why)) => Err(invalid(why)),
            // What the checker cannot tell shows when the expression is evaluated.
            Ok(()) | Err(Objection::Unknown(_)) => Ok(Self { root, text: text.to_owned() }),
        }
    }

    /// The expression as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The canonical text: white space, comments and quotes do not matter.
    #[must_use]
    pub fn normalised(&self) -> String {
        self.root.canonical()
    }

    /// Whether it is true for these values.
    #[must_use]
    pub fn decide(&self, values: &[(&str, &Json)]) -> Truth {
        let evaluator = Evaluator::untyped();
        match self.run(&evaluator, values) {
            Ok(Value::Bool(true)) => Truth::True,
            Ok(Value::Bool(false)) => Truth::False,
            Ok(other) => Truth::Error(format!("the result is a {}, not a bool", other.type_name())),
            Err(Stop::Error(message)) => Truth::Error(message),
            Err(Stop::Unknown(why) | Stop::Abort(why)) => Truth::Unknown(why),
            Err(Stop::Budget | Stop::Cost) => Truth::Unknown("the expression takes too many steps".to_owned()),
        }
    }

    /// What it gives for these values. Unlike in a computation on one value, an absent field is an error.
    #[must_use]
    pub fn compute(&self, values: &[(&str, &Json)]) -> Computed {
        let evaluator = Evaluator::untyped();
        match self.run(&evaluator, values).and_then(|value| value.to_json(&evaluator)) {
            Ok(Some(value)) => Computed::Value(value),
            Ok(None) => Computed::Nothing,
            Err(Stop::Error(why) | Stop::Unknown(why) | Stop::Abort(why)) => Computed::Failed(why),
            Err(Stop::Budget | Stop::Cost) => Computed::Failed("the expression takes too many steps".to_owned()),
        }
    }

    fn run<'a>(&'a self, evaluator: &Evaluator<'a>, values: &[(&'a str, &'a Json)]) -> Outcome<'a> {
        let mut scope = Vec::with_capacity(values.len());
        for (name, value) in values {
            scope.push((*name, Value::of_json(value, evaluator)?));
        }
        evaluator.evaluate(&self.root, &mut scope)
    }

    /// Whether it reads a variable.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        self.root.mentions(variable)
    }

    /// What it reads of a variable.
    #[must_use]
    pub fn hints(&self, variable: &str) -> Hints {
        hints::collect_of(&self.root, variable)
    }
}

fn declaration(variable: &Variable) -> Rc<Declaration> {
    let of_schema = variable.schema.as_ref().and_then(|schema| Declaration::of_variable(schema, variable.name));
    of_schema.unwrap_or_else(Declaration::any)
}

/// The name of a called function that does not exist.
fn unknown_function(node: &Node, variables: &[Variable]) -> Option<String> {
    if let Tree::Call { function, target, .. } = &node.expression {
        let space = match target.as_deref().map(|target| &target.expression) {
            Some(Tree::Name(name)) if variables.iter().all(|variable| variable.name != name) => Some(name),
            _ => None,
        };
        let qualified = space.map(|space| format!("{space}.{function}"));
        if !libraries::has(function) && !qualified.is_some_and(|name| libraries::has(&name)) {
            return Some(function.clone());
        }
    }
    let mut unknown = None;
    node.expression.for_each_child(|child| unknown = unknown.take().or_else(|| unknown_function(child, variables)));
    unknown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn variables() -> Vec<Variable> {
        let request = json!({"type": "object", "properties": {"operation": {"type": "string"}}});
        ["object", "oldObject", "params"]
            .map(|name| Variable { name, schema: None })
            .into_iter()
            .chain([Variable { name: "request", schema: Some(request) }])
            .collect()
    }

    fn decided(text: &str, object: &Json) -> Truth {
        let expression = Expression::compile(text, &variables(), Some(Gives::Truth));
        let expression = expression.unwrap_or_else(|error| panic!("{text}: {error}"));
        expression.decide(&[
            ("object", object),
            ("oldObject", &Json::Null),
            ("params", &json!({"most": 5, "names": ["a"]})),
            ("request", &json!({"operation": "CREATE"})),
        ])
    }

    fn refused(text: &str) -> String {
        match Expression::compile(text, &variables(), Some(Gives::Truth)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text} is accepted"),
        }
    }

    #[test]
    fn values_have_the_types_of_json() {
        let object = json!({"spec": {"replicas": 3, "share": 0.5, "when": null, "ports": [80, "http"],
            "containers": [{"image": "a:1"}, {"image": "b"}]}, "metadata": {"labels": {"a/b": "c"}}});
        for (text, expected) in [
            ("object.spec.replicas <= params.most", Truth::True),
            ("object.spec.replicas == 3.0 && object.spec.share < 1", Truth::True),
            ("object.metadata.labels['a/b'] == 'c' && 'a/b' in object.metadata.labels", Truth::True),
            ("object.spec.containers.all(c, c.image.contains(':'))", Truth::False),
            ("object.spec.ports.exists(p, p == 'http') && object.spec.ports[0] == 80", Truth::True),
            ("oldObject == null || object.spec == oldObject.spec", Truth::True),
            ("has(object.spec.when) && object.spec.when == null && !has(object.spec.other)", Truth::True),
            ("object.?spec.?other.orValue(1) == 1", Truth::True),
            ("object.spec == {'replicas': 3}", Truth::False),
            ("object.spec.containers.map(c, c.image) == ['a:1', 'b']", Truth::True),
            ("request.operation in ['CREATE', 'UPDATE']", Truth::True),
            ("type(object.spec.replicas) == int && type(object.spec) == map", Truth::True),
            ("object.spec.other == 1", Truth::Error("no such key: other".into())),
            ("object.spec.replicas.size() > 1", Truth::Error("no such overload: size() on int".into())),
            ("object.spec.replicas.a == 1", Truth::Error("no such overload: a field on int".into())),
            ("object.spec.replicas == 'a'", Truth::False),
            ("has(object.spec.replicas.a) || object.spec.replicas.?a.hasValue()", Truth::False),
            ("has(object.spec.ports.a)", Truth::Error("no such overload: a field on list".into())),
            (
                "sets.contains(object.spec.replicas, [1])",
                Truth::Error("no such overload: sets.contains() on int, list".into()),
            ),
            ("object.spec == object.spec && object == object", Truth::True),
            ("object.spec.containers == object.spec.ports", Truth::False),
            ("object.spec.replicas > 1 || object.spec.none", Truth::True),
        ] {
            assert_eq!(decided(text, &object), expected, "{text}");
        }
    }

    #[test]
    fn what_can_never_hold_is_refused_before_it_is_evaluated() {
        assert_eq!(refused("object.spec.replicas <= mosst"), "undeclared reference to `mosst`");
        assert_eq!(refused("object.name.startWith('a')"), "there is no function startWith()");
        assert_eq!(refused("request.opration == 'CREATE'"), "undefined field `opration`");
        assert_eq!(refused("request.operation == 1"), "`_==_` does not take (string, int)");
        assert_eq!(refused("object.spec.paused"), "it must give a bool, and gives dyn");
        assert_eq!(
            refused("object.name.matches('(')"),
            "the pattern \"(\" cannot be read: missing closing ) (at byte 1)"
        );
        assert!(refused("object.spec.").starts_with("expected a"), "{}", refused("object.spec."));
    }

    #[test]
    fn an_evaluation_that_takes_long_ends() {
        let object = json!({"items": vec![0; 500]});
        let nested = "object.items.all(a, object.items.all(b, object.items.all(c, a + b + c == 0)))";
        assert_eq!(decided(nested, &object), Truth::Unknown("the expression takes too many steps".into()));
    }

    #[test]
    fn it_computes_values() {
        let given = |text: &str| {
            let expression = Expression::compile(text, &variables(), None).expect(text);
            expression.compute(&[("object", &json!({"a": {"b": [1, 2]}}))])
        };
        assert_eq!(given("{'c': object.a.b.map(x, x + 1)}"), Computed::Value(json!({"c": [2, 3]})));
        assert_eq!(given("object.a"), Computed::Value(json!({"b": [1, 2]})));
        assert_eq!(given("object.?c"), Computed::Nothing);
        assert_eq!(given("object.c"), Computed::Failed("no such key: c".into()));
    }

    proptest! {
        /// Rules of manifests are read and evaluated too: whatever they say, there is an answer.
        #[test]
        fn no_expression_and_no_object_breaks_it(
            words in prop::collection::vec(prop::sample::select(WORDS.as_slice()), 0..24), number in any::<i64>(), text in ".{0,6}",
        ) {
            if let Ok(expression) = Expression::compile(&words.concat(), &variables(), None) {
                let object = json!({"a": {"b": [number, text, null, {"c": 0.5}]}, "c": text, "spec": [[1], [], true]});
                let values = [("object", &object), ("oldObject", &Json::Null), ("params", &object), ("request", &object)];
                prop_assert_eq!(expression.compute(&values), expression.compute(&values));
                prop_assert_eq!(expression.hints("object"), expression.hints("object"));
                prop_assert_eq!(expression.decide(&values), expression.decide(&values));
            }
        }
    }

    const WORDS: [&str; 40] = [
        "object",
        "oldObject",
        "params",
        ".a",
        ".?b",
        "[0]",
        "[?1]",
        "['c']",
        ".c",
        ".spec",
        "(",
        ")",
        " == ",
        " && ",
        " || ",
        "!",
        "-",
        " + ",
        " * ",
        " % ",
        " in ",
        "1",
        "2.5",
        "'x'",
        "null",
        "true",
        "[",
        "]",
        "{'k': ",
        "}",
        ", ",
        " ? ",
        " : ",
        "size(",
        ".all(x, ",
        ".map(y, ",
        ".size()",
        ".matches('a+')",
        "has(object.a)",
        ".orValue(",
    ];
}
