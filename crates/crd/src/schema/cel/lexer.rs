//! Splits the text of a CEL rule into tokens: literals with their escapes, names, and punctuation. The length is
//! bounded and the lexer never backtracks, so its time is linear.
//!
//! The grammar is that of the CEL specification, `doc/langdef.md`, section Syntax.

use super::error::CelError;

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Int(String),
    Uint(String),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// A name; quoted ones (`` `a.b` ``) are allowed only after a dot.
    Name {
        text: String,
        quoted: bool,
    },
    /// An operator or a bracket.
    Mark(&'static str),
    End,
}

/// The longest first, so that a prefix never matches instead.
const MARKS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", "+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}",
    ",", ".", "=",
];

/// The tokens with their offsets, `Token::End` last.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, CelError> {
    let mut lexer = Lexer { text, position: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let start = lexer.position;
        let token = lexer.token()?;
        let end = token == Token::End;
        tokens.push((token, start));
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn error(&self, message: impl Into<String>) -> CelError {
        CelError { message: message.into(), offset: self.position }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']).len();
            let comment = if rest[blank..].starts_with("//") {
                rest[blank..].find('\n').unwrap_or(rest.len() - blank)
            } else {
                0
            };
            if blank + comment == 0 {
                return;
            }
            self.position += blank + comment;
        }
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|character| !keep(character)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    fn token(&mut self) -> Result<Token, CelError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        let second = rest.chars().nth(1);
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|next| next.is_ascii_digit())) {
            return self.number();
        }
        let prefix = rest.len() - rest.trim_start_matches(['r', 'R', 'b', 'B']).len();
        if prefix <= 2
            && rest[prefix..].starts_with(['"', '\''])
            && let Some((raw, bytes)) = literal_prefix(&rest[..prefix])
        {
            self.position += prefix;
            return self.quoted(raw, bytes);
        }
        if first == '_' || first.is_ascii_alphabetic() {
            let text = self.take_while(|character| character == '_' || character.is_ascii_alphanumeric());
            return Ok(Token::Name { text: text.to_owned(), quoted: false });
        }
        if first == '`' {
            self.position += 1;
            let text = self.take_while(|character| {
                character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-' | '/' | ' ')
            });
            if text.is_empty() || !self.rest().starts_with('`') {
                return Err(self.error("a quoted name does not end"));
            }
            self.position += 1;
            return Ok(Token::Name { text: text.to_owned(), quoted: true });
        }
        let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) else {
            return Err(self.error(format!("unexpected character {first:?}")));
        };
        self.position += mark.len();
        Ok(Token::Mark(mark))
    }

    fn number(&mut self) -> Result<Token, CelError> {
        let start = self.position;
        let rest = self.rest();
        let mut float = false;
        if rest.starts_with("0x") || rest.starts_with("0X") {
            self.position += 2;
            if self.take_while(|character| character.is_ascii_hexdigit()).is_empty() {
                return Err(self.error("a hexadecimal number has no digits"));
            }
        } else {
            let digit = |character: char| character.is_ascii_digit();
            self.take_while(digit);
            if self.rest().starts_with('.') && self.rest()[1..].starts_with(digit) {
                float = true;
                self.position += 1;
                self.take_while(digit);
            }
            if self.rest().starts_with(['e', 'E']) {
                float = true;
                self.position += 1;
                if self.rest().starts_with(['+', '-']) {
                    self.position += 1;
                }
                if self.take_while(digit).is_empty() {
                    return Err(self.error("an exponent has no digits"));
                }
            }
        }
        let text = &self.text[start..self.position];
        let unsigned = !float && self.rest().starts_with(['u', 'U']);
        if unsigned {
            self.position += 1;
        }
        if self.rest().starts_with(|next: char| next == '_' || next.is_ascii_alphanumeric()) {
            return Err(self.error("a number is followed by a letter"));
        }
        if unsigned {
            Ok(Token::Uint(text.to_owned()))
        } else if float {
            text.parse().map(Token::Double).map_err(|_| self.error("not a number"))
        } else {
            Ok(Token::Int(text.to_owned()))
        }
    }

    fn quoted(&mut self, raw: bool, bytes: bool) -> Result<Token, CelError> {
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let closing = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.position += closing.len();
        let mut content = Vec::new();
        loop {
            if self.rest().starts_with(&closing) {
                self.position += closing.len();
                break;
            }
            let Some(character) = self.rest().chars().next() else {
                return Err(self.error("a literal does not end"));
            };
            if character == '\\' && !raw {
                self.escape(bytes, &mut content)?;
                continue;
            }
            if closing.len() == 1 && matches!(character, '\n' | '\r') {
                return Err(self.error("a line ends within a literal"));
            }
            self.position += character.len_utf8();
            if character == '\r' {
                // A line end is one character, as in the server's lexer.
                if self.rest().starts_with('\n') {
                    self.position += 1;
                }
                content.push(b'\n');
                continue;
            }
            content.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        if bytes {
            return Ok(Token::Bytes(content));
        }
        String::from_utf8(content).map(Token::String).map_err(|_| self.error("not a text"))
    }

    fn escape(&mut self, bytes: bool, content: &mut Vec<u8>) -> Result<(), CelError> {
        self.position += 1;
        let Some(letter) = self.rest().chars().next() else { return Err(self.error("a literal does not end")) };
        let simple = match letter {
            'a' => Some(0x07),
            'b' => Some(0x08),
            'f' => Some(0x0c),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(0x0b),
            '\\' | '\'' | '"' | '`' | '?' => u8::try_from(letter).ok(),
            _ => None,
        };
        if let Some(byte) = simple {
            self.position += 1;
            content.push(byte);
            return Ok(());
        }
        let (skip, digits, base) = match letter {
            'x' | 'X' => (1, 2, 16),
            'u' if !bytes => (1, 4, 16),
            'U' if !bytes => (1, 8, 16),
            '0'..='3' => (0, 3, 8),
            _ => return Err(self.error("unknown escape")),
        };
        let code = self
            .rest()
            .get(skip..skip + digits)
            .filter(|text| text.chars().all(|digit| digit.is_digit(base)))
            .and_then(|text| u32::from_str_radix(text, base).ok())
            .ok_or_else(|| self.error("an escape is cut short"))?;
        if bytes {
            content.push(u8::try_from(code).map_err(|_| self.error("an escape is out of range"))?);
        } else {
            let character = char::from_u32(code).ok_or_else(|| self.error("an escape is not a character"))?;
            content.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.position += skip + digits;
        Ok(())
    }
}

/// Whether a literal with this prefix is raw, and whether it is bytes.
fn literal_prefix(prefix: &str) -> Option<(bool, bool)> {
    match prefix.to_ascii_lowercase().as_str() {
        "" => Some((false, false)),
        "r" => Some((true, false)),
        "b" => Some((false, true)),
        "br" | "rb" => Some((true, true)),
        _ => None,
    }
}
