//! Asks everything of profiles that `plumb analyze` can be asked, and prints it in every way.

use std::collections::{BTreeMap, BTreeSet};

use plumb_diagnose::{Analysis, Diagnosis, Questions, analyze, diagnose};
use plumb_geometry::{Bytes, Grid};
use plumb_profile::Profile;
use plumb_profile::codec::{self, Saved};
use plumb_report::html::html;
use plumb_report::text::{Color, text};
use plumb_report::verdict::Outcome;
use plumb_report::{Report, Section, json};
use plumb_trace::SourceInfo;

/// More profiles than this are only more of the same, slowly.
const PROFILES_MAX: usize = 4;

/// Questions that reach every computation: two grids, a stripe, a record and a shift.
pub fn questions() -> Questions {
    Questions {
        stated: Vec::new(),
        file_systems: BTreeMap::new(),
        explained: BTreeSet::new(),
        grids: vec![
            Grid::ASSUMED,
            Grid::unit(Bytes(48 << 10)).expect("a granularity of whole sectors"),
        ],
        chunk: Grid::boundary(Bytes(64 << 10)).ok(),
        members: Some(3),
        record: Grid::unit(Bytes(8 << 10)).ok(),
        shift_bytes: Some(-17_408),
        command: None,
    }
}

/// Analyses, judges and prints.
pub fn judge(saved: &Saved, infos: &[SourceInfo]) {
    let questions = questions();
    let profiles: Vec<&Profile> = saved.profiles.iter().take(PROFILES_MAX).collect();
    let analyses: Vec<Analysis> = profiles
        .iter()
        .map(|profile| analyze(profile, None, &questions))
        .collect();
    let mut diagnosis = Diagnosis::default();
    for (profile, analysis) in profiles.iter().zip(&analyses) {
        diagnosis.absorb(diagnose(profile, analysis, &questions));
    }
    let sources: Vec<String> = saved.sources.iter().cloned().collect();
    let notes: Vec<String> = saved.notes.iter().cloned().collect();
    let sections = profiles
        .iter()
        .zip(&analyses)
        .map(|(profile, analysis)| Section { profile, analysis })
        .collect();
    let report = Report {
        title: "input".to_owned(),
        version: "0",
        command: "fuzz".to_owned(),
        sources: &sources,
        notes: &notes,
        sections,
        diagnosis: &diagnosis,
        outcome: Outcome::Findings,
    };
    // At most one form for each input: a page takes longer to draw than a trace to read.
    let ios = profiles
        .iter()
        .fold(0u64, |ios, profile| ios.wrapping_add(profile.ios()));
    let shown = match ios % 16 {
        0 | 5 | 10 => text(&report, Color::Always),
        1 | 6 => json::analyze(&plumb_report::run::Run::default(), &report, infos)
            .expect("a report has a form in JSON"),
        3 => html(&report),
        _ => return,
    };
    assert!(!shown.is_empty(), "a report says something");
}

/// Profiles come back from their encoded form as they were.
pub fn same_when_decoded(saved: &Saved) {
    let bytes = codec::encode(saved).expect("profiles can be encoded");
    let decoded = codec::decode(&bytes).expect("an encoded profile can be decoded");
    assert!(
        decoded == *saved,
        "profiles changed on their way through the encoded form"
    );
}

/// Profiles merge with any others, themselves among them.
pub fn merge(saved: Saved) {
    let mut both = saved.clone();
    both.merge(&saved);
    judge(&both, &[]);
}
