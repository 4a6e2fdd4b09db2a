//! Finds host names of Services in configuration text. A bare name counts only if it is used as a host, because other
//! words may equal the name of a Service.

use std::collections::{BTreeSet, HashMap};

use pushback_objects::object::ObjectExt;
use serde_json::Value;

use super::objects::{Index, list};

/// Words in the names of variables that contain only a host.
const HOST_WORDS: [&str; 8] = ["HOST", "ADDR", "ADDRESS", "SERVER", "URL", "URI", "ENDPOINT", "SERVICE"];

/// The Services of a release by host name.
#[derive(Debug)]
pub(super) struct Hosts<'a> {
    index: &'a Index<'a>,
    /// Ports of each Service, numbers and names.
    ports: HashMap<usize, BTreeSet<String>>,
}

/// Hosts in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostReferences {
    /// Indices of Services in the release.
    pub(super) services: BTreeSet<usize>,
    /// Hosts in the cluster outside the release, as `name.namespace`.
    pub(super) others: BTreeSet<String>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Self {
        let services = index.all.iter().enumerate().filter(|(_, object)| object.is("", "Service"));
        let ports = services.map(|(at, object)| {
            let ports = list(object.value.pointer("/spec/ports"));
            (at, ports.map(|port| port.get("port").map(Value::to_string).unwrap_or_default()).collect())
        });
        let ports = ports.collect();
        Self { index, ports }
    }

    /// Collects the hosts in a text that pods of `namespace` read.
    pub(super) fn scan(&self, text: &str, namespace: &str, found: &mut HostReferences) {
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let mut rest = text;
        let mut before = "";
        while !rest.is_empty() {
            let end = rest.find(|c| !is_host(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            if !token.is_empty() {
                self.judge(token, before, after, namespace, found);
            }
            let step = after.find(is_host).unwrap_or(after.len());
            (before, rest) = after.split_at(step);
        }
    }

    /// Collects the Service that a variable names, if its value is only the name.
    pub(super) fn variable(&self, name: &str, value: &str, namespace: &str, found: &mut HostReferences) {
        if name.split('_').any(|word| HOST_WORDS.contains(&word)) {
            found.services.extend(self.index.find("", "Service", namespace, value));
        }
    }

    fn judge(&self, token: &str, before: &str, after: &str, namespace: &str, found: &mut HostReferences) {
        let token = token.trim_matches('.');
        let mut labels = token.split('.');
        let (Some(name), domain) = (labels.next(), (labels.next(), labels.next())) else { return };
        match domain {
            (Some(given), Some("svc")) => match self.index.find("", "Service", given, name) {
                Some(service) => {
                    found.services.insert(service);
                }
                None if (name, given) != ("kubernetes", "default") => {
                    found.others.insert(format!("{name}.{given}"));
                }
                None => {}
            },
            (Some(given), None) => found.services.extend(self.exact(name, given)),
            (None, _) => {
                let Some(service) = self.index.find("", "Service", namespace, name) else { return };
                let port: String =
                    after.strip_prefix(':').unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
                let is_port = self.ports.get(&service).is_some_and(|ports| ports.contains(&port));
                if is_port || before.ends_with("://") || before.ends_with('@') {
                    found.services.insert(service);
                }
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// Resolves `name.namespace` with the exact namespace of a Service, because file names have the same form.
    fn exact(&self, name: &str, namespace: &str) -> Option<usize> {
        self.index.find("", "Service", namespace, name).filter(|at| self.index.namespace_of(*at) == namespace)
    }

    /// Hosts that a ConfigMap names.
    pub(super) fn of_config_map(&self, at: usize) -> HostReferences {
        let mut found = HostReferences::default();
        let data = self.index.all[at].value.get("data").and_then(Value::as_object);
        for text in data.into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
            self.scan(text, self.index.namespace_of(at), &mut found);
        }
        found
    }

    /// Hosts in the arguments and variables of a container.
    pub(super) fn of_container(&self, container: &Value, namespace: &str) -> HostReferences {
        let mut found = HostReferences::default();
        for argument in
            ["command", "args"].iter().flat_map(|field| list(container.get(field))).filter_map(Value::as_str)
        {
            self.scan(argument, namespace, &mut found);
        }
        for variable in list(container.get("env")) {
            let value = variable.text("/value");
            self.scan(value, namespace, &mut found);
            self.variable(variable.text("/name"), value, namespace, &mut found);
        }
        found
    }
}
