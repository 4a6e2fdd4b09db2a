#!/bin/sh
# Applies what was approved for one cluster: apply.sh NAME. Ends with 11 where anything has moved since, and writes nothing.
set -eu

name="$1"
exec pushback apply --plan "plans/$name.plan" --cluster "${CLUSTER:-kube}"
