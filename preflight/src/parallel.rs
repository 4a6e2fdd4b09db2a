//! Deterministic work on several threads: items are independent, results keep their order.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum number of threads. Each holds the memory of its current item.
const MOST: usize = 4;

/// Applies `work` to every item and returns the results in the order of the items. Each thread reserves a stack of
/// `stack` bytes; only the part in use costs memory. A panic in `work` reaches the caller.
pub fn map<T: Sync, R: Send>(items: &[T], stack: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_heaviest_first(items, |_| 0, stack, work)
}

/// Like [`map`], for items of very different cost: heavy items start first, so that none is left for the end when
/// the other threads are idle.
pub fn map_heaviest_first<T: Sync, R: Send>(
    items: &[T],
    weight: impl Fn(&T) -> usize,
    stack: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| Reverse(weight(&items[*index])));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST).min(items.len());
    let next = AtomicUsize::new(0);
    // Idle threads take the next item, because items differ in size.
    let take = || {
        let mut done = Vec::new();
        loop {
            let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return done };
            done.push((index, work(&items[index])));
        }
    };
    let mut done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().stack_size(stack).spawn_scoped(scope, take).ok();
        let running: Vec<_> = (0..threads).filter_map(start).collect();
        let mut done = Vec::with_capacity(items.len());
        for thread in running {
            match thread.join() {
                Ok(some) => done.extend(some),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    // If no thread can be started, the current one does the work.
    done.extend(take());
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const STACK: usize = 1 << 20;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1_000).collect();
        // The first item takes longest.
        let slow = |item: &u64| (0..(1_000 - item) * 50).fold(*item, |sum, number| sum.wrapping_add(number * number));
        assert_eq!(map(&items, STACK, slow), items.iter().map(slow).collect::<Vec<_>>());
        assert!(map(&[], STACK, slow).is_empty());
    }

    #[test]
    fn the_heaviest_come_first_and_the_results_stay_in_order() {
        let items = [3, 1, 7, 7, 2];
        let begun = Mutex::new(Vec::new());
        let one_after_the_other = |item: &usize| {
            begun.lock().unwrap().push(*item);
            item * 2
        };
        let results = map_heaviest_first(&items, |item| *item, STACK, one_after_the_other);
        assert_eq!(results, [6, 2, 14, 14, 4]);
        // The first to start is one of the first two taken, whatever the number of threads.
        assert_eq!(begun.lock().unwrap()[0], 7);
    }

    #[test]
    fn a_stack_is_as_deep_as_asked_for() {
        fn deep(levels: u64) -> u64 {
            let here = std::hint::black_box([levels; 64]);
            if levels == 0 { here[0] } else { deep(levels - 1) + here[1].min(1) }
        }
        assert_eq!(map(&[60_000], 256 << 20, |levels| deep(*levels)), [60_000]);
    }

    #[test]
    #[should_panic(expected = "of the work")]
    fn a_panic_of_the_work_is_one_of_the_caller() {
        map(&[1, 2, 3], STACK, |item| assert!(*item < 2, "of the work"));
    }
}
