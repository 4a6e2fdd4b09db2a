//! Paths of fields in a schema, as plans write them: `spec.items[*].name`, `spec["a.b"]`. `[*]` stands for every item of
//! a list and every value of a map.

use std::fmt;

use pushback_objects::source::{PathSegment, display_path};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldStep {
    /// A field of an object.
    Field(String),
    /// Every item of a list, or every value of a map.
    Each,
}

/// The path of a field; the empty one is the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<FieldStep>);

impl FieldPath {
    /// Reads a path; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(FieldStep::Each);
                rest = after;
            } else if rest.starts_with("[\"") {
                let quoted = rest.strip_prefix('[')?;
                let mut texts = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
                steps.push(FieldStep::Field(texts.next()?.ok()?));
                rest = quoted.get(texts.byte_offset()..)?.strip_prefix(']')?;
            } else {
                let plain = if steps.is_empty() { rest } else { rest.strip_prefix('.')? };
                let end = plain.find(['.', '[', ']']).unwrap_or(plain.len());
                let (name, after) = plain.split_at(end);
                if name.is_empty() {
                    return None;
                }
                steps.push(FieldStep::Field(name.to_owned()));
                rest = after;
            }
        }
        Some(Self(steps))
    }

    /// The steps, outermost first.
    #[must_use]
    pub fn steps(&self) -> &[FieldStep] {
        &self.0
    }

    /// Whether it is the object itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of a field of what is here.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.then(FieldStep::Field(name.to_owned()))
    }

    /// The path of the items or values of what is here.
    #[must_use]
    pub fn each(&self) -> Self {
        self.then(FieldStep::Each)
    }

    fn then(&self, step: FieldStep) -> Self {
        Self([self.0.as_slice(), &[step]].concat())
    }

    /// The path of what this is a part of, and the name of the field; `None` for what is no field.
    #[must_use]
    pub fn split_field(&self) -> Option<(Self, &str)> {
        match self.0.split_last()? {
            (FieldStep::Field(name), parent) => Some((Self(parent.to_vec()), name)),
            (FieldStep::Each, _) => None,
        }
    }

    /// The steps below another path; `None` if this does not begin with it.
    #[must_use]
    pub fn below(&self, start: &Self) -> Option<Self> {
        Some(Self(self.0.strip_prefix(start.0.as_slice())?.to_vec()))
    }

    /// The path of the first so many steps.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self(self.0.iter().take(count).cloned().collect())
    }

    /// This path, continued by another one.
    #[must_use]
    pub fn join(&self, rest: &Self) -> Self {
        Self([self.0.as_slice(), &rest.0].concat())
    }

    /// The names of the fields; `None` if there is a step that is no field.
    #[must_use]
    pub fn names(&self) -> Option<Vec<String>> {
        let name = |step: &FieldStep| match step {
            FieldStep::Field(name) => Some(name.clone()),
            FieldStep::Each => None,
        };
        self.0.iter().map(name).collect()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return formatter.write_str("the object");
        }
        let mut plain: Vec<PathSegment> = Vec::new();
        let mut text = String::new();
        for step in &self.0 {
            match step {
                FieldStep::Field(name) => plain.push(name.as_str().into()),
                FieldStep::Each => {
                    text = append(text, &display_path(&plain)) + "[*]";
                    plain.clear();
                }
            }
        }
        formatter.write_str(&append(text, &display_path(&plain)))
    }
}

fn append(start: String, rest: &str) -> String {
    let separator = if start.is_empty() || rest.is_empty() || rest.starts_with('[') { "" } else { "." };
    start + separator + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_it_is_written() {
        for text in ["spec", "spec.a.b", "spec.a[*].b", "spec[\"a.b\"].c", "a[*][*]", "[*].a", "spec[\"\"]"] {
            assert_eq!(FieldPath::parse(text).map(|path| path.to_string()).as_deref(), Some(text));
        }
        for text in ["a..b", "a.", ".a", "a[0]", "a[*", "a]", "a[\"b]", "a[\"b\"c", "[*]a"] {
            assert_eq!(FieldPath::parse(text), None, "{text}");
        }
    }
}
