//! Makes the page of some traces: `cargo run -p plumb-report --example page OUT FILE…`. Each further FILE of the form
//! `--grid=SIZE[@OFFSET]` adds a grid to judge by.

use std::error::Error;
use std::path::PathBuf;

use plumb_diagnose::{Diagnosis, Questions, analyze, diagnose};
use plumb_profile::{Collector, ProfileSet};
use plumb_report::html::html;
use plumb_report::verdict::Outcome;
use plumb_report::{Report, Section};
use plumb_trace::{Batch, Fill, ReadOptions, open};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let out = words.next().ok_or("usage: page OUT FILE…")?;
    let (mut questions, mut paths) = (Questions::default(), Vec::new());
    for word in words {
        match word.strip_prefix("--grid=") {
            Some(grid) => questions.grids.push(plumb_geometry::parse_grid(grid)?),
            None => paths.push(PathBuf::from(word)),
        }
    }
    let sources: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut profiles = ProfileSet::default();
    let mut notes = Vec::new();
    for piece in open::pieces(&paths) {
        profiles.merge(&profile(&piece, &questions, &mut notes)?);
    }
    let analyses: Vec<_> = profiles
        .iter()
        .map(|profile| (profile, analyze(profile, None, &questions)))
        .collect();
    let mut diagnosis = Diagnosis::default();
    for (profile, analysis) in &analyses {
        diagnosis.absorb(diagnose(profile, analysis, &questions));
    }
    let sections = analyses
        .iter()
        .map(|(profile, analysis)| Section { profile, analysis })
        .collect();
    let report = Report {
        title: format!("I/O of {}", sources.join(", ")),
        version: env!("CARGO_PKG_VERSION"),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        sources: &sources,
        notes: &notes,
        sections,
        diagnosis: &diagnosis,
        outcome: Outcome::Clean,
    };
    std::fs::write(out, html(&report))?;
    Ok(())
}

fn profile(
    piece: &open::Piece,
    questions: &Questions,
    notes: &mut Vec<String>,
) -> Result<ProfileSet, Box<dyn Error>> {
    let mut reader = open::open(piece, &ReadOptions::default())?;
    let mut collector = Collector::new(&questions.settings())?;
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::End => break,
            Fill::Events => {
                collector.set_clock(reader.info().clock);
                collector.fold(&batch);
            }
            given => {
                let layer = reader
                    .info()
                    .layers
                    .first()
                    .copied()
                    .unwrap_or(plumb_trace::Layer::Request);
                collector.fold_ready_made(&given, layer);
            }
        }
    }
    notes.extend(reader.info().notes.iter().cloned());
    Ok(collector.finish(reader.info()))
}
