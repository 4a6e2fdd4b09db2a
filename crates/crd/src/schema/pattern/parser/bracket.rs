//! Bracket classes, in which only `]`, `\`, `-`, `^` and `[:` have a special meaning.
//!
//! Follows Go's `regexp/syntax/parse.go`, `parseClass`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{Parsed, Parser, refused};
use crate::schema::pattern::classes;

impl<'p> Parser<'p> {
    pub(super) fn bracket(&mut self, start: usize) -> Parsed<()> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        // These are already folded if necessary.
        let mut groups = Vec::new();
        let mut first = true;
        while first || !self.rest().starts_with(']') {
            first = false;
            let here = self.position;
            if let Some((name, length)) = self.posix_name() {
                let (name, negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
                let Some(group) = classes::posix(name) else {
                    return Err(refused(here, "invalid character class range"));
                };
                self.position += length;
                let group = self.group(group, negated)?;
                groups.extend(group.iter());
                continue;
            }
            if self.eat("\\") {
                if self.rest().starts_with(['p', 'P']) {
                    let group = self.unicode_class(here)?;
                    groups.extend(group.iter());
                    continue;
                }
                if let Some(group) = self.perl_class()? {
                    groups.extend(group.iter());
                    continue;
                }
                self.position = here;
            }
            let low = self.bracket_character(start)?;
            let mut high = low;
            let rest = self.rest();
            if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
                self.position += 1;
                high = self.bracket_character(start)?;
                if high < low {
                    return Err(refused(here, "invalid character class range"));
                }
            }
            self.work(1)?;
            ranges.push(ClassUnicodeRange::new(low, high));
        }
        self.position += 1;
        let mut class = ClassUnicode::new(ranges);
        if self.flags.fold {
            class = self.fold(&class)?;
        }
        class.union(&ClassUnicode::new(groups));
        if negated {
            class.negate();
        }
        self.class(&class)
    }

    /// `alpha` and the full length of `[:alpha:]`. Everything up to a `:]` is a name, though it may be unknown.
    fn posix_name(&self) -> Option<(&'p str, usize)> {
        let rest = self.rest().strip_prefix("[:")?;
        self.last_posix_end.filter(|end| self.position + 2 <= *end)?;
        let end = rest.as_bytes().windows(2).take(16).position(|bytes| bytes == b":]");
        let name = end.and_then(|end| rest.get(..end)).unwrap_or_default();
        Some((name, name.len() + 4))
    }

    fn bracket_character(&mut self, start: usize) -> Parsed<char> {
        let here = self.position;
        match self.next() {
            None => Err(refused(start, "missing closing ]")),
            Some('\\') => self.escaped(here),
            Some(character) => Ok(character),
        }
    }
}
