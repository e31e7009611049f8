//! A barrier at which threads wait for each other before they begin at one moment, or not at all.

use std::sync::{Condvar, Mutex, MutexGuard};

use crate::worker::Clock;

/// Threads arrive, each with whether it is able; one opens when all have.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    arrived: usize,
    unable: usize,
    /// Set once: the clock to begin with, or none where nobody begins.
    opened: Option<Option<Clock>>,
}

impl Gate {
    /// Waits until it is opened; `None` means not to begin.
    pub fn pass(&self, is_able: bool) -> Option<Clock> {
        let mut state = self.lock();
        state.arrived += 1;
        state.unable += usize::from(!is_able);
        self.changed.notify_all();
        loop {
            match state.opened {
                Some(clock) => return clock.filter(|_| is_able),
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                }
            }
        }
    }

    /// Waits until all have arrived, and lets them begin if all are able.
    pub fn open(
        &self,
        arriving: usize,
        are_all: bool,
        clock: impl FnOnce() -> Clock,
    ) -> Option<Clock> {
        let mut state = self.lock();
        while state.arrived < arriving {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let clock = (are_all && state.unable == 0).then(clock);
        state.opened = Some(clock);
        self.changed.notify_all();
        clock
    }

    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn passed(able: &[bool], are_all: bool) -> Vec<bool> {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let pass = |is_able: bool| {
                let gate = &gate;
                scope.spawn(move || gate.pass(is_able).is_some())
            };
            let threads: Vec<_> = able.iter().map(|&is_able| pass(is_able)).collect();
            gate.open(able.len(), are_all, || Clock {
                began: Instant::now(),
                warmup_ns: 0,
                end_ns: 0,
            });
            threads
                .into_iter()
                .map(|thread| thread.join().expect("it passes"))
                .collect()
        })
    }

    #[test]
    fn all_begin_or_none() {
        assert_eq!(passed(&[true, true, true], true), [true, true, true]);
        assert_eq!(passed(&[true, false, true], true), [false, false, false]);
        assert_eq!(passed(&[true, true], false), [false, false]);
    }
}
