//! The table of kapp's commands, flags, annotations and Config keys in `docs/kapp.md` is made by trying each of them under
//! kapp's name (`UPDATE_DOCS=1` writes it); what is dropped or ignored stands there, and nowhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![Nothing: the_table_of_what_kapp_has_is_true]
}

const FLAGS: &str = include_str!("../data/kapp/flags.txt");
const ANNOTATIONS: &str = include_str!("../data/kapp/annotations.txt");
const CONFIG_KEYS: &str = include_str!("../data/kapp/config-keys.txt");

const START: &str = "<!-- Made by a test; UPDATE_DOCS=1 renews it. -->\n";
const END: &str = "<!-- The end of what the test makes. -->\n";

/// What became of a command, flag, annotation or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Works,
    Ignored,
    Missing,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Works => "work",
            Self::Ignored => "are taken, without effect",
            Self::Missing => "are not there",
        }
    }
}

fn lines(data: &str) -> impl Iterator<Item = (&str, &str)> {
    data.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "))
}

fn sample(flag: &str, kind: &str) -> &'static str {
    match (flag, kind) {
        ("--map-ns" | "--labels", _) => "a=b",
        ("--before" | "--after", _) => "2024-01-01",
        ("--filter", _) => r#"{"resource":{"names":["x"]}}"#,
        ("--diff-filter", _) => r#"{"ops":["update"]}"#,
        ("--filter-age", _) => "5m-",
        ("--app" | "--namespace" | "--app-namespace" | "--into-ns", _) => "x",
        ("--apply-default-update-strategy", _) => "fallback-on-replace",
        (_, "int" | "float32") => "1",
        (_, "duration") => "1s",
        _ => "x",
    }
}

fn flag_fate(kapp: &Pushback, command: &str, flag: &str, kind: &str) -> Fate {
    let given = if kind.is_empty() { flag.to_owned() } else { format!("{flag}={}", sample(flag, kind)) };
    let words: Vec<&str> = command.split(' ').chain([given.as_str()]).collect();
    if kapp.run(&[&words[..], &["--help"]].concat()).code != 0 {
        return Fate::Missing;
    }
    // The note is told before the input is read, and there is none.
    let needed: &[&str] = match command {
        "deploy" => &["--app=x", "--file=none.yaml"],
        "delete" | "inspect" | "label" | "logs" | "rename" | "app-change list" | "app-change garbage-collect" => {
            &["--app=x"]
        }
        "app-group deploy" => &["--group=x", "--directory=/nonexistent"],
        "app-group delete" => &["--group=x"],
        "tools diff" | "tools inspect" => &["--file=none.yaml"],
        _ => &[],
    };
    let told = kapp.run(&[&words[..], needed].concat());
    if told.stderr.contains(&format!("without effect here: {flag}")) { Fate::Ignored } else { Fate::Works }
}

fn flags() -> String {
    let kapp = Pushback::new().with("PUSHBACK_VOICE", "kapp").with("KUBECONFIG", "/nonexistent");
    let mut commands: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
    for (command, flag) in lines(FLAGS) {
        let (flag, kind) = flag.split_once(' ').unwrap_or((flag, ""));
        match commands.last_mut().filter(|(last, _)| *last == command) {
            Some((_, flags)) => flags.push((flag, kind)),
            None => commands.push((command, vec![(flag, kind)])),
        }
    }
    let mut text = "| command | flags | which |\n|---|---|---|\n".to_owned();
    for (command, flags) in commands {
        let help: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        if kapp.run(&help).code != 0 {
            let _ = writeln!(text, "| `{command}` | the command is not there | |");
            continue;
        }
        let mut fates: BTreeMap<Fate, Vec<String>> = BTreeMap::new();
        for (flag, kind) in flags {
            fates.entry(flag_fate(&kapp, command, flag, kind)).or_default().push(format!("`{flag}`"));
        }
        for (fate, flags) in fates {
            let _ = writeln!(text, "| `{command}` | {} {} | {} |", flags.len(), fate.word(), flags.join(", "));
        }
    }
    text
}

/// Annotations or keys, by what a check in a folder says of each.
fn tried(what: &str, data: &str, input: impl Fn(&str, &str) -> String) -> String {
    let mut fates: BTreeMap<Fate, Vec<String>> = BTreeMap::new();
    for (name, value) in lines(data) {
        let pushback = Pushback::new();
        pushback.write("app.yaml", input(name, value)).write("live/.keep", "");
        let ran = pushback.run(&["check", "-a", "shop", "-n", "shop", "-f", "app.yaml", "--cluster", "dir:live"]);
        let fate = match ran.code {
            0 if ran.stderr.contains("has no effect") => Fate::Ignored,
            0 => Fate::Works,
            _ => {
                assert!(ran.complaints().contains("not supported yet"), "{name}: {}", ran.complaints());
                Fate::Missing
            }
        };
        fates.entry(fate).or_default().push(format!("`{name}`"));
    }
    let mut text = format!("| {what} | which |\n|---|---|\n");
    for (fate, names) in fates {
        let _ = writeln!(text, "| {} {} | {} |", names.len(), fate.word(), names.join(", "));
    }
    text
}

fn the_table_of_what_kapp_has_is_true() {
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    let annotations = tried("annotations", ANNOTATIONS, |name, value| {
        format!("{object}  annotations: {{kapp.k14s.io/{name}: {value}}}\n")
    });
    let keys = tried("Config keys", CONFIG_KEYS, |name, value| {
        format!("{object}---\napiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{name}: {value}\n")
    });
    let made = format!("{START}\n{}\n{annotations}\n{keys}\n{END}", flags());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kapp.md");
    let page = std::fs::read_to_string(&path).expect("docs/kapp.md");
    let (before, rest) = page.split_once(START).expect("the start of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let renewed = format!("{before}{made}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, renewed).expect("written");
    } else {
        assert!(
            page == renewed,
            "docs/kapp.md is stale: UPDATE_DOCS=1 cargo test --test integration -- kapp_surface\n{made}"
        );
    }
}
