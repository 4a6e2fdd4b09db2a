//! Storage versions on a real API server: what is shown, what is moved, and what is really in etcd afterwards.

mod carried;
mod clients;
mod converted;
pub(crate) mod crd;
mod disaster;
mod existing;
mod garbage;
mod interrupted;
mod job;
mod migrate;
mod owners;
mod plans;
mod rollback;
mod roundtrip;
mod rules;
mod statements;
mod strimzi;
mod troubles;
mod waves;

use crate::support::TestCase;

pub(crate) fn tests() -> Vec<TestCase> {
    [
        carried::tests(),
        clients::tests(),
        converted::tests(),
        disaster::tests(),
        existing::tests(),
        garbage::tests(),
        interrupted::tests(),
        job::tests(),
        migrate::tests(),
        owners::tests(),
        plans::tests(),
        rollback::tests(),
        roundtrip::tests(),
        rules::tests(),
        statements::tests(),
        strimzi::tests(),
        troubles::tests(),
        waves::tests(),
    ]
    .concat()
}
