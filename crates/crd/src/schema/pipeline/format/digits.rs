//! Character sets that several formats share.

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Base64 with the standard alphabet and padding; the empty string is rejected.
pub(super) fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    !bytes.is_empty()
        && bytes.len().is_multiple_of(4)
        && padding <= 2
        && bytes[..bytes.len() - padding].iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}
