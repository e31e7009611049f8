//! The way of windows: straight, with a flush after each, or through the journal, with all data written twice. The
//! faster one depends on the duration of a flush, from 20 µs to a rotation of a disk, and is measured.

use std::time::Duration;

/// This number of groups of windows go the faster way before the other one is measured again.
const AGAIN_AFTER: u32 = 32;

/// The times of both ways, for each window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowPace {
    straight: Option<Straight>,
    saved: Option<Duration>,
    /// Groups that went the faster way since the other one was measured.
    since: u32,
}

#[derive(Debug, Clone, Copy)]
struct Straight {
    writing: Duration,
    flushing: Duration,
}

impl WindowPace {
    /// Whether the next group goes through the journal.
    pub(super) fn saves(&self) -> bool {
        let Some(straight) = self.straight else {
            return false;
        };
        let Some(saved) = self.saved else {
            // To write everything twice takes about as long again as writing does.
            return straight.flushing > straight.writing;
        };
        let is_faster = saved < straight.writing + straight.flushing;
        is_faster != (self.since >= AGAIN_AFTER)
    }

    /// A group of windows went straight.
    pub(super) fn took_straight(&mut self, windows: u32, writing: Duration, flushing: Duration) {
        self.since = if self.is_saving() { 0 } else { self.since + 1 };
        self.straight = Some(Straight {
            writing: writing / windows,
            flushing: flushing / windows,
        });
    }

    /// A group of windows went through the journal.
    pub(super) fn took_saved(&mut self, windows: u32, took: Duration) {
        self.since = if self.is_saving() { self.since + 1 } else { 0 };
        self.saved = Some(took / windows);
    }

    /// Whether the journal is the faster way, as far as it is known.
    fn is_saving(&self) -> bool {
        let both = self.straight.zip(self.saved);
        both.is_some_and(|(straight, saved)| saved < straight.writing + straight.flushing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Carries groups out on a disk with these times; returns the ones that went through the journal.
    fn ways(
        groups: usize,
        pace: &mut WindowPace,
        writing: Duration,
        flushing: Duration,
    ) -> Vec<bool> {
        let carry = |_| {
            let saves = pace.saves();
            match saves {
                true => pace.took_saved(64, (2 * writing + flushing / 32) * 64),
                false => pace.took_straight(64, 64 * writing, 64 * flushing),
            }
            saves
        };
        (0..groups).map(carry).collect()
    }

    #[test]
    fn nothing_is_written_twice_where_flushes_are_short() {
        assert_eq!(
            ways(100, &mut WindowPace::default(), 2 * MS, MS),
            [false; 100]
        );
    }

    #[test]
    fn long_flushes_are_saved() {
        let mut pace = WindowPace::default();
        let found = ways(70, &mut pace, MS, 5 * MS);
        let straight: Vec<usize> = (0..70).filter(|group| !found[*group]).collect();
        assert_eq!(straight, [0, 34, 67]);
        // It gets another cache: the next look shows it.
        let found = ways(100, &mut pace, MS, MS / 10);
        let saved = found.iter().filter(|saves| **saves).count();
        assert!(
            found[40..60].iter().all(|saves| !saves) && (30..36).contains(&saved),
            "{found:?}"
        );
    }
}
