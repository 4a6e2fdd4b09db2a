//! kapp's question: asked on standard output, and answered by whatever standard input holds.

use std::io::{self, BufRead, Write};

use crate::report::escape::terminal_safe;

/// Asks whether to go on; only `y` and `yes` agree. `shows_answers`: whether the input shows what is typed, as a
/// terminal does.
///
/// # Errors
/// The input has ended, or cannot be read.
pub fn confirm(input: &mut dyn BufRead, output: &mut dyn Write, shows_answers: bool) -> io::Result<bool> {
    write!(output, "\nContinue? [yN]: ")?;
    output.flush()?;
    let mut answer = String::new();
    if input.read_line(&mut answer)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "EOF"));
    }
    let answer = answer.trim();
    if !shows_answers {
        writeln!(output, "{}", terminal_safe(answer))?;
    }
    Ok(matches!(answer, "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_agrees_and_the_end_of_the_input_is_an_error() {
        let asked = |answer: &str| confirm(&mut answer.as_bytes(), &mut io::sink(), false);
        assert!(asked("y\n").expect("an answer"));
        assert!(!asked("n\n").expect("an answer") && !asked("\n").expect("an answer"));
        assert_eq!(asked("").expect_err("no answer").kind(), io::ErrorKind::UnexpectedEof);
    }
}
