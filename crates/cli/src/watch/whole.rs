//! The observations of a watch since it began: kept, judged, printed and saved.

use std::path::Path;
use std::time::Duration;

use plumb_capture::{BlockWatch, Filter, Reading};
use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose, diagnose_answers};
use plumb_profile::Profile;
use plumb_profile::codec::{self, Saved};
use plumb_report::json::WholeTime;
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_report::{Report, Section, text};
use plumb_trace::Layer;

use super::app::App;
use super::notes::notes;
use super::recorded::Recorded;
use super::stored::Stored;
use crate::cli::Watch;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// The observations since the beginning.
pub(crate) struct Whole {
    pub(crate) saved: Saved,
    /// This host, the file of a recording, or a time of a history.
    title: String,
    /// Layers, and how they are watched.
    pub(super) how: String,
    /// The time of all readings, in seconds.
    pub(super) seconds: f64,
    /// Whether some of a recording could not be read.
    pub(super) is_read_in_part: bool,
    pub(super) filter: Filter,
    /// Of all readings together, without their profiles.
    missed: Reading,
    /// I/O of applications to file systems, if they are watched.
    pub(super) app: Option<App>,
}

impl Whole {
    pub(crate) fn new(block: &BlockWatch, filter: &Filter) -> Whole {
        let layers: Vec<&str> = block.layers().into_iter().map(Layer::word).collect();
        let many = if layers.len() > 1 { "layers" } else { "layer" };
        let how = format!(
            "{} {many} by {}",
            layers.join(" and "),
            block.attached().text()
        );
        Whole::begin("this host".to_owned(), how, filter)
    }

    /// The observations of a recording.
    pub(super) fn of_recording(path: &Path, recorded: &Recorded, filter: &Filter) -> Whole {
        let how = format!("recording in the format {}", recorded.format());
        Whole::begin(path.display().to_string(), how, filter)
    }

    /// The observations of a time of a history.
    pub(super) fn of_history(span: &Path, stored: &Stored) -> Whole {
        Whole::begin(span.display().to_string(), stored.how(), &Filter::default())
    }

    fn begin(title: String, how: String, filter: &Filter) -> Whole {
        Whole {
            saved: Saved::default(),
            title,
            how,
            seconds: 0.0,
            is_read_in_part: false,
            filter: filter.clone(),
            missed: Reading::default(),
            app: None,
        }
    }

    /// Before the last reading the cache is written out, where it was at the beginning.
    pub(super) fn before_reading(&mut self, block: &mut BlockWatch, is_last: bool) {
        if is_last {
            block.end();
        }
        if let Some(app) = self.app.as_mut().filter(|app| is_last && app.is_to_sync()) {
            app.sync();
        }
    }

    pub(crate) fn add(&mut self, reading: &Reading) {
        self.saved.profiles.merge(&reading.profiles);
        self.missed.add_misses(reading);
        if let Some(app) = &mut self.app {
            self.saved.profiles.merge(&app.add(reading));
        }
    }

    /// Notes the source of the profiles, and everything that their reader must know.
    pub(crate) fn close(&mut self, span: Duration) {
        let filter = self
            .filter
            .text()
            .map_or(String::new(), |words| format!(", only {words}"));
        let source = format!(
            "{}: {}, {:.1} s{filter}",
            self.title,
            self.how,
            span.as_secs_f64()
        );
        self.saved.sources.insert(source);
        self.saved.notes.extend(notes(&self.missed, &self.filter));
    }

    /// Whether some I/O are in no figure.
    pub(crate) fn is_partial(&self) -> bool {
        self.missed.unlisted + self.missed.lost > 0
            || self
                .missed
                .misses
                .values()
                .any(|misses| misses.unplaced > 0)
    }

    /// Saves the profiles.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = codec::encode(&self.saved).map_err(|error| Failure::failed(&error))?;
        output::write_file(path, &bytes)
    }

    /// Judges the whole time.
    fn judge(&self, questions: &Questions) -> WatchOutcome<'_> {
        // Places in files are judged when the profile is analyzed.
        let is_shown = |profile: &&Profile| profile.ios() > 0 && profile.layer != Layer::Vfs;
        let profiles: Vec<&Profile> = self.saved.profiles.iter().filter(is_shown).collect();
        let analyses: Vec<Analysis> = profiles
            .iter()
            .map(|profile| analyze(profile, None, questions))
            .collect();
        let mut diagnosis = Diagnosis::default();
        for (profile, analysis) in profiles.iter().zip(&analyses) {
            diagnosis.absorb(diagnose(profile, analysis, questions));
        }
        let waiting = self
            .saved
            .profiles
            .iter()
            .filter(|profile| profile.ios() == 0);
        for profile in waiting {
            let analysis = analyze(profile, None, questions);
            diagnosis.absorb(diagnose_answers(profile, &analysis, questions));
        }
        if let Some(app) = &self.app {
            diagnosis.absorb(app.diagnose(&self.saved.profiles, questions));
        }
        WatchOutcome {
            profiles,
            analyses,
            diagnosis,
        }
    }

    /// Facts that a reader of single intervals has no other way to know.
    pub(super) fn summary(&self, args: &Watch, questions: &Questions, span: Duration) -> WholeTime {
        let app = self.app.as_ref().map(App::whole);
        let judged = self.judge(questions);
        let verdict = self
            .report(&judged, &[], &[], self.outcome(&judged, args))
            .verdict();
        WholeTime {
            verdict,
            seconds: span.as_secs_f64(),
            diagnosis: judged.diagnosis,
            app,
        }
    }

    fn outcome(&self, judged: &WatchOutcome<'_>, args: &Watch) -> Outcome {
        let worst = judged.diagnosis.worst();
        if worst.is_some_and(|worst| args.fail_on.covers(worst)) {
            Outcome::Findings
        } else if self.is_partial() {
            Outcome::Unknown(WhyUnknown::NotWatched)
        } else if self.is_read_in_part {
            Outcome::Unknown(WhyUnknown::ReadInPart)
        } else if judged.profiles.is_empty() {
            Outcome::Unknown(WhyUnknown::TooFewIos)
        } else if judged.diagnosis.unknown.is_empty() {
            Outcome::Clean
        } else {
            Outcome::Unknown(WhyUnknown::Layout)
        }
    }

    fn report<'a>(
        &self,
        judged: &'a WatchOutcome<'_>,
        sources: &'a [String],
        notes: &'a [String],
        outcome: Outcome,
    ) -> Report<'a> {
        let sections = judged.profiles.iter().zip(&judged.analyses);
        Report {
            title: self.title.clone(),
            version: env!("CARGO_PKG_VERSION"),
            command: crate::typed::for_page(),
            sources,
            notes,
            sections: sections
                .map(|(profile, analysis)| Section { profile, analysis })
                .collect(),
            diagnosis: &judged.diagnosis,
            outcome,
        }
    }

    /// The totals, and how the command ends.
    ///
    /// # Errors
    /// When they cannot be printed or saved.
    pub(super) fn end(
        mut self,
        args: &Watch,
        questions: &Questions,
        span: Duration,
        was_on_screen: bool,
    ) -> Result<Exit, Failure> {
        self.close(span);
        if let Some(app) = &self.app {
            self.saved
                .sources
                .insert(format!("this host: {}", app.how()));
        }
        let judged = self.judge(questions);
        let outcome = self.outcome(&judged, args);
        let printed = if args.json {
            Ok(())
        } else {
            self.print(&judged, args, outcome, was_on_screen)
        };
        if let Some(path) = &args.save {
            self.save(path)?;
        }
        printed?;
        Ok(outcome.into())
    }

    /// After a screen the verdict is enough: somebody has seen the figures.
    fn print(
        &self,
        judged: &WatchOutcome<'_>,
        args: &Watch,
        outcome: Outcome,
        was_on_screen: bool,
    ) -> Result<(), Failure> {
        let sources: Vec<String> = self.saved.sources.iter().cloned().collect();
        let notes: Vec<String> = self.saved.notes.iter().cloned().collect();
        let report = self.report(judged, &sources, &notes, outcome);
        let paper = output::paper(args.color);
        if was_on_screen {
            return output::print(&output::drawn(text::brief(&report, paper)));
        }
        let asked = self
            .app
            .as_ref()
            .map(|app| text::asked(&app.whole(), paper));
        output::print(&output::drawn(
            text::text(&report, paper) + &asked.unwrap_or_default(),
        ))
    }
}

/// The result of the whole time.
struct WatchOutcome<'a> {
    profiles: Vec<&'a Profile>,
    analyses: Vec<Analysis>,
    diagnosis: Diagnosis,
}
