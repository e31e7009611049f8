//! Reads ahead on a thread of its own, so that decoding one source and using its events take two cores.
//!
//! Works for every format. Batches go round: a used one goes back to be filled again, so memory is bounded by
//! [`BATCHES`] and nothing is allocated per batch.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::batch::Batch;
use crate::error::{Damage, Error, Place};
use crate::reader::{Fill, Reader};
use crate::source::SourceInfo;

/// Batches that are on their way between the two threads.
pub const BATCHES: usize = 4;

/// The outcome of one call. Facts about the source come with it if this may be the last request.
struct Filled {
    batch: Batch,
    outcome: Result<Fill, Error>,
    info: Option<Box<SourceInfo>>,
}

/// A reader whose source is read by another thread.
pub struct ReadAhead {
    filled: Option<Receiver<Filled>>,
    emptied: Sender<Batch>,
    thread: Option<JoinHandle<()>>,
    info: SourceInfo,
    ended: bool,
}

impl ReadAhead {
    /// Starts to read on a thread.
    #[must_use]
    pub fn wrap(inner: Box<dyn Reader>) -> Box<dyn Reader> {
        let info = inner.info().clone();
        let (to_user, filled) = sync_channel(BATCHES);
        let (emptied, to_fill) = channel();
        for _ in 0..BATCHES {
            // The receiver lives until the thread has it.
            let _ = emptied.send(Batch::default());
        }
        let thread = thread::spawn(move || read_on(inner, &to_fill, &to_user));
        Box::new(ReadAhead {
            filled: Some(filled),
            emptied,
            thread: Some(thread),
            info,
            ended: false,
        })
    }

    /// The thread went away without a last word: it can only have panicked.
    fn lost_thread(&mut self) -> Error {
        self.ended = true;
        let damage = Damage {
            place: Place::Row(self.info.counts.events),
            found: "a reader that stopped on an internal error".to_owned(),
            expected: "its end or an error; please report this file".to_owned(),
        };
        self.info.damage(damage.clone());
        Error::Malformed {
            path: self.info.path.clone(),
            damage,
        }
    }
}

fn read_on(mut inner: Box<dyn Reader>, to_fill: &Receiver<Batch>, to_user: &SyncSender<Filled>) {
    // Ends when the user of the batches is gone, at the end, or on an error.
    while let Ok(mut batch) = to_fill.recv() {
        let outcome = inner.fill(&mut batch);
        let last = matches!(outcome, Ok(Fill::End) | Err(_));
        let info = (!matches!(outcome, Ok(Fill::Events))).then(|| Box::new(inner.info().clone()));
        if to_user
            .send(Filled {
                batch,
                outcome,
                info,
            })
            .is_err()
            || last
        {
            return;
        }
    }
}

impl Reader for ReadAhead {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if self.ended {
            return Ok(Fill::End);
        }
        let Some(Ok(mut filled)) = self.filled.as_ref().map(Receiver::recv) else {
            return Err(self.lost_thread());
        };
        std::mem::swap(batch, &mut filled.batch);
        // Fails only when the thread has ended, which needs no batch.
        let _ = self.emptied.send(filled.batch);
        if let Some(info) = filled.info {
            self.info = *info;
        } else {
            self.info.counts.events += batch.len() as u64;
        }
        self.ended = matches!(filled.outcome, Ok(Fill::End) | Err(_));
        filled.outcome
    }

    fn info(&self) -> &SourceInfo {
        &self.info
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Without a receiver the thread's next hand-over fails and it ends.
        self.filled = None;
        let (nobody, _) = channel();
        self.emptied = nobody;
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported when its batch did not come.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Event;
    use crate::op::{Layer, Op};

    /// Returns some batches of one event and then the scripted result.
    struct Few {
        left: i64,
        then: fn() -> Result<Fill, Error>,
        info: SourceInfo,
    }

    impl Reader for Few {
        fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
            batch.clear();
            if self.left == 0 {
                return (self.then)();
            }
            batch.push(&Event::new(self.left, 0, Layer::Bio, Op::Read, 0, 512));
            self.left -= 1;
            self.info.counts.events += 1;
            self.info.counts.lost += 2;
            Ok(Fill::Events)
        }

        fn info(&self) -> &SourceInfo {
            &self.info
        }
    }

    fn check(left: i64, then: fn() -> Result<Fill, Error>, expected: &str) {
        let mut reader = ReadAhead::wrap(Box::new(Few {
            left,
            then,
            info: SourceInfo::default(),
        }));
        let mut batch = Batch::default();
        for number in 0..left {
            assert_eq!(reader.fill(&mut batch).ok(), Some(Fill::Events));
            assert_eq!(batch.time_ns, [left - number]);
        }
        let last = reader
            .fill(&mut batch)
            .map_or_else(|error| error.to_string(), |fill| format!("{fill:?}"));
        assert!(last.contains(expected), "{last}");
        assert_eq!(reader.info().counts.events, left.cast_unsigned());
        assert_eq!(
            reader.fill(&mut batch).ok(),
            Some(Fill::End),
            "after the last word there is no more"
        );
    }

    #[test]
    fn events_errors_and_panics_come_in_their_turn() {
        check(11, || Ok(Fill::End), "End");
        check(0, || Ok(Fill::End), "End");
        check(
            9,
            || {
                Err(Error::Empty {
                    path: "x".to_owned(),
                })
            },
            "x is empty",
        );
        check(
            3,
            || panic!("a reader of the test gives up"),
            "stopped on an internal error",
        );
    }
}
