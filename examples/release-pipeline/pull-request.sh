#!/bin/sh
# Compares the CRDs of a pull request with those of the branch that it goes to. Needs no cluster.
# Ends with 10 if a CRD could not be upgraded safely; the reports are written all the same.
set -eu

base="${BASE:-origin/main}"
manifests="${MANIFESTS:-config/crd}"
path="${manifests#./}"
path="${path%/}"
reports="${REPORTS:-reports}"

set -- -f "$manifests" --cluster "git:$base:$manifests"
# A branch that does not contain the folder has no base: a first release, or a folder that has moved. Objects that the
# branch has under another path are compared as moved. A branch that is missing is an error of the check.
if git rev-parse --quiet --verify "$base^{commit}" >/dev/null &&
    ! git ls-tree -r --name-only --full-tree "$base" -- "$path" | grep -qiE '\.(yaml|yml|json)$'; then
    set -- "$@" --new-base
fi

# Whoever opens a pull request cannot loosen its own check: the policy is that of the base.
mkdir -p "$reports"
exec pushback check "$@" --preflight=CRDUpgradeSafety \
    --policy-from=outside \
    --report "json=$reports/check.json" \
    --report "sarif=$reports/check.sarif" \
    --report "junit=$reports/check.xml" \
    --report "markdown=$reports/check.md" \
    --report "github=$reports/annotations.txt" \
    --witness-dir "$reports/witnesses"
