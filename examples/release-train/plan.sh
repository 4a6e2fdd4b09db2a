#!/bin/sh
# Saves the plan of the release for one cluster: plan.sh NAME. Writes nothing to it; ends with 10 where the rules refuse.
set -eu

name="$1"
mkdir -p plans
exec pushback plan -a shop -f "${MANIFESTS:-examples/web-app}" --cluster "${CLUSTER:-kube}" --out "plans/$name.plan"
