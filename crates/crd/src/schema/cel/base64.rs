//! Base64 as the server decodes it: the standard alphabet with padding, ignoring line breaks.

/// Decodes a `format: byte` value.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let clean: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if !clean.len().is_multiple_of(4) {
        return None;
    }
    let padding = clean.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let digits = clean.get(..clean.len() - padding)?;
    let mut bytes = Vec::with_capacity(clean.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from((bits >> count) & 0xff));
        }
    }
    Some(bytes)
}
