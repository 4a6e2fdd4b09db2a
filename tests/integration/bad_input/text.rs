//! Files and inputs that hold no manifests: broken, binary, endless, or not to be read at all.

use std::fs::File;

use super::{input, manifest, more, object, transcript};
use crate::support::{Pushback, TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: text_that_is_no_yaml,
        Nothing: files_that_are_no_text,
        Nothing: input_that_is_too_much,
        Nothing: inputs_that_cannot_be_read,
    ]
}

fn text_that_is_no_yaml() {
    let cases = vec![
        object("a tab as indentation", "data:\n\ta: b\n"),
        object("a tab in the line after a value", "data: a\n\tb: c\n"),
        object("a list that is not closed", "data: [1, 2\n"),
        object("a quote that is not closed", "data: {a: \"b}\n"),
        object("indentation that fits nothing", "data:\n    a: b\n  c: d\n"),
        object("two colons in a line", "data: a: b\n"),
        object("an alias without an anchor", "data: *unknown\n"),
        object("an alias in its own node", "data: &a {b: *a}\n"),
        object("a template that was not rendered", "data: {{ .Values.data }}\n"),
        object("an escape that does not exist", "data: {a: \"\\q\"}\n"),
        object("a value that starts with a reserved character", "data: @home\n"),
        object("a number that JSON does not have", "data: {a: .inf}\n"),
        manifest("JSON with a comma too many", "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",, }\n"),
        manifest("half a JSON document", "{\"apiVersion\": \"v1\", \"kind\":"),
    ];
    insta::assert_snapshot!(transcript(cases), @"
    # a tab as indentation
    error: in.yaml:5:2: a tab is used as indentation; YAML allows only spaces there
    hint: Replace the tab with spaces.

    # a tab in the line after a value
    error: in.yaml:5:1: a tab is used as indentation; YAML allows only spaces there
    hint: Replace the tab with spaces.

    # a list that is not closed
    error: in.yaml:4:7: `[` is not closed
    hint: Add the closing bracket.

    # a quote that is not closed
    error: in.yaml:4:11: the quote is not closed
    hint: Add the closing quote.

    # indentation that fits nothing
    error: in.yaml:6:3: expected a key of the map above
    hint: Indent it like the other keys, and check quotes and brackets in the lines before.

    # two colons in a line
    error: in.yaml:4:8: a `:` is not allowed here
    hint: Put text that contains `: ` in quotes, or check the indentation.

    # an alias without an anchor
    error: in.yaml:4:7: the alias refers to an anchor that is not defined before it
    hint: If the text should start with `*`, put it in quotes.
    hint: Otherwise define the anchor, as in `&name`, earlier in the same document.

    # an alias in its own node
    error: in.yaml:4:14: the alias is inside the node that it refers to
    hint: A value cannot contain itself; write the part out, or move the anchor.

    # a template that was not rendered
    error: in.yaml:4:8: a map or list cannot be a key
    hint: If this is a template such as `{{ .Values.x }}`, render it first and pass the result.
    hint: If the braces are meant as text, put the value in quotes.

    # an escape that does not exist
    error: in.yaml:4:11: an escape that double-quoted strings do not know
    hint: Double the backslash, or use single quotes, where a backslash stands for itself.

    # a value that starts with a reserved character
    error: in.yaml:4:7: no value may start with `@`
    hint: Put the text in quotes.

    # a number that JSON does not have
    error: in.yaml:4:11: infinity and not-a-number have no JSON form, so no API accepts them
    hint: Put the text in quotes if it is meant as text.

    # JSON with a comma too many
    error: in.yaml:1:42: expected a key in double quotes, found `,`

    # half a JSON document
    error: in.yaml:1:29: expected a value, found the end of the file
    ");
}

fn files_that_are_no_text() {
    let cases = vec![
        manifest("a program", b"\x7fELF\x02\x01\x01\0\0\0"),
        manifest("a gzip archive", b"\x1f\x8b\x08\0\0\0\0\0"),
        manifest("UTF-16", b"\xff\xfea\0:\0 \x001\0"),
        manifest("a byte that is no UTF-8", b"a: 1\nb: \xc3\xa9\xff\n"),
        object("a null byte", "data: {a: \"\0\"}\n"),
        object("an escape sequence", "data: \u{1b}[31mred\n"),
    ];
    insta::assert_snapshot!(transcript(cases), @r"
    # a program
    error: in.yaml: the file is a program; expected YAML or JSON
    hint: Unpack or render it first, and pass the manifests.

    # a gzip archive
    error: in.yaml: the file is a gzip archive; expected YAML or JSON
    hint: Unpack or render it first, and pass the manifests.

    # UTF-16
    error: in.yaml: the file is UTF-16; expected YAML or JSON in UTF-8
    hint: Save the file as UTF-8, for instance with `iconv -t UTF-8`.

    # a byte that is no UTF-8
    error: in.yaml:2:5: invalid UTF-8: byte 0xff at offset 10
    hint: Save the file as UTF-8. Binary data belongs base64-encoded into `data` or `binaryData`.

    # a null byte
    error: in.yaml:4:12: control character U+0000 is not allowed in YAML
    hint: Remove it, or write it as \x00 in a double-quoted string.
    hint: If this is a binary file, it is not a manifest.

    # an escape sequence
    error: in.yaml:4:7: control character U+001B is not allowed in YAML
    hint: Remove it, or write it as \x1B in a double-quoted string.
    hint: If this is a binary file, it is not a manifest.
    ");
}

pub(super) fn bomb() -> String {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    text
}

pub(super) fn merge_bomb() -> String {
    let mut text = "a0: &a0 {k: 1}\n".to_owned();
    for level in 1..40 {
        text += &format!("a{level}: &a{level} {{<<: [*a{0}, *a{0}]}}\n", level - 1);
    }
    text
}

/// A file of a gigabyte that takes no room on the disk.
pub(super) fn huge(pushback: &Pushback, path: &str) {
    let file = pushback.write(path, "").directory().join(path);
    File::options().write(true).open(file).expect("a file").set_len(1 << 30).expect("a sparse file");
}

fn input_that_is_too_much() {
    let cases = vec![
        object("aliases that grow", &bomb()),
        object("merge keys that grow", &merge_bomb()),
        object("nesting without end", &format!("data: {}\n", "[".repeat(100_000))),
        manifest("nesting without end in JSON", "[{\"a\":".repeat(100_000)),
        manifest("objects without end in JSON", "{\"a\":".repeat(100_000)),
        input("a file of a gigabyte", "huge.yaml", |pushback| huge(pushback, "huge.yaml")),
        manifest("documents without end", "---\n".repeat(200_000)),
    ];
    insta::assert_snapshot!(transcript(cases), @"
    # aliases that grow
    error: in.yaml:10:10: aliases make the input grow by more than 64 MiB
    hint: Anchors that refer to each other multiply; write the values out.

    # merge keys that grow
    error: in.yaml:21:17: aliases make the input grow by more than 64 MiB
    hint: Anchors that refer to each other multiply; write the values out.

    # nesting without end
    error: in.yaml:4:1008: the document is nested deeper than 1000 levels
    hint: No Kubernetes object needs this; check how the file was generated.

    # nesting without end in JSON
    error: in.yaml:1:3002: the document is nested deeper than 1000 levels
    hint: No Kubernetes object needs this; check how the file was generated.

    # objects without end in JSON
    error: in.yaml:1:5001: the document is nested deeper than 1000 levels
    hint: No Kubernetes object needs this; check how the file was generated.

    # a file of a gigabyte
    error: huge.yaml: larger than 64 MiB, the limit of one input
    hint: Split it, or check that it is the right one.

    # documents without end
    error: in.yaml:100001:4: the file has more than 100000 documents
    hint: Split the file.
    ");
}

#[cfg(unix)]
pub(super) fn link(pushback: &Pushback, to: &str, path: &str) {
    std::os::unix::fs::symlink(to, pushback.directory().join(path)).expect("a link");
}

fn inputs_that_cannot_be_read() {
    let cases = vec![
        input("a file that does not exist", "absent.yaml", |_| {}),
        input("no name", "", |_| {}),
        input("a name with an escape sequence", "\u{1b}[2Jabsent.yaml", |_| {}),
        input("a name that changes direction", "\u{202e}lmay.tnesba", |_| {}),
        input("a link to itself", "loop.yaml", |pushback| link(pushback, "loop.yaml", "loop.yaml")),
        input("links in a circle, in a directory", "links", |pushback| {
            pushback.write("links/README.md", "");
            link(pushback, "b.yaml", "links/a.yaml");
            link(pushback, "a.yaml", "links/b.yaml");
        }),
        input("a link to nothing, in a directory", "links", |pushback| {
            pushback.write("links/README.md", "");
            link(pushback, "absent.yaml", "links/a.yaml");
        }),
        input("a named pipe", "pipe.yaml", |pushback| {
            pushback.shell("mkfifo", &["pipe.yaml"]);
        }),
        input("a device", "/dev/zero", |_| {}),
        input("a directory without manifests", "empty", |pushback| {
            pushback.write("empty/README.md", "");
        }),
        input("an empty file", "empty.yaml", |pushback| {
            pushback.write("empty.yaml", "");
        }),
        input("comments only", "empty.yaml", |pushback| {
            pushback.write("empty.yaml", "# to be written\n---\n---\n");
        }),
        input("an empty standard input", "-", |_| {}),
        input("a URL without encryption", "http://user:s3cret@example.com/a.yaml?token=s3cret", |_| {}),
        input("a URL of another kind", "file:///etc/passwd", |_| {}),
        more("standard input twice", &["-f", "-", "-f", "-"]),
    ];
    let transcript = transcript(cases);
    assert!(!transcript.contains("s3cret"));
    insta::assert_snapshot!(transcript, @r"
    # a file that does not exist
    error: absent.yaml: no such file or directory
    hint: Check the path; it is relative to the working directory.

    # no name
    error: -f: the name of an input is empty
    hint: Is a variable unset?

    # a name with an escape sequence
    error: \u{1b}[2Jabsent.yaml: no such file or directory
    hint: Check the path; it is relative to the working directory.

    # a name that changes direction
    error: \u{202e}lmay.tnesba: no such file or directory
    hint: Check the path; it is relative to the working directory.

    # a link to itself
    error: loop.yaml: the symbolic link leads back to itself
    hint: Remove the link, or let it name a file.

    # links in a circle, in a directory
    error: links/a.yaml: the symbolic link leads back to itself
      links/b.yaml: the symbolic link leads back to itself
    hint: Remove the link, or let it name a file.

    # a link to nothing, in a directory
    error: links/a.yaml: no such file or directory
    hint: Check the path; it is relative to the working directory.

    # a named pipe
    error: pipe.yaml: a named pipe; expected a file or a directory
    hint: Pipe the content to `-f -`.

    # a device
    error: /dev/zero: a device; expected a file or a directory
    hint: Pipe the content to `-f -`.

    # a directory without manifests
    error: empty: the directory holds no .yaml, .yml or .json file
    hint: Only files with these endings are read from a directory; name others one by one.
    hint: To go on with no objects at all, say --dangerous-allow-empty-list-of-resources.

    # an empty file
    error: empty.yaml: the input holds no object
    hint: Did the command that made it fail?
    hint: To go on with no objects at all, say --dangerous-allow-empty-list-of-resources.

    # comments only
    error: empty.yaml: the input holds no object
    hint: Did the command that made it fail?
    hint: To go on with no objects at all, say --dangerous-allow-empty-list-of-resources.

    # an empty standard input
    error: -: the input holds no object
    hint: Did the command that made it fail?
    hint: To go on with no objects at all, say --dangerous-allow-empty-list-of-resources.

    # a URL without encryption
    error: http://example.com/a.yaml?…: http:// is refused: anyone on the way could change the manifests
    hint: Use https://, or say --allow-http where the network is trusted.

    # a URL of another kind
    error: file:///etc/passwd: the scheme file:// is not supported; expected https:// or oci://
    hint: Fetch it with a tool for it, and pass the file or pipe it to `-f -`.

    # standard input twice
    error: -: standard input is given twice, but can be read only once
    hint: Give `-f -` once; several documents are separated by `---`.
    ");
}
