//! Expressions of many kinds, judged here and by an API server that has the same ones as ValidatingAdmissionPolicies: both
//! have to come to the same result for every object.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::case::show;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: expressions_are_judged_as_the_api_server_does,
        ApiServer: what_is_no_rule_is_refused_as_the_api_server_does,
    ]
}

const GROUP: &str = "agreement.example.com";
const SOON: Duration = Duration::from_secs(60);

/// The expressions; those with `oldObject` are judged on updates.
const RULES: &[&str] = &[
    // Strings.
    "object.spec.image.startsWith('web')",
    "!object.spec.image.endsWith(':latest')",
    "object.spec.image.contains(':') && object.spec.image.split(':').size() == 2",
    "object.spec.image.lowerAscii() == object.spec.image",
    "object.spec.image.size() > 5 && object.spec.image.substring(0, 3) == 'web'",
    "object.spec.image.indexOf(':') > 0 && object.spec.image.charAt(0) == 'w'",
    "object.spec.image.replace(':', '@') != object.spec.image",
    "'image %s has %d'.format([object.spec.image, 2]) == 'image web:1.2 has 2'",
    "object.spec.tags.join(',') == 'a,b,b'",
    "string(object.spec.replicas) == '3' && int('3') == object.spec.replicas",
    // Lists.
    "object.spec.tags.all(t, t in ['a', 'b'])",
    "object.spec.tags.exists(t, t == 'a')",
    "object.spec.tags.exists_one(t, t == 'b')",
    "object.spec.tags.filter(t, t != 'b').size() == 1",
    "object.spec.tags.map(t, t + '!') == ['a!', 'b!', 'b!']",
    "object.spec.tags[0] == 'a' && object.spec.tags[2] == 'b'",
    "object.spec.tags.isSorted()",
    "sets.contains(object.spec.tags, ['a'])",
    "object.spec.tags.indexOf('b') == 1 && object.spec.tags.lastIndexOf('b') == 2",
    "object.spec.containers.map(c, c.ports.size()).sum() <= 2",
    "[1, 2] + [3] == [1, 2, 3] && size(object.spec.tags) < 4",
    // Maps.
    "object.spec.labels.all(k, k.size() < 5)",
    "'app' in object.spec.labels && object.spec.labels['app'] == 'x'",
    "object.spec.labels == {'tier': 'y', 'app': 'x'}",
    "object.spec.labels.exists(k, object.spec.labels[k] == 'y')",
    "size(object.spec.labels) == 2",
    "object.spec.containers.all(c, has(c.image) && c.name != '')",
    // Presence, choices and types.
    "has(object.spec.replicas)",
    "has(object.spec.labels.app)",
    "!has(object.spec.replicas) || object.spec.replicas < 5",
    "has(object.spec.on) ? object.spec.on == true : true",
    "has(object.spec.share) && object.spec.share < 1",
    "type(object.spec.replicas) == int",
    "object.spec.replicas == 3.0",
    "object.spec.port == 'http' || object.spec.port == 80",
    "dyn(object.spec.replicas) == dyn('3')",
    // Errors that are absorbed, and those that are not.
    "object.spec.replicas > 100 || object.kind == 'Thing'",
    "object.spec.none.at.all == 1 || true",
    "object.spec.none.at.all == 1 && true",
    "object.spec.tags.exists(t, t.size() > 0 || t == 5)",
    // Arithmetic.
    "object.spec.replicas * 2 + 1 == 7",
    "object.spec.replicas % 2 == 1 && object.spec.replicas / 2 == 1",
    "-object.spec.replicas < 0",
    "9223372036854775807 - object.spec.replicas > 0",
    // Quantities.
    "quantity(object.spec.cpu).isLessThan(quantity('1'))",
    "quantity(object.spec.memory).compareTo(quantity('1Gi')) >= 0",
    "isQuantity(object.spec.cpu) && quantity(object.spec.cpu).add(quantity('500m')).isGreaterThan(quantity('0.9'))",
    "sign(quantity(object.spec.memory).sub(quantity('1Mi'))) == 1",
    "quantity(object.spec.cpu) == quantity('0.5')",
    // Regular expressions.
    "object.spec.image.matches('^[a-z]+:[0-9.]+$')",
    "object.spec.image.find('[0-9]+') == '1'",
    "object.spec.image.findAll('[a-z]').size() > 2",
    "object.metadata.name.matches('^r[0-9]+-o[0-9]$')",
    // Optional values.
    "object.?spec.?replicas.orValue(1) < 5",
    "object.spec.?labels['app'].orValue('') == 'x'",
    "object.spec.?tags[?0].hasValue()",
    "object.spec.?none.optMap(n, n == 1).orValue(true)",
    "[?object.spec.?image, ?object.spec.?none].size() == 1",
    // Networks.
    "ip(object.spec.ip).family() == 4",
    "isIP(object.spec.ip) && !ip(object.spec.ip).isLoopback()",
    "cidr(object.spec.cidr).containsIP(object.spec.ip)",
    "isCIDR(object.spec.cidr) && cidr(object.spec.cidr).prefixLength() >= 8",
    "url(object.spec.url).getScheme() == 'https' && url(object.spec.url).getPort() == '8443'",
    "isURL(object.spec.url) && url(object.spec.url).getQuery() == {'q': ['1']}",
    // Times, versions and formats.
    "timestamp(object.spec.when).getFullYear() == 2024",
    "duration(object.spec.age) < duration('2m')",
    "semver(object.spec.version).isGreaterThan(semver('1.0.0'))",
    "isSemver(object.spec.version) && semver(object.spec.version).major() == 1",
    "!format.dns1123Label().validate(object.spec.port).hasValue()",
    // The request.
    "request.operation == 'CREATE' && request.kind.kind == 'Thing' && request.resource.resource == 'things'",
    "request.name.startsWith('r') && request.namespace == object.metadata.namespace",
    "oldObject == null",
    // Updates.
    "object.spec == oldObject.spec",
    "object.spec.replicas >= oldObject.spec.replicas",
    "!has(oldObject.spec.image) || object.spec.image == oldObject.spec.image",
    "oldObject != null && request.operation == 'UPDATE'",
    "object.metadata.uid == oldObject.metadata.uid",
    "object.spec.tags.all(t, t in oldObject.spec.tags)",
    "object.spec.?labels.orValue({}) == oldObject.spec.?labels.orValue({})",
    "oldObject.spec.containers.all(o, object.spec.containers.exists(c, c.name == o.name))",
];

/// Expressions that are no rules.
const REFUSED: &[&str] = &[
    "object.spec.on",
    "1 + 1",
    "nothing == 1",
    "request.opration == 'CREATE'",
    "request.operation == 1",
    "object.metadata.name.startWith('a')",
    "object.metadata.name.matches('(')",
    "object.spec. == 1",
    "quantity('1').sign() == 1",
    "[1, 'a'] == [1, 2]",
];

/// The objects that every expression is judged on: as meant, empty, of other types, at the edge, and as odd as can be.
fn specs() -> Vec<Value> {
    vec![
        json!({"replicas": 3, "image": "web:1.2", "cpu": "500m", "memory": "1Gi", "tags": ["a", "b", "b"], "on": true,
            "labels": {"app": "x", "tier": "y"}, "ip": "10.0.0.7", "cidr": "10.0.0.0/8", "share": 0.5, "port": "http",
            "url": "https://example.com:8443/p?q=1", "when": "2024-01-02T03:04:05Z", "age": "90s", "version": "1.2.3",
            "containers": [{"name": "a", "image": "i", "ports": [80]}]}),
        json!({}),
        json!({"replicas": "3", "image": 5, "cpu": "lots", "memory": 7, "tags": "a", "on": "yes", "labels": ["app"],
            "ip": "nowhere", "cidr": 8, "share": "half", "port": 80, "url": "::", "when": "yesterday", "age": 90,
            "version": "1", "containers": {"a": {"name": "a", "ports": []}}}),
        json!({"replicas": 9, "image": "Web:latest", "cpu": "2", "memory": "512Mi", "tags": [], "on": false,
            "labels": {}, "ip": "::1", "cidr": "fd00::/8", "share": 2, "port": 443, "url": "http://[::1]/",
            "when": "2023-12-31T23:59:59.5+02:00", "age": "1h", "version": "0.9.0-rc.1+b", "containers": []}),
        json!({"replicas": -1, "image": "wéb:ü", "cpu": "1e3", "memory": "-1", "tags": ["ü", "", "b"], "on": null,
            "labels": {"a/b": "c", "app": ""}, "ip": "10.0.0.7", "cidr": "192.168.0.0/16", "share": 1.0, "port": "-a",
            "url": "/relative", "when": "2024-02-30T00:00:00Z", "age": "-5m", "version": "v1.2.3",
            "containers": [{"name": "b", "ports": [1, 2, 3]}, {"name": "", "image": ""}]}),
    ]
}

/// What is there before the objects of an update.
fn old_specs() -> Vec<Value> {
    let mut specs = specs();
    specs.rotate_left(1);
    specs[0] = self::specs().remove(0);
    specs
}

fn is_update(rule: &str) -> bool {
    rule.contains("oldObject") && rule != "oldObject == null"
}

fn thing(namespace: &str, rule: usize, object: usize, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "spec": spec,
        "metadata": {"name": format!("r{rule}-o{object}"), "namespace": namespace}})
}

fn define(cluster: &TestCluster) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open}}}}]},
    });
    cluster.api().apply(&definition).ok();
    let example = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing"});
    wait_until("the kind is served", SOON, || cluster.api().serves(&example).then_some(()));
}

/// The results by rule and object, as the program says them.
fn judged_here(cluster: &TestCluster, namespace: &str, things: &[(usize, usize, Value)]) -> BTreeMap<String, String> {
    let pushback = Pushback::on(cluster);
    let entry = |(index, rule): (usize, &&str)| {
        let names: Vec<Value> = (0..specs().len())
            .map(|object| {
                json!({"kindNamespaceNameMatcher":
                    {"kind": "Thing", "namespace": namespace, "name": format!("r{index}-o{object}")}})
            })
            .collect();
        json!({"name": format!("R{index}"), "cel": rule, "resourceMatchers": [{"anyMatcher": {"matchers": names}}]})
    };
    let rules: Vec<Value> = RULES.iter().enumerate().map(entry).collect();
    let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
    let objects: Vec<String> = things.iter().map(|(_, _, thing)| thing.to_string()).collect();
    pushback.write("policy.json", config.to_string()).write("app.yaml", objects.join("\n---\n"));
    let arguments = ["check", "-a", "agreement", "-n", namespace, "-f", "app.yaml", "--config", "policy.json"];
    let ran = pushback.run(&[&arguments[..], &["--report", "json=r.json"]].concat()).expect(10);
    assert!(!ran.stderr.contains("denied"), "{}", ran.stderr);
    let mut results: BTreeMap<String, String> = BTreeMap::new();
    for finding in pushback.read_json("r.json")["findings"].as_array().expect("findings") {
        let Some(rule) = finding["rule"].as_str().and_then(|rule| rule.strip_prefix('R')) else { continue };
        let name = finding["object"]["name"].as_str().expect("a name");
        if !name.starts_with(&format!("r{rule}-")) {
            continue;
        }
        let message = finding["message"].as_str().expect("a message");
        let result = match finding["verdict"].as_str() {
            Some("breaking") => "false".to_owned(),
            _ if message.contains("cannot be evaluated") => "error".to_owned(),
            _ => format!("unknown: {message}"),
        };
        results.insert(name.to_owned(), result);
    }
    results
}

fn policy(name: &str, namespace: &str, names: &[String], rule: &str) -> [Value; 2] {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{"apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["things"],
                    "operations": ["CREATE", "UPDATE"], "resourceNames": names}],
            },
            // An object of this name is denied as soon as the policy is in force.
            "validations": [{"expression": "!object.metadata.name.endsWith('-ready')"}, {"expression": rule}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    [policy, binding]
}

fn policies(namespace: &str) -> Vec<[Value; 2]> {
    let of_rule = |(index, rule): (usize, &&str)| {
        let objects = (0..specs().len()).map(|object| format!("r{index}-o{object}"));
        let names: Vec<String> = objects.chain([format!("r{index}-ready")]).collect();
        policy(&format!("{namespace}-r{index}"), namespace, &names, rule)
    };
    RULES.iter().enumerate().map(of_rule).collect()
}

/// The API server's result for a request that is not carried out.
fn judged_there(cluster: &TestCluster, thing: &Value, is_update: bool) -> String {
    let path = cluster.api().path_of(thing);
    let answer = if is_update {
        // An apply keeps what other managers have set, so that it is what the program asks for.
        cluster.api().apply_with(thing, "fieldManager=pushback&force=true&dryRun=All")
    } else {
        let (collection, _) = path.rsplit_once('/').expect("a path");
        cluster.api().post(&format!("{collection}?dryRun=All"), thing)
    };
    match answer.status {
        200 | 201 => "true".to_owned(),
        _ if answer.message().contains("resulted in error") => "error".to_owned(),
        _ if answer.message().contains("failed expression") => "false".to_owned(),
        _ => panic!("{thing}: {}", answer.message()),
    }
}

fn expressions_are_judged_as_the_api_server_does() {
    let cluster = TestCluster::shared();
    let namespace = &cluster.namespace("agreement");
    define(cluster);
    let mut things = Vec::new();
    for (index, rule) in RULES.iter().enumerate() {
        for (object, spec) in specs().iter().enumerate() {
            if is_update(rule) {
                cluster.api().apply(&thing(namespace, index, object, &old_specs()[object])).ok();
            }
            things.push((index, object, thing(namespace, index, object, spec)));
        }
    }
    let here = judged_here(cluster, namespace, &things);

    let policies = policies(namespace);
    for object in policies.iter().flatten() {
        cluster.api().apply(object).ok();
    }
    for index in 0..RULES.len() {
        let mut ready = thing(namespace, index, 0, &json!({}));
        ready["metadata"]["name"] = json!(format!("r{index}-ready"));
        let path = format!("/apis/{GROUP}/v1/namespaces/{namespace}/things?dryRun=All");
        wait_until("the policy is in force", SOON, || (cluster.api().post(&path, &ready).status == 422).then_some(()));
    }
    let (mut agreed, mut counts, mut unknown, mut wrong) = (0, BTreeMap::new(), Vec::new(), Vec::new());
    for (index, object, thing) in &things {
        let rule = RULES[*index];
        let there = judged_there(cluster, thing, is_update(rule));
        let here = here.get(&format!("r{index}-o{object}")).map_or("true", String::as_str);
        *counts.entry(there.clone()).or_insert(0) += 1;
        match here {
            here if here == there => agreed += 1,
            here if here.starts_with("unknown") => unknown.push(format!("{rule} on {object}: {here}, server {there}")),
            here => wrong.push(format!("{rule} on {object}: {here}, server {there}")),
        }
    }
    for object in policies.iter().flatten() {
        cluster.api().delete(&cluster.api().path_of(object));
    }
    show(&format!(
        "{} expressions, {} objects: {agreed} agreements, {} unknown, {} disagreements; the server's results: {counts:?}",
        RULES.len(),
        things.len(),
        unknown.len(),
        wrong.len()
    ));
    unknown.iter().for_each(|line| show(line));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), things.len(), wrong.join("\n"));
    assert!(RULES.len() >= 60 && counts.len() == 3 && counts.values().all(|count| *count > 40), "{counts:?}");
    assert!(unknown.len() * 20 <= things.len(), "{}", unknown.join("\n"));
}

fn what_is_no_rule_is_refused_as_the_api_server_does() {
    let cluster = TestCluster::shared();
    for rule in REFUSED {
        let [policy, _] = policy("agreement-refused", "agreement", &["none".to_owned()], rule);
        let answer =
            cluster.api().post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All", &policy);
        assert_eq!(answer.status, 422, "{rule}: {}", answer.message());
        let pushback = Pushback::new();
        let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config",
            "preflightRules": [{"name": "Refused", "cel": rule}]});
        pushback.write("policy.json", config.to_string()).write("live/.keep", "");
        pushback
            .write("app.json", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}).to_string());
        let arguments = ["check", "-f", "app.json", "--cluster", "dir:live", "--config", "policy.json"];
        let told = pushback.run(&arguments).expect(1).stderr;
        assert!(told.contains("preflightRules[0].cel: "), "{rule}: {told}");
    }
}
