//! Escapes: code points by number, assertions, quoted text, and named classes.
//!
//! Follows Go's `regexp/syntax/parse.go`, `parseEscape`.

use regex_syntax::hir::ClassUnicode;

use super::{Look, Parsed, Parser, not_judged, refused};
use crate::schema::pattern::classes::{self, Named};

impl Parser<'_> {
    pub(super) fn escape(&mut self, start: usize) -> Parsed<()> {
        match self.rest().chars().next() {
            Some('A') => self.look_escape(Look::TextStart),
            Some('z') => self.look_escape(Look::TextEnd),
            Some('b') => self.look_escape(Look::WordBoundary),
            Some('B') => self.look_escape(Look::NoWordBoundary),
            Some('Q') => {
                self.position += 1;
                let rest = self.rest();
                let (quoted, length) = match rest.split_once(r"\E") {
                    Some((quoted, _)) => (quoted, quoted.len() + 2),
                    None => (rest, rest.len()),
                };
                for literal in quoted.chars() {
                    self.literal(literal)?;
                }
                self.position += length;
                Ok(())
            }
            Some('p' | 'P') => {
                let class = self.unicode_class(start)?;
                self.class(&class)
            }
            _ => {
                if let Some(class) = self.perl_class()? {
                    return self.class(&class);
                }
                let literal = self.escaped(start)?;
                self.literal(literal)
            }
        }
    }

    fn look_escape(&mut self, look: Look) -> Parsed<()> {
        self.position += 1;
        self.look(look)
    }

    /// After a backslash: `d`, `D`, `s`, `S`, `w`, `W`.
    pub(super) fn perl_class(&mut self) -> Parsed<Option<ClassUnicode>> {
        let Some(letter) = self.rest().chars().next() else { return Ok(None) };
        let Some(class) = classes::perl(letter.to_ascii_lowercase()) else { return Ok(None) };
        self.position += 1;
        self.group(class, letter.is_ascii_uppercase()).map(Some)
    }

    /// A named class, folded before it is negated.
    pub(super) fn group(&mut self, mut class: ClassUnicode, negated: bool) -> Parsed<ClassUnicode> {
        if self.flags.fold {
            class = self.fold(&class)?;
        }
        if negated {
            class.negate();
        }
        self.work(class.ranges().len())?;
        Ok(class)
    }

    /// After a backslash: `pL`, `p{Greek}`, `P{^Greek}`.
    pub(super) fn unicode_class(&mut self, start: usize) -> Parsed<ClassUnicode> {
        let mut negated = self.next() == Some('P');
        let invalid = || refused(start, "invalid character class range");
        let name = match self.next() {
            Some('{') => {
                let (name, _) = self.rest().split_once('}').ok_or_else(invalid)?;
                self.position += name.len() + 1;
                name
            }
            Some(letter) => &self.text[self.position - letter.len_utf8()..self.position],
            None => return Err(invalid()),
        };
        let positive = name.strip_prefix('^');
        negated ^= positive.is_some();
        let key = (positive.unwrap_or(name).to_owned(), self.flags.fold);
        let class = match self.named.get(&key) {
            Some(class) => class.clone(),
            None => {
                let class = match classes::named(&key.0) {
                    Named::Class(class) => class,
                    Named::Disputed => {
                        return Err(not_judged(start, format!("not every API server knows the class {name}")));
                    }
                    Named::Unknown => return Err(invalid()),
                };
                let class = if key.1 && classes::is_folded(&key.0) { self.fold(&class)? } else { class };
                self.named.insert(key, class.clone());
                class
            }
        };
        self.work(class.ranges().len())?;
        let mut class = class;
        if negated {
            class.negate();
        }
        Ok(class)
    }

    /// One character after a backslash.
    pub(super) fn escaped(&mut self, start: usize) -> Parsed<char> {
        let code = self.code_point(start)?;
        // Go matches half of a surrogate pair with U+FFFD or with nothing, depending on its position.
        char::from_u32(code).ok_or_else(|| not_judged(start, "half of a surrogate pair"))
    }

    fn code_point(&mut self, start: usize) -> Parsed<u32> {
        let invalid = || refused(start, "invalid escape sequence");
        let Some(letter) = self.next() else {
            return Err(refused(start, "trailing backslash at end of expression"));
        };
        let octal =
            |next: Option<&u8>| next.filter(|byte| (b'0'..=b'7').contains(byte)).map(|byte| u32::from(byte - b'0'));
        Ok(match letter {
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => return self.hexadecimal().ok_or_else(invalid),
            // A single digit other than 0 would be a backreference.
            '0'..='7' if letter == '0' || octal(self.rest().as_bytes().first()).is_some() => {
                let mut value = u32::from(letter) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = octal(self.rest().as_bytes().first()) else { break };
                    value = value * 8 + digit;
                    self.position += 1;
                }
                value
            }
            _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => u32::from(letter),
            _ => return Err(invalid()),
        })
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let mut value = 0;
        if self.eat("{") {
            let (digits, _) = self.rest().split_once('}')?;
            if digits.is_empty() {
                return None;
            }
            for digit in digits.chars() {
                value = value * 16 + digit.to_digit(16)?;
                if value > u32::from(char::MAX) {
                    return None;
                }
            }
            self.position += digits.len() + 1;
        } else {
            for _ in 0..2 {
                value = value * 16 + self.next()?.to_digit(16)?;
            }
        }
        Some(value)
    }
}
