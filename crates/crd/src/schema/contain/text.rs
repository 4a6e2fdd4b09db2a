//! Strings: patterns, lengths in code points, formats. Automata decide patterns and exactly regular formats; for any
//! other format some valid and invalid examples are known.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::Value;

use super::outcome::Outcome;
use super::range::Range;
use crate::schema::model::Window;
use crate::schema::pattern::{self, Budget, Found, Language, Pattern};
use crate::schema::pipeline::{self, Server};

/// Maximum number of automaton steps per question.
const STEPS: u64 = 2_000_000;
/// Number of strings of a language that are tried against formats.
const SAMPLES: usize = 48;

/// Strings to try for formats that are not regular; for many formats one is valid and one is not.
const PROBES: [&str; 46] = [
    "a",
    "",
    " ",
    "x y",
    "!",
    "%",
    "-1",
    "0",
    "1",
    "a.b",
    "https://example.com",
    "/a",
    "a@example.com",
    "example.com",
    "127.0.0.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "0000:0000:0000:0000:0000:ffff:127.100.100.100",
    "10.0.0.0/8",
    "2001:db8::/32",
    "1h",
    "10s",
    "1 second",
    "2024-01-31",
    "2024-01-31T10:00:00Z",
    "2024-01-31T10:00:00Zt\n",
    "2024-13-31",
    "00:00:5e:00:53:01",
    "00005e005301",
    "02:00:5e:10:00:00:00:01",
    "#ff0000",
    "rgb(255,0,0)",
    "aGVsbG8=",
    "978-3-16-148410-0",
    "3161484100",
    "9783161484100",
    "4111111111111111",
    "123-45-6789",
    "123e4567-e89b-12d3-a456-426614174000",
    "5f6d",
    "507f1f77bcf86cd799439011",
    "-a",
    "A",
    "a_b",
    "=",
];

/// A pattern that every string of a non-regular format matches, used to prove that no string exists. It must match all
/// of them, or that proof is wrong.
fn implied(format: &str) -> Option<&'static Pattern> {
    static IMPLIED: LazyLock<Vec<(&'static str, Pattern)>> = LazyLock::new(|| {
        let known = [
            ("cidr", "^[0-9a-fA-F:.]+/[0-9]+$"),
            // Numbers may have any number of leading zeros.
            ("ipv4", "^[0-9a-fA-F:]*[0-9][.][0-9]+[.][0-9]+[.][0-9]+$"),
            ("ipv6", "^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$"),
            ("email", "(?s)^.+@.+$"),
            // Anything may follow a second `t`, including line breaks.
            ("datetime", "(?s)^[0-9]{4}-[0-9]{2}-[0-9]{2}[tT][0-9]{2}:[0-9]{2}:[0-9]{2}.+$"),
            ("uri", "(?s)^.+$"),
            ("duration", "(?s)^.*[0-9].*$"),
            ("mac", "^[0-9a-fA-F:.-]+$"),
            ("k8slongname", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
        ];
        known.into_iter().filter_map(|(format, pattern)| Some((format, Pattern::parse(pattern).ok()?))).collect()
    });
    IMPLIED.iter().find(|(known, _)| *known == normal(format)).map(|(_, pattern)| pattern)
}

/// Returns the fewest and the most characters of a text of a non-regular format.
pub(super) fn implied_length(format: &str) -> Window {
    let (least, most) = match normal(format).as_str() {
        "hostname" => (1, Some(255)),
        "k8slongname" => (1, Some(253)),
        "ipv6" => (2, Some(45)),
        "mac" => (12, Some(59)),
        "isbn" | "isbn10" => (10, None),
        "isbn13" | "creditcard" => (13, None),
        _ => return Window::default(),
    };
    Window { least: Some(least), most }
}

/// Maximum size of the cache, in bytes.
const REMEMBERED: usize = 4 << 20;

/// Cached answers about strings: the same patterns, lengths and formats recur in a schema, and every try of an object
/// asks for them again.
#[derive(Debug, Default)]
pub(super) struct Asked {
    answers: HashMap<Question, Outcome>,
    bytes: usize,
}

/// Canonical constraints on a string: sorted and without duplicates.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question {
    matching: BTreeSet<String>,
    avoiding: BTreeSet<String>,
    length: Range,
    formats: BTreeSet<String>,
    not_formats: BTreeSet<String>,
    except: BTreeSet<String>,
}

impl Question {
    fn of(texts: &Texts<'_>, except: &[Rc<Vec<Value>>]) -> Self {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let excepted = except.iter().flat_map(|values| values.iter()).filter_map(Value::as_str);
        Self {
            matching: set(&texts.matching),
            avoiding: set(&texts.avoiding),
            length: texts.length,
            formats: set(&texts.formats),
            not_formats: set(&texts.not_formats),
            except: excepted.map(str::to_owned).collect(),
        }
    }

    fn bytes(&self) -> usize {
        let sets = [&self.matching, &self.avoiding, &self.formats, &self.not_formats, &self.except];
        sets.into_iter().flatten().map(|text| text.len() + size_of::<String>()).sum::<usize>() + size_of::<Self>()
    }
}

impl Asked {
    /// Forgets questions that were not decided.
    pub(super) fn retain_decided(&mut self) {
        self.answers.retain(|question, outcome| {
            let is_decided = !matches!(outcome, Outcome::Unknown(_));
            self.bytes -= if is_decided { 0 } else { question.bytes() };
            is_decided
        });
    }

    /// An example from [`Texts::example`] or the cache.
    pub(super) fn example(&mut self, texts: &Texts<'_>, except: &[Rc<Vec<Value>>], steps: &mut u64) -> Outcome {
        let question = Question::of(texts, except);
        if let Some(known) = self.answers.get(&question) {
            return known.clone();
        }
        let outcome = texts.example(except, steps);
        let text = if let Outcome::Found(Value::String(text)) = &outcome { text.len() } else { 0 };
        let bytes = question.bytes() + text;
        if self.bytes + bytes <= REMEMBERED {
            self.bytes += bytes;
            self.answers.insert(question, outcome.clone());
        }
        outcome
    }
}

/// The constraints on a string.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts<'s> {
    pub(super) matching: Vec<&'s str>,
    pub(super) avoiding: Vec<&'s str>,
    pub(super) length: Range,
    pub(super) formats: Vec<&'s str>,
    pub(super) not_formats: Vec<&'s str>,
}

impl Texts<'_> {
    /// Whether a string meets the constraints; `None` if a pattern or format cannot be evaluated.
    pub(super) fn admits(&self, text: &str) -> Option<bool> {
        if !self.length.holds(text.chars().count()) {
            return Some(false);
        }
        let valid = |format: &&str| pipeline::format_is_valid(format, text, Server::default());
        let matches = |pattern: &&str| Pattern::shared(pattern).ok()?.try_match(text);
        let wanted = self.formats.iter().map(valid).chain(self.matching.iter().map(matches));
        let unwanted = self.not_formats.iter().map(valid).chain(self.avoiding.iter().map(matches));
        let mut is_known = true;
        for answer in wanted.chain(unwanted.map(|answer| answer.map(|is| !is))) {
            match answer {
                Some(false) => return Some(false),
                Some(true) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(true)
    }

    /// A string that meets the constraints and is not in `except`, non-empty if possible. `steps` is the rest of the
    /// automaton budget.
    fn example(&self, except: &[Rc<Vec<Value>>], steps: &mut u64) -> Outcome {
        if self.length.least == 0 && self.length.most.is_none_or(|most| most > 0) {
            let within = |length| Self { length, ..self.clone() };
            match within(Range { least: 1, ..self.length }).look(except, steps) {
                found @ Outcome::Found(_) => return found,
                Outcome::Empty => return within(Range { most: Some(0), ..self.length }).look(except, steps),
                Outcome::Unknown(_) => {}
            }
        }
        self.look(except, steps)
    }

    fn look(&self, except: &[Rc<Vec<Value>>], steps: &mut u64) -> Outcome {
        let mut budget = Budget::new(STEPS.min(*steps));
        let before = budget.left();
        let outcome = self.look_within(except, &mut budget);
        *steps -= before - budget.left();
        outcome
    }

    fn look_within(&self, except: &[Rc<Vec<Value>>], budget: &mut Budget) -> Outcome {
        let server = Server::default();
        let is_known = |format: &&&str| pipeline::is_known_format(format, server);
        // An unknown format accepts everything.
        let formats: Vec<&str> = self.formats.iter().filter(is_known).copied().collect();
        let not_formats: Vec<&str> = self.not_formats.iter().filter(is_known).copied().collect();
        let contradicts = |format: &&str| not_formats.iter().any(|other| normal(other) == normal(format));
        if not_formats.len() < self.not_formats.len() || formats.iter().any(contradicts) {
            return Outcome::Empty;
        }
        let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::shared(text).ok()).collect::<Option<Vec<_>>>();
        let (Some(matching), Some(avoiding)) = (patterns(&self.matching), patterns(&self.avoiding)) else {
            return Outcome::Unknown("pattern".to_owned());
        };
        let regular =
            |formats: &[&str]| formats.iter().filter_map(|format| pattern::of_format(format)).collect::<Vec<_>>();
        let excepted: Vec<&str> = except.iter().flat_map(|values| values.iter()).filter_map(Value::as_str).collect();
        let mut length = self.length;
        formats.iter().for_each(|format| length.narrow(implied_length(format)));
        if length.is_empty() {
            return Outcome::Empty;
        }
        let language = Language {
            matching: matching
                .iter()
                .map(Rc::as_ref)
                .chain(regular(&formats))
                .chain(formats.iter().filter_map(|format| implied(format)))
                .collect(),
            avoiding: avoiding.iter().map(Rc::as_ref).chain(regular(&not_formats)).collect(),
            least: u64::try_from(length.least).unwrap_or(0),
            most: match length.most {
                Some(most) => match u64::try_from(most) {
                    Ok(most) => Some(most),
                    Err(_) => return Outcome::Empty,
                },
                None => None,
            },
            except: excepted.clone(),
        };
        let opaque = formats.iter().chain(&not_formats).find(|format| pattern::of_format(format).is_none());
        match language.example(budget) {
            Found::Empty => Outcome::Empty,
            Found::String(text) if opaque.is_none() => Outcome::Found(text.into()),
            Found::Undecided(_) if opaque.is_none() => Outcome::Unknown("pattern".to_owned()),
            found => {
                let first = match found {
                    Found::String(text) => vec![text],
                    _ => Vec::new(),
                };
                let mut candidates = PROBES
                    .iter()
                    .map(|probe| (*probe).to_owned())
                    .chain(first)
                    .chain(language.examples(SAMPLES, budget));
                let good =
                    candidates.find(|text| !excepted.contains(&text.as_str()) && self.admits(text) == Some(true));
                good.map_or_else(|| Outcome::Unknown("format".to_owned()), |text| Outcome::Found(text.into()))
            }
        }
    }
}

/// The server treats `date-time` and `datetime` as the same.
fn normal(format: &str) -> String {
    format.replace('-', "")
}

#[cfg(test)]
mod tests;
