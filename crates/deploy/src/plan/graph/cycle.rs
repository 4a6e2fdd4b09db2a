//! Strongly connected components, and the cycle to report when required rules contradict each other.
//! Not recursive: a dependency chain may be as long as the app is large.

use std::collections::VecDeque;

const UNSEEN: usize = usize::MAX;

/// Tarjan's algorithm: the component number of every vertex.
pub(super) fn components(arcs: &[Vec<usize>]) -> Vec<usize> {
    let mut component = vec![UNSEEN; arcs.len()];
    let mut index = vec![UNSEEN; arcs.len()];
    let mut low = vec![0; arcs.len()];
    let (mut next_index, mut next_component) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for root in 0..arcs.len() {
        if index[root] != UNSEEN {
            continue;
        }
        calls.push((root, 0));
        while let Some((vertex, position)) = calls.pop() {
            if position == 0 {
                index[vertex] = next_index;
                low[vertex] = next_index;
                next_index += 1;
                open.push(vertex);
            }
            if let Some(&next) = arcs[vertex].get(position) {
                calls.push((vertex, position + 1));
                if index[next] == UNSEEN {
                    calls.push((next, 0));
                } else if component[next] == UNSEEN {
                    low[vertex] = low[vertex].min(index[next]);
                }
                continue;
            }
            if low[vertex] == index[vertex] {
                while let Some(member) = open.pop() {
                    component[member] = next_component;
                    if member == vertex {
                        break;
                    }
                }
                next_component += 1;
            }
            if let Some(&(caller, _)) = calls.last() {
                low[caller] = low[caller].min(low[vertex]);
            }
        }
    }
    component
}

/// The shortest cycle through the lowest vertex that is on one, joins left out, in the direction of waiting.
pub(super) fn find(arcs: &[Vec<usize>], node_count: usize) -> Option<Vec<usize>> {
    let component = components(arcs);
    let mut size = vec![0_usize; arcs.len()];
    for &number in &component {
        size[number] += 1;
    }
    // Every cycle contains a node, because joins are never connected to each other.
    let start = (0..node_count).find(|&node| size[component[node]] > 1)?;
    let mut previous = vec![UNSEEN; arcs.len()];
    let mut queue = VecDeque::from([start]);
    'search: while let Some(vertex) = queue.pop_front() {
        for &next in arcs[vertex].iter().filter(|&&next| component[next] == component[start]) {
            if previous[next] != UNSEEN {
                continue;
            }
            previous[next] = vertex;
            if next == start {
                break 'search;
            }
            queue.push_back(next);
        }
    }
    // `previous` leads from a change to what goes before it, which is the direction of waiting.
    let mut cycle = vec![start];
    let mut vertex = previous[start];
    while vertex != start && vertex != UNSEEN {
        if vertex < node_count {
            cycle.push(vertex);
        }
        vertex = previous[vertex];
    }
    cycle.push(start);
    Some(cycle)
}
