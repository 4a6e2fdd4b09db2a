//! Patterns as the API server reads them: the grammar of RE2, and the sets of strings that they name.
