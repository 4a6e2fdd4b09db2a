//! Input lines around a position, for messages. Keeps only a digest of each local file: the file is read again for
//! display, and shown only if unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use pushback_objects::Position;

/// Lines shown before the line in question.
const LINES_BEFORE: usize = 2;
/// Longest line in characters; longer ones are generated.
const MAX_LINE_CHARACTERS: usize = 400;

/// A few lines of a file, and the part of the last one that a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line.
    pub first_line: u32,
    /// The lines; the message is about the last one.
    pub lines: Vec<String>,
    /// Start of the marked part in the last line, in characters from 0.
    pub start: usize,
    /// Length of the marked part in characters.
    pub length: usize,
}

/// The local files of the input.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: BTreeMap<String, (PathBuf, u64)>,
    private: BTreeSet<String>,
}

impl Sources {
    /// Records a file as it was read.
    pub(super) fn note(&mut self, name: &str, path: &Path, bytes: &[u8]) {
        self.files.insert(name.to_owned(), (path.to_owned(), digest(bytes)));
    }

    /// Whether these are the files that were read, with the same content; each by the path that no link is part of.
    #[must_use]
    pub fn are_exactly(&self, files: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
        let read = self.files.values().map(|(path, digest)| (fs::canonicalize(path).unwrap_or_default(), *digest));
        let wanted = files.iter().map(|(path, bytes)| (path.clone(), digest(bytes)));
        read.collect::<BTreeMap<_, _>>() == wanted.collect()
    }

    /// Excludes a file from excerpts: it contains masked values, and a line may show more than the marked field.
    pub fn hide(&mut self, name: &str) {
        if !self.private.contains(name) {
            self.private.insert(name.to_owned());
        }
    }

    /// The excerpt for each position that has one. Each file is read once, one at a time.
    #[must_use]
    pub fn excerpts(&self, places: &[Option<&Position>]) -> Vec<Option<Excerpt>> {
        let mut excerpts: Vec<Option<Excerpt>> = places.iter().map(|_| None).collect();
        let mut by_file: BTreeMap<&str, Vec<(usize, &Position)>> = BTreeMap::new();
        for (index, place) in places.iter().enumerate() {
            if let Some(place) = place.filter(|place| place.line > 0 && place.column > 0) {
                by_file.entry(&place.file).or_default().push((index, place));
            }
        }
        for (file, places) in by_file {
            let Some(text) = self.unchanged(file) else { continue };
            let lines: Vec<&str> = text.lines().collect();
            for (index, place) in places {
                excerpts[index] = excerpt(&lines, place);
            }
        }
        excerpts
    }

    /// A file's text, if it may be shown and has not changed since it was read.
    fn unchanged(&self, name: &str) -> Option<String> {
        let (path, expected) = self.files.get(name).filter(|_| !self.private.contains(name))?;
        let bytes =
            fs::metadata(path).is_ok_and(|metadata| metadata.is_file()).then(|| fs::read(path).ok()).flatten()?;
        let text = String::from_utf8(bytes).ok().filter(|text| digest(text.as_bytes()) == *expected)?;
        // Such files count lines differently.
        let odd = || ['\u{feff}', '\u{85}', '\u{2028}', '\u{2029}'].into_iter().any(|odd| text.contains(odd));
        let is_odd = !text.is_ascii() && odd() || text.contains('\r') && text.replace("\r\n", "\n").contains('\r');
        (!is_odd).then_some(text)
    }
}

/// Compared only within a run.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn excerpt(lines: &[&str], place: &Position) -> Option<Excerpt> {
    let number = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let start = usize::try_from(place.column).ok()?.checked_sub(1)?;
    let line = lines.get(number).filter(|line| !is_long(line))?;
    let meant: String = line.chars().skip(start).collect();
    let length = meant_length(&meant);
    if length == 0 {
        return None;
    }
    // Never shows lines of the previous document.
    let before = lines[..number].iter().rev().take(LINES_BEFORE);
    let before = before.take_while(|line| !line.starts_with("---") && !is_long(line)).count();
    Some(Excerpt {
        first_line: u32::try_from(number - before + 1).ok()?,
        lines: lines[number - before..=number].iter().map(|line| (*line).to_owned()).collect(),
        start,
        length,
    })
}

/// Looks no further than necessary: a whole definition on one line is queried once per finding.
fn is_long(line: &str) -> bool {
    line.chars().nth(MAX_LINE_CHARACTERS).is_some()
}

/// Length in characters of a key and the value on its line, without a trailing comment.
fn meant_length(rest: &str) -> usize {
    let quoted = rest.contains(['"', '\'']);
    let rest = if quoted { rest } else { rest.split(" #").next().unwrap_or(rest) };
    let rest = rest.trim_end().trim_end_matches(',');
    rest.strip_suffix(':').unwrap_or(rest).chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\n---\nspec:\n  scope: Cluster   # for all\n  names:\n    kind: \"X # Y\"\n";

    fn sources(text: &str) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("in.yaml");
        fs::write(&path, text).expect("written");
        let mut sources = Sources::default();
        sources.note("in.yaml", &path, text.as_bytes());
        (folder, sources)
    }

    fn at(line: u32, column: u32) -> Position {
        Position { file: "in.yaml".to_owned(), line, column }
    }

    /// The first line's number, the number of lines, and the marked text.
    fn shown(sources: &Sources, line: u32, column: u32) -> Option<(u32, usize, String)> {
        let excerpt = sources.excerpts(&[Some(&at(line, column))]).remove(0)?;
        let meant = excerpt.lines.last()?.chars().skip(excerpt.start).take(excerpt.length).collect();
        Some((excerpt.first_line, excerpt.lines.len(), meant))
    }

    #[test]
    fn a_place_is_shown_with_the_lines_before_it_in_its_document() {
        let (_folder, sources) = sources(TEXT);
        assert_eq!(shown(&sources, 3, 1), Some((3, 1, "spec".to_owned())));
        assert_eq!(shown(&sources, 4, 3), Some((3, 2, "scope: Cluster".to_owned())));
        assert_eq!(shown(&sources, 6, 5), Some((4, 3, "kind: \"X # Y\"".to_owned())));
        for (line, column) in [(0, 0), (7, 1), (3, 99), (3, 0)] {
            assert_eq!(shown(&sources, line, column), None, "{line}:{column}");
        }
    }

    #[test]
    fn nothing_is_shown_of_a_file_that_is_private_gone_or_changed() {
        let (folder, mut sources) = sources(TEXT);
        let path = folder.path().join("in.yaml");
        assert!(shown(&sources, 3, 1).is_some());
        fs::write(&path, TEXT.replace("Cluster", "Namespaced")).expect("written");
        assert_eq!(shown(&sources, 3, 1), None);
        fs::remove_file(&path).expect("removed");
        assert_eq!(shown(&sources, 3, 1), None);
        fs::write(&path, TEXT).expect("written");
        assert!(shown(&sources, 3, 1).is_some());
        sources.hide("in.yaml");
        assert_eq!(shown(&sources, 3, 1), None);
    }

    #[test]
    fn a_line_for_programs_is_not_shown() {
        let (_folder, sources) = sources(&format!("a: {}\nb: 1\n", "x".repeat(1_000)));
        assert_eq!(shown(&sources, 1, 1), None);
        assert_eq!(shown(&sources, 2, 1), Some((2, 1, "b: 1".to_owned())));
    }
}
