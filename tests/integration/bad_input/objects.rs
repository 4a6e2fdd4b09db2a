//! Documents that are no objects, or none that can be applied together.

use super::{APPLY, GOOD, arguments, assert_harmless, cluster, manifest, metadata, more, transcript};
use crate::support::{Pushback, TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: documents_that_are_no_objects,
        Nothing: names_that_nobody_can_have,
        Nothing: objects_that_do_not_go_together,
        Nothing: orders_that_cannot_be_kept,
        Nothing: hostile_text_is_shown_and_never_acted_on,
    ]
}

fn documents_that_are_no_objects() {
    let cases = vec![
        manifest("a list", "- a\n- b\n"),
        manifest("a sentence", "hello world\n"),
        manifest("no kind", "apiVersion: v1\nmetadata: {name: a}\n"),
        manifest("no apiVersion", "kind: ConfigMap\nmetadata: {name: a}\n"),
        manifest("a number as apiVersion", "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        manifest("a kind that is a path", "apiVersion: v1\nkind: ../../etc\nmetadata: {name: a}\n"),
        manifest("no metadata", "apiVersion: v1\nkind: ConfigMap\n"),
        manifest("a kustomization", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"),
        manifest("an item that is a number", "apiVersion: v1\nkind: List\nitems: [3]\n"),
        manifest(
            "a Secret with a number",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 1234}\n",
        ),
    ];
    let transcript = transcript(cases);
    assert!(!transcript.contains("1234"));
    insta::assert_snapshot!(transcript, @"
    # a list
    error: in.yaml:1:1: expected a Kubernetes object (a map), found a list
    hint: Every document starts with `apiVersion:` and `kind:`.

    # a sentence
    error: in.yaml:1:1: expected a Kubernetes object (a map), found a string
    hint: Every document starts with `apiVersion:` and `kind:`.

    # no kind
    error: in.yaml:1:1: kind is missing
    hint: Add it, such as `kind: Deployment`.

    # no apiVersion
    error: in.yaml:1:1: apiVersion is missing
    hint: Add it, such as `apiVersion: apps/v1`.

    # a number as apiVersion
    error: in.yaml:1:1: apiVersion must be a string, found a number
    hint: Quote it.

    # a kind that is a path
    error: in.yaml:2:1: kind is malformed
    hint: A kind has only letters and digits, as in `ConfigMap`.

    # no metadata
    error: in.yaml:1:1: metadata.name is missing
    hint: Add `metadata:` with `name:`.

    # a kustomization
    error: in.yaml:1:1: a kustomization cannot be applied
    hint: Render it, as in `kustomize build DIRECTORY | pushback apply -f - …`.

    # an item that is a number
    error: in.yaml:3:9: expected a Kubernetes object (a map), found a number
    hint: Every document starts with `apiVersion:` and `kind:`.

    # a Secret with a number
    error: in.yaml:4:14: stringData.pin must be a string, found a number
    hint: Quote it.
    ");
}

fn names_that_nobody_can_have() {
    let cases = vec![
        metadata("no name", "  labels: {}\n"),
        metadata("a number", "  name: 1\n"),
        metadata("a generated name", "  generateName: a-\n"),
        metadata("a path", "  name: ../../etc/passwd\n"),
        metadata("a terminal escape", "  name: \"a\\e[2J\\e[31mb\"\n"),
        metadata("a bell", "  name: \"a\\a\"\n"),
        metadata("a window title", "  name: \"a\\e]0;owned\\ab\"\n"),
        metadata("a line break", "  name: \"a\\nerror: all is well\"\n"),
        metadata("a control sequence of eight bits", "  name: \"a\\u009b2J\"\n"),
        metadata("too many bytes", &format!("  name: {}\n", "x".repeat(254))),
        metadata("white space in the namespace", "  name: a\n  namespace: a b\n"),
        metadata("a label that is a boolean", "  name: a\n  labels: {on: yes}\n"),
        metadata("a label whose key is an escape sequence", "  name: a\n  labels: {\"\\e[31m\": 1}\n"),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # no name
    error: in.yaml:3:1: metadata.name is missing
    hint: Add `name:` under `metadata:`.

    # a number
    error: in.yaml:4:3: metadata.name must be a string, found a number
    hint: Quote it.

    # a generated name
    error: in.yaml:4:3: metadata.generateName is not supported
    hint: Give it a fixed `metadata.name`: an object that gets a new name each time can never be updated.

    # a path
    error: in.yaml:4:3: metadata.name must not hold `/`
    hint: Use lower-case letters, digits, `-` and `.`.

    # a terminal escape
    error: in.yaml:4:3: metadata.name holds the control character U+001B
    hint: Remove it.

    # a bell
    error: in.yaml:4:3: metadata.name holds the control character U+0007
    hint: Remove it.

    # a window title
    error: in.yaml:4:3: metadata.name holds the control character U+001B
    hint: Remove it.

    # a line break
    error: in.yaml:4:3: metadata.name holds the control character U+000A
    hint: Remove it.

    # a control sequence of eight bits
    error: in.yaml:4:3: metadata.name holds the control character U+009B
    hint: Remove it.

    # too many bytes
    error: in.yaml:4:3: metadata.name has 254 bytes; at most 253 are allowed
    hint: Shorten it.

    # white space in the namespace
    error: in.yaml:5:3: metadata.namespace must not hold white space
    hint: Use lower-case letters, digits, `-` and `.`.

    # a label that is a boolean
    error: in.yaml:5:12: metadata.labels.true must be a string, found a boolean
    hint: Quote it.

    # a label whose key is an escape sequence
    error: in.yaml:5:12: metadata.labels["\u{1b}[31m"] must be a string, found a number
    hint: Quote it.
    "#);
}

fn objects_that_do_not_go_together() {
    let other = GOOD.replace("}\n", "}\ndata: {a: b}\n");
    let unknown = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n";
    let hostile = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"x\\u202ey\", namespace: shop}\n";
    let cases = vec![
        manifest("an object twice, with different content", format!("{GOOD}---\n{other}")),
        manifest("a name that changes direction, twice", format!("{hostile}---\n{hostile}data: {{a: b}}\n")),
        manifest("a kind that nobody knows", unknown),
        cluster("an object in the place of another app's record", "dir:live", |pushback| {
            pushback.write("other.yaml", GOOD.replace("name: good", "name: other"));
            pushback
                .run(&["apply", "-n", "shop", "-a", "good", "-f", "other.yaml", "--cluster", "dir:live", "--yes"])
                .expect(0);
        }),
        arguments(
            "an object in the place of the app's record",
            &[&["apply", "-n", "shop", "-a", "good"], &APPLY[3..]].concat(),
        ),
        manifest(
            "an annotation that is not known",
            GOOD.replace("name: good", "name: good, annotations: {kapp.k14s.io/delete-strategy: keep}"),
        ),
        more("a namespace that is mapped nowhere", &["--map-ns", "blog=prod"]),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # an object twice, with different content
    error: in.yaml:5:1: ConfigMap shop/good is given a second time, with other content than at in.yaml:1:1
    hint: Remove one of them, or give them different names or namespaces.

    # a name that changes direction, twice
    error: in.yaml:5:1: ConfigMap shop/x\u{202e}y is given a second time, with other content than at in.yaml:1:1
    hint: Remove one of them, or give them different names or namespaces.

    # a kind that nobody knows
    error: in.yaml:2:1: the cluster has no kind Widget in example.com/v1
    Stopped: nothing was written.
    hint: add its CustomResourceDefinition to the input, or install it first

    # an object in the place of another app's record
    error: in.yaml:1:1: ConfigMap shop/good is the record of an app
    Stopped: nothing was written.
    hint: give the object another name, or another namespace

    # an object in the place of the app's record
    error: in.yaml:1:1: ConfigMap shop/good has the name of the app's own record
    Stopped: nothing was written.
    hint: choose another app name, or another namespace for the record (--app-namespace)

    # an annotation that is not known
    error: in.yaml:3:38: annotation kapp.k14s.io/delete-strategy is "keep", expected "", "orphan"
    Stopped: nothing was written.

    # a namespace that is mapped nowhere
    error: in.yaml:3:24: namespace "shop" of ConfigMap shop/good is not mapped
    Stopped: nothing was written.
    hint: add --map-ns shop=OTHER
    "#);
}

fn orders_that_cannot_be_kept() {
    let ordered = |name: &str, group: &str, rule: &str| {
        let annotations =
            format!("annotations: {{kapp.k14s.io/change-group: {group}, kapp.k14s.io/change-rule: {rule}}}");
        format!("---\n{}", GOOD.replace("name: good", &format!("name: {name}, {annotations}")))
    };
    let cycle = ordered("one", "g/one", "upsert after upserting g/two")
        + &ordered("two", "g/two", "upsert after upserting g/one");
    let cases = vec![
        manifest("a cycle", cycle),
        manifest("a rule that is none", ordered("one", "g/one", "upsert when I say so")),
        manifest("a group that is none", ordered("one", "not a group", "upsert after upserting g/one")),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # a cycle
    error: in.yaml:2:1: Detected cycle while ordering changes: [ConfigMap shop/one] -> [ConfigMap shop/two] -> [ConfigMap shop/one]
    Stopped: nothing was written.
    hint: take one of their change rules out, or give the binding ignoreIfCyclical: true

    # a rule that is none
    error: in.yaml:4:71: annotation kapp.k14s.io/change-rule: expected `upsert|delete before|after upserting|deleting GROUP`, found 5 instead of 4 words
    Stopped: nothing was written.

    # a group that is none
    error: in.yaml:4:37: annotation kapp.k14s.io/change-group: expected a group name such as apps.big.co/etcd (letters, digits, `-`, `_`, `.`, parts separated by `/`), found "not a group"
    Stopped: nothing was written.
    "#);
}

/// Names that are allowed where nobody checks them, and values: everything of them is shown, nothing acted on.
fn hostile_text_is_shown_and_never_acted_on() {
    let pushback = Pushback::new();
    let object = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"a\\u202eb\"\n  namespace: shop\n  \
             labels: {{\"k\\e[2J\": \"v\\a\"}}\ndata:\n  \"key\\e]0;owned\\a\": \"{value}\"\n"
        )
    };
    pushback.write("in/\u{1b}[31m.yaml", object("one\\e[2J\\r\\nerror: two"));
    let common = ["-a", "hostile", "-f", "in", "--cluster", "dir:live"];
    let applied = [&["apply", "--yes"], &common[..]].concat();
    let shown = |pushback: &Pushback, arguments: &[&str], code: i32| {
        let ran = pushback.run(arguments).expect(code);
        assert_harmless("standard output", &ran.stdout);
        assert_harmless("standard error", &ran.stderr);
        ran
    };
    let first = shown(&pushback, &applied, 0);
    assert!(first.stdout.contains(r"ConfigMap  shop/a\u{202e}b  in/\u{1b}[31m.yaml:1"), "{}", first.stdout);
    pushback.write("in/\u{1b}[31m.yaml", object("two\\e[3J"));
    let text = shown(&pushback, &[&["diff", "-c"], &common[..]].concat(), 0);
    assert!(text.stdout.contains(r"\e[3J"), "{}", text.stdout);
    for format in ["plain", "json"] {
        shown(&pushback, &[&["diff", "--output", format], &common[..]].concat(), 0);
        shown(&pushback, &["inspect", "-a", "hostile", "--status", "--cluster", "dir:live", "--output", format], 0);
        shown(&pushback, &["list", "-A", "--cluster", "dir:live", "--output", format], 0);
    }
    shown(&pushback, &applied, 0);
    // The file's name is made of the object's, and leads nowhere else.
    assert!(
        pushback.tree("live").contains_key("shop/configmap_a%e2%80%aeb.yaml"),
        "{:?}",
        pushback.tree("live").keys()
    );
}
