//! RBACRevoke: removes the subjects of a binding.

use super::super::change::Step;
use super::super::place::Place;
use super::planning::{Planned, Planning, Refusal};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

pub(super) async fn subjects(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let address =
        planning.address(API_VERSION, planning.parameter("bindingType"), planning.parameter("bindingName"))?;
    let live = planning.target(&address).await?;
    let step = Step::fields(&live, vec![(Place::keys(["subjects"]), None)])
        .ok_or_else(|| Refusal::Impossible(format!("{address} has no subjects")))?;
    Ok(Planned { steps: vec![step], heals: true, ..Planned::default() })
}
