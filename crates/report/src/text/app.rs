//! I/O of processes to file systems, beside the I/O of the devices below for it.

use plumb_model::result::watch::{App, AskedBy, AskedFlow, AskedOf};
use plumb_quoting::visible;

use super::Page;
use crate::format::{bytes, count};

/// Most processes that are listed.
const PROCESSES: usize = 6;
/// Most file systems that are listed.
const FILE_SYSTEMS: usize = 6;

pub(super) fn lines(page: &mut Page, app: &App) {
    page.gap();
    if app.file_systems.is_empty() && app.processes.is_empty() {
        page.line("  nothing was asked of a file system");
        return;
    }
    file_systems(page, &app.file_systems);
    processes(page, &app.processes);
    if app.of_unlisted_process > 0 {
        let calls = count(app.of_unlisted_process);
        page.wrapped(
            "  note: ",
            "    ",
            format!("{calls} calls of processes for which there was no room"),
        );
    }
}

fn file_systems(page: &mut Page, all: &[AskedOf]) {
    page.line("  Asked of                  read    at device        written    at device");
    for of in all.iter().take(FILE_SYSTEMS) {
        page.wrapped("  ", "    ", &of.name);
        page.line(format!(
            "  {:>28} {:>12}   {:>12} {:>12}",
            known(of.reads.asked_bytes),
            known(of.reads.device_bytes),
            known(of.writes.asked_bytes),
            known(of.writes.device_bytes),
        ));
        let flows = [("read", &of.reads), ("written", &of.writes)];
        let times: Vec<String> = flows
            .into_iter()
            .filter_map(|(word, flow)| times(word, flow))
            .collect();
        if !times.is_empty() {
            page.wrapped(
                "    ",
                "    ",
                format!("at the device for each byte asked: {}", times.join(", ")),
            );
        }
        if !of.unknown_ways.is_empty() {
            let asked = count(of.reads.counted_bytes + of.writes.counted_bytes);
            let ways = of.unknown_ways.join(", ");
            page.wrapped(
                "    ",
                "    ",
                format!("not counted: {ways}; the counted I/O add up to {asked} bytes"),
            );
        }
        if let Some(why) = &of.device_unknown {
            page.wrapped("    ", "    ", why);
        }
    }
    if all.len() > FILE_SYSTEMS {
        page.line(format!("  {} others", all.len() - FILE_SYSTEMS));
    }
}

/// Names the obstacle between a number and the amplification.
fn times(word: &str, flow: &AskedFlow) -> Option<String> {
    match (flow.amplification, flow.ratio_with_cache) {
        (Some(times), _) => Some(format!("{word} {times:.2}")),
        (None, Some(times)) => Some(format!("{word} {times:.2} (with the cache)")),
        (None, None) => None,
    }
}

fn processes(page: &mut Page, all: &[AskedBy]) {
    if all.is_empty() {
        return;
    }
    page.gap();
    page.line("  Asked by                PID         read      written    at device");
    for by in all.iter().take(PROCESSES) {
        page.line(format!(
            "  {:<16} {:>10} {:>12} {:>12} {:>12}",
            visible(&by.comm),
            by.pid,
            known(by.reads.asked_bytes),
            known(by.writes.asked_bytes),
            known(by.device_bytes)
        ));
        let of = by
            .file_system
            .as_deref()
            .map_or("an unknown file system".into(), visible);
        let ways = match by.unknown_ways.is_empty() {
            true => String::new(),
            false => format!("; not counted: {}", by.unknown_ways.join(", ")),
        };
        let mapped = by.mapped_files.map_or_else(String::new, |mapped| {
            let (faults, dirtied) = (count(mapped.faults), count(mapped.dirtied));
            format!("; page faults in mapped files: {faults}; pages made dirty there: {dirtied}")
        });
        page.wrapped("    ", "    ", format!("of {of}{ways}{mapped}"));
    }
    if all.len() > PROCESSES {
        page.line(format!("  {} others", all.len() - PROCESSES));
    }
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "unknown".to_owned(), bytes)
}

#[cfg(test)]
mod tests {
    use plumb_model::result::watch::{MappedPages, ProcessFlow};

    use super::*;
    use crate::text::{Color, WIDTH};

    fn flow(asked_bytes: u64, device_bytes: Option<u64>) -> AskedFlow {
        AskedFlow {
            calls: 211,
            asked_bytes: Some(asked_bytes),
            counted_bytes: asked_bytes,
            moved_bytes: asked_bytes,
            device_bytes,
            ..AskedFlow::default()
        }
    }

    fn shown(of: AskedOf) -> String {
        let by = AskedBy {
            comm: "a\u{1b}b".to_owned(),
            pid: 4_194_304,
            file_system: Some(of.name.clone()),
            reads: ProcessFlow::default(),
            writes: ProcessFlow::default(),
            failed: 0,
            device_bytes: None,
            ways: vec!["calls", "mapped files"],
            unknown_ways: vec!["mapped files"],
            mapped_files: Some(MappedPages {
                faults: 1_234,
                dirtied: 37,
            }),
        };
        let app = App {
            file_systems: vec![of],
            processes: vec![by],
            of_unlisted_process: 1009,
        };
        let mut page = Page::new(Color::Never);
        lines(&mut page, &app);
        assert!(
            page.text.lines().all(|line| line.chars().count() <= WIDTH),
            "{}",
            page.text
        );
        assert!(!page.text.contains('\u{1b}'), "{}", page.text);
        page.text
    }

    /// A number stands for all that was asked, or it is not there.
    #[test]
    fn incomplete_counts_are_unknown() {
        let mut of = AskedOf {
            name: format!("/srv/{}", "long ".repeat(30)),
            devices: vec!["sda1".to_owned()],
            reads: flow(1 << 60, Some(1 << 61)),
            writes: flow(1 << 59, Some(1 << 62)),
            unknown_ways: Vec::new(),
            device_unknown: None,
        };
        of.reads.amplification = Some(2.0);
        of.writes.ratio_with_cache = Some(8.0);
        let whole = shown(of.clone());
        of.unknown_ways = vec!["mapped files".to_owned(), "io_submit".to_owned()];
        (of.reads.amplification, of.writes.ratio_with_cache) = (None, None);
        (of.reads.asked_bytes, of.writes.asked_bytes) = (None, None);
        (of.reads.device_bytes, of.device_unknown) =
            (None, Some("its device is not known".to_owned()));
        let part = shown(of);
        // Both sides of reads, bytes written, and all three of the process; only the writes at the device are known.
        assert_eq!(part.matches("unknown").count(), 6, "{part}");
        insta::assert_snapshot!([whole, part].join("\n\n"));
    }
}
