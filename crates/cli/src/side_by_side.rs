//! The same work on each of some items, on as many threads as there are processors.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The results of the work on each item, in the order of the items.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Most commands have one input, and need no other thread.
    if let [item] = items {
        return vec![work(item)];
    }
    let mut results = Vec::with_capacity(items.len());
    let Ok(()) = in_order(items, items.len(), work, |_, result| {
        results.push(result);
        Ok::<_, Infallible>(())
    });
    results
}

/// Results of the work on items that are not taken yet.
struct Ahead<R> {
    /// Number of the next item that nobody works on.
    next: usize,
    /// Items whose results are taken.
    taken: usize,
    done: BTreeMap<usize, R>,
    /// Nothing more is wanted: the taker has ended, or a worker has panicked.
    is_over: bool,
}

/// Ends the work when its owner goes, also by a panic.
struct EndsWork<'a, R> {
    ahead: &'a Mutex<Ahead<R>>,
    changed: &'a Condvar,
    /// A worker that has no more items leaves the others at work.
    only_by_panic: bool,
}

impl<R> Drop for EndsWork<'_, R> {
    fn drop(&mut self) {
        if self.only_by_panic && !std::thread::panicking() {
            return;
        }
        lock(self.ahead).is_over = true;
        self.changed.notify_all();
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works on the items and passes on each result in the order of the items, while the work on later ones goes on. At most `ahead_max` results
/// are in memory. The first failure of `take` ends the work.
///
/// # Errors
/// Those of `take`.
pub fn in_order<T: Sync, R: Send, E>(
    items: &[T],
    ahead_max: usize,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(&T, R) -> Result<(), E>,
) -> Result<(), E> {
    let ahead = Mutex::new(Ahead {
        next: 0,
        taken: 0,
        done: BTreeMap::new(),
        is_over: false,
    });
    let changed = Condvar::new();
    let run = || {
        let _ends = EndsWork {
            ahead: &ahead,
            changed: &changed,
            only_by_panic: true,
        };
        loop {
            let must_wait = |ahead: &mut Ahead<R>| {
                !ahead.is_over
                    && ahead.next < items.len()
                    && ahead.next >= ahead.taken + ahead_max.max(1)
            };
            let mut state = changed
                .wait_while(lock(&ahead), must_wait)
                .unwrap_or_else(PoisonError::into_inner);
            let at = state.next;
            let Some(item) = items.get(at).filter(|_| !state.is_over) else {
                return;
            };
            state.next += 1;
            drop(state);
            let result = work(item);
            lock(&ahead).done.insert(at, result);
            changed.notify_all();
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let _ends = EndsWork {
            ahead: &ahead,
            changed: &changed,
            only_by_panic: false,
        };
        for _ in 0..processors.min(items.len()) {
            scope.spawn(run);
        }
        for (at, item) in items.iter().enumerate() {
            let is_missing = |ahead: &mut Ahead<R>| !ahead.is_over && !ahead.done.contains_key(&at);
            let mut state = changed
                .wait_while(lock(&ahead), is_missing)
                .unwrap_or_else(PoisonError::into_inner);
            // Without a result a worker has panicked, and the scope passes that on.
            let Some(result) = state.done.remove(&at) else {
                return Ok(());
            };
            state.taken = at + 1;
            drop(state);
            changed.notify_all();
            take(item, result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        // The earlier ones take longer.
        let results = each(&items, |&item| {
            std::thread::sleep(Duration::from_micros(100 - item));
            item * item
        });
        assert_eq!(
            results,
            items.iter().map(|item| item * item).collect::<Vec<_>>()
        );
    }

    #[test]
    fn no_items_have_no_results() {
        assert!(each(&[] as &[u8], |&item| item).is_empty());
    }

    #[test]
    fn results_are_taken_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..200).collect();
        let (begun, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut results = Vec::new();
        let done = in_order(
            &items,
            5,
            |&item| {
                begun.fetch_add(1, Ordering::SeqCst);
                // Later ones are faster within each ten.
                std::thread::sleep(Duration::from_micros(10 * (10 - item as u64 % 10)));
                item * item
            },
            |&item, result| {
                // This one is taken already.
                let taken = taken.fetch_add(1, Ordering::SeqCst) + 1;
                let ahead = begun.load(Ordering::SeqCst) - taken;
                assert!(ahead <= 5, "{ahead} results are ahead");
                results.push((item, result));
                Ok::<_, ()>(())
            },
        );
        assert_eq!(done, Ok(()));
        let expected: Vec<_> = items.iter().map(|&item| (item, item * item)).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn a_failure_ends_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let work = |&item: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            item
        };
        let done = in_order(
            &items,
            4,
            work,
            |_, at| if at == 7 { Err(at) } else { Ok(()) },
        );
        assert_eq!(done, Err(7));
        // Item 7 and those ahead of it.
        assert!(begun.into_inner() <= 12);
        assert_eq!(in_order(&[] as &[u8], 4, |_| (), |_, ()| Err(())), Ok(()));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_of_a_worker_is_passed_on() {
        let items: Vec<usize> = (0..100).collect();
        let work = |&item: &usize| assert!(item != 20, "item 20");
        let _ = in_order(&items, 4, work, |_, ()| Ok::<_, ()>(()));
    }
}
