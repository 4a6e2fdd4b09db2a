//! Bounds of the texts in answers, audit annotations and log lines. A CRD decides what is in them, so everything is escaped
//! and cut.

use pushback_terminal::escape::terminal_safe;

/// Most characters of a sentence in a refusal, and of an audit annotation.
const SENTENCE: usize = 600;
/// Most characters of a warning: the API server may cut a longer one (`k8s.io/api/admission/v1`).
const WARNING: usize = 256;

/// A sentence of a message, of an audit annotation or of the log.
pub(super) fn sentence(text: &str) -> String {
    cut(text, SENTENCE)
}

/// A warning.
pub(super) fn warning(text: &str) -> String {
    cut(text, WARNING)
}

/// One line of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    // Escapes make a text longer, never shorter: what is beyond the limit is not looked at.
    let start: String = text.chars().take(most + 1).collect();
    let safe = terminal_safe(&start);
    if safe.chars().count() <= most {
        return safe.into_owned();
    }
    let mut cut: String = safe.chars().take(most - 3).collect();
    cut.push_str("...");
    cut
}
