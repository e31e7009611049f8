//! The origin of a watch's readings: programs in this kernel, or a recording.

use std::time::{Duration, Instant, SystemTime};

use plumb_capture::{BlockWatch, Reading};

use super::Whole;
use super::recorded::Recorded;
use crate::failure::Failure;

/// The origin of the readings.
pub(super) enum Feed {
    Live {
        block: Box<BlockWatch>,
        /// The end of the interval before.
        last: Instant,
    },
    Recorded(Box<Recorded>),
}

/// The I/O between two readings, with their time.
pub(super) struct FedInterval {
    pub(super) reading: Reading,
    pub(super) seconds: f64,
    /// The end of the interval.
    pub(super) time: String,
    /// The place in the recording; `None` if it is live.
    pub(super) position: Option<String>,
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

    /// The interval that ends now; of a recording the next one of this length. `is_last` ends a live watch.
    ///
    /// # Errors
    /// If the recording cannot be read on.
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
                    is_last,
                }
            }
            Feed::Recorded(recorded) => {
                let next = recorded.next(interval)?;
                whole.is_read_in_part |= next.is_last && recorded.is_partial();
                FedInterval {
                    reading: next.reading,
                    seconds: next.seconds,
                    time: next.time,
                    position: Some(next.position),
                    is_last: is_last || next.is_last,
                }
            }
        };
        whole.add(&fed.reading);
        whole.seconds += fed.seconds;
        Ok(fed)
    }
}
