//! The only question: whether to proceed.

use std::io::{self, BufRead, Write};

use crate::report::escape::terminal_safe;

/// Asks, and accepts only `y` and `yes`; the end of the input declines.
///
/// # Errors
/// The question cannot be written or the answer cannot be read.
pub fn confirm(question: &str, input: &mut dyn BufRead, progress: &mut dyn Write) -> io::Result<bool> {
    write!(progress, "{} [y/N] ", terminal_safe(question))?;
    progress.flush()?;
    let mut answer = String::new();
    let declined_by_end = input.read_line(&mut answer)? == 0;
    if declined_by_end {
        writeln!(progress)?;
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Ends the line of a question that will not be answered.
pub fn leave(progress: &mut dyn Write) {
    // If the terminal is gone, nobody can be told.
    let _ = writeln!(progress);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        let asked = |answer: &str| confirm("Go on?", &mut answer.as_bytes(), &mut io::sink()).expect("asked");
        assert!(asked("y\n") && asked("YES\r\n"));
        assert!(!asked("\n") && !asked("n\n") && !asked("yo\n") && !asked(""));
    }

    #[test]
    fn a_question_with_a_hostile_name_is_shown_not_obeyed() {
        let mut written = Vec::new();
        confirm("Delete \u{1b}[2Jshop?", &mut "y\n".as_bytes(), &mut written).expect("asked");
        assert_eq!(String::from_utf8_lossy(&written), "Delete \\u{1b}[2Jshop? [y/N] ");
    }
}
