//! Tests of the plan as a whole.

mod growth;
