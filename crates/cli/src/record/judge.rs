//! Judges how the disks answer while they are recorded.

use std::collections::BTreeMap;

use plumb_capture::{DiskAnswers, DiskTally};
use plumb_diagnose::{Diagnosis, Questions, analyze, diagnose_answers};
use plumb_geometry::{SECTOR, group_digits};
use plumb_model::{Facts, Finding, RuleId};
use plumb_profile::table::ROWS_MAX_LEAST;
use plumb_profile::{Collector, Profile, ProfileSet, Settings};
use plumb_trace::{Batch, Counts, Layer, SourceInfo};

use crate::failure::Failure;
use crate::moment::unix_words;

/// Whether a disk is saturated is judged in windows of this length, as a watch would have seen it: over a night an hour is little.
const WINDOW_NS: i64 = 10_000_000_000;

/// The judgement as it grows.
pub(super) struct Judge {
    collector: Collector,
    /// The first I/O of the present window.
    began_ns: Option<i64>,
    windows: Windows,
}

/// The windows that are over.
#[derive(Default)]
struct Windows {
    questions: Questions,
    /// All of them together.
    whole: ProfileSet,
    saturated: BTreeMap<(String, Layer), Saturated>,
}

/// The windows in which a disk was saturated.
struct Saturated {
    /// Of the window with the longest time for an I/O.
    worst: Finding,
    mean_ns: f64,
    worst_at_ns: i64,
    length_ns: u64,
}

/// The judgement at the end.
pub(super) struct Judged {
    pub(super) diagnosis: Diagnosis,
    pub(super) notes: Vec<String>,
}

impl Judge {
    pub(super) fn new() -> Result<Judge, Failure> {
        let collector = Collector::new(&settings()).map_err(|error| Failure::failed(&error))?;
        Ok(Judge {
            collector,
            began_ns: None,
            windows: Windows::default(),
        })
    }

    /// Takes events in, in the order of issue.
    pub(super) fn add(&mut self, batch: &Batch) {
        let Some(&first_ns) = batch.time_ns.first() else {
            return;
        };
        let began_ns = *self.began_ns.get_or_insert(first_ns);
        if first_ns.saturating_sub(began_ns) >= WINDOW_NS {
            // Before a long pause the window has its usual length.
            let is_pause = first_ns.saturating_sub(began_ns) >= 2 * WINDOW_NS;
            let until_ns = if is_pause {
                began_ns + WINDOW_NS
            } else {
                first_ns
            };
            self.windows.add(self.collector.cut(), began_ns, until_ns);
            self.began_ns = Some(first_ns);
        }
        self.collector.fold(batch);
    }

    /// The judgement of the whole time.
    pub(super) fn finish(
        self,
        info: &SourceInfo,
        tallies: &[DiskTally],
        answers: Vec<DiskAnswers>,
        (started_ns, ended_ns): (i64, i64),
    ) -> Judged {
        let Judge {
            collector,
            began_ns,
            mut windows,
        } = self;
        // The losses of each disk are known: they are not those of the source.
        let window = collector.finish(&SourceInfo {
            counts: Counts::default(),
            ..info.clone()
        });
        windows.add(window, began_ns.unwrap_or(ended_ns), ended_ns);
        let table = || settings().table().unwrap_or_default();
        for tally in tallies {
            let profile = windows.whole.entry(&tally.device, tally.layer, table);
            profile.losses.lost += tally.lost;
            profile.losses.unmatched_issues += tally.unmatched_issues;
            profile.losses.unmatched_completions += tally.unmatched_completions;
            for (totals, failed) in profile.ops.iter_mut().zip(tally.unseen_failures) {
                totals.failed += failed;
            }
        }
        for of_disk in answers {
            let profile = windows.whole.entry(&of_disk.device, of_disk.layer, table);
            // Another disk may have had the name before.
            profile
                .answers
                .get_or_insert_default()
                .merge(&of_disk.answers);
        }
        windows.judge(info, started_ns.abs_diff(ended_ns))
    }
}

impl Windows {
    fn add(&mut self, mut window: ProfileSet, from_ns: i64, until_ns: i64) {
        let length_ns = until_ns.saturating_sub(from_ns).unsigned_abs();
        window
            .iter_mut()
            .for_each(|profile| idle_for_the_rest(profile, length_ns));
        for profile in window.iter() {
            for finding in self.diagnose(profile).findings {
                self.note_saturated(profile, finding, (from_ns, length_ns));
            }
        }
        self.whole.merge(&window);
    }

    fn diagnose(&self, profile: &Profile) -> Diagnosis {
        let analysis = analyze(profile, None, &self.questions);
        diagnose_answers(profile, &analysis, &self.questions)
    }

    fn note_saturated(
        &mut self,
        profile: &Profile,
        finding: Finding,
        (from_ns, length_ns): (i64, u64),
    ) {
        let Facts::SaturatedDevice(facts) = &finding.facts else {
            return;
        };
        let mean_ns = facts.mean_ns;
        let key = (profile.device.clone(), profile.layer);
        let saturated = self.saturated.entry(key).or_insert_with(|| Saturated {
            worst: finding.clone(),
            mean_ns,
            worst_at_ns: from_ns,
            length_ns: 0,
        });
        saturated.length_ns += length_ns;
        if mean_ns > saturated.mean_ns {
            saturated.worst = finding;
            saturated.mean_ns = mean_ns;
            saturated.worst_at_ns = from_ns;
        }
    }

    fn judge(&mut self, info: &SourceInfo, length_ns: u64) -> Judged {
        let mut diagnosis = Diagnosis::default();
        let mut whole = std::mem::take(&mut self.whole);
        whole
            .iter_mut()
            .for_each(|profile| idle_for_the_rest(profile, length_ns));
        for profile in whole.iter() {
            let mut judged = self.diagnose(profile);
            let key = (profile.device.clone(), profile.layer);
            // A disk that serves too few I/O for the judgement of a window is judged by all of them.
            if let Some(saturated) = self.saturated.get(&key) {
                let is_saturated = |finding: &Finding| finding.rule() == RuleId::SaturatedDevice;
                judged.findings.retain(|finding| !is_saturated(finding));
                judged.findings.push(saturated.worst.clone());
            }
            diagnosis.absorb(judged);
        }
        Judged {
            diagnosis,
            notes: self.notes(info, length_ns),
        }
    }

    /// The time in which each disk was saturated, of a recording that is longer than a window.
    fn notes(&self, info: &SourceInfo, length_ns: u64) -> Vec<String> {
        let seconds = |ns: u64| group_digits(ns / 1_000_000_000);
        let note = |((device, _), saturated): (&(String, Layer), &Saturated)| {
            let since_zero_ns = |zero: i64| zero.saturating_add(saturated.worst_at_ns);
            let at = info.unix_ns_at_zero.map(since_zero_ns).and_then(unix_words);
            let at = at.map_or_else(String::new, |at| {
                format!("; its I/O waited longest from {at} on")
            });
            format!(
                "{device} was saturated for {} of {} s{at}",
                seconds(saturated.length_ns),
                seconds(length_ns),
            )
        };
        match length_ns > WINDOW_NS.unsigned_abs() {
            true => self.saturated.iter().map(note).collect(),
            false => Vec::new(),
        }
    }
}

/// Sets the time without I/O to the rest of a time: a profile knows the times between the I/O of its own disk alone.
fn idle_for_the_rest(profile: &mut Profile, length_ns: u64) {
    let depths = &mut profile.ordered.in_flight.depth_ns;
    let busy_ns = depths.total() - depths.get(0);
    depths.put(0, length_ns.saturating_sub(busy_ns));
}

/// Settings of a profile for questions about times and errors. The table of places is as small as it can be: places are judged when the
/// file is analyzed.
fn settings() -> Settings {
    Settings {
        modulus_bytes: SECTOR,
        rows_max: ROWS_MAX_LEAST,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plumb_trace::{Event, Names, Op};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The judgement of an hour, in which 32 reads at a time take 300 ms each for some seconds from a minute on, and one a minute takes
    /// 1 ms until some minute.
    fn judged(busy_seconds: u64, minutes: u64) -> Judged {
        let mut judge = Judge::new().expect("settings of a profile");
        let mut names = Names::default();
        let device = names.device("sda");
        let names = Arc::new(names);
        let read = |at_ns: u64, device_ns: i64| Event {
            device_ns: Some(device_ns),
            ..Event::new(
                at_ns.cast_signed(),
                device,
                Layer::Request,
                Op::Read,
                at_ns << 12,
                4096,
            )
        };
        let idle = (0..minutes).map(|minute| ((60 * minute + 30) * SECOND_NS, 1_000_000));
        let rounds = (0..busy_seconds * 10).flat_map(|tenth| {
            (0..11).map(move |at| (60 * SECOND_NS + tenth * SECOND_NS / 10 + at, 300_000_000))
        });
        let mut all: Vec<(u64, i64)> = idle.chain(rounds).collect();
        all.sort_unstable();
        // Batches of a tenth of a second at most, as they come from the kernel.
        for part in all.chunk_by(|one, next| one.0 * 10 / SECOND_NS == next.0 * 10 / SECOND_NS) {
            let mut batch = Batch {
                names: Arc::clone(&names),
                ..Batch::default()
            };
            part.iter()
                .for_each(|(at_ns, device_ns)| batch.push(&read(*at_ns, *device_ns)));
            judge.add(&batch);
        }
        let info = SourceInfo {
            unix_ns_at_zero: Some(0),
            ..SourceInfo::default()
        };
        judge.finish(&info, &[], Vec::new(), (0, 3600 * 1_000_000_000))
    }

    /// A minute of an hour is found, and the note names its time. Four seconds are a burst.
    #[test]
    fn saturation_is_judged_in_windows() {
        let Judged { diagnosis, notes } = judged(60, 60);
        let rules: Vec<RuleId> = diagnosis.findings.iter().map(Finding::rule).collect();
        assert_eq!(rules, [RuleId::SaturatedDevice]);
        let Facts::SaturatedDevice(facts) = &diagnosis.findings[0].facts else {
            panic!("{:?}", diagnosis.findings[0].facts);
        };
        assert!((28.0..=35.0).contains(&facts.depth_mean), "{facts:?}");
        let [note] = notes.as_slice() else {
            panic!("{notes:?}");
        };
        let saturated_seconds: u64 = note
            .strip_prefix("sda was saturated for ")
            .and_then(|rest| rest.split_once(" of 3,600 s; its I/O waited longest from 1970-01-01"))
            .and_then(|(seconds, _)| seconds.parse().ok())
            .unwrap_or_else(|| panic!("{note}"));
        assert!((50..=60).contains(&saturated_seconds), "{note}");
        for minutes in [60, 1] {
            let Judged { diagnosis, notes } = judged(4, minutes);
            assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
            assert!(notes.is_empty(), "{notes:?}");
        }
    }
}
