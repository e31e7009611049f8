//! The report of `plumb analyze` as one page that stands for itself: style, pictures and words in one file, nothing
//! fetched, no script. Light and dark follow the reader's setting; print is light.
//!
//! Pictures are SVG made here from the profile's counts; nothing is computed but scales, sums of neighbouring windows
//! and rates.

mod bench;
mod bench_series;
mod clock;
mod compared;
mod course;
mod diagnosis;
mod figures;
mod findings;
mod fits;
mod heat_map;
mod imported;
mod latency;
mod marks;
mod markup;
mod offsets;
mod over_time;
mod page;
mod phases;
mod probe;
mod replayed;
mod replayed_pairs;
mod scale;
mod seeks;
mod size_mix;
mod steps;
mod svg;
mod tables;
mod throughput;
mod what_if;

pub use bench::{benched, sweep};
pub use compared::compared;
pub use diagnosis::diagnosed;
pub use probe::probed;
pub use replayed::replayed;

pub(crate) use markup::Markup;
pub(crate) use page::{document, table};
use plumb_geometry::SmallSort;

use crate::{Report, Section, format};

/// Sections with pictures; the others have their figures and tables, so that the page of a host with hundreds of
/// devices still opens.
const PICTURED_MAX: usize = 24;

/// The page.
#[must_use]
pub fn html(report: &Report<'_>) -> String {
    page::document(&report.title, |m| {
        head(m, report);
        if report.sections.len() > 1 {
            overview(m, report);
        }
        findings::draw(m, report);
        let pictured = pictured(report);
        for (at, section) in report.sections.iter().enumerate() {
            draw_section(m, report, at, section, pictured.contains(&at));
        }
        foot(m, report);
    })
}

/// Anchor of a section.
fn section_anchor(at: usize) -> String {
    format!("section-{}", at + 1)
}

fn head(m: &mut Markup, report: &Report<'_>) {
    m.leaf("h1", &[], &report.title);
    findings::draw_verdict(m, &report.verdict(), &findings::counts(report));
    let sources: Vec<&str> = report.sources.iter().map(String::as_str).collect();
    if !sources.is_empty() {
        m.leaf(
            "p",
            &[("class", "dim")],
            &format!("From {}", sources.join(", ")),
        );
    }
    if !report.notes.is_empty() {
        m.leaf("h3", &[], "On the inputs");
        m.el("ul", &[], |m| {
            report.notes.iter().for_each(|note| m.leaf("li", &[], note))
        });
    }
}

fn overview(m: &mut Markup, report: &Report<'_>) {
    m.leaf(
        "h3",
        &[],
        &format!(
            "{} devices and layers",
            format::count(report.sections.len() as u64)
        ),
    );
    m.class("div", "scroll", |m| {
        m.el("table", &[], |m| {
            m.el("thead", &[], |m| {
                m.el("tr", &[], |m| {
                    for name in ["device", "I/O", "bytes", "findings", "not judged"] {
                        m.leaf("th", &[("scope", "col")], name);
                    }
                });
            });
            m.el("tbody", &[], |m| {
                for (at, section) in report.sections.iter().enumerate() {
                    overview_row(m, report, at, section);
                }
            });
        });
    });
}

fn overview_row(m: &mut Markup, report: &Report<'_>, at: usize, section: &Section<'_>) {
    let analysis = section.analysis;
    let found = report
        .diagnosis
        .findings
        .iter()
        .filter(|finding| section.is_of(&finding.target))
        .count();
    let open = report
        .diagnosis
        .unknown
        .iter()
        .filter(|question| section.is_of(&question.target))
        .count();
    m.el("tr", &[], |m| {
        m.el("td", &[], |m| {
            m.leaf(
                "a",
                &[("href", &format!("#{}", section_anchor(at)))],
                &crate::words::target(&analysis.target),
            );
        });
        m.leaf("td", &[], &format::count(analysis.ios));
        m.leaf("td", &[], &format::bytes(analysis.bytes));
        m.leaf("td", &[], &format::count(found as u64));
        m.leaf("td", &[], &format::count(open as u64));
    });
}

/// Those with findings first, then those with the most I/O.
fn pictured(report: &Report<'_>) -> Vec<usize> {
    let has_finding = |section: &Section<'_>| {
        report
            .diagnosis
            .findings
            .iter()
            .any(|finding| section.is_of(&finding.target))
    };
    let mut order: Vec<usize> = (0..report.sections.len()).collect();
    order.small_sort_by_key(|&at| {
        let section = &report.sections[at];
        std::cmp::Reverse((has_finding(section), section.analysis.ios))
    });
    order.truncate(PICTURED_MAX);
    order
}

fn draw_section(
    m: &mut Markup,
    report: &Report<'_>,
    at: usize,
    section: &Section<'_>,
    pictured: bool,
) {
    let Section { profile, analysis } = section;
    m.raw("\n");
    m.el("section", &[("id", &section_anchor(at))], |m| {
        m.leaf("h2", &[], &capitalized(&crate::words::target(&analysis.target)));
        findings::links(m, report, section);
        figures::draw(m, profile, analysis);
        let has_course = profile.timeline.iter().next().is_some();
        if pictured && profile.ios() > 0 {
            if let Some(why) = course::why_none(profile) {
                m.leaf("p", &[("class", "dim")], &format!("No pictures over time: {why}."));
            }
            size_mix::draw(m, profile);
            throughput::draw(m, profile);
            heat_map::draw(m, profile);
            phases::draw(m, profile, analysis);
            latency::draw(m, profile, analysis);
            seeks::draw(m, profile);
        } else if pictured && has_course {
            size_mix::draw(m, profile);
            throughput::draw(m, profile);
        } else if profile.ios() > 0 {
            let words = format!(
                "Pictures are drawn for {PICTURED_MAX} devices: those with findings, then the busiest."
            );
            m.leaf("p", &[("class", "dim")], &words);
        }
        imported::draw(m, profile);
        fits::draw(m, analysis);
        offsets::draw(m, analysis);
        what_if::draw(m, analysis);
        tables::draw(m, profile, analysis);
    });
}

/// With a capital at the beginning, for headings.
fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn foot(m: &mut Markup, report: &Report<'_>) {
    m.raw("\n");
    m.el("footer", &[], |m| {
        m.text(&format!("plumb {}: ", report.version));
        m.leaf("code", &[], &report.command);
    });
}
