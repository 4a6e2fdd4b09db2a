//! The pairs about a definition as a whole on a real API server: what it refuses, what it no longer serves, what is lost
//! between versions, and that objects of a safe pair stay as they are in every version.

use pushback_crd::schema::Schema;
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_crd::schema::testing::Generator;
use serde_json::Value;

use super::definition::Definition;
use super::trial::{Tally, Trial, run};
use super::{At, Pair, judge, pairs};
use crate::support::case::show;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_api_server_treats_definitions_and_versions_as_found,
        ApiServer: crds_that_are_called_invalid_are_refused_in_the_words_that_are_expected,
    ]
}

fn the_api_server_treats_definitions_and_versions_as_found() {
    let cluster = TestCluster::shared();
    let of_definitions = |pair: &Pair| pair.at == At::Definition && pair.refused.is_none();
    let trials: Vec<Trial> = pairs().into_iter().filter(of_definitions).map(trial).collect();
    let Tally { witnesses, definitions, masked, kept, wrong } =
        run(cluster.api(), &cluster.namespace("lifecycle"), &trials);
    show(&format!(
        "{} pairs about definitions: {definitions} findings about the definition and {witnesses} with a witness confirmed, \
         {masked} behind a refusal, {kept} objects kept",
        trials.len()
    ));
    assert!(wrong.is_empty(), "{} otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(definitions > 10 && witnesses > 3 && kept > 10, "{definitions} {witnesses} {kept}");
}

fn crds_that_are_called_invalid_are_refused_in_the_words_that_are_expected() {
    let cluster = TestCluster::shared();
    let mut wrong = Vec::new();
    let mut refused = 0;
    for pair in pairs() {
        let Some(words) = pair.refused.as_ref().filter(|_| pair.check.as_deref() == Some("invalid")) else { continue };
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        let [before, after] = [pair.before(), pair.after()].map(|crd| cluster.api().post(path, &crd));
        if before.status != 201 {
            wrong.push(format!("{}: the old CRD is refused: {}", pair.name, before.message()));
        } else if after.status == 201 || !after.message().contains(words.as_str()) {
            wrong.push(format!("{}: {words}: {} {}", pair.name, after.status, after.message()));
        } else {
            refused += 1;
        }
    }
    show(&format!("{refused} CRDs are refused as expected"));
    assert!(wrong.is_empty(), "{} otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 150, "{refused}");
}

fn trial(pair: Pair) -> Trial {
    let (old, new) = (pair.before(), pair.after());
    let given = pair.objects.iter().map(|object| {
        let (_, version) = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).expect("a version");
        (version.to_owned(), object.clone())
    });
    let made = Definition(&old).readable().filter_map(|version| Some((version.to_owned(), plain(&old, version)?)));
    Trial { plain: given.chain(made).collect(), findings: judge(&old, &new).findings, name: pair.name, old, new }
}

/// An object that the definition takes as it is, with something in it.
fn plain(definition: &Value, version: &str) -> Option<Value> {
    let definition = Definition(definition);
    let schema = &definition.version(version)?["schema"]["openAPIV3Schema"];
    let read = Schema::of(schema);
    let (group, kind) = (definition.group(), definition.kind());
    let resource =
        Resource { schema: &read, group, version, kind, status: false, scale: None, preserve_unknown_fields: false };
    let mut generator = Generator::new(1);
    let made = |_| {
        let mut made = generator.object_of(schema);
        made["apiVersion"] = format!("{group}/{version}").into();
        made["kind"] = kind.into();
        let admission = pipeline::create(&resource, Server::default(), &made);
        (admission.accepted() == Some(true) && !admission.loses()).then_some(admission.object)
    };
    let taken: Vec<Value> = (0..50).filter_map(made).collect();
    taken.into_iter().max_by_key(|object| object.as_object().map_or(0, serde_json::Map::len))
}
