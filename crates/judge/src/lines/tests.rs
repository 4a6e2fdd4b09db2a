//! Requests and bad lines, with the responses.

use std::io::BufReader;

use serde_json::{Value, json};

use super::*;

fn crd(field: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
    "spec": {"group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "versions": [
        {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"f": field}}}}}},
    ]}})
}

fn request(old: &Value, new: &Value) -> Value {
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest", "id": 7, "old": old, "new": new})
}

/// The responses to some bytes, and the number of lines that failed.
fn answered(input: &[u8]) -> (Vec<Value>, u64) {
    let mut output = Vec::new();
    // A small buffer splits lines.
    let failed = judge_lines(&mut BufReader::with_capacity(100, input), &mut output).expect("a stream in memory");
    let text = String::from_utf8(output).expect("text");
    (text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), failed)
}

fn answer(request: &Value) -> Value {
    answered(request.to_string().as_bytes()).0.remove(0)
}

#[test]
fn change_gets_its_verdict() {
    let integer = crd(&json!({"type": "integer"}));
    for (old, new, verdict) in [
        (integer.clone(), crd(&json!({"type": "integer", "minimum": 3})), "breaking"),
        (integer.clone(), crd(&json!({"type": "number"})), "safe"),
        (integer.clone(), integer.clone(), "safe"),
        (Value::Null, integer.clone(), "safe"),
        (integer.clone(), Value::Null, "unknown"),
    ] {
        let response = answer(&request(&old, &new));
        assert_eq!((&response["verdict"], &response["id"]), (&json!(verdict), &json!(7)), "{response}");
        assert_eq!(response["kind"], "JudgeResponse");
    }
}

#[test]
fn objects_are_counted() {
    let mut request = request(&crd(&json!({"type": "integer"})), &crd(&json!({"type": "integer", "minimum": 3})));
    let object = |name: &str, f: u64| json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": name, "namespace": "a"}, "spec": {"f": f}});
    request["objects"] = json!([object("one", 1), object("four", 4)]);
    let change = &answer(&request)["changes"][0];
    assert_eq!(change["liveObjects"], json!({"affected": 1, "examined": 2, "names": ["a/one"]}));
    assert_eq!(
        (&change["check"], &change["path"], &change["version"]),
        (&json!("minimum"), &json!("spec.f"), &json!("v1"))
    );
    request["objects"] = json!([{"kind": "Foo"}]);
    assert_eq!(answer(&request)["error"]["kind"], "request");
}

#[test]
fn object_that_defines_a_crd_is_judged_by_it() {
    let graph = |field: &str| {
        json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "my-app"},
            "spec": {"schema": {"apiVersion": "v1", "kind": "App", "spec": {"f": field}}}})
    };
    let response = answer(&request(&graph("string"), &graph("integer")));
    assert_eq!(
        (&response["verdict"], &response["changes"][0]["object"]["name"]),
        (&json!("breaking"), &json!("apps.kro.run"))
    );
}

#[test]
fn kubernetes_version_decides() {
    let old = crd(&json!({"type": "string"}));
    let new = crd(&json!({"type": "string", "x-kubernetes-validations": [{"rule": "isSemver(self) || true"}]}));
    let mut request = request(&old, &new);
    assert_eq!(answer(&request)["verdict"], "safe");
    request["kubernetesVersion"] = "1.30".into();
    assert_eq!(answer(&request)["verdict"], "breaking");
    request["kubernetesVersion"] = "new".into();
    assert_eq!(answer(&request)["error"]["kind"], "request");
}

#[test]
fn bad_line_is_answered_and_the_next_one_is_judged() {
    let good = request(&Value::Null, &crd(&json!({"type": "string"}))).to_string();
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let nested = "{\"id\":".to_owned() + &"[".repeat(1000);
    for (bad, kind) in [
        ("{".to_owned(), "syntax"),
        ("\u{0}\u{1b}[31m".to_owned(), "syntax"),
        (nested, "syntax"),
        ("null".to_owned(), "request"),
        (r#"["pushback.dev/v1alpha1", "JudgeRequest"]"#.to_owned(), "request"),
        ("{}".to_owned(), "request"),
        (
            json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest", "id": 3, "odl": {}}).to_string(),
            "request",
        ),
        (json!({"apiVersion": "pushback.dev/v2", "kind": "JudgeRequest", "id": 3}).to_string(), "request"),
        (request(&Value::Null, &Value::Null).to_string(), "request"),
        (request(&Value::Null, &other).to_string(), "request"),
        (request(&json!(3), &Value::Null).to_string(), "request"),
        (" ".repeat(LONGEST_LINE + 1), "tooLong"),
    ] {
        let (responses, failed) = answered(format!("\n{bad}\r\n{good}").as_bytes());
        let start: String = bad.chars().take(60).collect();
        assert_eq!((responses.len(), failed), (2, 1), "{start}");
        assert_eq!(responses[0]["error"]["kind"], kind, "{start}: {}", responses[0]);
        assert_eq!(responses[0]["error"]["position"]["line"], 2, "{start}");
        assert_eq!(responses[1]["verdict"], "safe", "{start}");
    }
    assert_eq!(answered(b"{\"id\": 3}").0[0]["id"], 3);
    assert_eq!(answered(b"\xff\n").1, 1);
    assert_eq!(answered(b""), (vec![], 0));
}

#[test]
fn different_objects_are_not_compared() {
    let mut other = crd(&json!({"type": "string"}));
    other["metadata"]["name"] = "bars.ex.com".into();
    assert_eq!(answer(&request(&crd(&json!({"type": "string"})), &other))["error"]["kind"], "request");
}

#[test]
fn malformed_crd_is_judged_without_a_panic() {
    let old = crd(&json!({"type": "string"}));
    for pointer in
        ["/spec", "/spec/versions", "/spec/versions/0", "/spec/versions/0/schema", "/spec/names", "/metadata/name"]
    {
        for value in [json!(null), json!(3), json!([[]]), json!({"a": 1}), json!("x")] {
            let mut new = old.clone();
            *new.pointer_mut(pointer).expect("a field") = value;
            for pair in [request(&old, &new), request(&new, &old)] {
                let response = answer(&pair);
                assert!(response["verdict"].is_string() || response["error"].is_object(), "{response}");
            }
        }
    }
}
