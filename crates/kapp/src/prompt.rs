//! kapp's question: asked on standard output, and answered by whatever standard input holds.

use std::io::{self, BufRead, Write};

use pushback_terminal::escape::terminal_safe;

/// Asks whether to go on, until the answer is one of kapp's. `shows_answers`: whether the input shows what is typed, as
/// a terminal does.
///
/// # Errors
/// The input has ended, or cannot be read.
pub fn confirm(input: &mut dyn BufRead, output: &mut dyn Write, shows_answers: bool) -> io::Result<bool> {
    writeln!(output)?;
    loop {
        write!(output, "Continue? [yN]: ")?;
        output.flush()?;
        let mut answer = String::new();
        if input.read_line(&mut answer)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "EOF"));
        }
        let answer = answer.trim();
        if !shows_answers {
            writeln!(output, "{}", terminal_safe(answer))?;
        }
        match answer {
            "y" | "Y" | "yes" => return Ok(true),
            "n" | "N" | "no" | "" => return Ok(false),
            _ => writeln!(output, "invalid input (not y, n, yes, or no)")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_agrees_anything_else_is_asked_again_and_the_end_of_the_input_is_an_error() {
        let asked = |answer: &str| confirm(&mut answer.as_bytes(), &mut io::sink(), false);
        assert!(asked("y\n").expect("an answer"));
        assert!(!asked("n\n").expect("an answer") && !asked("\n").expect("an answer"));
        assert!(asked("what\nNo\nyes\n").expect("an answer") && !asked("Yes\nno\n").expect("an answer"));
        assert_eq!(asked("Yes\n").expect_err("no answer").kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(asked("").expect_err("no answer").kind(), io::ErrorKind::UnexpectedEof);
    }
}
