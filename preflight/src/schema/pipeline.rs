//! What the API server does to a custom resource under a schema: prune, drop nulls, default, validate.
