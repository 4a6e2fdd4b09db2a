//! String formats whose check in the API server is a regular language, as patterns.
//!
//! Left out because their checks are not regular: `uri`, `email`, `hostname`, `ipv4`, `ipv6`, `cidr`, `duration`,
//! `datetime`, `isbn*`, `creditcard`. Also left out: `mac`, since the Go release of the API server decides whether it
//! accepts twelve digits without separators, and `k8s-long-name`, which is a pattern with a maximum length.

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use super::Pattern;

/// Names without hyphens, which are ignored, and what kube-openapi's `strfmt` accepts for them.
const FORMATS: [(&str, &str); 12] = [
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    ("byte", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    // The days of each month; 29 February in years divisible by 4, of full centuries those divisible by 400.
    (
        "date",
        "^(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
         |02-(?:0[1-9]|1[0-9]|2[0-8]))\
         |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)$",
    ),
    ("hexcolor", "^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    ("k8sshortname", "^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$"),
    ("password", ""),
    (
        "rgbcolor",
        r"^rgb\(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])(?:\s*,\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])){2}\s*\)$",
    ),
    ("ssn", r"^\d{3}[- ]\d{2}[- ]\d{4}$"),
    ("uuid", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
];

/// The strings of a format, if its check is exactly a regular language. Whether the API server's version knows the
/// format is a separate question (`k8s-short-name` since 1.34).
#[must_use]
pub fn of_format(name: &str) -> Option<&'static Pattern> {
    static PATTERNS: OnceLock<Vec<(&str, Pattern)>> = OnceLock::new();
    let patterns = PATTERNS
        .get_or_init(|| FORMATS.iter().filter_map(|(name, text)| Some((*name, Pattern::parse(text).ok()?))).collect());
    let name = name.replace('-', "");
    patterns.iter().find(|(known, _)| *known == name).map(|(_, pattern)| pattern)
}
