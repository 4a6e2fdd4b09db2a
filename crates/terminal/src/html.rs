//! Pages: a report as one HTML file that needs no network and runs no script but its own. Templates escape whatever
//! they show; characters that a reader cannot see are written as escapes in the whole page.

pub(super) mod pieces;
pub mod sides;

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use super::escape::terminal_safe_lines;

const STYLE: &str = include_str!("../../../templates/style.css");
const SCRIPT: &str = include_str!("../../../templates/script.js");

/// What every page has around its content.
#[derive(Debug)]
pub struct Shell {
    /// Title of the page.
    pub title: String,
    /// Allows the page's own style and script by their digests, and nothing else.
    pub policy: String,
    /// Its style sheet.
    pub style: &'static str,
    /// Its script.
    pub script: &'static str,
    /// Version of the program.
    pub version: &'static str,
}

impl Shell {
    /// Shell of a page with this title.
    pub fn new(title: String) -> Self {
        let digest = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            digest(STYLE),
            digest(SCRIPT)
        );
        Self { title, policy, style: STYLE, script: SCRIPT, version: env!("CARGO_PKG_VERSION") }
    }
}

/// The page as text.
pub fn rendered(page: &impl Template) -> String {
    // Written to memory from values that are there: this cannot fail.
    terminal_safe_lines(&page.render().unwrap_or_default()).into_owned()
}

#[derive(Template)]
#[template(path = "text.html")]
struct TextPage<'t> {
    shell: Shell,
    text: &'t str,
}

/// A table for people on a page.
pub fn text_page(text: &str) -> String {
    rendered(&TextPage { shell: Shell::new("pushback".to_owned()), text })
}

/// A fingerprint as the name of a place in the page.
pub fn anchor(fingerprint: &str) -> String {
    fingerprint.chars().filter(char::is_ascii_alphanumeric).collect()
}
