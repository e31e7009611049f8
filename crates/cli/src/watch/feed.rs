//! The origin of a watch's readings: programs in this kernel, a recording, or a history.

use std::time::{Duration, Instant, SystemTime};

use plumb_capture::{BlockWatch, Reading};

use super::Whole;
use super::recorded::{Recorded, RecordedInterval};
use super::stored::Stored;
use crate::cli::INTERVAL_MIN;
use crate::failure::Failure;

/// The time for which a screen shows a window of a history at the speed 1.
const WINDOW_PACE: Duration = Duration::from_secs(1);

/// The origin of the readings.
pub(super) enum Feed {
    Live {
        block: Box<BlockWatch>,
        /// The end of the interval before.
        last: Instant,
    },
    Recorded(Box<Recorded>),
    Stored(Box<Stored>),
}

/// The I/O between two readings, with their time.
pub(super) struct FedInterval {
    pub(super) reading: Reading,
    pub(super) seconds: f64,
    /// The end of the interval.
    pub(super) time: String,
    /// The place in the recording; `None` if it is live.
    pub(super) position: Option<String>,
    /// Sentences that a reader must know, beside those about the reading.
    pub(super) notes: Vec<String>,
    /// Whether no other one follows.
    pub(super) is_last: bool,
}

impl Feed {
    pub(super) fn live(block: BlockWatch) -> Feed {
        Feed::Live {
            block: Box::new(block),
            last: Instant::now(),
        }
    }

    /// Does the work that cannot wait until the end of an interval.
    pub(super) fn keep_up(&mut self) {
        if let Feed::Live { block, .. } = self {
            block.keep_up();
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Feed::Live { .. })
    }

    /// The shortest interval that the origin has.
    pub(super) fn shortest(&self) -> Duration {
        match self {
            Feed::Stored(stored) => stored.width(),
            Feed::Live { .. } | Feed::Recorded(_) => INTERVAL_MIN,
        }
    }

    /// The time for which a screen shows an interval of this length before the next one, at the speed 1.
    pub(super) fn pace(&self, interval: Duration) -> Duration {
        match self {
            Feed::Stored(_) => WINDOW_PACE,
            Feed::Live { .. } | Feed::Recorded(_) => interval,
        }
    }

    /// The interval that ends now; of a recording or a history the next one of this length. `is_last` ends a live watch.
    ///
    /// # Errors
    /// If the recording or the history cannot be read on.
    pub(super) fn next(
        &mut self,
        interval: Duration,
        whole: &mut Whole,
        is_last: bool,
    ) -> Result<FedInterval, Failure> {
        let fed = match self {
            Feed::Live { block, last } => {
                whole.before_reading(block, is_last);
                let reading = block.read();
                let now = Instant::now();
                FedInterval {
                    reading,
                    seconds: (now - std::mem::replace(last, now)).as_secs_f64(),
                    time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
                    position: None,
                    notes: Vec::new(),
                    is_last,
                }
            }
            Feed::Stored(stored) => {
                let next = stored.next(interval)?;
                whole.is_read_in_part |= next.is_partial;
                let notes = next.notes;
                of_recording(next.interval, notes, is_last)
            }
            Feed::Recorded(recorded) => {
                let next = recorded.next(interval)?;
                whole.is_read_in_part |= next.is_last && recorded.is_partial();
                of_recording(next, Vec::new(), is_last)
            }
        };
        whole.add(&fed.reading);
        whole.saved.notes.extend(fed.notes.iter().cloned());
        whole.seconds += fed.seconds;
        if let Feed::Stored(stored) = self
            && fed.is_last
        {
            whole.saved.profiles = stored.so_far()?;
        }
        Ok(fed)
    }
}

fn of_recording(next: RecordedInterval, notes: Vec<String>, is_last: bool) -> FedInterval {
    FedInterval {
        reading: next.reading,
        seconds: next.seconds,
        time: next.time,
        position: Some(next.position),
        notes,
        is_last: is_last || next.is_last,
    }
}
