//! The manifests of the admission webhook: the smallest rights, and a configuration that cannot lock the cluster out.

use std::path::PathBuf;

use pushback_manifest::files;
use pushback_manifest::yaml::Limits;
use pushback_system::bounded_file;
use serde_json::{Value, json};

use crate::run::error::CommandError;
use crate::run::serve_conversion::patch;

/// Name of every object, and of the app that they are.
const NAME: &str = "pushback-admission";
/// Name of the webhook in the configuration.
const WEBHOOK: &str = "crds.pushback.dev";
/// Groups whose CRDs are never judged: those of pushback, and of what makes its certificate.
const OWN_GROUPS: [&str; 3] = ["pushback.dev", "cert-manager.io", "acme.cert-manager.io"];

/// Answer to a change while the webhook is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The change is allowed.
    Ignore,
    /// The change is refused.
    Fail,
}

/// Authority of the certificate.
#[derive(Clone, Debug)]
pub enum Authority {
    /// cert-manager makes the certificate, and puts its authority into the configuration.
    CertManager,
    /// A file with the certificates of the authority.
    File(PathBuf),
}

/// Manifests of a webhook.
#[derive(Clone, Debug)]
pub struct AdmissionManifests {
    /// Image with pushback.
    pub image: String,
    /// Namespace of the webhook.
    pub namespace: String,
    /// Answer to a change while it is down.
    pub failure_policy: FailurePolicy,
    /// Seconds that the API server waits.
    pub timeout: u8,
    /// API groups whose objects it lists.
    pub read_groups: Vec<String>,
    /// Users that never reach it.
    pub exempt_users: Vec<String>,
    /// Groups whose users never reach it.
    pub exempt_groups: Vec<String>,
    /// File with the policy.
    pub config: Option<PathBuf>,
    /// Authority of its certificate.
    pub authority: Authority,
    /// Address of a server outside of the cluster.
    pub url: Option<String>,
}

impl AdmissionManifests {
    /// Every object, in the order in which they are applied: the configuration is the last.
    ///
    /// # Errors
    /// A file cannot be read, or a name or an address cannot be used.
    pub fn objects(&self) -> Result<Vec<Value>, CommandError> {
        if let Some(group) = self.read_groups.iter().find(|group| group.is_empty() || group.as_str() == "*") {
            let message = format!("--read-group {group:?}: expected the name of an API group such as argoproj.io");
            return Err(CommandError::usage(message));
        }
        let configuration = self.configuration()?;
        if self.url.is_some() {
            return Ok(vec![configuration]);
        }
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}),
            self.object("v1", "ServiceAccount", json!({"automountServiceAccountToken": false})),
        ];
        objects.extend(self.role());
        objects.extend(self.policy()?);
        objects.extend(self.certificate());
        objects.push(self.object(
            "v1",
            "Service",
            json!({"spec": {
                "selector": labels(),
                "ports": [{"name": "https", "port": 443, "targetPort": "https"}],
            }}),
        ));
        objects.push(self.deployment());
        objects.push(self.object(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {
                "minAvailable": 1, "selector": {"matchLabels": labels()},
            }}),
        ));
        objects.push(configuration);
        Ok(objects)
    }

    /// An object of the namespace.
    fn object(&self, api_version: &str, kind: &str, rest: Value) -> Value {
        let metadata = json!({"name": NAME, "namespace": self.namespace, "labels": labels()});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        if let (Value::Object(object), Value::Object(rest)) = (&mut object, rest) {
            object.extend(rest);
        }
        object
    }

    /// The only right: to list objects of the groups that are named.
    fn role(&self) -> Vec<Value> {
        if self.read_groups.is_empty() {
            return Vec::new();
        }
        let name = format!("{NAME}-{}", self.namespace);
        let metadata = || json!({"name": name, "labels": labels()});
        let rules = json!([{"apiGroups": self.read_groups, "resources": ["*"], "verbs": ["list"]}]);
        let group = "rbac.authorization.k8s.io";
        vec![
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata(), "rules": rules}),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata(),
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": self.namespace}],
            }),
        ]
    }

    fn policy(&self) -> Result<Option<Value>, CommandError> {
        let Some(path) = &self.config else { return Ok(None) };
        let shown = files::shown(path);
        let read = bounded_file::read(path, Limits::default().bytes as u64);
        let bytes =
            read.map_err(|reason| CommandError::usage(format!("--config {shown}: it cannot be read: {reason}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| CommandError::usage(format!("--config {shown}: it is not UTF-8 text")))?;
        Ok(Some(self.object("v1", "ConfigMap", json!({"data": {"policy.yaml": text}}))))
    }

    fn certificate(&self) -> Vec<Value> {
        match self.authority {
            Authority::File(_) => Vec::new(),
            Authority::CertManager => vec![
                self.object("cert-manager.io/v1", "Issuer", json!({"spec": {"selfSigned": {}}})),
                self.object(
                    "cert-manager.io/v1",
                    "Certificate",
                    json!({"spec": {
                        "secretName": secret(),
                        "dnsNames": [format!("{NAME}.{}.svc", self.namespace)],
                        "issuerRef": {"name": NAME},
                    }}),
                ),
            ],
        }
    }

    fn deployment(&self) -> Value {
        let mut arguments = vec!["serve-admission".to_owned()];
        arguments.extend(["--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"].map(str::to_owned));
        arguments.extend(["--listen=0.0.0.0:9443", "--metrics-listen=0.0.0.0:8080"].map(str::to_owned));
        arguments.extend(self.config.iter().map(|_| "--config=/policy/policy.yaml".to_owned()));
        arguments.extend(Some("--read-objects".to_owned()).filter(|_| !self.read_groups.is_empty()));
        arguments.extend(self.exempt_users.iter().map(|name| format!("--exempt-user={name}")));
        arguments.extend(self.exempt_groups.iter().map(|name| format!("--exempt-group={name}")));
        let mut volumes = vec![json!({"name": "tls", "secret": {"secretName": secret()}})];
        let mut mounts = vec![json!({"name": "tls", "mountPath": "/tls", "readOnly": true})];
        if self.config.is_some() {
            volumes.push(json!({"name": "policy", "configMap": {"name": NAME}}));
            mounts.push(json!({"name": "policy", "mountPath": "/policy", "readOnly": true}));
        }
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}});
        let mut ready = probe("/readyz");
        ready["periodSeconds"] = 2.into();
        let container = json!({
            "name": "admission",
            "image": self.image,
            "args": arguments,
            // Each of glibc's arenas keeps the memory of the largest CRD that it had.
            "env": [{"name": "MALLOC_ARENA_MAX", "value": "2"}],
            "ports": [{"name": "https", "containerPort": 9443}, {"name": "metrics", "containerPort": 8080}],
            "readinessProbe": ready,
            "livenessProbe": probe("/healthz"),
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": mounts,
        });
        let spread = json!({
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels()},
        });
        self.object(
            "apps/v1",
            "Deployment",
            json!({"spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels()},
                "template": {
                    "metadata": {"labels": labels()},
                    "spec": {
                        "serviceAccountName": NAME,
                        "automountServiceAccountToken": !self.read_groups.is_empty(),
                        "securityContext": {
                            "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "topologySpreadConstraints": [spread],
                        "containers": [container],
                        "volumes": volumes,
                    },
                },
            }}),
        )
    }

    fn configuration(&self) -> Result<Value, CommandError> {
        let mut client = match &self.url {
            Some(url) => json!({"url": patch::https(url)?}),
            None => json!({"service": {"namespace": self.namespace, "name": NAME, "path": "/admit", "port": 443}}),
        };
        let mut metadata = json!({"name": NAME, "labels": labels()});
        match &self.authority {
            Authority::File(path) => client["caBundle"] = patch::authority(path)?.into(),
            Authority::CertManager => {
                let from = format!("{}/{NAME}", self.namespace);
                metadata["annotations"] = json!({"cert-manager.io/inject-ca-from": from});
            }
        }
        let webhook = json!({
            "name": WEBHOOK,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "failurePolicy": match self.failure_policy {
                FailurePolicy::Ignore => "Ignore",
                FailurePolicy::Fail => "Fail",
            },
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": self.timeout,
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["v1"],
                "operations": ["UPDATE", "DELETE"],
                "resources": ["customresourcedefinitions"],
                "scope": "Cluster",
            }],
            "matchConditions": self.conditions(),
        });
        Ok(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": metadata, "webhooks": [webhook],
        }))
    }

    /// The changes that are sent. What they leave out passes even while the webhook is down.
    fn conditions(&self) -> Value {
        let own = format!("system:serviceaccounts:{}", self.namespace);
        let groups: Vec<&str> = self.exempt_groups.iter().map(String::as_str).chain([own.as_str()]).collect();
        let mut conditions = vec![
            json!({
                "name": "spec-changes",
                "expression": "request.operation == 'DELETE' || object.spec != oldObject.spec",
            }),
            json!({
                "name": "not-own-crds",
                "expression": format!("!(oldObject.spec.group in {})", list(OWN_GROUPS)),
            }),
            json!({
                "name": "not-exempt-groups",
                "expression": format!("!request.userInfo.groups.exists(group, group in {})", list(groups)),
            }),
        ];
        if !self.exempt_users.is_empty() {
            conditions.push(json!({
                "name": "not-exempt-users",
                "expression": format!("!(request.userInfo.username in {})", list(&self.exempt_users)),
            }));
        }
        conditions.into()
    }
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}

fn secret() -> String {
    format!("{NAME}-tls")
}

/// A list of texts in CEL, whose escapes are those of JSON.
fn list(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| json!(text.as_ref()).to_string()).collect();
    format!("[{}]", texts.join(", "))
}
