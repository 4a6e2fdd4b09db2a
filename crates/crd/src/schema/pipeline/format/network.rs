//! `ipv4`, `cidr` and `mac`. Addresses may have leading zeros, which newer parsers reject.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/strfmt/default.go` and k8s.io/utils `net/parse.go`.

/// The leading number as the server's older parser reads it, with its length.
fn number(text: &str, radix: u32) -> Option<(u32, usize)> {
    const BIG: u32 = 0xFF_FFFF;
    let mut value: u32 = 0;
    let mut length = 0;
    while let Some(digit) = text.as_bytes().get(length).and_then(|byte| char::from(*byte).to_digit(radix)) {
        value = value.checked_mul(radix)?.checked_add(digit).filter(|value| *value < BIG)?;
        length += 1;
    }
    (length > 0).then_some((value, length))
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts
            .iter()
            .all(|part| number(part, 10).is_some_and(|(value, length)| value <= 0xFF && length == part.len()))
}

fn is_ipv6(text: &str) -> bool {
    let mut rest = text;
    let mut has_ellipsis = false;
    if let Some(after) = rest.strip_prefix("::") {
        if after.is_empty() {
            return true;
        }
        (has_ellipsis, rest) = (true, after);
    }
    let mut bytes = 0;
    while bytes < 16 {
        let Some((_, length)) = number(rest, 16).filter(|(value, _)| *value <= 0xFFFF) else { return false };
        if rest.as_bytes().get(length) == Some(&b'.') {
            let has_room = if has_ellipsis { bytes + 4 <= 16 } else { bytes == 12 };
            if !has_room || !is_ipv4(rest) {
                return false;
            }
            (bytes, rest) = (bytes + 4, "");
            break;
        }
        bytes += 2;
        rest = &rest[length..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':').filter(|after| !after.is_empty()) else { return false };
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if has_ellipsis {
                return false;
            }
            (has_ellipsis, rest) = (true, after);
            if rest.is_empty() {
                break;
            }
        }
    }
    rest.is_empty() && (bytes < 16) == has_ellipsis
}

/// The first dot or colon decides whether it is an IPv4 or an IPv6 address.
pub(super) fn is_ip_sloppy(text: &str) -> bool {
    match text.find(['.', ':']).map(|index| text.as_bytes()[index]) {
        Some(b'.') => is_ipv4(text),
        Some(_) => is_ipv6(text),
        None => false,
    }
}

pub(super) fn is_cidr_sloppy(text: &str) -> bool {
    let Some((address, mask)) = text.split_once('/') else { return false };
    let bits = if is_ipv4(address) {
        32
    } else if is_ipv6(address) {
        128
    } else {
        return false;
    };
    number(mask, 10).is_some_and(|(value, length)| length == mask.len() && value <= bits)
}

/// 6, 8 or 20 bytes: `00:00:5e:00:53:01`, with hyphens, or `0000.5e00.5301`.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, digits) = match text.as_bytes() {
        [_, _, separator @ (b':' | b'-'), ..] => (*separator, 2),
        [_, _, _, _, b'.', ..] => (b'.', 4),
        _ => return false,
    };
    let groups: Vec<&str> = text.split(char::from(separator)).collect();
    matches!(groups.len() * digits / 2, 6 | 8 | 20)
        && groups.iter().all(|group| group.len() == digits && super::is_hex(group))
}

/// A MAC address without separators: `00005e005301`.
pub(super) fn is_mac_without_separators(text: &str) -> bool {
    matches!(text.len(), 12 | 16 | 40) && super::is_hex(text)
}
