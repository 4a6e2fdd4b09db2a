//! Objects that others have made, and runs of experiments on them that are killed: a recovery gives back every value as a
//! run does that lives.

use super::{AS_BEFORE, Cell, ORIGINS, Place};
use crate::kill_points::killed_once;
use crate::support::case::show;
use crate::support::proxy::{FaultProxy, Request, Verb, writes};
use crate::support::{TestCase, cases, rounds};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: whoever_made_an_object_has_every_value_of_it_back_from_a_run_that_was_killed]
}

impl Place {
    /// Kills a run of this experiment once its injection has been answered: behind the lock and the journal.
    fn kill_injected(&self, file: &str) {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        let is_injection = |request: &Request| !(request.verb == Verb::Patch && request.resource == "leases");
        let mut reached = proxy.end_after(writes().that(is_injection).nth(3), true);
        let consent = format!("ValidatingWebhookConfiguration/{}", self.namespace);
        let given = ["upgrade", "run", file, "--allow-namespace", &self.namespace, "--max-danger", "high", "--yes"];
        let given = [&given[..], &["--allow-cluster-scoped", &consent]].concat();
        let killed =
            killed_once(&proxy, &self.pushback, &given.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), || {
                reached.try_recv().is_ok()
            });
        assert!(killed, "{file}: the run has ended");
    }
}

/// By default each injection with one origin, in turns; in a full
/// run with all.
fn whoever_made_an_object_has_every_value_of_it_back_from_a_run_that_was_killed() {
    let cells: Vec<Cell> = std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..ORIGINS.len()).map(|index| scope.spawn(move || recovered(index, rounds(0, 1) > 0))).collect();
        running.into_iter().flat_map(|running| running.join().expect("a column")).collect()
    });
    show(&format!("{} injections recovered", cells.len()));
    let wrong: Vec<&str> = cells.iter().filter(|cell| cell.is != AS_BEFORE).map(|cell| cell.detail.as_str()).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}

/// Experiments on objects of one origin, each ended by a kill and a recovery.
fn recovered(index: usize, all: bool) -> Vec<Cell> {
    let (origin, place) = (ORIGINS[index], Place::new());
    let api = place.cluster.api();
    place.make_steady();
    let mut cells = Vec::new();
    for (number, subject) in place.subjects().iter().enumerate() {
        if !all && number % ORIGINS.len() != index {
            continue;
        }
        origin.make(api, &subject.object, subject.pointer);
        let before = api.get(&api.path_of(&subject.object)).ok();
        let file = format!("killed/{number:02}.yaml");
        let experiment = place.experiment(&format!("e{number:02}"), subject.kind, &subject.parameters);
        place.pushback.write(&file, experiment.to_string());
        place.kill_injected(&file);
        let ran = place.recover(&[]).expect(0);
        let after = api.get(&api.path_of(&subject.object)).ok();
        cells.push(Cell::of(subject, origin, &before, &after, &ran.stdout));
        assert_eq!(place.recover(&[]).expect(0).stdout, "Nothing is left to take back.\n");
    }
    cells
}
