//! Untrusted text in Markdown: it creates no markup, link or mention.

use super::escape::terminal_safe;
use super::words::shorten;

/// Most bytes of a comment: safe for hosts that count characters and for those that count bytes.
pub const LIMIT: usize = 65_536;

/// Text in code font. Markup is interpreted there too, so it is escaped alike.
pub fn code(text: &str, limit: usize) -> String {
    format!("<code>{}</code>", escaped(text, limit))
}

/// One line of plain text: characters that could create markup become entities, and invisible comments keep hosts from
/// recognising `@user`, `#1` and addresses.
pub fn escaped(text: &str, limit: usize) -> String {
    let safe = terminal_safe(text);
    let mut escaped = String::with_capacity(safe.len() + 16);
    let mut before = ' ';
    for character in shorten(&safe, limit, "…").chars() {
        match character {
            '@' | '#' | '$' => escaped += &format!("&#{};<!-- -->", u32::from(character)),
            // `http://`, `mailto:`, `www.`, `GH-1`: no link if the parts are separated.
            ':' => escaped += "&#58;<!-- -->",
            '.' if before.eq_ignore_ascii_case(&'w') => escaped += "&#46;<!-- -->",
            '-' if before.eq_ignore_ascii_case(&'h') => escaped += "&#45;<!-- -->",
            ' ' | ',' | '.' | '-' | '/' | '"' | '\'' | '(' | ')' | ';' | '%' | '?' | '=' => escaped.push(character),
            _ if character.is_ascii_punctuation() => escaped += &format!("&#{};", u32::from(character)),
            _ => escaped.push(character),
        }
        before = character;
    }
    escaped
}
