//! What is really stored: the bytes in etcd, read past the API server.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::TestCluster;

/// The stored objects of a custom resource, by the end of their key: `namespace/name`, or the name.
#[track_caller]
pub(crate) fn stored(cluster: &TestCluster, group: &str, plural: &str) -> BTreeMap<String, Value> {
    let prefix = format!("/registry/{group}/{plural}/");
    // The first key behind all keys with this prefix.
    let end = format!("/registry/{group}/{plural}0");
    let answer =
        call(cluster, "/v3/kv/range", &json!({"key": STANDARD.encode(&prefix), "range_end": STANDARD.encode(end)}));
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64");
    let entries = answer["kvs"].as_array().into_iter().flatten();
    entries
        .map(|entry| {
            let key = String::from_utf8(decoded(&entry["key"])).expect("a key");
            let value = serde_json::from_slice(&decoded(&entry["value"])).expect("custom resources are stored as JSON");
            (key.trim_start_matches(&prefix).to_owned(), value)
        })
        .collect()
}

/// The API versions that the objects of a custom resource are stored in, with how many there are of each.
#[track_caller]
pub(crate) fn stored_versions(cluster: &TestCluster, group: &str, plural: &str) -> BTreeMap<String, usize> {
    let mut versions = BTreeMap::new();
    for object in stored(cluster, group, plural).values() {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.split_once('/').map_or(version, |(_, version)| version);
        *versions.entry(version.to_owned()).or_default() += 1;
    }
    versions
}

#[track_caller]
fn call(cluster: &TestCluster, path: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.etcd_port())).expect("etcd listens");
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nhost: etcd\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer with a body");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {head}: {body}"))
}
