//! Decodes bytes to text: UTF-8 without characters that YAML forbids, or a message that guesses the actual encoding.

use std::borrow::Cow;

use super::fault::{Fault, Place};
use crate::limits::{Limits, size};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of a file, without byte order marks at the start of documents.
pub(super) fn decode<'input>(bytes: &'input [u8], limits: &Limits) -> Result<Cow<'input, str>, Fault> {
    let start = Place { line: 0, column: 0 };
    if bytes.len() > limits.bytes {
        return Err(too_large(limits.bytes));
    }
    if let Some(what) = other_encoding(bytes) {
        return Err(Fault::new(start, format!("the file is {what}; expected YAML or JSON in UTF-8"))
            .hint("Save the file as UTF-8, for instance with `iconv -t UTF-8`."));
    }
    if let Some(what) = binary_format(bytes) {
        return Err(Fault::new(start, format!("the file is {what}; expected YAML or JSON"))
            .hint("Unpack or render it first, and pass the manifests."));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = error.valid_up_to();
        let place = place_of(String::from_utf8_lossy(&bytes[..valid]).as_ref(), valid);
        let byte = bytes.get(valid).copied().unwrap_or_default();
        Fault::new(place, format!("invalid UTF-8: byte 0x{byte:02x} at offset {valid}"))
            .hint("Save the file as UTF-8. Binary data belongs base64-encoded into `data` or `binaryData`.")
    })?;
    Ok(without_byte_order_marks(text))
}

/// Bytes checked together.
const CHUNK: usize = 64;

/// Refuses characters that YAML forbids. JSON allows some of them.
pub(super) fn check_characters(text: &str) -> Result<(), Fault> {
    // No early exit, so that a chunk takes only a few CPU instructions.
    let is_plain =
        |byte: &u8| (byte.wrapping_sub(b' ') <= b'~' - b' ') | (*byte == b'\n') | (*byte == b'\t') | (*byte == b'\r');
    let is_all_plain = |chunk: &[u8; CHUNK]| chunk.iter().fold(true, |plain, byte| plain & is_plain(byte));
    let mut from = 0;
    // Almost everything is plain ASCII.
    loop {
        let (chunks, _) = text.as_bytes()[from..].as_chunks::<CHUNK>();
        from += CHUNK * chunks.iter().take_while(|chunk| is_all_plain(chunk)).count();
        let Some(plain) = text.as_bytes()[from..].iter().position(|byte| !is_plain(byte)) else { break };
        let offset = from + plain;
        let Some(found) = text[offset..].chars().next() else { break };
        if is_refused(found) {
            return Err(refused(place_of(text, offset), found));
        }
        from = offset + found.len_utf8();
    }
    Ok(())
}

/// The error for more bytes than allowed.
pub(super) fn too_large(limit: usize) -> Fault {
    Fault::new(Place { line: 0, column: 0 }, format!("the file is larger than {}", size(limit)))
        .hint("Split the file, or check that it is the right one.")
}

/// Characters that YAML forbids, and the one line break on which YAML versions differ.
fn is_refused(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn refused(place: Place, found: char) -> Fault {
    if found == '\u{85}' {
        return Fault::new(
            place,
            "a next-line character (U+0085): some readers take it for a line break, others do not",
        )
        .hint("Remove it, or write it as \\N in a double-quoted string.");
    }
    Fault::new(place, format!("control character U+{:04X} is not allowed in YAML", u32::from(found)))
        .hint(format!("Remove it, or write it as \\x{:02X} in a double-quoted string.", u32::from(found)))
        .hint("If this is a binary file, it is not a manifest.")
}

fn other_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        // ASCII in UTF-16 without a byte order mark: every other byte is zero.
        [first, 0, second, 0, ..] | [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some("UTF-16"),
        _ => None,
    }
}

fn binary_format(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("a gzip archive"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [0x7f, b'E', b'L', b'F', ..] => Some("a program"),
        _ if bytes.get(257..262) == Some(b"ustar") => Some("a tar archive"),
        _ => None,
    }
}

/// Removes the mark at the start of the file and of each document: `cat` leaves such marks in the middle.
fn without_byte_order_marks(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if !text.contains(BYTE_ORDER_MARK) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut after_separator = false;
    for line in text.split_inclusive('\n') {
        let content = line.strip_prefix(BYTE_ORDER_MARK).filter(|rest| after_separator || rest.starts_with("---"));
        let content = content.unwrap_or(line);
        after_separator = content.trim_end() == "---";
        kept.push_str(content);
    }
    Cow::Owned(kept)
}

/// Line and column of a byte offset.
pub(super) fn place_of(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |index| index + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[line_start..].chars().filter(|&c| c != BYTE_ORDER_MARK).count() + 1;
    Place { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}
