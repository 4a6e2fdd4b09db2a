#!/bin/sh
# Applies the definitions of a release. The rules of preflight see the real cluster, with its stored versions, and
# refuse with 10 before anything is written. CLUSTER=kube is the cluster of the kubeconfig.
set -eu

app="${APP:-definitions}"
cluster="${CLUSTER:-dir:live}"
manifests="${MANIFESTS:-config/crd}"
reports="${REPORTS:-reports}"

mkdir -p "$reports"
exec pushback apply -a "$app" -f "$manifests" --cluster "$cluster" --preflight --yes \
    --report "json=$reports/release.json" \
    --report "junit=$reports/release.xml" \
    --report "markdown=$reports/release.md" \
    --witness-dir "$reports/witnesses"
