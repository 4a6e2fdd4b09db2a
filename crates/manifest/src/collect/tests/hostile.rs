//! Malformed and hostile input: each case ends with one exact message that says where and what.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use super::{CONFIG_MAP, LoadOptions, load, load_text, options, write};

/// All messages of an input, without hints.
fn messages(text: &str) -> Vec<String> {
    load_text(text).unwrap_err().iter().map(ToString::to_string).collect()
}

fn object(rest: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{rest}")
}

fn metadata(rest: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n{rest}")
}

fn bomb() -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 9].join(",");
        text += &format!("a{level}: &a{level} [{items}]\n");
    }
    object(&text)
}

fn merge_bomb() -> String {
    let mut text = "a0: &a0 {k: 1}\n".to_owned();
    for level in 1..30 {
        text += &format!("a{level}: &a{level} {{<<: [*a{0}, *a{0}]}}\n", level - 1);
    }
    object(&text)
}

#[test]
fn text_that_cannot_be_read_names_line_and_column() {
    let cases: Vec<(String, &str)> = vec![
        (object("v: [1, 2\n"), "-:4:4: `[` is not closed"),
        (object("v: {a: 1\nw: 2\n"), "-:5:2: expected `,` or `}` in the map"),
        (
            object("v: \"abc\nw: 1\n"),
            "-:5:1: the quoted string above is not closed, or this line of it is not indented",
        ),
        (object("v: 'abc\n"), "-:5:1: the quoted string above is not closed, or this line of it is not indented"),
        (object("v:\n\ta: 1\n"), "-:5:2: a tab is used as indentation; YAML allows only spaces there"),
        (object("v:\n  a: 1\n b: 2\n"), "-:6:2: expected a key of the map above"),
        (object("v: a: b\n"), "-:4:5: a `:` is not allowed here"),
        (object("v:1\n"), "-:4:1: expected `:` after a key"),
        (object("v: @x\n"), "-:4:4: no value may start with `@`"),
        (object("v: [a}\n"), "-:4:4: `[` is closed by `}`"),
        (object("v: ]\n"), "-:4:4: a closing bracket without an opening one"),
        (object("v: \"\\q\"\n"), "-:4:4: an escape that double-quoted strings do not know"),
        (
            object("v: \"x\n---\ny\"\n"),
            "-:5:1: the quoted string above is not closed, or this line of it is not indented",
        ),
        (object("v: *nope\n"), "-:4:4: the alias refers to an anchor that is not defined before it"),
        (object("v: &a [*a]\n"), "-:4:8: the alias is inside the node that it refers to"),
        (object("v: &a {<<: *a}\n"), "-:4:12: the alias is inside the node that it refers to"),
        (object("v: {<<: 3}\n"), "-:4:9: the value of the merge key `<<` is neither a map nor a list of maps"),
        (object("v: {<<: [3]}\n"), "-:4:9: the value of the merge key `<<` is neither a map nor a list of maps"),
        (object("v: .inf\n"), "-:4:4: infinity and not-a-number have no JSON form, so no API accepts them"),
        (object("v: !!int s3cret\n"), "-:4:10: the value does not fit its tag !!int"),
        (object("v: !!binary s3cret@\n"), "-:4:13: the value of the tag !!binary is not padded standard base64"),
        (object("v: {{ .Values.x }}\n"), "-:4:5: a map or list cannot be a key"),
        (object("v: {~: 1}\n"), "-:4:5: null cannot be a key"),
        (
            object("v: a\u{85}b\n"),
            "-:4:5: a next-line character (U+0085): some readers take it for a line break, others do not",
        ),
        (object("v: a\u{1}b\n"), "-:4:5: control character U+0001 is not allowed in YAML"),
        (object("v: a\u{0}b\n"), "-:4:5: control character U+0000 is not allowed in YAML"),
        (object("v: a\n---- \nb: c\n"), "-:5:1: expected `:` after a key"),
        (object(&format!("v: {}\n", "[".repeat(10_000))), "-:4:1005: the document is nested deeper than 1000 levels"),
        (
            object(&format!("v:\n  {}\n", "- ".repeat(10_000))),
            "-:5:2001: the document is nested deeper than 1000 levels",
        ),
        (bomb(), "-:10:10: aliases make the input grow by more than 64 MiB"),
        (merge_bomb(), "-:21:17: aliases make the input grow by more than 64 MiB"),
        ("{\"apiVersion\": \"v1\", \"kind\" 1}".to_owned(), "-:1:29: expected `:` behind the key, found `1`"),
        ("{\"apiVersion\": \"v1\" \"kind\": 1}".to_owned(), "-:1:21: expected `,` or `}`, found `\"`"),
        ("{\"apiVersion\": \"v1".to_owned(), "-:1:16: the string is not closed before the end of its line"),
        ("{\"a\": [1, 2}".to_owned(), "-:1:12: expected `,` or `]`, found `}`"),
    ];
    check(&cases);
}

#[test]
fn files_that_are_no_text_say_what_they_are() {
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"\xff\xfea\0:\0 \x001\0".to_vec(), "-: the file is UTF-16; expected YAML or JSON in UTF-8"),
        (b"a\0:\0 \x001\0".to_vec(), "-: the file is UTF-16; expected YAML or JSON in UTF-8"),
        (b"\x1f\x8b\x08\0rest".to_vec(), "-: the file is a gzip archive; expected YAML or JSON"),
        (b"PK\x03\x04rest".to_vec(), "-: the file is a zip archive; expected YAML or JSON"),
        (b"\x7fELF\x02\x01".to_vec(), "-: the file is a program; expected YAML or JSON"),
        (b"a: 1\nb: \xc3\xa9\xff\n".to_vec(), "-:2:5: invalid UTF-8: byte 0xff at offset 10"),
        (b"a: \0\x01\x02\n".to_vec(), "-:1:4: control character U+0000 is not allowed in YAML"),
    ];
    let read = |bytes: &[u8]| {
        let options = LoadOptions { stdin: Some(bytes.to_vec()), ..LoadOptions::default() };
        load(&["-".to_owned()], &options).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
    };
    compare(cases.iter().map(|(bytes, expected)| (String::from_utf8_lossy(bytes), read(bytes), *expected)));
}

#[test]
fn objects_without_identity_are_refused_at_the_place_of_the_fault() {
    let long = format!("  name: {}\n", "x".repeat(254));
    let cases: Vec<(String, &str)> = vec![
        ("- a\n- b\n".to_owned(), "-:1:1: expected a Kubernetes object (a map), found a list"),
        ("just text\n".to_owned(), "-:1:1: expected a Kubernetes object (a map), found a string"),
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n".to_owned(),
            "-:1:1: a kustomization cannot be applied",
        ),
        ("kind: ConfigMap\nmetadata: {name: a}\n".to_owned(), "-:1:1: apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: a}\n".to_owned(), "-:1:1: kind is missing"),
        (
            "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned(),
            "-:1:1: apiVersion must be a string, found a number",
        ),
        ("apiVersion: a/b/c\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned(), "-:1:1: apiVersion is malformed"),
        ("apiVersion: v1\nkind: [x]\nmetadata: {name: a}\n".to_owned(), "-:2:1: kind must be a string, found a list"),
        ("apiVersion: v1\nkind: ../x\nmetadata: {name: a}\n".to_owned(), "-:2:1: kind is malformed"),
        ("apiVersion: v1\nkind: ConfigMap\n".to_owned(), "-:1:1: metadata.name is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: a\n".to_owned(), "-:3:1: metadata must be a map, found a string"),
        (metadata("  labels: {}\n"), "-:3:1: metadata.name is missing"),
        (metadata("  name:\n"), "-:4:3: metadata.name is missing"),
        (metadata("  name: ''\n"), "-:4:3: metadata.name is empty"),
        (metadata("  name: 1\n"), "-:4:3: metadata.name must be a string, found a number"),
        (metadata("  generateName: a-\n"), "-:4:3: metadata.generateName is not supported"),
        (metadata("  name: a/../b\n"), "-:4:3: metadata.name must not hold `/`"),
        (metadata("  name: \"a\\u001b[31m\"\n"), "-:4:3: metadata.name holds the control character U+001B"),
        (metadata("  name: ..\n"), "-:4:3: metadata.name must not be `..`"),
        (metadata(&long), "-:4:3: metadata.name has 254 bytes; at most 253 are allowed"),
        (metadata("  name: a\n  namespace: 7\n"), "-:5:3: metadata.namespace must be a string, found a number"),
        (metadata("  name: a\n  namespace: a b\n"), "-:5:3: metadata.namespace must not hold white space"),
        (
            metadata("  name: a\n  labels: {a.b/c: yes}\n"),
            "-:5:12: metadata.labels[\"a.b/c\"] must be a string, found a boolean",
        ),
        (
            metadata("  name: a\n  annotations:\n    x: 1\n"),
            "-:6:5: metadata.annotations.x must be a string, found a number",
        ),
        (metadata("  name: a\n  annotations: [x]\n"), "-:5:3: metadata.annotations must be a map, found a list"),
        (
            metadata("  name: a\n---\n") + &metadata("  name: a\ndata: {}\n"),
            "-:6:1: ConfigMap a is given a second time, with other content than at -:1:1",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {k: 12345}\n".to_owned(),
            "-:4:14: stringData.k must be a string, found a number",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: s3cret\n".to_owned(),
            "-:4:1: stringData must be a map, found a string",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [3]\n".to_owned(),
            "-:3:9: expected a Kubernetes object (a map), found a number",
        ),
        ("# nothing\n".to_owned(), "-: the input holds no object"),
        (String::new(), "-: the input holds no object"),
    ];
    check(&cases);
}

#[test]
fn all_errors_come_at_once_in_the_order_of_files_and_lines() {
    let directory = tempfile::tempdir().unwrap();
    let second = write(directory.path(), "b.yaml", "v: [\n");
    let first = write(directory.path(), "a.yaml", &metadata("  name: 1\n  labels: {k: 2}\n---\nkind: X\n"));
    let errors = load(&[second.clone(), first.clone()], &LoadOptions::default()).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            format!("{first}:4:3: metadata.name must be a string, found a number"),
            format!("{first}:5:12: metadata.labels.k must be a string, found a number"),
            format!("{first}:7:1: apiVersion is missing"),
            format!("{first}:7:1: metadata.name is missing"),
            format!("{second}:1:4: `[` is not closed"),
        ]
    );
    assert_eq!(errors[0].hints, ["Quote it."]);
}

#[test]
fn an_input_that_would_delete_the_app_names_the_way_to_want_that() {
    let names_the_way = |inputs: &[String]| {
        let errors = load(inputs, &options("# nothing\n")).unwrap_err();
        errors[0].hints.iter().any(|hint| hint.contains("--dangerous-allow-empty-list-of-resources"))
    };
    assert!(names_the_way(&["-".to_owned()]));
    assert!(!names_the_way(&[]), "whoever names no input has forgotten it");
}

#[test]
fn inputs_that_cannot_be_opened_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let huge = File::create(root.join("huge.yaml")).unwrap();
    huge.set_len(5 << 30).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    write(root, "nothing/README.md", "text");
    let cases: Vec<(Vec<String>, String)> = vec![
        (vec![], "-f: no input is given".to_owned()),
        (vec![String::new()], "-f: the name of an input is empty".to_owned()),
        (vec![at("absent.yaml")], format!("{}: no such file or directory", at("absent.yaml"))),
        (vec![at("huge.yaml")], format!("{}: larger than 64 MiB, the limit of one input", at("huge.yaml"))),
        (vec![at("empty")], format!("{}: the directory holds no .yaml, .yml or .json file", at("empty"))),
        (vec![at("nothing")], format!("{}: the directory holds no .yaml, .yml or .json file", at("nothing"))),
        (vec![at("empty"), at("nothing")], format!("{}: 2 inputs hold no object", at("empty"))),
        (
            vec!["-".to_owned(), "-".to_owned()],
            "-: standard input is given twice, but can be read only once".to_owned(),
        ),
        (vec!["https://".to_owned()], "https://: not a URL: empty host".to_owned()),
        (
            vec!["https://u:s3cret@exa mple.com/a?s3cret".to_owned()],
            "https://exa mple.com/a: not a URL: invalid international domain name".to_owned(),
        ),
        (
            vec!["http://u:s3cret@example.com/a".to_owned()],
            "http://example.com/a: http:// is refused: anyone on the way could change the manifests".to_owned(),
        ),
        (
            vec!["oci://u:s3cret@example.com/a".to_owned()],
            "oci://example.com/a: the text behind the @ is not a SHA-256 digest".to_owned(),
        ),
        (
            vec!["file:///etc/passwd".to_owned()],
            "file:///etc/passwd: the scheme file:// is not supported; expected https:// or oci://".to_owned(),
        ),
    ];
    for (inputs, expected) in cases {
        let errors = load(&inputs, &options(CONFIG_MAP)).unwrap_err();
        assert_eq!(errors[0].to_string(), expected);
        assert!(!format!("{errors:?}").contains("s3cret"));
    }
}

#[test]
fn one_file_too_many_breaks_the_limit_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let inputs: Vec<String> =
        ["a", "b"].iter().map(|name| write(directory.path(), name, &format!("{CONFIG_MAP}{name}\n"))).collect();
    let options = LoadOptions { total_bytes: 60, ..LoadOptions::default() };
    assert!(load(&inputs[..1], &options).is_ok());
    let errors = load(&inputs, &options).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        format!("{}: with this file the input is larger than 60 bytes, the limit of all", inputs[1])
    );
}

#[cfg(unix)]
#[test]
fn links_in_circles_and_special_files_are_refused_without_opening_them() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    write(root, "tree/a/x.yaml", &format!("{CONFIG_MAP}x\n"));
    symlink(root.join("tree"), root.join("tree/a/up")).unwrap();
    symlink(root.join("self.yaml"), root.join("self.yaml")).unwrap();
    write(root, "dangling/x.yaml", &format!("{CONFIG_MAP}x\n"));
    symlink("nowhere", root.join("dangling/y.yaml")).unwrap();
    fs::create_dir(root.join("pipes")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipes/p.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for (input, expected) in [
        (at("tree"), format!("{}: the symbolic link leads back to a directory above it", at("tree/a/up"))),
        (at("self.yaml"), format!("{}: the symbolic link leads back to itself", at("self.yaml"))),
        (at("dangling"), format!("{}: no such file or directory", at("dangling/y.yaml"))),
        (at("pipes"), format!("{}: a named pipe; expected a file or a directory", at("pipes/p.yaml"))),
        (at("pipes/p.yaml"), format!("{}: a named pipe; expected a file or a directory", at("pipes/p.yaml"))),
        ("/dev/zero".to_owned(), "/dev/zero: a device; expected a file or a directory".to_owned()),
    ] {
        let errors = load(&[input], &LoadOptions::default()).unwrap_err();
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}

#[cfg(unix)]
#[test]
fn a_link_out_of_a_directory_is_followed_only_where_that_is_said() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    write(root, "given/a.yaml", &format!("{CONFIG_MAP}a\n"));
    write(root, "elsewhere/b.yaml", &format!("{CONFIG_MAP}b\n"));
    symlink("a.yaml", root.join("given/same.yaml")).unwrap();
    symlink("../elsewhere/b.yaml", root.join("given/b.yaml")).unwrap();
    symlink(root.join("elsewhere"), root.join("given/c")).unwrap();
    symlink("../elsewhere/readme", root.join("given/readme")).unwrap();
    symlink("given", root.join("given-too")).unwrap();
    let names = |options: &LoadOptions, input: &str| {
        let read = load(&[at(input)], options).map_err(|errors| errors.iter().map(ToString::to_string).collect());
        read.map(|input| input.manifests.len()).map_err(|errors: Vec<String>| errors)
    };
    let refused = |name: &str| format!("{}: the symbolic link leads out of the directory that was given", at(name));
    for given in ["given", "given-too"] {
        let expected = [refused(&format!("{given}/b.yaml")), refused(&format!("{given}/c"))];
        assert_eq!(names(&LoadOptions::default(), given), Err(expected.to_vec()));
        assert_eq!(names(&LoadOptions { follow_links: true, ..LoadOptions::default() }, given), Ok(2));
    }
    // A link that is itself an input is followed: the user asked for it.
    assert_eq!(names(&LoadOptions::default(), "given/b.yaml"), Ok(1));
}

/// Serves the responses in order, and returns the address.
fn serve(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.replace("HOST", &address.to_string()).as_bytes());
        }
    });
    format!("http://{address}")
}

fn respond(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn what_a_server_answers_is_read_or_refused() {
    let body = format!("{CONFIG_MAP}a\n");
    let ok = respond("200 OK", &body);
    let to = |target: &str| respond(&format!("302 Found\r\nLocation: {target}"), "");
    let cases: Vec<(Vec<String>, Option<&str>)> = vec![
        (vec![ok.clone()], None),
        (vec![to("/other"), to("http://HOST/third"), ok.clone()], None),
        (vec![respond("404 Not Found", "")], Some("the server answered 404 Not Found")),
        (vec![respond("403 Forbidden", "")], Some("the server answered 403 Forbidden")),
        (vec![to("file:///etc/passwd")], Some("a redirect from http to file is refused")),
        (vec![respond("302 Found", "")], Some("a redirect without a readable target")),
        (vec![to("/again"); 6], Some("more than 5 redirects")),
        (
            vec![respond("200 OK\r\nContent-Type: text/html; charset=utf-8", "<html>")],
            Some("the answer is a web page, not YAML or JSON"),
        ),
        (vec![respond("200 OK", &"#".repeat((1 << 20) + 1))], Some("larger than 1 MiB, the limit of one input")),
    ];
    for (answers, expected) in cases {
        let url = serve(answers) + "/a.yaml?token=s3cret";
        let shown = url.replace("token=s3cret", "…");
        let mut options = LoadOptions { allow_http: true, ..LoadOptions::default() };
        options.limits.bytes = 1 << 20;
        match (load(&[url], &options), expected) {
            (Ok(input), None) => assert_eq!(input.manifests[0].positions.start().to_string(), format!("{shown}:1:1")),
            (Err(errors), Some(expected)) => assert_eq!(errors[0].to_string(), format!("{shown}: {expected}")),
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn a_server_that_nobody_vouches_for_is_not_believed() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
    });
    let url = format!("https://localhost:{port}/a.yaml");
    let error = load(std::slice::from_ref(&url), &LoadOptions::default()).unwrap_err()[0].to_string();
    assert!(error.starts_with(&format!("{url}: no trusted connection: ")), "{error}");
}

fn check(cases: &[(String, &str)]) {
    compare(cases.iter().map(|(text, expected)| (text.into(), messages(text).join(" | "), *expected)));
}

fn compare<'a>(cases: impl Iterator<Item = (Cow<'a, str>, String, &'a str)>) {
    let wrong: Vec<String> = cases
        .filter(|(_, message, expected)| message != expected)
        .map(|(text, message, expected)| {
            let start: String = text.chars().take(100).collect();
            format!("{start:?}\n  is       {message}\n  expected {expected}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
