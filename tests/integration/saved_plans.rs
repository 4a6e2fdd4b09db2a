//! Saved plans: what was approved is what is applied, or nothing is, with exit code 11 and a sentence that names what
//! moved.

mod cost;
mod moved;
mod races;
mod release;
mod secret;

use pushback_deploy::plan::saved::{SCHEMA_VERSION, SavedPlan};
use pushback_terminal::escape::is_hidden;
use pushback_terminal::{RenderOptions, saved_plan_text};
use serde_json::Value;

use crate::support::apply::config_map;
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        Nothing: a_plan_is_carried_out_without_a_question,
        Nothing: whatever_is_not_as_the_plan_has_it_is_refused,
        Nothing: what_does_not_matter_does_not_make_a_plan_stale,
        Nothing: a_plan_that_the_rules_refuse_is_not_saved,
        Nothing: a_plan_has_its_own_options,
        Nothing: a_plan_is_shown,
        Nothing: text_of_a_plan_reaches_no_terminal_unescaped,
        Nothing: a_plan_of_the_first_format_is_read,
    ];
    [own, cost::tests(), moved::tests(), races::tests(), release::tests(), secret::tests()].concat()
}

const PLAN: [&str; 9] = ["plan", "-a", "shop", "-f", "shop", "--config", "policy.yaml", "--cluster", "dir:live"];
const POLICY: &str = "\
apiVersion: pushback.dev/v1alpha1
kind: Config
preflightRules:
- name: CRDUpgradeSafety
- name: RemovedAPIs
preflightWaivers:
- {rule: RemovedAPIs, object: ConfigMap none, reason: an example, expires: \"2099-12-31\"}
";

/// An app in a folder: `a` will change, `b` stays, `c` goes, `d` comes.
fn shop() -> Pushback {
    let pushback = Pushback::new();
    pushback.write("policy.yaml", POLICY);
    for name in ["a", "b", "c"] {
        pushback.write(&format!("shop/{name}.yaml"), config_map(name, "old"));
    }
    std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
    pushback.run(&["apply", "-a", "shop", "-f", "shop", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("shop/a.yaml", config_map("a", "new")).write("shop/d.yaml", config_map("d", "new"));
    std::fs::remove_file(pushback.directory().join("shop/c.yaml")).expect("a file");
    pushback
}

fn plan(pushback: &Pushback, more: &[&str]) -> Ran {
    pushback.run(&[&PLAN[..], &["--out", "shop.plan"], more].concat())
}

fn apply(pushback: &Pushback, more: &[&str]) -> Ran {
    let cluster = if more.contains(&"--cluster") { [].as_slice() } else { &["--cluster", "dir:live"] };
    pushback.run(&[&["apply", "--plan", "shop.plan"], cluster, more].concat())
}

/// The file in which a folder keeps an object of `shop`.
fn live(pushback: &Pushback, name: &str) -> String {
    let of_object = |text: &String| text.contains(&format!("name: {name}\n"));
    let files = pushback.tree("live");
    let found = files.iter().find(|(path, text)| !path.starts_with('.') && of_object(text));
    format!("live/{}", found.unwrap_or_else(|| panic!("no {name} in {files:?}")).0)
}

fn replace(pushback: &Pushback, file: &str, old: &str, new: &str) {
    let text = pushback.read(file);
    assert!(text.contains(old), "{file} has no {old:?}: {text}");
    pushback.write(file, text.replacen(old, new, 1));
}

fn remove(pushback: &Pushback, file: &str) {
    std::fs::remove_file(pushback.directory().join(file)).expect("a file");
}

/// Changes what the plan says, with the digest that belongs to it: who has the file can do that.
fn reseal(pushback: &Pushback, change: impl FnOnce(&mut SavedPlan)) {
    let mut plan = SavedPlan::parse(&pushback.read("shop.plan")).expect("a plan");
    change(&mut plan);
    pushback.write("shop.plan", plan.render());
}

fn a_plan_is_carried_out_without_a_question() {
    let pushback = shop();
    let ran = plan(&pushback, &[]).expect(0);
    assert!(ran.stderr.contains("plan written to shop.plan, valid until "), "{}", ran.stderr);
    assert!(ran.stderr.contains("`pushback apply --plan shop.plan --cluster=dir:live`"), "{}", ran.stderr);
    let before = pushback.tree("live");
    let read = SavedPlan::parse(&pushback.read("shop.plan")).expect("a plan");
    assert_eq!(read.objects.len(), 4);
    assert_eq!(pushback.tree("live"), before);
    apply(&pushback, &[]).expect(0);
    assert!(pushback.read(&live(&pushback, "a")).contains("new"));
    assert!(pushback.read(&live(&pushback, "d")).contains("new"));
    assert!(!pushback.tree("live").values().any(|text| text.contains("name: c\n")));
    // A plan without changes can be carried out as often as one likes.
    plan(&pushback, &[]).expect(0);
    apply(&pushback, &[]).expect(0);
    apply(&pushback, &["--apply-exit-status"]).expect(2);
}

type Change = fn(&Pushback);

/// What is done between plan and apply, what the apply is given, and what its error says.
const REFUSED: &[(&str, Change, &[&str], &str)] = &[
    ("operation", |it| replace(it, "shop.plan", "\"delete\"", "\"noop\""), &[], "the plan was edited"),
    ("options", |it| replace(it, "shop.plan", "\"--config\"", "\"--patch\""), &[], "the plan was edited"),
    ("verdict", |it| replace(it, "shop.plan", "\"outcome\":\"warned\"", "\"outcome\":\"passed\""), &[], "was edited"),
    ("waiver", |it| replace(it, "shop.plan", "an example", "another"), &[], "the plan was edited"),
    ("time", |it| replace(it, "shop.plan", "\"expires\":\"2", "\"expires\":\"3"), &[], "the plan was edited"),
    ("cluster", |it| replace(it, "shop.plan", "\"dir:live\"", "\"dir:other\""), &[], "the plan was edited"),
    ("app", |it| replace(it, "shop.plan", "\"name\":\"shop\"", "\"name\":\"blog\""), &[], "the plan was edited"),
    ("field", |it| replace(it, "shop.plan", "\"path\":\"data.key\"", "\"path\":\"data.kez\""), &[], "was edited"),
    ("space", |it| replace(it, "shop.plan", "\"nonce\":", "\"nonce\": "), &[], "the plan was edited"),
    ("digest", |it| replace(it, "shop.plan", "\"digest\":\"sha256:", "\"digest\":\"sha256:0"), &[], "was edited"),
    (
        "cut",
        |it| {
            let text = it.read("shop.plan");
            it.write("shop.plan", &text[..text.len() / 2]);
        },
        &[],
        "not written completely",
    ),
    (
        "expired",
        |it| reseal(it, |plan| plan.expires = plan.created.clone()),
        &[],
        "the plan has expired: it was valid until",
    ),
    ("version", |it| reseal(it, |plan| plan.tool.version = "0.0.9".to_owned()), &[], "was made by pushback 0.0.9"),
    ("format", |it| reseal(it, |plan| plan.schema_version = SCHEMA_VERSION + 1), &[], "the plan has format"),
    (
        "other folder",
        |it| {
            it.write("twin/keep.yaml", config_map("x", "y"));
        },
        &["--cluster", "dir:twin"],
        "is for cluster dir:live, and this is dir:twin",
    ),
    ("other app", |_| (), &["-a", "blog"], "for app shop in namespace default, and not for blog in default"),
    ("other namespace", |_| (), &["-n", "prod"], "for app shop in namespace default, and not for shop in prod"),
    ("other record", |_| (), &["--app-namespace", "x"], "for app shop in namespace default, and not for shop in x"),
    ("input", |it| replace(it, "shop/d.yaml", "new", "newer"), &[], "shop/d.yaml was edited"),
    ("comment", |it| replace(it, "shop/b.yaml", "---", "--- # x"), &[], "shop/b.yaml was edited"),
    (
        "new file",
        |it| {
            it.write("shop/e.yaml", config_map("e", "new"));
        },
        &[],
        "shop/e.yaml is new among the input",
    ),
    ("lost file", |it| remove(it, "shop/b.yaml"), &[], "shop/b.yaml is no longer among the input"),
    (
        "other files",
        |it| {
            it.write("shop2/a.yaml", config_map("a", "x"));
        },
        &["-f", "shop2"],
        "shop2/a.yaml is new among the input",
    ),
    (
        "policy",
        |it| replace(it, "policy.yaml", "- name: RemovedAPIs\n", "- name: RemovedAPIs\n  config: {mode: error}\n"),
        &[],
        "policy: policy.yaml was edited",
    ),
    ("rule", |it| replace(it, "policy.yaml", "- name: RemovedAPIs\n", ""), &[], "rule RemovedAPIs does not run"),
    (
        "other policy",
        |it| {
            it.write("lax.yaml", POLICY.replace("- name: CRDUpgradeSafety\n", ""));
        },
        &["--config", "lax.yaml"],
        "rule CRDUpgradeSafety does not run",
    ),
    ("waivers", |it| replace(it, "policy.yaml", "2099", "2098"), &[], "other waivers are in effect"),
    (
        "updated object",
        |it| replace(it, &live(it, "a"), "old", "mine"),
        &[],
        "ConfigMap default/a: its change is another now: data.key",
    ),
    (
        "unchanged object",
        |it| replace(it, &live(it, "b"), "old", "mine"),
        &[],
        "ConfigMap default/b: the plan has it left as it is, and now it would be updated: data.key",
    ),
    (
        "deleted object",
        |it| replace(it, &live(it, "c"), "old", "mine"),
        &[],
        "ConfigMap default/c: data.key changed since the plan was made",
    ),
    (
        "lost object",
        |it| remove(it, &live(it, "a")),
        &[],
        "ConfigMap default/a: the plan has it updated, and it was deleted",
    ),
    ("gone object", |it| remove(it, &live(it, "c")), &[], "ConfigMap default/c: the plan deletes it, and it is gone"),
    (
        "new object",
        |it| {
            it.write("live/d.yaml", config_map("d", "theirs"));
        },
        &[],
        "ConfigMap default/d: the plan has it created, and it exists by now",
    ),
    (
        "renamed input, in another order",
        |it| {
            it.write("shop/z.yaml", it.read("shop/a.yaml"));
            remove(it, "shop/a.yaml");
        },
        &[],
        "shop/a.yaml is no longer among the input",
    ),
    (
        "content that changed places",
        |it| {
            let (b, d) = (it.read("shop/b.yaml"), it.read("shop/d.yaml"));
            it.write("shop/b.yaml", d).write("shop/d.yaml", b);
        },
        &[],
        "shop/b.yaml was edited",
    ),
    (
        "one rule more",
        |it| replace(it, "policy.yaml", "- name: RemovedAPIs\n", "- name: RemovedAPIs\n- name: References\n"),
        &[],
        "rule References runs as well",
    ),
    (
        "other setting",
        |it| replace(it, "policy.yaml", "RemovedAPIs\n", "RemovedAPIs\n  config: {failMode: open}\n"),
        &[],
        "rule RemovedAPIs has other settings",
    ),
    (
        "no rule",
        |it| {
            it.write("empty.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules: []\n");
        },
        &["--config", "empty.yaml"],
        "rule CRDUpgradeSafety does not run",
    ),
    (
        "waiver gone",
        |it| replace(it, "policy.yaml", "- {rule: RemovedAPIs", "- {rule: References"),
        &[],
        "other waivers are in effect",
    ),
    (
        "options",
        |it| reseal(it, |plan| drop(plan.options.insert("--into-ns".to_owned(), vec!["other".to_owned()]))),
        &[],
        "ConfigMap other/a: the plan does not have it, and now it would be created",
    ),
    (
        "options, to keep what goes",
        |it| reseal(it, |plan| drop(plan.options.insert("--patch".to_owned(), Vec::new()))),
        &[],
        "ConfigMap default/c: the plan deletes it, and it is gone or no longer the app's",
    ),
    (
        "object less",
        |it| reseal(it, |plan| plan.objects.retain(|line| line.object.name != "d")),
        &[],
        "ConfigMap default/d: the plan does not have it, and now it would be created",
    ),
    (
        "manifest",
        |it| reseal(it, |plan| plan.objects[0].manifest = "0".repeat(32)),
        &[],
        "ConfigMap default/a: something else would be written",
    ),
    (
        "uid",
        |it| reseal(it, |plan| plan.objects[1].uid = "another".to_owned()),
        &[],
        "ConfigMap default/b: it was deleted and created again",
    ),
    (
        "API version",
        |it| reseal(it, |plan| plan.objects[1].object.version = "v2".to_owned()),
        &[],
        "ConfigMap default/b: its API version is v1 now, and was v2",
    ),
    ("finding", |it| reseal(it, |plan| plan.verdict.findings.clear()), &[], "preflightWaivers says of"),
    (
        "two clusters that are called the same",
        |it| reseal(it, |plan| plan.cluster.id = "0".repeat(32)),
        &[],
        "the plan is for another cluster at dir:live",
    ),
    (
        "displayed field",
        |it| reseal(it, |plan| plan.objects[0].fields[0].new = Some("harmless".to_owned())),
        &[],
        "ConfigMap default/a: the plan shows other fields than it changes: data.key old → new",
    ),
    (
        "displayed field less",
        |it| reseal(it, |plan| plan.objects[0].fields.clear()),
        &[],
        "ConfigMap default/a: the plan shows other fields than it changes: data.key old → new",
    ),
    (
        "remark",
        |it| reseal(it, |plan| plan.objects[0].notes = vec!["only a comment changes".to_owned()]),
        &[],
        "ConfigMap default/a: its remarks are none now, and the plan shows only a comment changes",
    ),
    (
        "line of the input",
        |it| reseal(it, |plan| plan.objects[0].position.as_mut().expect("a position").line = 99),
        &[],
        "ConfigMap default/a: it is at shop/a.yaml:2:1, and the plan shows shop/a.yaml:99:1",
    ),
    (
        "file of the input",
        |it| reseal(it, |plan| plan.objects[0].position.as_mut().expect("a position").file = "shop/b.yaml".to_owned()),
        &[],
        "ConfigMap default/a: it is at shop/a.yaml:2:1, and the plan shows shop/b.yaml:2:1",
    ),
    (
        "object twice",
        |it| {
            reseal(it, |plan| {
                let mut line = plan.objects[0].clone();
                line.fields[0].new = Some("harmless".to_owned());
                plan.objects.insert(0, line);
            });
        },
        &[],
        "ConfigMap default/a: the plan has it twice",
    ),
    (
        "words of a finding",
        |it| reseal(it, |plan| plan.verdict.findings[0].message = "nothing to see".to_owned()),
        &[],
        "in other words: it is about PreflightWaiver.pushback.dev RemovedAPIs ConfigMap none: covers no finding",
    ),
    (
        "object of a finding",
        |it| reseal(it, |plan| plan.verdict.findings[0].object.name = "x".to_owned()),
        &[],
        "in other words: it is about",
    ),
    (
        "finding more",
        |it| {
            reseal(it, |plan| {
                let mut finding = plan.verdict.findings[0].clone();
                finding.fingerprint = "0".repeat(32);
                finding.waived = Some("approved by the board".to_owned());
                plan.verdict.findings.push(finding);
            });
        },
        &[],
        "and preflight does not find it now",
    ),
    (
        "verdict",
        |it| reseal(it, |plan| plan.verdict.outcome = pushback_preflight::Outcome::Passed),
        &[],
        "the verdict is warned now, and the plan shows passed",
    ),
    (
        "name of the cluster",
        |it| reseal(it, |plan| plan.cluster.description = "dir:staging".to_owned()),
        &[],
        "the plan names its cluster dir:staging, and here it is dir:live",
    ),
    (
        "carried out",
        |it| {
            apply(it, &[]).expect(0);
        },
        &[],
        "ConfigMap default/a: the plan has it updated, and now it would be left as it is",
    ),
];

fn whatever_is_not_as_the_plan_has_it_is_refused() {
    let mut told = Vec::new();
    for (title, change, given, expected) in REFUSED {
        // The folder is a part of what the plan is for, so each case has an app and a plan of its own.
        let pushback = shop();
        plan(&pushback, &[]).expect(0);
        change(&pushback);
        let before = pushback.tree("live");
        let ran = apply(&pushback, given);
        if ran.code != 11 || !ran.stderr.contains(expected) || pushback.tree("live") != before {
            told.push(format!("{title}: {} {}", ran.code, ran.stderr));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(REFUSED.len() >= 59, "{}", REFUSED.len());
}

/// The files may be somewhere else, in other names and another order, and the cluster's folder may hold more.
fn what_does_not_matter_does_not_make_a_plan_stale() {
    let changes: [(&str, Change, &[&str]); 4] = [
        (
            "another folder",
            |it| {
                for name in ["a", "b", "d"] {
                    it.write(&format!("elsewhere/{name}.yaml"), it.read(&format!("shop/{name}.yaml")));
                    remove(it, &format!("shop/{name}.yaml"));
                }
            },
            &["-f", "elsewhere"],
        ),
        (
            "another name",
            |it| {
                it.write("shop/b2.yaml", it.read("shop/b.yaml"));
                remove(it, "shop/b.yaml");
            },
            &[],
        ),
        (
            "the same policy elsewhere",
            |it| {
                it.write("policies/policy.yaml", it.read("policy.yaml"));
            },
            &["--config", "policies/policy.yaml"],
        ),
        (
            "unrelated objects",
            |it| {
                it.write("live/theirs.yaml", config_map("theirs", "x"));
            },
            &[],
        ),
    ];
    for (title, change, given) in changes {
        let pushback = shop();
        plan(&pushback, &[]).expect(0);
        change(&pushback);
        let ran = apply(&pushback, given);
        assert_eq!(ran.code, 0, "{title}: {}", ran.stderr);
    }
}

fn a_plan_that_the_rules_refuse_is_not_saved() {
    let pushback = shop();
    pushback.write("shop/old.yaml", "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: x}\n");
    let ran = plan(&pushback, &["--kubernetes-version", "1.30"]);
    assert_eq!((ran.code, pushback.directory().join("shop.plan").exists()), (10, false), "{}", ran.stderr);
}

fn a_plan_has_its_own_options() {
    let pushback = shop();
    plan(&pushback, &["--patch"]).expect(0);
    for given in [
        ["--patch"].as_slice(),
        &["--preflight=none"],
        &["--into-ns", "x"],
        &["--waive", "0123456789abcdef0123456789abcdef=x"],
    ] {
        let ran = apply(&pushback, given).expect(1);
        assert!(ran.stderr.contains("cannot be given with --plan"), "{}", ran.stderr);
    }
    apply(&pushback, &["--wait-timeout", "1m"]).expect(0);
    // `--patch` was the plan's: nothing was deleted.
    live(&pushback, "c");
    pushback.write("none.plan", "{}");
    for file in ["none.plan", "absent.plan"] {
        pushback.run(&["apply", "--plan", file, "--cluster", "dir:live"]).expect(1);
    }
}

fn a_plan_is_shown() {
    let pushback = shop();
    plan(&pushback, &[]).expect(0);
    let shown = pushback.run(&["plan", "show", "shop.plan"]).expect(0).stdout;
    let (head, changes) = shown.split_once("\n\n").expect("two parts");
    for row in ["App:       shop in namespace default", "Cluster:   dir:live", "Input:     3 files: shop/a.yaml"] {
        assert!(head.contains(row), "{shown}");
    }
    insta::assert_snapshot!(changes, @"
      + create
          ConfigMap  default/d  shop/d.yaml:2
      ~ update
          ConfigMap  default/a  shop/a.yaml:2
            data.key  old -> new
      - delete
          ConfigMap  default/c

    warning: PreflightWaiver.pushback.dev RemovedAPIs ConfigMap none: covers no finding [preflightWaivers 5ea261136963f36ff59b1d6253933f2d]

    Plan: 1 to create, 1 to update, 1 to delete, 1 unchanged; preflight has warned.
    ");
    let json = pushback.run(&["plan", "show", "shop.plan", "-o", "json"]).expect(0);
    assert_eq!(json.stdout, pushback.read("shop.plan"));
    replace(&pushback, "shop.plan", "\"shop\"", "\"blog\"");
    assert!(pushback.run(&["plan", "show", "shop.plan"]).expect(11).stderr.contains("the plan was edited"));
}

/// A plan can be sealed by its writer: no text in it may act on a reader's terminal.
fn text_of_a_plan_reaches_no_terminal_unescaped() {
    /// Paths of all texts in the value.
    fn texts(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(path.to_owned()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| texts(item, &format!("{path}/{index}"), found));
            }
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                texts(value, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }),
            _ => {}
        }
    }
    let pushback = shop();
    plan(&pushback, &[]).expect(0);
    let saved = serde_json::to_value(SavedPlan::parse(&pushback.read("shop.plan")).expect("a plan")).expect("JSON");
    let mut paths = Vec::new();
    texts(&saved, "", &mut paths);
    let options = RenderOptions { verbose: true, ..RenderOptions::default() };
    let mut shown = 0;
    for path in paths {
        let mut changed = saved.clone();
        *changed.pointer_mut(&path).expect("a text") = "\u{1b}[2J\u{202e}\nforged".into();
        let Ok(plan) = serde_json::from_value::<SavedPlan>(changed) else { continue };
        let text = saved_plan_text::text(&plan, &options);
        let hidden = text.chars().find(|character| *character != '\n' && is_hidden(*character));
        assert!(hidden.is_none() && !text.contains("\nforged"), "{path}: {text:?}");
        shown += 1;
    }
    assert!(shown > 20, "{shown}");
}

/// A file that the first version of the format has written: later versions read it, and say that another version made it.
fn a_plan_of_the_first_format_is_read() {
    let pushback = shop();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plans/format-1.plan");
    if std::env::var_os("UPDATE_PLANS").is_some() {
        plan(&pushback, &[]).expect(0);
        reseal(&pushback, |plan| plan.tool.version = "0.0.1".to_owned());
        std::fs::write(kept, pushback.read("shop.plan")).expect("a file");
    }
    pushback.write("shop.plan", std::fs::read(kept).expect("the kept plan"));
    let shown = pushback.run(&["plan", "show", "shop.plan"]).expect(0).stdout;
    assert!(shown.contains("Plan: 1 to create, 1 to update, 1 to delete, 1 unchanged"), "{shown}");
    assert!(apply(&pushback, &[]).expect(11).stderr.contains("the plan was made by pushback 0.0.1"));
}
