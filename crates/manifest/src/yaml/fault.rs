//! An error with a position, before the file name is added.
//! Every step from text to values returns one if it fails.

use pushback_objects::Position;

use crate::input::InputError;

/// Line and column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    pub(super) fn in_file(self, file: &str) -> Position {
        Position { file: file.to_owned(), line: self.line, column: self.column }
    }
}

/// An error without a file name.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
}

impl Fault {
    pub(super) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hints: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn in_file(self, file: &str) -> InputError {
        InputError { message: self.message, position: self.place.in_file(file), hints: self.hints }
    }
}
