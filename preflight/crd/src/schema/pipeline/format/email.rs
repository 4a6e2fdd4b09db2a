//! `email`: a single address as Go's `net/mail` reads it, with a display name, comments or a group around it.

use std::net::IpAddr;

/// One address.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.addresses(true) == Some(1) && parser.skip_comments().is_some() && parser.rest.is_empty()
}

#[derive(Clone, Copy)]
struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn consume(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// How many addresses stand here: one, or those of a group.
    fn addresses(&mut self, may_be_group: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        let start = *self;
        if self.address().is_some() {
            self.skip_space();
            if self.rest.starts_with('(') {
                self.comment_as_name()?;
            }
            return Some(1);
        }
        *self = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if may_be_group && self.consume(':') {
            return self.group();
        }
        if !self.consume('<') {
            return None;
        }
        self.address()?;
        self.consume('>').then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        let mut count = 0;
        if !self.consume(';') {
            loop {
                self.skip_space();
                count += self.addresses(false)?;
                self.skip_comments()?;
                if self.consume(';') {
                    break;
                }
                if !self.consume(',') {
                    return None;
                }
            }
        }
        self.skip_comments()?;
        Some(count)
    }

    fn address(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            if self.quoted_string()?.is_empty() {
                return None;
            }
        } else {
            self.dot_atom()?;
        }
        if !self.consume('@') {
            return None;
        }
        self.skip_space();
        if self.consume('[') {
            let (literal, rest) = self.rest.split_once(']')?;
            literal.parse::<IpAddr>().ok()?;
            self.rest = rest;
        } else {
            self.dot_atom()?;
        }
        Some(())
    }

    /// The words before an angle bracket.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0_usize;
        let mut encoded = false;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.rest.is_empty() {
                break;
            }
            let word = if self.rest.starts_with('"') {
                self.quoted_string().map(|_| Word::Plain)
            } else {
                self.atom().and_then(encoded_word)
            };
            match word {
                // Encoded words are gathered first and count as words only then, if they hold anything.
                Some(Word::Encoded) => encoded = true,
                Some(Word::EncodedNothing) => {}
                Some(Word::Plain) => (words, encoded) = (words + 1 + usize::from(encoded), false),
                None if words > 0 || encoded => break,
                None => return None,
            }
        }
        Some(())
    }

    /// The text between quotes, without them.
    fn quoted_string(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => {
                    text.push(characters.next().filter(|character| is_visible(*character) || is_space(*character))?)
                }
                character if is_visible(character) || is_space(character) => text.push(character),
                _ => return None,
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }

    fn atom(&mut self) -> Option<&str> {
        let end = self.rest.find(|character| !is_atom(character)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// An atom with dots, but only between other characters.
    fn dot_atom(&mut self) -> Option<()> {
        let atom = self.atom()?;
        (!atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..")).then_some(())
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.consume('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    fn comment_as_name(&mut self) -> Option<()> {
        self.consume('(');
        let comment = self.comment()?;
        comment.split([' ', '\t']).filter(|word| !word.is_empty()).try_for_each(|word| encoded_word(word).map(|_| ()))
    }

    /// The text up to the parenthesis that closes the one before.
    fn comment(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut depth = 1;
        let mut characters = self.rest.chars();
        while depth > 0 {
            let mut character = characters.next()?;
            match character {
                '\\' => character = characters.next().unwrap_or(character),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth > 0 {
                text.push(character);
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }
}

enum Word {
    Plain,
    Encoded,
    EncodedNothing,
}

/// Whether a word is encoded after RFC 2047; `None` where its charset is not known.
fn encoded_word(word: &str) -> Option<Word> {
    let parts: Vec<&str> = word.split('?').collect();
    let ["=", charset, encoding, text, "="] = parts.as_slice() else { return Some(Word::Plain) };
    let is_shaped = !charset.is_empty() && encoding.len() == 1 && "qQbB".contains(encoding);
    if !is_shaped || word.len() < 8 || !is_decodable(encoding, text) {
        return Some(Word::Plain);
    }
    let is_known = ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
    is_known.then_some(if text.is_empty() { Word::EncodedNothing } else { Word::Encoded })
}

fn is_decodable(encoding: &str, text: &str) -> bool {
    if encoding.eq_ignore_ascii_case("b") {
        return text.is_empty() || super::is_base64(text);
    }
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            b'=' => {
                let mut digit = || bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit());
                digit() && digit()
            }
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => true,
            _ => false,
        };
        if !is_fine {
            return false;
        }
    }
    true
}

fn is_atom(character: char) -> bool {
    !"()<>[]:;@\\,\"".contains(character) && is_visible(character)
}

fn is_visible(character: char) -> bool {
    ('!'..='~').contains(&character) || !character.is_ascii()
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t')
}
