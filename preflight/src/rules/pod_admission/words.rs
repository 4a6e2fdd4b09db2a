//! The parts of the API server's refusals: controls, limits and resources that a way out names.

use crate::facts::PodRefusal;

/// The way out of a refusal, in one sentence.
pub(super) fn remedy(by: PodRefusal, message: &str) -> Option<String> {
    let named = |kind: &str, words: &str| {
        let name = quoted(message, words).map(|name| format!(" {name}")).unwrap_or_default();
        format!("change the Pod template as {kind}{name} demands")
    };
    Some(match by {
        PodRefusal::PodSecurity => named("the Pod Security Standard", "violates PodSecurity \""),
        PodRefusal::LimitRange => limits(message).join("; "),
        PodRefusal::QuotaRequests => match demands(message).join("; ") {
            steps if steps.is_empty() => "set the requests and limits that the quota demands".to_owned(),
            steps => steps,
        },
        PodRefusal::Quota => "raise the quota, or free what it counts".to_owned(),
        PodRefusal::ServiceAccount => "add the ServiceAccount to the manifests, or correct the name".to_owned(),
        PodRefusal::PriorityClass => "add the PriorityClass to the manifests, or correct the name".to_owned(),
        PodRefusal::RuntimeClass => "add the RuntimeClass to the manifests, or correct the name".to_owned(),
        PodRefusal::Webhook => named("webhook", "admission webhook \""),
        PodRefusal::Policy => named("policy", "ValidatingAdmissionPolicy '"),
        PodRefusal::Invalid | PodRefusal::Denied => "correct the Pod template".to_owned(),
    })
}

/// A step for each violated control of a Pod Security Standard: `hostPort (container "b" uses hostPort 80), …`.
pub(super) fn controls(message: &str) -> Vec<String> {
    let Some((_, rest)) = message.split_once("violates PodSecurity \"") else { return Vec::new() };
    let Some((_, list)) = rest.split_once("\": ") else { return Vec::new() };
    let mut depth = 0_usize;
    let outer = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let step = |part: &str| match part.trim().split_once(" (") {
        Some((control, detail)) => format!("correct {control}: {}", detail.trim_end_matches(')')),
        None => format!("correct {}", part.trim()),
    };
    list.split(outer).map(step).collect()
}

/// The server's words with their parts in order: the server lists bounds and demands in any.
pub(super) fn in_order(by: PodRefusal, message: &str) -> String {
    match by {
        PodRefusal::LimitRange => {
            let mut bounds = bounds(message);
            bounds.sort();
            bounds.join(", ")
        }
        PodRefusal::QuotaRequests => {
            const DEMAND: &str = "must specify ";
            let Some((start, list)) = message.split_once(DEMAND) else { return message.to_owned() };
            let mut demands: Vec<&str> = list.split("; ").collect();
            demands.sort_unstable();
            format!("{start}{DEMAND}{}", demands.join("; "))
        }
        _ => message.to_owned(),
    }
}

/// The bounds of a LimitRange: `[minimum cpu usage per Container is 200m, but request is 100m, …]`.
fn bounds(message: &str) -> Vec<String> {
    let list = message.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(message);
    let mut bounds: Vec<String> = Vec::new();
    for part in list.split(", ") {
        let begins = |part: &str| part.contains(" usage per ") || part.contains(" limit to request ratio per ");
        match bounds.last_mut() {
            Some(bound) if !begins(part) => *bound = format!("{bound}, {part}"),
            _ => bounds.push(part.to_owned()),
        }
    }
    bounds
}

/// A step for each bound of a LimitRange.
fn limits(message: &str) -> Vec<String> {
    bounds(message).iter().map(|bound| bound_step(bound)).collect()
}

fn bound_step(bound: &str) -> String {
    let step = || {
        let (first, is) = bound.split_once(" per ")?;
        let (scope, rest) = is.split_once(" is ")?;
        let scope = if scope == "Pod" { "of all containers together" } else { "of each container" };
        let value = rest.split([',', ' ']).next()?.trim_end_matches('.');
        if let Some(resource) = first.strip_suffix(" max limit to request ratio") {
            return Some(format!("set the limit of {resource} {scope} to at most {value} times the request"));
        }
        let (kind, resource) = first.strip_suffix(" usage")?.split_once(' ')?;
        match kind {
            "minimum" => Some(format!("set request and limit of {resource} {scope} to at least {value}")),
            "maximum" => Some(format!("set request and limit of {resource} {scope} to at most {value}")),
            _ => None,
        }
    };
    step().unwrap_or_else(|| bound.to_owned())
}

/// The demands of a quota: `must specify limits.cpu for: web; requests.memory for: web`.
fn demands(message: &str) -> Vec<String> {
    let Some((_, list)) = message.split_once("must specify ") else { return Vec::new() };
    let steps = list.split("; ").flat_map(|demand| {
        let (resources, containers) = demand.split_once(" for: ").unwrap_or((demand, ""));
        let of = match containers.split(',').filter(|name| !name.is_empty()).collect::<Vec<_>>().as_slice() {
            [] => "each container".to_owned(),
            [one] => format!("container {one}"),
            several => format!("containers {}", several.join(", ")),
        };
        resources.split(',').map(move |resource| format!("set {} of {of}", resource_field(resource.trim())))
    });
    steps.collect()
}

/// The field of a container that a quota's resource counts; `cpu` alone means requests.
fn resource_field(resource: &str) -> String {
    match resource.split_once('.') {
        Some(("limits" | "requests", _)) => format!("resources.{resource}"),
        _ => format!("resources.requests.{resource}"),
    }
}

/// Name of the quota that refuses: `exceeded quota: q, requested: …`.
pub(super) fn quota(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("exceeded quota: ")?;
    rest.split(',').next()
}

/// Name of the ValidatingAdmissionPolicy that refuses.
pub(super) fn policy(message: &str) -> Option<&str> {
    quoted(message, "ValidatingAdmissionPolicy '")
}

/// The ServiceAccount that is missing: `error looking up service account shop/web: …`.
pub(super) fn service_account(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("error looking up service account ")?;
    rest.split(':').next()
}

/// The name between words that end with a quote and the closing quote.
fn quoted<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(words)?;
    rest.split(['"', '\'']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violated_control_is_named_with_its_field() {
        let message = "violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true, hostPID=true), \
                       allowPrivilegeEscalation != false (containers \"web\", \"b\" must set \
                       securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"web\" must \
                       set securityContext.capabilities.drop=[\"ALL\"]; container \"b\" must not include \"A\", \"B\" in \
                       securityContext.capabilities.add)";
        insta::assert_snapshot!(controls(message).join("\n"), @r#"
        correct host namespaces: hostNetwork=true, hostPID=true
        correct allowPrivilegeEscalation != false: containers "web", "b" must set securityContext.allowPrivilegeEscalation=false
        correct unrestricted capabilities: container "web" must set securityContext.capabilities.drop=["ALL"]; container "b" must not include "A", "B" in securityContext.capabilities.add
        "#);
        assert_eq!(
            remedy(PodRefusal::PodSecurity, message).as_deref(),
            Some("change the Pod template as the Pod Security Standard restricted:latest demands")
        );
    }

    #[test]
    fn each_bound_of_a_limit_range_is_a_step() {
        let message = "[minimum cpu usage per Container is 200m, but request is 100m, cpu max limit to request ratio per \
                       Container is 4, but provided ratio is 10.000000, maximum memory usage per Container is 1Gi.  No limit \
                       is specified, maximum cpu usage per Pod is 2, but limit is 6]";
        insta::assert_snapshot!(limits(message).join("\n"), @r"
        set request and limit of cpu of each container to at least 200m
        set the limit of cpu of each container to at most 4 times the request
        set request and limit of memory of each container to at most 1Gi
        set request and limit of cpu of all containers together to at most 2
        ");
    }

    #[test]
    fn parts_of_a_refusal_are_in_one_order() {
        let (cpu, memory) =
            ("minimum cpu usage per Pod is 1, but request is 0", "maximum memory usage per Pod is 1Gi, but x");
        let of = |bounds: [&str; 2]| in_order(PodRefusal::LimitRange, &format!("[{}]", bounds.join(", ")));
        assert_eq!(of([cpu, memory]), of([memory, cpu]));
        let of =
            |demands: &str| in_order(PodRefusal::QuotaRequests, &format!("failed quota: q: must specify {demands}"));
        assert_eq!(of("a for: web; b for: web"), of("b for: web; a for: web"));
    }

    #[test]
    fn each_demand_of_a_quota_is_a_step() {
        let of = |message: &str| demands(message).join("\n");
        insta::assert_snapshot!(of("failed quota: q: must specify limits.cpu for: web; memory for: web,b"), @r"
        set resources.limits.cpu of container web
        set resources.requests.memory of containers web, b
        ");
        // As API servers before 1.22 worded it.
        insta::assert_snapshot!(of("failed quota: q: must specify limits.cpu,requests.memory"), @r"
        set resources.limits.cpu of each container
        set resources.requests.memory of each container
        ");
    }

    #[test]
    fn other_words_give_no_steps_and_no_panic() {
        for message in
            ["", "[", "violates PodSecurity \"", "violates PodSecurity \"x\": ((", "must specify ", " per  is ", "]"]
        {
            for by in PodRefusal::ALL {
                controls(message);
                in_order(*by, message);
                assert!(remedy(*by, message).is_some(), "{message}");
            }
        }
    }
}
