//! Serves admission reviews: reads the policy, lists objects where that is wanted, and answers until a signal comes.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Cluster, ErrorKind, Kind, ListQuery};
use pushback_crd::stack;
use pushback_judge::RULE;
use pushback_manifest::InputError;
use pushback_manifest::config::ExemptSubject;
use pushback_manifest::files::{SourceFile, shown};
use pushback_preflight::Waiver;
use pushback_preflight::api_lifecycle::Release;
use pushback_system::environment::wall_clock;
use pushback_webhook::admission::{
    AdmissionPolicy, Exemption, ListedObjects, ObjectReader, ObjectsOf, Surroundings, serve,
};
use pushback_webhook::{Journal, Settings};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::connect::{ClusterOptions, connect};
use super::error::CommandError;
use super::policy::{PolicyFiles, read_policy};
use super::signals;

pub mod manifests;

/// Time to list objects of a CRD that is deleted.
const LIST: Duration = Duration::from_millis(1500);

/// Most objects that are listed: enough to name some.
const OBJECTS: u32 = 5;

/// Settings of the judgement besides the policy in files.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// Users that may make breaking changes.
    pub exempt_users: Vec<String>,
    /// Groups whose users may make breaking changes.
    pub exempt_groups: Vec<String>,
    /// The Kubernetes version to judge by.
    pub kubernetes_version: Option<Release>,
    /// The cluster whose objects are listed.
    pub cluster: Option<ClusterOptions>,
}

/// Serves until a signal comes.
///
/// # Errors
/// A file cannot be used, a port cannot be opened, or the cluster cannot be reached.
pub async fn run(settings: Settings, options: AdmissionOptions, journal: Arc<dyn Journal>) -> Result<(), CommandError> {
    let (_, stop) = signals::listen();
    let objects = match &options.cluster {
        None => None,
        Some(cluster) => {
            let cluster = connect(cluster, None, &|_| {}).await?.cluster;
            Some(Arc::new(ClusterObjects { cluster, runtime: Handle::current() }) as Arc<dyn ObjectReader>)
        }
    };
    let compile = move |files: &[SourceFile]| stack::with_room(|| policy(&options, files));
    let surroundings = Surroundings { objects, today: || wall_clock().to_string().chars().take(10).collect() };
    Ok(serve(settings, compile, surroundings, journal, stop).await?)
}

/// Reads the policy.
fn policy(options: &AdmissionOptions, files: &[SourceFile]) -> Result<AdmissionPolicy, Vec<InputError>> {
    let PolicyFiles { policy, listed_rules, exemptions } = read_policy(files).map_err(|error| error.errors)?;
    let users = options.exempt_users.iter().map(|name| exemption(ExemptSubject::User(name.clone()), None));
    let groups = options.exempt_groups.iter().map(|name| exemption(ExemptSubject::Group(name.clone()), None));
    let given = exemptions.into_iter().map(|given| exemption(given.subject, Some(given.reason)));
    let exemptions = users.chain(groups).chain(given).collect();
    let mut selection = policy.selection;
    selection.rules.retain(|selected| selected.rule.meta().name == RULE);
    if selection.rules.is_empty() {
        let message = format!("the policy does not run {RULE}, so the webhook would refuse nothing");
        let hints = vec![format!("add `- name: {RULE}` to preflightRules")];
        return Err(vec![InputError { message, position: Default::default(), hints }]);
    }
    let names: Vec<String> = files.iter().map(|file| shown(&file.path)).collect();
    Ok(AdmissionPolicy {
        selection,
        // A waiver is for one CRD; that it covers no finding of another one is not worth a warning.
        waivers: policy.waivers.into_iter().map(|waiver| Waiver { may_be_unused: true, ..waiver }).collect(),
        exemptions,
        kubernetes_version: options.kubernetes_version,
        description: if names.is_empty() { "the defaults".to_owned() } else { names.join(", ") },
        ignored: listed_rules.into_iter().filter(|name| name != RULE).map(|name| format!("rule {name}")).collect(),
        is_from_files: !files.is_empty(),
    })
}

fn exemption(subject: ExemptSubject, reason: Option<String>) -> Exemption {
    Exemption { subject, reason }
}

/// Objects of a cluster.
#[derive(Debug)]
struct ClusterObjects {
    cluster: Arc<dyn Cluster>,
    runtime: Handle,
}

impl ObjectReader for ClusterObjects {
    fn list(&self, of: &ObjectsOf) -> Result<ListedObjects, String> {
        let kind = Arc::new(Kind {
            group: of.group.clone(),
            version: of.version.clone(),
            kind: of.kind.clone(),
            plural: of.resource.clone(),
            namespaced: true,
            verbs: vec!["list".to_owned()],
            ..Kind::default()
        });
        let query = ListQuery { limit: OBJECTS, metadata_only: true, ..ListQuery::new(kind, None, "") };
        // A timeout is made inside of the runtime: this thread is none of its own.
        let listed = self.runtime.block_on(async { timeout(LIST, self.cluster.list(&query)).await });
        match listed {
            Ok(Ok(page)) => Ok(ListedObjects {
                objects: page.items.iter().map(|object| (**object).clone()).collect(),
                more: !page.continue_token.is_empty(),
            }),
            // A kind whose names were never accepted has no objects.
            Ok(Err(error)) if error.kind == ErrorKind::UnknownKind && !of.is_established => {
                Ok(ListedObjects::default())
            }
            Ok(Err(error)) => Err(format!("its objects could not be listed: {error}")),
            Err(_) => Err("its objects could not be listed in time".to_owned()),
        }
    }
}
