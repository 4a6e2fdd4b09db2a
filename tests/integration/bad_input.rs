//! Input that cannot be applied, through the real binary: the whole of what is said, the exit code, and that nothing
//! was written. Whatever a name or a file holds, no terminal is given anything to act on, and nothing panics.

mod objects;
mod settings;
mod text;

use crate::support::{Pushback, TestCase};

pub(crate) fn tests() -> Vec<TestCase> {
    [text::tests(), objects::tests(), settings::tests()].concat()
}

/// One thing that is wrong.
struct Case {
    title: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    prepare: fn(&Pushback),
    arguments: Vec<&'static str>,
}

/// What a case does not say otherwise; `in.yaml` is then a good manifest.
const APPLY: [&str; 8] = ["apply", "-a", "bad", "-f", "in.yaml", "--cluster", "dir:live", "--yes"];
const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, namespace: shop}\n";

/// A manifest.
fn manifest(title: &'static str, text: impl AsRef<[u8]>) -> Case {
    Case { title, files: vec![("in.yaml", text.as_ref().to_owned())], prepare: |_| {}, arguments: APPLY.to_vec() }
}

/// An object whose head is right.
fn object(title: &'static str, rest: &str) -> Case {
    manifest(title, format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: shop}}\n{rest}"))
}

/// An object with other metadata.
fn metadata(title: &'static str, lines: &str) -> Case {
    manifest(title, format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n{lines}"))
}

/// A Config document beside a good manifest.
fn config(title: &'static str, text: &str) -> Case {
    let text = format!("apiVersion: pushback.dev/v1alpha1\nkind: Config\n{text}");
    let files = vec![("in.yaml", GOOD.into()), ("config.yaml", text.into_bytes())];
    let arguments = [&APPLY[..], &["--config", "config.yaml"]].concat();
    Case { title, files, prepare: |_| {}, arguments }
}

/// Other arguments, all of them.
fn arguments(title: &'static str, arguments: &[&'static str]) -> Case {
    Case { title, files: vec![("in.yaml", GOOD.into())], prepare: |_| {}, arguments: arguments.to_vec() }
}

/// Arguments besides those that are right.
fn more(title: &'static str, more: &[&'static str]) -> Case {
    arguments(title, &[&APPLY[..], more].concat())
}

/// Another input, which `prepare` makes.
fn input(title: &'static str, path: &'static str, prepare: fn(&Pushback)) -> Case {
    let mut arguments = APPLY.to_vec();
    arguments[4] = path;
    Case { title, files: Vec::new(), prepare, arguments }
}

/// Another cluster, which `prepare` makes.
fn cluster(title: &'static str, cluster: &'static str, prepare: fn(&Pushback)) -> Case {
    let mut arguments = APPLY.to_vec();
    arguments[6] = cluster;
    Case { title, files: vec![("in.yaml", GOOD.into())], prepare, arguments }
}

/// Runs every case, and says what each printed to standard error.
fn transcript(cases: Vec<Case>) -> String {
    cases.into_iter().map(|case| format!("# {}\n{}\n", case.title, refused(&case))).collect()
}

fn refused(case: &Case) -> String {
    let title = case.title;
    let pushback = Pushback::new();
    for (path, content) in &case.files {
        pushback.write(path, content);
    }
    (case.prepare)(&pushback);
    let before = pushback.listing();
    let ran = pushback.run(&case.arguments);
    assert_eq!(ran.code, 1, "{title}: {ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{title}: {ran:?}");
    assert_harmless(title, &ran.stderr);
    assert_harmless(title, &ran.stdout);
    let complaints = ran.complaints();

    // Programs are told the same, at the end of their events.
    let ran = pushback.run(&[&case.arguments[..], &["--output", "json"]].concat());
    assert_eq!(ran.code, 1, "{title}: {ran:?}");
    assert_harmless(title, &ran.stdout);
    if case.arguments[0] == "check" {
        // Its JSON is the report of what was checked, and nothing was.
        assert_eq!(ran.stdout, "", "{title}");
        return complaints;
    }
    let end = ran.events().pop().unwrap_or_else(|| panic!("{title}: no event"));
    assert_eq!((end["type"].as_str(), end["exitCode"].as_u64()), (Some("run.end"), Some(1)), "{title}");
    let told = end["error"].as_str().and_then(|error| error.lines().next()).unwrap_or_default();
    let visible: String = told.chars().filter(|c| !c.is_control()).take(20).collect();
    assert!(!visible.is_empty() && (visible != told || complaints.contains(told)), "{title}: {told:?}");

    assert_eq!(pushback.listing(), before, "{title}: something was written");
    complaints
}

fn assert_harmless(title: &str, text: &str) {
    let acts =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    assert!(!text.chars().any(acts), "{title}: {text:?}");
}
