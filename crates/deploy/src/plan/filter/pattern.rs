//! Text with `*` or `%` for anything at its start or end, and with `!` in front for everything else.

/// What a text must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    any_before: bool,
    any_after: bool,
    is_negated: bool,
}

impl Pattern {
    /// Reads a pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (is_negated, text) = text.strip_prefix('!').map_or((false, text), |text| (true, text));
        let (any_before, text) = text.strip_prefix(['*', '%']).map_or((false, text), |text| (true, text));
        let (any_after, text) = text.strip_suffix(['*', '%']).map_or((false, text), |text| (true, text));
        Self { text: text.to_owned(), any_before, any_after, is_negated }
    }

    /// Reads the patterns between slashes.
    #[must_use]
    pub fn parts<const N: usize>(text: &str) -> Option<[Self; N]> {
        let parts: Vec<Self> = text.split('/').map(Self::new).collect();
        parts.try_into().ok()
    }

    /// Whether a text is like this.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let pattern = self.text.as_str();
        let is_like = match (self.any_before, self.any_after) {
            // A star alone is read as one at the start.
            (true, true) => text.contains(pattern),
            (true, false) => text.ends_with(pattern),
            (false, true) => text.starts_with(pattern),
            (false, false) => text == pattern,
        };
        is_like != self.is_negated
    }
}
