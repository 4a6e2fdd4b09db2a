//! `pushback-judge`: the judge without the rest of the program, for WebAssembly. Ends with 1 if a line could not be judged.

use std::io::{self, BufReader, BufWriter};
use std::process::ExitCode;

use pushback_judge::judge_lines;

fn main() -> ExitCode {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    match judge_lines(&mut input, &mut output) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        // As in `pushback`, where output that cannot be written ends with 20.
        Err(_) => ExitCode::from(20),
    }
}
