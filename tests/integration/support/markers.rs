//! Values that nobody may ever see: made for one test, planted as secrets, and looked for, in every form, in all that
//! a run has said and written.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::Digest as _;

use super::Ran;

/// More leaks than this are not told one by one.
const MOST_SHOWN: usize = 20;

/// The markers of a test, and every text in which they were looked for.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    markers: Vec<Marker>,
    /// Any form of any marker; made when it is first needed.
    any: Option<regex::Regex>,
    looked_at: usize,
    found: Vec<String>,
}

#[derive(Clone, Debug)]
struct Marker {
    name: String,
    forms: Vec<(&'static str, String)>,
}

impl Markers {
    /// A new value: letters and digits, so that it stays whole in URLs and in quotes.
    pub(crate) fn value(&mut self, name: &str) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u64(NUMBER.fetch_add(1, Ordering::Relaxed));
        let value = format!("Mk{:016x}Zq", hasher.finish());
        self.planted(name, &value);
        value
    }

    /// A secret whose text is not of our choice.
    pub(crate) fn planted(&mut self, name: &str, value: &str) {
        self.any = None;
        self.markers.push(Marker { name: name.to_owned(), forms: forms(value) });
    }

    /// What a run said.
    pub(crate) fn look_at_run(&mut self, title: &str, ran: &Ran) {
        self.look_at(&format!("{title}: stdout"), ran.stdout.as_bytes());
        self.look_at(&format!("{title}: stderr"), ran.stderr.as_bytes());
    }

    /// Everything below a folder, names too, but for the files in which the secrets are kept.
    pub(crate) fn look_below(&mut self, folder: &Path, kept: impl Fn(&Path) -> bool) {
        let mut open: Vec<PathBuf> = vec![folder.to_owned()];
        while let Some(path) = open.pop() {
            self.look_at("a file's name", path.as_os_str().as_encoded_bytes());
            let metadata = std::fs::symlink_metadata(&path).expect("metadata");
            if metadata.is_dir() {
                open.extend(path.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()));
            } else if metadata.is_file() && !kept(&path) {
                self.look_at(&path.display().to_string(), &std::fs::read(&path).expect("a file"));
            }
        }
    }

    /// Any text.
    pub(crate) fn look_at(&mut self, place: &str, text: &[u8]) {
        self.looked_at += 1;
        let any = self.any.get_or_insert_with(|| {
            let forms = self.markers.iter().flat_map(|marker| &marker.forms);
            let forms: Vec<String> = forms.map(|(_, form)| regex::escape(form)).collect();
            regex::Regex::new(&forms.join("|")).expect("a pattern")
        });
        let text = String::from_utf8_lossy(text);
        for found in any.find_iter(&text) {
            let named = self.markers.iter().flat_map(|marker| marker.forms.iter().map(|form| (&marker.name, form)));
            let names: Vec<String> = named
                .filter(|(_, (_, bytes))| bytes == found.as_str())
                .map(|(name, (form, _))| format!("{name} ({form})"))
                .collect();
            let before = text[..found.start()].chars().rev().take(100).collect::<Vec<_>>();
            let before: String = before.into_iter().rev().collect();
            let leak = format!("{place}: {} after {before:?}", names.join(", "));
            if self.found.len() < MOST_SHOWN {
                self.found.push(leak);
            }
        }
    }

    /// Fails the test where one was found, or where it was hardly looked for.
    #[track_caller]
    pub(crate) fn assert_hidden(self, at_least: usize) {
        assert!(self.looked_at >= at_least, "only {} texts were looked at", self.looked_at);
        assert!(self.found.is_empty(), "leaks:\n{}", self.found.join("\n"));
    }
}

/// A value as somebody may have written it.
fn forms(value: &str) -> Vec<(&'static str, String)> {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let digest = sha2::Sha256::digest(value);
    let mut forms = vec![
        ("raw", value.to_owned()),
        ("reversed", value.chars().rev().collect()),
        ("hex", hex(value.as_bytes())),
        ("HEX", hex(value.as_bytes()).to_uppercase()),
        ("SHA-256", hex(&digest[..8])),
        ("SHA-256 in base64", BASE64.encode(digest)),
        ("MD5", hex(&md5::Md5::digest(value)[..8])),
        ("bytes in decimal", value.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ")),
    ];
    // Inside of a longer text, base64 looks different at each of three offsets.
    for (offset, name) in [(0, "base64"), (1, "base64 + 1"), (2, "base64 + 2")] {
        let padded = [&vec![b'x'; offset][..], value.as_bytes()].concat();
        let whole = BASE64.encode(&padded);
        let inner = whole.trim_end_matches('=');
        forms.push((name, inner[[0, 2, 3][offset]..inner.len() - 2].to_owned()));
    }
    forms
}
