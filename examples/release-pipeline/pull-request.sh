#!/bin/sh
# Compares the definitions of a pull request with those of the branch that it goes to. Needs no cluster.
# Ends with 10 where a definition could not be upgraded safely; the reports are written all the same.
set -eu

base="${BASE:-origin/main}"
manifests="${MANIFESTS:-config/crd}"
reports="${REPORTS:-reports}"

mkdir -p "$reports"
exec pushback check -f "$manifests" --cluster "git:$base:$manifests" --preflight=CRDUpgradeSafety \
    --report "json=$reports/check.json" \
    --report "sarif=$reports/check.sarif" \
    --report "junit=$reports/check.xml" \
    --report "markdown=$reports/check.md" \
    --report "github=$reports/annotations.txt" \
    --witness-dir "$reports/witnesses"
