//! The graph against a naive model that adds every pairwise edge and searches for a cycle after every rule.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

impl Graph {
    /// Number of arcs, joins included.
    pub(in crate::plan) fn arc_count(&self) -> usize {
        self.dependents.iter().map(Vec::len).sum()
    }

    /// The nodes that `node` waits for directly, that is through joins alone, sorted.
    fn dependencies_of(&self, node: usize) -> Vec<usize> {
        let (mut stack, mut found) = (vec![node], BTreeSet::new());
        while let Some(vertex) = stack.pop() {
            let (nodes, joins): (Vec<usize>, _) =
                self.dependencies[vertex].iter().partition(|next| **next < self.node_count);
            found.extend(nodes);
            stack.extend::<Vec<usize>>(joins);
        }
        found.remove(&node);
        found.into_iter().collect()
    }

    /// The nodes by depth: what could run concurrently if each wave waited for the previous one.
    fn waves(&self) -> Vec<Vec<usize>> {
        let mut order = self.order();
        let mut wave = order.initial();
        let mut waves = Vec::new();
        while !wave.is_empty() {
            let mut next: Vec<usize> = wave.iter().flat_map(|&node| order.complete(node)).collect();
            next.sort_unstable();
            waves.push(std::mem::replace(&mut wave, next));
        }
        let numbers = self.wave_numbers(|_| true);
        for (number, node) in
            waves.iter().enumerate().flat_map(|(number, wave)| wave.iter().map(move |node| (number, node)))
        {
            assert_eq!(numbers[*node], number, "node {node}");
        }
        waves
    }
}

fn node(name: &str, groups: &[&str], rules: &[&str]) -> ChangeNode {
    ChangeNode {
        name: name.to_owned(),
        operation: NodeOperation::Upsert,
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        rules: rules.iter().map(|rule| parse_rule(rule).expect("it is valid")).collect(),
    }
}

fn optional(mut node: ChangeNode) -> ChangeNode {
    node.rules.iter_mut().for_each(|rule| rule.ignore_if_cyclical = true);
    node
}

#[test]
fn a_rule_is_what_config_reads() {
    let rule = parse_rule(" delete  before upserting ex.com/group ").expect("it is valid");
    assert_eq!((rule.own, rule.position, rule.other), (NodeOperation::Delete, Position::Before, NodeOperation::Upsert));
    assert_eq!(rule.group, "ex.com/group");
    assert!(parse_rule("upsert beyond upserting a").is_err(), "the words are those of Config");
}

#[test]
fn changes_start_when_what_they_wait_for_is_complete() {
    let nodes = [
        node("app", &[], &["upsert after upserting config", "upsert after upserting job"]),
        node("config", &["config"], &[]),
        node("job", &["job"], &["upsert after upserting config"]),
        node("other", &[], &[]),
        node("first", &[], &["upsert before upserting config"]),
    ];
    let graph = Graph::build(&nodes).expect("it is valid");
    assert_eq!(graph.waves(), vec![vec![3, 4], vec![1], vec![2], vec![0]]);
    assert_eq!(graph.dependencies_of(0), vec![1, 2]);
    assert_eq!(graph.dependents_of(4), vec![0, 1, 2]);
    let mut order = graph.order();
    assert_eq!(order.initial(), vec![3, 4]);
    assert_eq!(order.complete(3), Vec::<usize>::new());
    assert_eq!(order.complete(4), vec![1]);
    assert_eq!(order.complete(4), Vec::<usize>::new());
    assert_eq!(order.complete(99), Vec::<usize>::new());
}

#[test]
fn a_rule_about_the_other_operation_or_an_empty_group_orders_nothing() {
    let mut delete = node("old", &["g"], &["upsert after upserting g"]);
    delete.operation = NodeOperation::Delete;
    let mut unchanged = node("same", &["g"], &["upsert after upserting g"]);
    unchanged.operation = NodeOperation::None;
    let nodes = [delete, unchanged, node("new", &[], &["upsert after upserting g", "upsert after deleting absent"])];
    assert_eq!(Graph::build(&nodes).expect("it is valid").waves(), vec![vec![0, 1, 2]]);
}

#[test]
fn a_member_waits_for_the_rest_of_its_own_group() {
    let nodes = [node("a", &["g"], &[]), node("b", &["g"], &["upsert after upserting g"]), node("c", &["g"], &[])];
    assert_eq!(Graph::build(&nodes).expect("it is valid").waves(), vec![vec![0, 2], vec![1]]);
}

#[test]
fn a_cycle_of_required_rules_is_shown_in_the_direction_of_waiting() {
    let nodes = [
        node("free", &[], &[]),
        node("A", &["a"], &["upsert after upserting b"]),
        node("B", &["b"], &["upsert after upserting c"]),
        node("C", &["c"], &["upsert before upserting b", "upsert after upserting a"]),
    ];
    let error = Graph::build(&nodes).expect_err("it is refused");
    assert_eq!(error.to_string(), "Detected cycle while ordering changes: [A] -> [B] -> [C] -> [A]");
    assert_eq!(error.nodes, vec![1, 2, 3, 1]);
}

#[test]
fn a_rule_that_may_be_ignored_gives_way_to_a_required_one() {
    let nodes = [
        optional(node("app", &["app"], &["upsert after upserting config"])),
        node("config", &["config"], &["upsert after upserting app"]),
        optional(node("other", &[], &["upsert after upserting config"])),
    ];
    let graph = Graph::build(&nodes).expect("it is valid");
    assert_eq!(graph.waves(), vec![vec![0], vec![1], vec![2]]);
    assert_eq!(graph.dropped(), &[DroppedRule { node: 0, rule: 0 }]);
}

#[test]
fn edges_grow_with_memberships_and_rules_only() {
    let mut nodes: Vec<ChangeNode> = (0..500).map(|index| node(&format!("c{index}"), &["config"], &[])).collect();
    nodes.extend((0..500).map(|index| optional(node(&format!("d{index}"), &[], &["upsert after upserting config"]))));
    assert_eq!(Graph::build(&nodes).expect("it is valid").arc_count(), 1000);
}

#[test]
fn two_large_groups_that_wait_for_each_other_are_settled() {
    let member = |index: usize| {
        let (own, other) = if index < 4000 { ("a", "b") } else { ("b", "a") };
        optional(node(&format!("n{index}"), &[own], &[&format!("upsert after upserting {other}")]))
    };
    let nodes: Vec<ChangeNode> = (0..8000).map(member).collect();
    let graph = Graph::build(&nodes).expect("it is valid");
    assert_eq!(graph.dropped().len(), 4000);
    assert_eq!(graph.waves().len(), 2);
}

#[test]
fn a_long_chain_with_rules_both_ways_keeps_one_way() {
    let count = 3000;
    let link = |index: usize| {
        let mut rules = vec![format!("upsert after upserting g{}", index + 1)];
        if index > 0 {
            rules.push(format!("upsert after upserting g{}", index - 1));
        }
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        optional(node(&format!("n{index}"), &[&format!("g{index}")], &rules))
    };
    let nodes: Vec<ChangeNode> = (0..count).map(link).collect();
    let graph = Graph::build(&nodes).expect("it is valid");
    assert_eq!(graph.dropped().len(), count - 1);
    assert_eq!(graph.waves().len(), count);
}

/// Pairwise edges: `waits[a][b]` is "a waits for b".
struct Naive {
    waits: Vec<Vec<bool>>,
    dropped: Vec<DroppedRule>,
    cyclic: bool,
}

impl Naive {
    fn build(nodes: &[ChangeNode]) -> Self {
        let count = nodes.len();
        let mut naive = Self { waits: vec![vec![false; count]; count], dropped: Vec::new(), cyclic: false };
        for required in [true, false] {
            for (source, node) in nodes.iter().enumerate() {
                for (index, rule) in node.rules.iter().enumerate() {
                    if rule.own != node.operation || rule.ignore_if_cyclical == required {
                        continue;
                    }
                    let before = naive.waits.clone();
                    for (member, other) in nodes.iter().enumerate() {
                        if member != source && other.operation == rule.other && other.groups.contains(&rule.group) {
                            match rule.position {
                                Position::After => naive.waits[source][member] = true,
                                Position::Before => naive.waits[member][source] = true,
                            }
                        }
                    }
                    if required {
                        continue;
                    }
                    if is_cyclic(&naive.waits) {
                        naive.waits = before;
                        naive.dropped.push(DroppedRule { node: source, rule: index });
                    }
                }
            }
            if required && is_cyclic(&naive.waits) {
                naive.cyclic = true;
                return naive;
            }
        }
        naive
    }
}

fn closure(waits: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let mut closed = waits.to_vec();
    for middle in 0..waits.len() {
        for from in 0..waits.len() {
            for to in 0..waits.len() {
                closed[from][to] |= closed[from][middle] && closed[middle][to];
            }
        }
    }
    closed
}

fn is_cyclic(waits: &[Vec<bool>]) -> bool {
    closure(waits).iter().enumerate().any(|(index, row)| row[index])
}

fn operations() -> impl Strategy<Value = NodeOperation> {
    prop_oneof![4 => Just(NodeOperation::Upsert), 2 => Just(NodeOperation::Delete), 1 => Just(NodeOperation::None)]
}

fn rules(optional: f64) -> impl Strategy<Value = Rule> {
    let writes = || prop_oneof![3 => Just(NodeOperation::Upsert), 1 => Just(NodeOperation::Delete)];
    (writes(), any::<bool>(), writes(), 0..4_usize, proptest::bool::weighted(optional)).prop_map(
        |(own, before, other, group, ignore_if_cyclical)| Rule {
            own,
            position: if before { Position::Before } else { Position::After },
            other,
            group: format!("g{group}"),
            ignore_if_cyclical,
        },
    )
}

fn change_sets() -> impl Strategy<Value = Vec<ChangeNode>> {
    let groups = proptest::collection::vec((0..4_usize).prop_map(|group| format!("g{group}")), 0..3);
    let rules = proptest::collection::vec(rules(0.85), 0..4);
    let nodes = (operations(), groups, rules).prop_map(|(operation, groups, rules)| ChangeNode {
        name: String::new(),
        operation,
        groups,
        rules,
    });
    proptest::collection::vec(nodes, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_that_of_the_naive_model(nodes in change_sets()) {
        let naive = Naive::build(&nodes);
        let graph = match Graph::build(&nodes) {
            Err(error) => {
                prop_assert!(naive.cyclic);
                prop_assert_eq!(error.nodes.first(), error.nodes.last());
                for pair in error.nodes.windows(2) {
                    prop_assert!(naive.waits[pair[0]][pair[1]], "{} does not wait for {}", pair[0], pair[1]);
                }
                return Ok(());
            }
            Ok(graph) => graph,
        };
        prop_assert!(!naive.cyclic);
        let mut dropped = naive.dropped.clone();
        dropped.sort_unstable();
        let mut own = graph.dropped().to_vec();
        own.sort_unstable();
        prop_assert_eq!(own, dropped);
        let closed = closure(&naive.waits);
        for (node, waits) in naive.waits.iter().enumerate() {
            let dependents: Vec<usize> = (0..nodes.len()).filter(|&other| closed[other][node]).collect();
            prop_assert_eq!(graph.dependents_of(node), dependents);
            let direct: Vec<usize> = (0..nodes.len()).filter(|&other| waits[other]).collect();
            prop_assert_eq!(graph.dependencies_of(node), direct);
        }
        let mut all: Vec<usize> = graph.waves().concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..nodes.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_graph_that_stays_acyclic_refuses_exactly_the_arcs_that_close_a_cycle(
        arcs in proptest::collection::vec((0..14_usize, 0..14_usize), 0..120)
    ) {
        let mut acyclic = Acyclic::new(vec![Vec::new(); 14]);
        let mut model = vec![vec![false; 14]; 14];
        for (from, to) in arcs {
            let before = model.clone();
            model[from][to] = true;
            let closes = is_cyclic(&model);
            if closes {
                model = before;
            }
            prop_assert_eq!(acyclic.insert(from, to), !closes);
        }
    }
}

#[test]
fn what_does_not_count_hands_on_what_it_waits_for() {
    let nodes = [
        node("c", &["g/c"], &["upsert after upserting g/b"]),
        node("b", &["g/b"], &["upsert after upserting g/a"]),
        node("a", &["g/a"], &[]),
    ];
    let graph = Graph::build(&nodes).expect("it is valid");
    assert_eq!(graph.wave_numbers(|node| node != 1), [1, 1, 0]);
    assert_eq!(graph.arrows(&[Some(0), None, Some(1)]).into_iter().collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!(graph.arrows(&[Some(0), Some(1), Some(2)]).into_iter().collect::<Vec<_>>(), [(1, 0), (2, 1)]);
    assert_eq!(graph.arrows(&[Some(0), Some(1), Some(0)]).into_iter().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
}

#[test]
fn early_release_frees_what_leads_to_a_target_and_nothing_else() {
    let nodes = [
        node("crd", &["crd"], &[]),
        node("object", &["object"], &["upsert after upserting crd"]),
        node("workload", &[], &["upsert after upserting crd"]),
        node("behind", &["behind"], &["upsert after upserting object"]),
        node("last", &[], &["upsert after upserting behind"]),
    ];
    let graph = Graph::build(&nodes).expect("no cycle");
    // They share a join, which leads to the target.
    let mut order = graph.order();
    assert_eq!(order.initial(), [0]);
    assert_eq!(order.release_towards(0, &[2]), [1, 2]);
    assert_eq!(order.release_towards(0, &[2]), [0; 0]);
    assert_eq!(order.complete(0), [0; 0]);
    assert_eq!(order.complete(1), [3]);

    let mut nodes = nodes;
    nodes[0].groups.push("established".to_owned());
    nodes[2].rules = vec![parse_rule("upsert after upserting established").expect("a rule")];
    let graph = Graph::build(&nodes).expect("no cycle");
    let mut order = graph.order();
    assert_eq!(order.initial(), [0]);
    assert_eq!(order.release_towards(0, &[2]), [2]);
    assert_eq!(order.complete(2), [0; 0]);
    assert_eq!(order.complete(0), [1]);
}
