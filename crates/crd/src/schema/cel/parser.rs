//! Parses the tokens of a CEL rule into a tree, by precedence. Its recursion and the height of the tree are bounded,
//! since rules come from untrusted files.
//!
//! The grammar is that of the CEL specification, `doc/langdef.md`, section Syntax; macros as in cel-go
//! `parser/macro.go`.

use super::error::CelError;
use super::lexer::{Token, tokens};
use super::names::RESERVED;
use super::syntax::{Expression, Node};

/// Maximum length of a rule in bytes; the longest rule of well-known projects has 1.3 kB.
const MAX_TEXT: usize = 32 * 1024;
/// Maximum nesting; the API server stops at 250, people at 20.
const MAX_HEIGHT: usize = 64;

/// Macros with a range: name, number of variables, number of bodies.
const MACROS: [(&str, usize, usize); 18] = [
    ("all", 1, 1),
    ("all", 2, 1),
    ("exists", 1, 1),
    ("exists", 2, 1),
    ("exists_one", 1, 1),
    ("existsOne", 1, 1),
    ("existsOne", 2, 1),
    ("map", 1, 1),
    ("map", 1, 2),
    ("filter", 1, 1),
    ("transformList", 2, 1),
    ("transformList", 2, 2),
    ("transformMap", 2, 1),
    ("transformMap", 2, 2),
    ("optMap", 1, 1),
    ("optFlatMap", 1, 1),
    ("sortBy", 1, 1),
    ("transformMapEntry", 2, 1),
];

/// Binary operators with their precedence.
const OPERATORS: [(&str, u8); 14] = [
    ("||", 1),
    ("&&", 2),
    ("==", 3),
    ("!=", 3),
    ("<", 3),
    ("<=", 3),
    (">", 3),
    (">=", 3),
    ("in", 3),
    ("+", 4),
    ("-", 4),
    ("*", 5),
    ("/", 5),
    ("%", 5),
];

pub(super) fn parse(text: &str) -> Result<Node, CelError> {
    if text.len() > MAX_TEXT {
        return Err(CelError { message: format!("longer than {MAX_TEXT} bytes"), offset: 0 });
    }
    let mut parser = Parser { tokens: tokens(text)?, position: 0, depth: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.error("more text than one expression")),
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    position: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.position).map_or(&Token::End, |(token, _)| token)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.position += 1;
        token
    }

    fn at(&self, mark: &str) -> bool {
        matches!(self.peek(), Token::Mark(text) if *text == mark)
    }

    fn accept(&mut self, mark: &str) -> bool {
        let at = self.at(mark);
        self.position += usize::from(at);
        at
    }

    fn expect(&mut self, mark: &str) -> Result<(), CelError> {
        if self.accept(mark) { Ok(()) } else { Err(self.error(format!("expected `{mark}`"))) }
    }

    fn error(&self, message: impl Into<String>) -> CelError {
        let offset = self.tokens.get(self.position).or(self.tokens.last()).map_or(0, |(_, offset)| *offset);
        CelError { message: message.into(), offset }
    }

    fn node(&self, expression: Expression) -> Result<Node, CelError> {
        let node = Node::new(expression);
        if node.height > MAX_HEIGHT { Err(self.error("nested too deeply")) } else { Ok(node) }
    }

    fn expression(&mut self) -> Result<Node, CelError> {
        if self.depth >= MAX_HEIGHT {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        let condition = self.binary(1)?;
        let node = if self.accept("?") {
            let then = self.binary(1)?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            self.node(Expression::Conditional {
                condition: Box::new(condition),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            })?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let text = match self.peek() {
            Token::Mark(text) => text,
            Token::Name { text, quoted: false } => text.as_str(),
            _ => return None,
        };
        OPERATORS.into_iter().find(|(operator, _)| *operator == text)
    }

    fn binary(&mut self, least: u8) -> Result<Node, CelError> {
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least) {
            self.position += 1;
            let right = self.binary(strength + 1)?;
            left = match operator {
                "&&" | "||" => self.logical(operator, left, right)?,
                _ => self.node(Expression::Binary { operator, left: Box::new(left), right: Box::new(right) })?,
            };
        }
        Ok(left)
    }

    /// Both are associative, so chains become flat lists.
    fn logical(&self, operator: &str, left: Node, right: Node) -> Result<Node, CelError> {
        let and = operator == "&&";
        let mut operands = Vec::new();
        for node in [left, right] {
            match node.expression {
                Expression::And(inner) if and => operands.extend(inner),
                Expression::Or(inner) if !and => operands.extend(inner),
                _ => operands.push(node),
            }
        }
        self.node(if and { Expression::And(operands) } else { Expression::Or(operands) })
    }

    fn unary(&mut self) -> Result<Node, CelError> {
        let operator = if self.at("!") {
            "!"
        } else if self.at("-") {
            "-"
        } else {
            return self.member();
        };
        let mut count = 0;
        while self.accept(operator) {
            count += 1;
        }
        // The sign is part of the literal; otherwise the least integer could not be written.
        if operator == "-"
            && let Token::Int(text) = self.peek().clone()
        {
            let number = self.integer(&format!("-{text}"))?;
            self.position += 1;
            count -= 1;
            let number = self.node(Expression::Int(number))?;
            let number = self.selections(number)?;
            return self.repeated(operator, count, number);
        }
        let operand = self.member()?;
        if let (Expression::Double(value), "-") = (&operand.expression, operator) {
            let number = self.node(Expression::Double(-value))?;
            return self.repeated(operator, count - 1, number);
        }
        self.repeated(operator, count, operand)
    }

    /// An even number of equal signs cancels out.
    fn repeated(&self, operator: &'static str, count: usize, operand: Node) -> Result<Node, CelError> {
        if count.is_multiple_of(2) {
            Ok(operand)
        } else {
            self.node(Expression::Unary { operator, operand: Box::new(operand) })
        }
    }

    fn integer(&self, text: &str) -> Result<i64, CelError> {
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
            None => text.parse(),
        };
        number.map_err(|_| self.error("an integer is out of range"))
    }

    fn member(&mut self) -> Result<Node, CelError> {
        let primary = self.primary()?;
        self.selections(primary)
    }

    fn selections(&mut self, mut node: Node) -> Result<Node, CelError> {
        loop {
            if self.accept(".") {
                let optional = self.accept("?");
                let Token::Name { text, quoted } = self.next() else {
                    return Err(self.error("expected a name after the dot"));
                };
                if !quoted && ["in", "true", "false", "null"].contains(&text.as_str()) {
                    return Err(self.error(format!("`{text}` is no field")));
                }
                if !optional && !quoted && self.accept("(") {
                    let arguments = self.arguments(")")?;
                    node = self.member_call(node, text, arguments)?;
                } else {
                    node = self.node(Expression::Select { operand: Box::new(node), field: text, optional })?;
                }
            } else if self.accept("[") {
                let optional = self.accept("?");
                let index = self.expression()?;
                self.expect("]")?;
                node = self.node(Expression::Index { operand: Box::new(node), index: Box::new(index), optional })?;
            } else if self.at("{") {
                return Err(self.error("messages are not known to rules of definitions"));
            } else {
                return Ok(node);
            }
        }
    }

    fn member_call(&self, target: Node, function: String, mut arguments: Vec<Node>) -> Result<Node, CelError> {
        let known =
            MACROS.iter().find(|(name, variables, bodies)| *name == function && variables + bodies == arguments.len());
        if let Some((name, variables, _)) = known {
            let bodies = arguments.split_off(*variables);
            let variables = arguments
                .into_iter()
                .map(|argument| match argument.expression {
                    Expression::Name(name) => Ok(name),
                    _ => Err(self.error("the variable of a macro must be a simple name")),
                })
                .collect::<Result<Vec<_>, _>>()?;
            let function = if *name == "existsOne" { "exists_one" } else { name };
            return self.node(Expression::Macro { function, range: Box::new(target), variables, bodies });
        }
        self.node(Expression::Call { function, target: Some(Box::new(target)), arguments })
    }

    fn arguments(&mut self, closing: &str) -> Result<Vec<Node>, CelError> {
        let mut arguments = Vec::new();
        while !self.accept(closing) {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expression()?);
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Node, CelError> {
        let start = self.position;
        match self.next() {
            Token::Int(text) => {
                let number = self.integer(&text)?;
                self.node(Expression::Int(number))
            }
            Token::Uint(text) => {
                let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                self.node(Expression::Uint(number.map_err(|_| self.error("an integer is out of range"))?))
            }
            Token::Double(value) => self.node(Expression::Double(value)),
            Token::String(value) => self.node(Expression::String(value)),
            Token::Bytes(value) => self.node(Expression::Bytes(value)),
            Token::Mark("(") => {
                let node = self.expression()?;
                self.expect(")")?;
                Ok(node)
            }
            Token::Mark("[") => self.list(),
            Token::Mark("{") => self.map(),
            // A leading dot looks the name up from the outermost scope.
            Token::Mark(".") => match self.next() {
                Token::Name { text, quoted: false } => self.name(text),
                _ => Err(self.error("expected a name")),
            },
            Token::Name { text, quoted: false } => self.name(text),
            _ => {
                self.position = start;
                Err(self.error("expected an expression"))
            }
        }
    }

    fn list(&mut self) -> Result<Node, CelError> {
        let mut items = Vec::new();
        while !self.accept("]") {
            if !items.is_empty() {
                self.expect(",")?;
                if self.accept("]") {
                    break;
                }
            }
            items.push((self.accept("?"), self.expression()?));
        }
        self.node(Expression::List(items))
    }

    fn map(&mut self) -> Result<Node, CelError> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            if !entries.is_empty() {
                self.expect(",")?;
                if self.accept("}") {
                    break;
                }
            }
            let optional = self.accept("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((optional, key, self.expression()?));
        }
        self.node(Expression::Map(entries))
    }

    fn name(&mut self, text: String) -> Result<Node, CelError> {
        match text.as_str() {
            "null" => return self.node(Expression::Null),
            "true" => return self.node(Expression::Bool(true)),
            "false" => return self.node(Expression::Bool(false)),
            "in" => return Err(self.error("expected an expression before `in`")),
            reserved if RESERVED.contains(&reserved) => {
                return Err(self.error(format!("`{reserved}` is a reserved word")));
            }
            _ => {}
        }
        if !self.accept("(") {
            return self.node(Expression::Name(text));
        }
        let mut arguments = self.arguments(")")?;
        if text == "has" && arguments.len() == 1 {
            return match arguments.pop().map(|node| node.expression) {
                Some(Expression::Select { operand, field, optional: false }) => {
                    self.node(Expression::Has { operand, field })
                }
                _ => Err(self.error("has() takes a field")),
            };
        }
        self.node(Expression::Call { function: text, target: None, arguments })
    }
}
