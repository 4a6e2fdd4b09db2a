//! The only question: whether to proceed.

use std::io::{self, BufRead, Write};

use crate::escape::terminal_safe;
use crate::words::hang;

/// Columns for the answer.
const ANSWER: u16 = 5;

/// Asks, and accepts only `y` and `yes`. A person who answers something else than yes or no is asked once more, and
/// declines by ending the input; where nobody is at it, there is no answer.
///
/// # Errors
/// The question cannot be written or the answer cannot be read; `UnexpectedEof` if there is none.
pub fn confirm(
    question: &str,
    columns: u16,
    input: &mut dyn BufRead,
    is_terminal: bool,
    progress: &mut dyn Write,
) -> io::Result<bool> {
    let mut is_first = true;
    loop {
        let question = hang(&format!("{} [y/N]", terminal_safe(question)), columns.saturating_sub(ANSWER));
        write!(progress, "{} ", question.trim_end())?;
        progress.flush()?;
        let mut answer = String::new();
        let has_ended = input.read_line(&mut answer)? == 0;
        if has_ended || !is_terminal {
            writeln!(progress)?;
        }
        if has_ended && !is_terminal {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" | "" => return Ok(false),
            _ if is_first && is_terminal => writeln!(progress, "Answer y or n.")?,
            _ => return Ok(false),
        }
        is_first = false;
    }
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
        let asked = |answer: &str| confirm("Go on?", 80, &mut answer.as_bytes(), true, &mut io::sink()).expect("asked");
        assert!(asked("y\n") && asked("YES\r\n"));
        assert!(!asked("\n") && !asked("n\n") && !asked("yo\n") && !asked(""));
        assert!(asked("yo\ny\n") && !asked("yo\nyo\ny\n"), "asked once more, and not again");
        let piped = |answer: &str| confirm("Go on?", 80, &mut answer.as_bytes(), false, &mut io::sink());
        assert!(piped("y\n").expect("answered") && piped("yes").expect("answered"));
        assert!(!piped("yo\ny\n").expect("answered"), "a script is not asked again");
        assert_eq!(piped("").expect_err("nobody answers").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_question_with_a_hostile_name_is_shown_not_obeyed() {
        let mut written = Vec::new();
        confirm("Delete \u{1b}[2Jshop?", 80, &mut "y\n".as_bytes(), true, &mut written).expect("asked");
        assert_eq!(String::from_utf8_lossy(&written), "Delete \\u{1b}[2Jshop? [y/N] ");
    }
}
