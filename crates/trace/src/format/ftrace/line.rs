//! The shapes of lines: the text before an event's name, the text after it, and messages about loss.

use crate::blk::Action;
use crate::number::{parse_decimal, parse_u64};
use crate::text::{LineError, split_words};

/// A line of any event: task, time, event, and the rest.
pub struct FtraceLine<'line> {
    /// Command, process, CPU and flags.
    pub task: &'line [u8],
    /// ns since boot.
    pub time_ns: i64,
    /// Name of the event, without its group.
    pub event: &'line [u8],
    /// The content of the event.
    pub rest: &'line [u8],
}

/// Finds the time, which ends in a colon and precedes the name of the event, which does too.
pub fn split_line(line: &[u8]) -> Option<FtraceLine<'_>> {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b':', line.get(from..)?).map(|at| from + at) {
        from = at + 1;
        let before = &line[..at];
        let start = before
            .iter()
            .rposition(|byte| !byte.is_ascii_digit() && *byte != b'.')
            .map_or(0, |at| at + 1);
        let time = &before[start..];
        if !matches!(line.get(from), Some(b' ' | b'\t')) || memchr::memchr(b'.', time).is_none() {
            continue;
        }
        let time_ns = parse_decimal(time, 9)?;
        let rest = line[from..].trim_ascii_start();
        // perf may count between the time and the event.
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = rest[digits..].trim_ascii_start();
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        let event = rest[..end].strip_suffix(b":")?;
        let event = event.strip_prefix(b"block:").unwrap_or(event);
        return Some(FtraceLine {
            task: &line[..start],
            time_ns,
            event,
            rest: &rest[end..],
        });
    }
    None
}

/// Command and process from the text before the time.
pub fn task_of(task: &[u8]) -> (&[u8], Option<i32>) {
    let mut task = task.trim_ascii();
    if let Some(at) = memchr::memrchr(b'[', task) {
        // The CPU, and after it perhaps flags.
        let cpu = task[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if cpu > 0 && task.get(at + 1 + cpu) == Some(&b']') {
            task = task[..at].trim_ascii_end();
        }
    }
    if let Some(at) = memchr::memrchr(b'(', task).filter(|_| task.ends_with(b")")) {
        task = task[..at].trim_ascii_end();
    }
    let last = task
        .iter()
        .rposition(|byte| !byte.is_ascii_digit() && *byte != b'/')
        .map_or(0, |at| at + 1);
    let comm = task[..last]
        .strip_suffix(b"-")
        .unwrap_or(&task[..last])
        .trim_ascii();
    // `PROCESS/THREAD` where perf was asked for both.
    let pid = task[last..]
        .split(|byte| *byte == b'/')
        .next()
        .and_then(parse_u64);
    (comm, pid.and_then(|pid| i32::try_from(pid).ok()))
}

/// The text after the name of an event with a place.
pub struct BlockFields<'line> {
    /// `MAJOR,MINOR`.
    pub device: &'line [u8],
    /// Letters of the operation.
    pub rwbs: &'line [u8],
    /// Bytes of a command that an application wrote itself; empty for I/O.
    pub command: &'line [u8],
    /// First sector.
    pub sector: u64,
    /// How many sectors.
    pub sectors: u64,
    /// Device and sector from which a remap came.
    pub from: Option<(&'line [u8], u64)>,
    /// Whether a completion tells of an error.
    pub failed: bool,
}

fn is_device(word: &[u8]) -> bool {
    let mut numbers = word.split(|byte| *byte == b',');
    let two = (
        numbers.next().and_then(parse_u64),
        numbers.next().and_then(parse_u64),
    );
    matches!(two, (Some(_), Some(_))) && numbers.next().is_none()
}

/// Takes a word off the front.
fn take<'line>(rest: &mut &'line [u8]) -> &'line [u8] {
    let text = rest.trim_ascii_start();
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    word
}

/// Parses the text after the name of an event with a place.
pub fn place_of(action: Action, line: &[u8]) -> Result<BlockFields<'_>, LineError> {
    let wrong = |expected| LineError::new(line.trim_ascii(), expected);
    let mut rest = line;
    let device = take(&mut rest);
    if !is_device(device) {
        return Err(wrong("MAJOR,MINOR of a device"));
    }
    let rwbs = take(&mut rest);
    let mut command = &rest[..0];
    if matches!(
        action,
        Action::Insert | Action::Issue | Action::Complete | Action::Requeue
    ) && let (Some(open), Some(close)) = (memchr::memchr(b'(', rest), memchr::memchr(b')', rest))
        && open < close
    {
        (command, rest) = (&rest[open + 1..close], &rest[close + 1..]);
    }
    let (sector, plus, sectors) = (take(&mut rest), take(&mut rest), take(&mut rest));
    let (Some(sector), b"+", Some(sectors)) = (parse_u64(sector), plus, parse_u64(sectors)) else {
        return Err(wrong("SECTOR + SECTORS of a block event"));
    };
    let from = if action == Action::Remap {
        Some(source_of(rest).ok_or(wrong("`<- (MAJOR,MINOR) SECTOR` of a remap"))?)
    } else {
        None
    };
    let failed = action == Action::Complete && !line.trim_ascii_end().ends_with(b"[0]");
    Ok(BlockFields {
        device,
        rwbs,
        command,
        sector,
        sectors,
        from,
        failed,
    })
}

fn source_of(mut rest: &[u8]) -> Option<(&[u8], u64)> {
    let (arrow, from, sector) = (take(&mut rest), take(&mut rest), take(&mut rest));
    let from = from.strip_prefix(b"(")?.strip_suffix(b")")?;
    (arrow == b"<-" && is_device(from)).then_some(())?;
    Some((from, parse_u64(sector)?))
}

/// Events that the recorder says it lost, from lines such as `CPU:3 [LOST 12 EVENTS]`.
pub fn lost_events(line: &[u8]) -> Option<u64> {
    let of_perf = memchr::memmem::find(line, b"PERF_RECORD_LOST").is_some();
    let of_trace_cmd = line.ends_with(b" EVENTS DROPPED]");
    split_words(line)
        .zip(split_words(line).skip(1))
        .find_map(|pair| match pair {
            (b"[LOST", count) => parse_u64(count),
            (b"lost", count) if of_perf => parse_u64(count),
            ([b'[', count @ ..], b"EVENTS") if of_trace_cmd => parse_u64(count),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_events_are_parsed() {
        const SECOND: i64 = 1_000_000_000;
        let check = |before: &str, time: &str, event: &str, expected: (&str, i32, i64, &str)| {
            let line = format!("{before} {time}: {event}: 8,0 and more");
            let found = split_line(line.as_bytes()).expect(&line);
            let (comm, pid) = task_of(found.task);
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            let found = (text(comm), pid.unwrap(), found.time_ns, text(found.event));
            assert_eq!(found, expected, "{line}");
        };
        let any = |before: &str, comm: &str, pid: i32| {
            check(
                before,
                "2.0",
                "block:block_plug",
                (comm, pid, 2 * SECOND, "block_plug"),
            );
        };
        any("  tar 16072 [001]", "tar", 16072);
        any(" rep-306069 [007] ....", "rep", 306_069);
        any(" kworker/7:1H-250   [007] d.s.", "kworker/7:1H", 250);
        any(" kworker/0:1H-kb   77 [000]", "kworker/0:1H-kb", 77);
        any("<idle>-0     [007]", "<idle>", 0);
        any("Web Content-12  (  99) [001] d..1", "Web Content", 12);
        any("Web Content 12/13 [001]", "Web Content", 12);
        any("a: [b] 1 2-3 [001]", "a: [b] 1 2", 3);
        any("tar 5", "tar", 5);
        check(
            "dd 1 [0]",
            "1.000000001",
            "   sched:x",
            ("dd", 1, SECOND + 1, "sched:x"),
        );
        check(
            "dd 1 [0]",
            "19654.923315",
            "     1 block_rq_issue",
            ("dd", 1, 19_654_923_315_000, "block_rq_issue"),
        );
        for other in [
            "",
            "# tracer: nop",
            "8,0 1 2 0.1 5 Q R 1 + 2 [x]",
            "a 1 [0] NaN: x: y",
            "a 1 99999999999.0: x: y",
            ":",
            "1.0:",
            "1.0: x",
        ] {
            assert!(split_line(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn fields_after_the_event_are_parsed() {
        let check = |action, rest: &str, expected: Option<(&str, &str, u64, u64, bool)>| {
            let found = place_of(action, rest.as_bytes());
            let found = found.as_ref().ok().map(|place| {
                let text = |bytes| std::str::from_utf8(bytes).unwrap();
                (
                    text(place.rwbs),
                    text(place.command),
                    place.sector,
                    place.sectors,
                    place.failed,
                )
            });
            assert_eq!(found, expected, "{rest}");
        };
        check(
            Action::Queue,
            " 8,0 FWS 0 + 0 [rep]",
            Some(("FWS", "", 0, 0, false)),
        );
        check(
            Action::Queue,
            " 8,0 R 8 + 16 [a (b) c]",
            Some(("R", "", 8, 16, false)),
        );
        check(
            Action::Issue,
            " 7,0 RA 4096 () 274458 + 8 0x2,0,4 [x]",
            Some(("RA", "", 274_458, 8, false)),
        );
        check(
            Action::Issue,
            " 7,0 RA 4096 () 274458 + 8 be,0,4 [x]",
            Some(("RA", "", 274_458, 8, false)),
        );
        check(
            Action::Issue,
            " 8,0 N 36 (12 00 24 00) 0 + 0 [x]",
            Some(("N", "12 00 24 00", 0, 0, false)),
        );
        check(
            Action::Complete,
            " 8,0 FF () 18446744073709551615 + 0 [0]",
            Some(("FF", "", u64::MAX, 0, false)),
        );
        check(
            Action::Complete,
            " 8,0 WS () 0 + 0 [-5]",
            Some(("WS", "", 0, 0, true)),
        );
        check(
            Action::Complete,
            " 8,0 W () 8 + 8 none,0,0 [0]",
            Some(("W", "", 8, 8, false)),
        );
        check(Action::Issue, " 8,0 R 8 () -1 + 8 [x]", None);
        check(
            Action::Issue,
            " 8,0 R 8 () 8 + 99999999999999999999 [x]",
            None,
        );
        check(Action::Issue, " sda R 8 () 8 + 8 [x]", None);
        check(Action::Issue, "", None);
        check(Action::Remap, " 8,0 R 80 + 8 [x]", None);
        let remap = place_of(Action::Remap, b" 259,0 WFS 498455552 + 8 <- (259,5) 263168");
        assert_eq!(remap.unwrap().from, Some((&b"259,5"[..], 263_168)));
    }

    #[test]
    fn losses() {
        let check = |line: &str, lost| assert_eq!(lost_events(line.as_bytes()), lost, "{line}");
        check("CPU:3 [LOST 12 EVENTS]", Some(12));
        check("CPU:3 [7 EVENTS DROPPED]", Some(7));
        check("swapper 0 [000] 1.0: PERF_RECORD_LOST lost 9", Some(9));
        check("CPU:3 [LOST x EVENTS]", None);
        check("CPU 3 buffer started", None);
        check("", None);
    }
}
