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

/// The state of the work on some items.
struct Work<R, E> {
    /// Number of the next item that nobody works on.
    next: usize,
    /// Items whose results are taken: the number of the next one.
    taken: usize,
    /// Results that are not taken yet.
    done: BTreeMap<usize, R>,
    /// Nothing more is wanted: a result was refused, or a worker has panicked.
    is_over: bool,
    failure: Option<E>,
}

impl<R, E> Work<R, E> {
    /// The result whose turn it is, if it is there. Its number stays the present one until it is taken, so one worker at a time takes results.
    fn next_result(&mut self) -> Option<R> {
        match self.is_over {
            true => None,
            false => self.done.remove(&self.taken),
        }
    }
}

/// Ends the work of all if its owner panics.
struct EndsWork<'a, R, E> {
    work: &'a Mutex<Work<R, E>>,
    changed: &'a Condvar,
}

impl<R, E> Drop for EndsWork<'_, R, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.work).is_over = true;
            self.changed.notify_all();
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works on the items and passes on each result in the order of the items, while the work on later ones goes on. At most `ahead_max` results
/// are in memory. The first failure of `take` ends the work. The worker that ends the item whose turn it is takes its result, and those behind
/// it that are there: a thread that only takes results would slow one worker down, and the last item would wait for that one.
///
/// # Errors
/// Those of `take`.
pub fn in_order<T: Sync, R: Send, E: Send>(
    items: &[T],
    ahead_max: usize,
    work_on: impl Fn(&T) -> R + Sync,
    take: impl FnMut(&T, R) -> Result<(), E> + Send,
) -> Result<(), E> {
    let work = Mutex::new(Work {
        next: 0,
        taken: 0,
        done: BTreeMap::new(),
        is_over: false,
        failure: None,
    });
    let (changed, take) = (Condvar::new(), Mutex::new(take));
    let take_results = || {
        let mut state = lock(&work);
        while let Some(result) = state.next_result() {
            let at = state.taken;
            drop(state);
            let taken = lock(&take)(&items[at], result);
            state = lock(&work);
            state.taken = at + 1;
            if let Err(failure) = taken {
                state.failure = Some(failure);
                state.is_over = true;
            }
            changed.notify_all();
        }
    };
    let run = || {
        let _ends = EndsWork {
            work: &work,
            changed: &changed,
        };
        loop {
            let must_wait = |work: &mut Work<R, E>| {
                !work.is_over
                    && work.next < items.len()
                    && work.next >= work.taken + ahead_max.max(1)
            };
            let mut state = changed
                .wait_while(lock(&work), must_wait)
                .unwrap_or_else(PoisonError::into_inner);
            let at = state.next;
            let Some(item) = items.get(at).filter(|_| !state.is_over) else {
                return;
            };
            state.next += 1;
            drop(state);
            let result = work_on(item);
            lock(&work).done.insert(at, result);
            take_results();
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..processors.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    let failure = lock(&work).failure.take();
    failure.map_or(Ok(()), Err)
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
    fn a_panic_is_passed_on() {
        let items: Vec<usize> = (0..100).collect();
        for (work_fails, take_fails) in [(20, 100), (100, 20)] {
            let ended = std::panic::catch_unwind(|| {
                let work = |&item: &usize| assert!(item != work_fails, "work on {item}");
                let take = |&item: &usize, ()| {
                    assert!(item != take_fails, "result of {item}");
                    Ok::<_, ()>(())
                };
                in_order(&items, 4, work, take)
            });
            assert!(ended.is_err(), "{work_fails} {take_fails}");
        }
    }
}
