//! Text of others inside Markdown: nothing in it is markup, a link or a mention.

use super::escape::terminal_safe;
use super::words::shorten;

/// Bytes of a comment: a host that counts characters takes as many, and one that counts bytes too.
pub(super) const LIMIT: usize = 65_536;

/// Text in the font of code. Markup is read inside of it too, so it is escaped alike.
pub(super) fn code(text: &str, limit: usize) -> String {
    format!("<code>{}</code>", escaped(text, limit))
}

/// One line of plain text: every character that could make markup is written as an entity, and a comment that nobody
/// sees keeps what hosts look for in the finished text (`@user`, `#1`, addresses) from being found.
pub(super) fn escaped(text: &str, limit: usize) -> String {
    let safe = terminal_safe(text);
    let mut escaped = String::with_capacity(safe.len() + 16);
    let mut before = ' ';
    for character in shorten(&safe, limit, "…").chars() {
        match character {
            '@' | '#' | '$' => escaped += &format!("&#{};<!-- -->", u32::from(character)),
            // `http://`, `mailto:`, `www.`, `GH-1`: nothing is linked where the parts are not one text.
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
