//! Assigns objects to components. Rules apply in order and the first with a result decides: owner, then reference,
//! selector, permission, and finally equal labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::Value;

use super::objects::{Index, list, owners, services_of, texts};
use super::workload::Workload;

/// Maximum length of a chain of owners; also ends cycles.
const GENERATIONS: usize = 16;

/// A selector or account that matches more workloads belongs to none of them. This also bounds hostile input, in which
/// every workload could claim every object.
const CLAIMANTS: usize = 64;

/// A role's rule with more pairs of API group and resource belongs to no particular resource.
const GRANTS: usize = 10_000;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Claims of the workloads of a release.
#[derive(Debug)]
pub(super) struct Claims {
    /// For each object, the indices of the workloads that claim it.
    pub(super) of: Vec<BTreeSet<usize>>,
    /// For each workload, the Roles and ClusterRoles bound to its account.
    pub(super) roles: Vec<BTreeSet<usize>>,
    /// For each workload, the ConfigMaps, Secrets and claims that its pods name.
    pub(super) used: Vec<BTreeSet<usize>>,
}

/// Applies all rules in order.
pub(super) fn assign(index: &Index<'_>, workloads: &[Workload<'_>]) -> Claims {
    let mut claims = Claims {
        of: vec![BTreeSet::new(); index.all.len()],
        roles: vec![BTreeSet::new(); workloads.len()],
        used: vec![BTreeSet::new(); workloads.len()],
    };
    for (number, workload) in workloads.iter().enumerate() {
        claims.of[workload.at].insert(number);
    }
    let fixed: BTreeSet<usize> = workloads.iter().map(|workload| workload.at).collect();
    let accounts = by_reference(index, workloads, &mut claims);
    by_selector(index, workloads, &mut claims);
    by_permission(index, &accounts, &mut claims);
    by_service(index, &mut claims);
    by_status(index, workloads, &mut claims);
    by_labels(index, workloads, &mut claims);
    by_owner(index, &fixed, &mut claims);
    claims
}

/// Accounts by namespace and name, with the workloads that use them.
type Accounts<'a> = HashMap<(&'a str, &'a str), BTreeSet<usize>>;

/// Objects that a pod template names.
fn by_reference<'a>(index: &Index<'a>, workloads: &[Workload<'a>], claims: &mut Claims) -> Accounts<'a> {
    let mut accounts: Accounts<'a> = HashMap::new();
    let mut made: HashMap<(&str, String), usize> = HashMap::new();
    for (number, workload) in workloads.iter().enumerate() {
        let namespace = index.namespace_of(workload.at);
        if let Some(account) = workload.service_account() {
            accounts.entry((namespace, account)).or_default().insert(number);
        }
        for (kind, name) in workload.references() {
            let Some(at) = index.find("", kind, namespace, name) else { continue };
            claims.of[at].insert(number);
            if kind != "ServiceAccount" {
                claims.used[number].insert(at);
            }
        }
        made.extend(workload.claim_names().map(|name| ((namespace, name), number)));
    }
    for (at, object) in index.all.iter().enumerate().filter(|(_, object)| object.is("", "PersistentVolumeClaim")) {
        let Some((set, ordinal)) = object.reference.name.rsplit_once('-') else { continue };
        let is_number = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = made.get(&(index.namespace_of(at), set.to_owned())).filter(|_| is_number) {
            claims.of[at].insert(*number);
        }
    }
    accounts
}

/// Objects of a namespace by label, so that a selector need not be matched against all of them.
struct Labelled<'a> {
    by_label: HashMap<(&'a str, &'a str, &'a str), Vec<usize>>,
    labels: Vec<BTreeMap<&'a str, &'a str>>,
}

impl<'a> Labelled<'a> {
    fn new(entries: impl Iterator<Item = (&'a str, BTreeMap<&'a str, &'a str>)>) -> Self {
        let mut found = Self { by_label: HashMap::new(), labels: Vec::new() };
        for (number, (namespace, labels)) in entries.enumerate() {
            for (key, value) in &labels {
                found.by_label.entry((namespace, key, value)).or_default().push(number);
            }
            found.labels.push(labels);
        }
        found
    }

    /// Objects with this label; at most one more than may claim an object.
    fn labelled(&self, namespace: &str, key: &str, value: &str) -> Vec<usize> {
        let found = self.by_label.get(&(namespace, key, value)).into_iter().flatten();
        found.take(CLAIMANTS + 1).copied().collect()
    }

    /// Objects that a selector selects in a namespace; none if it requires no label value, or one that all objects
    /// have.
    fn selected(&self, namespace: &str, selector: &Selector<'_>) -> BTreeSet<usize> {
        let equal = selector.equal.iter().map(|(key, value)| self.labelled(namespace, key, value));
        let one_of = selector.expressions.iter().filter(|it| it.text("/operator") == "In").map(|expression| {
            let values: BTreeSet<&str> = list(expression.get("values")).filter_map(Value::as_str).collect();
            let found = values.into_iter().flat_map(|value| self.labelled(namespace, expression.text("/key"), value));
            found.take(CLAIMANTS + 1).collect()
        });
        let fewest = equal.chain(one_of).min_by_key(Vec::len).unwrap_or_default();
        if fewest.len() > CLAIMANTS {
            return BTreeSet::new();
        }
        fewest.into_iter().filter(|number| selector.matches(&self.labels[*number])).collect()
    }
}

/// A label selector: a plain map, or `matchLabels` and `matchExpressions`.
struct Selector<'a> {
    equal: BTreeMap<&'a str, &'a str>,
    expressions: Vec<&'a Value>,
}

impl<'a> Selector<'a> {
    fn of_map(value: Option<&'a Value>) -> Self {
        Self { equal: texts(value), expressions: Vec::new() }
    }

    fn of(value: Option<&'a Value>) -> Self {
        let expressions: Vec<&Value> = list(value.and_then(|it| it.get("matchExpressions"))).collect();
        Self { equal: texts(value.and_then(|it| it.get("matchLabels"))), expressions }
    }

    fn matches(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let equal = self.equal.iter().all(|(key, value)| labels.get(key) == Some(value));
        equal && self.expressions.iter().all(|expression| holds(expression, labels))
    }
}

fn holds(expression: &Value, labels: &BTreeMap<&str, &str>) -> bool {
    let label = labels.get(expression.text("/key"));
    let is_listed = || list(expression.get("values")).any(|value| value.as_str() == label.copied());
    match expression.text("/operator") {
        "In" => label.is_some() && is_listed(),
        "NotIn" => label.is_none() || !is_listed(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

/// Selectors of pods and Services, and autoscalers that name their workload.
fn by_selector<'a>(index: &Index<'a>, workloads: &[Workload<'a>], claims: &mut Claims) {
    let pods = Labelled::new(workloads.iter().map(|it| (index.namespace_of(it.at), it.pod_labels.clone())));
    for (at, object) in index.all.iter().enumerate().filter(|(_, object)| object.is("", "Service")) {
        if claims.of[at].is_empty() {
            let selector = Selector::of_map(object.value.pointer("/spec/selector"));
            claims.of[at] = pods.selected(index.namespace_of(at), &selector);
        }
    }
    let services: Vec<usize> = (0..index.all.len()).filter(|at| index.all[*at].is("", "Service")).collect();
    let service_labels = |at: &usize| texts(index.all[*at].value.pointer("/metadata/labels"));
    let labelled = Labelled::new(services.iter().map(|at| (index.namespace_of(*at), service_labels(at))));
    for (at, object) in index.all.iter().enumerate() {
        if !claims.of[at].is_empty() {
            continue;
        }
        let namespace = index.namespace_of(at);
        let value = &object.value;
        let pods_of = |path: &str| pods.selected(namespace, &Selector::of(value.pointer(path)));
        claims.of[at] = match (object.reference.group.as_str(), object.reference.kind.as_str()) {
            ("policy", "PodDisruptionBudget") => pods_of("/spec/selector"),
            ("networking.k8s.io", "NetworkPolicy") => pods_of("/spec/podSelector"),
            ("monitoring.coreos.com", "ServiceMonitor" | "PodMonitor") => {
                let selector = Selector::of(value.pointer("/spec/selector"));
                let named: Vec<&str> = list(value.pointer("/spec/namespaceSelector/matchNames"))
                    .filter_map(Value::as_str)
                    .map(|name| index.effective(name))
                    .collect();
                let namespaces = if named.is_empty() { vec![namespace] } else { named };
                let selected = |namespace: &&str| {
                    if object.reference.kind == "PodMonitor" {
                        return pods.selected(namespace, &selector);
                    }
                    let found = labelled.selected(namespace, &selector);
                    found.iter().flat_map(|number| claims.of[services[*number]].clone()).collect()
                };
                namespaces.iter().flat_map(selected).collect()
            }
            _ => scaled(index, object.reference.kind.as_str(), value, namespace)
                .map(|target| claims.of[target].clone())
                .unwrap_or_default(),
        };
    }
}

/// The object that an autoscaler scales.
pub(super) fn scaled(index: &Index<'_>, kind: &str, value: &Value, namespace: &str) -> Option<usize> {
    let target = match kind {
        "HorizontalPodAutoscaler" | "ScaledObject" => value.pointer("/spec/scaleTargetRef")?,
        "VerticalPodAutoscaler" => value.pointer("/spec/targetRef")?,
        _ => return None,
    };
    // KEDA defaults the kind to Deployment.
    let kind = Some(target.text("/kind")).filter(|kind| !kind.is_empty()).unwrap_or("Deployment");
    let group = match target.text("/apiVersion") {
        "" => "apps",
        version => split_api_version(version).0,
    };
    index.find(group, kind, namespace, target.text("/name"))
}

/// Bindings by their subjects, roles by their bindings.
fn by_permission(index: &Index<'_>, accounts: &Accounts<'_>, claims: &mut Claims) {
    let mut of_roles: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (at, object) in index.all.iter().enumerate() {
        if !object.is(RBAC, "RoleBinding") && !object.is(RBAC, "ClusterRoleBinding") {
            continue;
        }
        let mut bound = BTreeSet::new();
        for subject in list(object.value.get("subjects")).filter(|it| it.text("/kind") == "ServiceAccount") {
            // The API server requires a namespace here; an omitted one means the binding's own.
            let namespace = match subject.text("/namespace") {
                "" => index.namespace_of(at),
                given => given,
            };
            let actors = accounts.get(&(namespace, subject.text("/name"))).into_iter().flatten();
            bound.extend(actors.take(CLAIMANTS));
        }
        let role = object.value.get("roleRef").unwrap_or(&Value::Null);
        let found = match role.text("/kind") {
            "ClusterRole" => index.find_cluster_scoped(RBAC, "ClusterRole", role.text("/name")),
            "Role" => index.find(RBAC, "Role", index.namespace_of(at), role.text("/name")),
            _ => None,
        };
        if let Some(role) = found {
            of_roles.entry(role).or_default().extend(&bound);
            for number in &bound {
                claims.roles[*number].insert(role);
            }
        }
        if claims.of[at].is_empty() {
            claims.of[at] = bound;
        }
    }
    for (role, bound) in of_roles {
        if claims.of[role].is_empty() {
            claims.of[role] = bound;
        }
    }
}

/// An object that sends requests to a Service belongs to the workload behind it.
fn by_service(index: &Index<'_>, claims: &mut Claims) {
    for (at, object) in index.all.iter().enumerate().filter(|(_, object)| !object.is("", "Service")) {
        if !claims.of[at].is_empty() {
            continue;
        }
        let value = &object.value;
        let own = index.namespace_of(at);
        let mut found = BTreeSet::new();
        let mut serve = |namespace: &str, name: &str| {
            let service = index.find("", "Service", namespace, name);
            found.extend(service.map(|service| claims.of[service].clone()).unwrap_or_default());
        };
        for service in services_of(value) {
            serve(service.text("/namespace"), service.text("/name"));
        }
        match object.reference.kind.as_str() {
            "Ingress" => ingress_backends(value).for_each(|name| serve(own, name)),
            "Route" if value.text("/spec/to/kind") == "Service" => serve(own, value.text("/spec/to/name")),
            "HTTPRoute" | "GRPCRoute" | "TLSRoute" | "TCPRoute" | "UDPRoute" => {
                let rules = list(value.pointer("/spec/rules"));
                for backend in rules.flat_map(|rule| list(rule.get("backendRefs"))) {
                    let namespace = backend.text("/namespace");
                    serve(if namespace.is_empty() { own } else { namespace }, backend.text("/name"));
                }
            }
            _ => {}
        }
        claims.of[at] = found;
    }
}

fn ingress_backends(value: &Value) -> impl Iterator<Item = &str> {
    let paths = list(value.pointer("/spec/rules")).flat_map(|rule| list(rule.pointer("/http/paths")));
    let backends = paths.filter_map(|path| path.get("backend")).chain(value.pointer("/spec/defaultBackend"));
    backends.map(|backend| match backend.text("/service/name") {
        "" => backend.text("/serviceName"),
        name => name,
    })
}

/// A definition belongs to the workload that may write the status or finalizers of its objects: most likely its
/// controller.
fn by_status(index: &Index<'_>, workloads: &[Workload<'_>], claims: &mut Claims) {
    let mut writers: HashMap<(&str, &str), BTreeSet<usize>> = HashMap::new();
    for number in 0..workloads.len() {
        for role in &claims.roles[number] {
            for rule in list(index.all[*role].value.get("rules")) {
                let named = |field: &str| list(rule.get(field)).count();
                let writes = list(rule.get("verbs")).any(|it| matches!(it.as_str(), Some("update" | "patch" | "*")))
                    && named("resources").saturating_mul(named("apiGroups")) <= GRANTS;
                for resource in list(rule.get("resources")).filter_map(Value::as_str).filter(|_| writes) {
                    let Some((plural, "status" | "finalizers")) = resource.split_once('/') else { continue };
                    for group in list(rule.get("apiGroups")).filter_map(Value::as_str) {
                        writers.entry((group, plural)).or_default().insert(number);
                    }
                }
            }
        }
    }
    for (at, object) in index.all.iter().enumerate() {
        if claims.of[at].is_empty() && object.is_crd() {
            let named = (object.value.text("/spec/group"), object.value.text("/spec/names/plural"));
            claims.of[at] = writers.get(&named).cloned().unwrap_or_default();
        }
    }
}

/// Equal `app.kubernetes.io/{instance,name,component}`, if only one workload has them.
fn by_labels(index: &Index<'_>, workloads: &[Workload<'_>], claims: &mut Claims) {
    let mut bearers: HashMap<[&str; 3], BTreeSet<usize>> = HashMap::new();
    for (number, workload) in workloads.iter().enumerate() {
        bearers.entry(triple(&workload.object.value)).or_default().insert(number);
    }
    for (at, object) in index.all.iter().enumerate() {
        let triple = triple(&object.value);
        let is_telling = !triple[1].is_empty() || !triple[2].is_empty();
        if let Some(found) = bearers.get(&triple).filter(|found| is_telling && found.len() == 1)
            && claims.of[at].is_empty()
        {
            claims.of[at].clone_from(found);
        }
    }
}

/// `app.kubernetes.io/{instance,name,component}`; empty strings if one is missing.
pub(super) fn triple(value: &Value) -> [&str; 3] {
    ["app.kubernetes.io/instance", "app.kubernetes.io/name", "app.kubernetes.io/component"]
        .map(|key| value.label(key).unwrap_or_default())
}

/// Owners, which override everything else. Applied last, because an owner must be assigned first.
fn by_owner(index: &Index<'_>, fixed: &BTreeSet<usize>, claims: &mut Claims) {
    let owner_of = |at: usize| {
        owners(&index.all[at].value).find_map(|owner| {
            let (group, _) = split_api_version(owner.text("/apiVersion"));
            let (kind, name) = (owner.text("/kind"), owner.text("/name"));
            index
                .find(group, kind, index.namespace_of(at), name)
                .or_else(|| index.find_cluster_scoped(group, kind, name))
        })
    };
    let owners: Vec<Option<usize>> = (0..index.all.len()).map(owner_of).collect();
    for at in (0..index.all.len()).filter(|at| !fixed.contains(at)) {
        let mut ancestor = owners[at];
        for _ in 1..GENERATIONS {
            match ancestor {
                Some(owner) if !fixed.contains(&owner) && owners[owner].is_some() => ancestor = owners[owner],
                _ => break,
            }
        }
        if let Some(found) = ancestor.map(|owner| claims.of[owner].clone()).filter(|found| !found.is_empty()) {
            claims.of[at] = found;
        }
    }
}
