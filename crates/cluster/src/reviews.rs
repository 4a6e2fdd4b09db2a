//! What the API server says about this user's rights: reviews, which store nothing.

use std::sync::Arc;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use pushback_objects::ObjectExt as _;
use serde_json::{Value, json};

use super::{Address, Cluster, Kind};

/// Whether this user may do something, and the server's reason.
///
/// # Errors
/// Why that is not known.
pub async fn access(cluster: &dyn Cluster, attributes: ResourceAttributes) -> Result<(bool, String), String> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answered = post(cluster, "SelfSubjectAccessReview", "selfsubjectaccessreviews", &review).await?;
    let review: SelfSubjectAccessReview = serde_json::from_value(answered)
        .map_err(|error| format!("the server's answer is no access review: {error}"))?;
    let status = review.status.ok_or("the server's answer has no status")?;
    Ok((status.allowed, status.reason.unwrap_or_default()))
}

/// The name of this user as the API server knows it; `None` for a server before Kubernetes 1.28, or if it does not
/// answer.
pub async fn user(cluster: &dyn Cluster) -> Option<String> {
    let review = Kind {
        group: "authentication.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectReview".to_owned(),
        plural: "selfsubjectreviews".to_owned(),
        ..Kind::default()
    };
    let address = Address::new(Arc::new(review), "", "");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let written = cluster.create(&address, &body, false).await.ok()?;
    Some(written.object.text("/status/userInfo/username").to_owned()).filter(|user| !user.is_empty())
}

/// Sends a review and returns it as answered.
///
/// # Errors
/// It could not be sent.
pub async fn post<T: serde::Serialize>(
    cluster: &dyn Cluster,
    kind: &str,
    plural: &str,
    body: &T,
) -> Result<Value, String> {
    let review = Kind {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        ..Kind::default()
    };
    let body = serde_json::to_value(body).map_err(|error| error.to_string())?;
    let address = Address::new(Arc::new(review), "", "");
    let written =
        cluster.create(&address, &body, false).await.map_err(|error| format!("failed to ask for access: {error}"))?;
    Ok((*written.object).clone())
}
