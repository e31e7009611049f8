//! The columns of `iostat -x`, by their names: Solaris and sysstat share no order of them.

use serde::Serialize;

use crate::number::Printed;

/// No heading is wider.
const WORDS_MAX: usize = 64;

/// The tool that printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// `iostat` of Solaris and illumos.
    Solaris,
    /// `iostat` of Linux, from sysstat.
    Sysstat,
    /// `sar -d` of Linux, from sysstat.
    Sar,
}

impl Tool {
    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Tool::Solaris => "iostat of Solaris",
            Tool::Sysstat => "iostat of sysstat",
            Tool::Sar => "sar of sysstat",
        }
    }
}

/// The stretch of an I/O that a latency covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// Issue to complete: `asvc_t`, or the time within the device.
    Device,
    /// Insert to complete: `svc_t`, `await`.
    #[default]
    Response,
}

/// The operation that a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards, of sysstat.
    Discard,
    /// Flushes, of sysstat.
    Flush,
}

/// The quantity in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnMeaning {
    /// Name of the device.
    Device,
    /// I/O a second.
    Rate(Operation),
    /// I/O a second of all operations together.
    AllRate,
    /// Bytes a second, in units of this number of bytes.
    Bytes(Operation, u32),
    /// Mean latency of one operation, ms.
    OpMs(Operation),
    /// Mean latency of all operations, ms.
    Ms,
    /// Mean time before issue, ms.
    QueueMs,
    /// I/O in flight at the device.
    Active,
    /// I/O that wait before it.
    Waiting,
    /// I/O in flight, waiting ones included.
    InFlight,
    /// A quantity that no reader uses.
    Other,
}

/// The columns of one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct IostatColumns {
    tool: Tool,
    columns: Vec<ColumnMeaning>,
    /// Words of the time in front of each row.
    lead: usize,
    /// Columns of processors and terminals behind those of the first device.
    further: usize,
    span: Span,
}

/// Words of a line; Solaris parts them by commas under `-r`.
#[must_use]
pub fn words(line: &str) -> Vec<&str> {
    let line = line.trim();
    let is_csv = line.contains(',') && !line.contains([' ', '\t']);
    let split = |c: char| c.is_whitespace() || is_csv && c == ',';
    line.split(split)
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .collect()
}

impl IostatColumns {
    /// The columns of a heading; `None` for any other line.
    #[must_use]
    pub fn of_heading(line: &str) -> Option<IostatColumns> {
        let words = words(line);
        let has = |name: &str| words.contains(&name);
        let first = *words.first()?;
        if !has("r/s") || !has("w/s") {
            return None;
        }
        if matches!(first, "Device" | "Device:") && has("%util") {
            let columns = words
                .iter()
                .map(|word| column_of_sysstat(word.trim_end_matches(':')))
                .collect();
            return Some(IostatColumns {
                tool: Tool::Sysstat,
                columns,
                lead: 0,
                further: 0,
                span: Span::Response,
            });
        }
        if !has("device") || !has("actv") {
            return None;
        }
        let devices = words
            .iter()
            .position(|word| matches!(*word, "tin" | "us"))
            .unwrap_or(words.len());
        let columns: Vec<ColumnMeaning> = words[..devices]
            .iter()
            .map(|word| column_of_solaris(word))
            .collect();
        let span = if has("asvc_t") {
            Span::Device
        } else {
            Span::Response
        };
        let further = words.len() - devices;
        columns
            .contains(&ColumnMeaning::Device)
            .then_some(IostatColumns {
                tool: Tool::Solaris,
                columns,
                lead: 0,
                further,
                span,
            })
    }

    /// The columns of a heading that does not tell reads and writes apart: of `iostat` without `-x` and of `sar -d`, both of
    /// sysstat; `None` for any other line.
    #[must_use]
    pub fn of_brief_heading(line: &str) -> Option<IostatColumns> {
        let words = words(line);
        let rate = words.iter().position(|word| *word == "tps")?;
        let (tool, lead) = match words.first() {
            Some(&"Device" | &"Device:") => (Tool::Sysstat, 0),
            Some(first) if is_clock(first) => {
                let device = words.iter().position(|word| *word == "DEV")?;
                (Tool::Sar, rate.min(device))
            }
            _ => return None,
        };
        let columns: Vec<ColumnMeaning> = words[lead..]
            .iter()
            .map(|word| match *word {
                "DEV" => ColumnMeaning::Device,
                word => column_of_sysstat(word.trim_end_matches(':')),
            })
            .collect();
        let has_bytes = columns
            .iter()
            .any(|column| matches!(column, ColumnMeaning::Bytes(..)));
        has_bytes.then_some(IostatColumns {
            tool,
            columns,
            lead,
            further: 0,
            span: Span::Response,
        })
    }

    /// The tool that prints such a heading.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        self.tool
    }

    /// The stretch that the latencies below it cover.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The time in front of a row; `None` where rows have none, and for a row of averages.
    #[must_use]
    pub fn time_of_row(&self, line: &str) -> Option<String> {
        let words = words(line);
        let is_timed = self.lead > 0 && words.first().is_some_and(|word| is_clock(word));
        is_timed.then(|| words[..self.lead.min(words.len())].join(" "))
    }

    /// Whether rows begin with their time.
    #[must_use]
    pub const fn has_times(&self) -> bool {
        self.lead > 0
    }

    /// Columns of a device, its name included.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.columns.len()
    }

    /// The words of a row beside their columns; `None` for a line of another width. Under `-c` and `-t` of Solaris the first
    /// row of a report goes on with processors and terminals; those are left out.
    #[must_use]
    pub fn cells<'a>(&self, line: &'a str) -> Option<Vec<(ColumnMeaning, &'a str)>> {
        let mut words = words(line);
        if words.len() < self.lead {
            return None;
        }
        words.drain(..self.lead);
        let width = self.width();
        let is_row =
            words.len() == width || self.further > 0 && words.len() == width + self.further;
        is_row.then(|| self.columns.iter().copied().zip(words).collect())
    }

    /// The device of a row, with its reads and its writes a second; `None` for any other line.
    #[must_use]
    pub fn rates<'a>(&self, line: &'a str) -> Option<(&'a str, [f64; 2])> {
        let cells = self.cells(line)?;
        let word = |wanted: ColumnMeaning| {
            let mut words = cells.iter().filter(|(column, _)| *column == wanted);
            words.next().map(|(_, word)| *word)
        };
        let rate = |operation| Some(Printed::parse(word(ColumnMeaning::Rate(operation))?)?.value);
        Some((
            word(ColumnMeaning::Device)?,
            [rate(Operation::Read)?, rate(Operation::Write)?],
        ))
    }
}

/// `20:25:47`.
fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let is_two = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_two)
}

fn column_of_solaris(word: &str) -> ColumnMeaning {
    match word {
        "device" => ColumnMeaning::Device,
        "r/s" => ColumnMeaning::Rate(Operation::Read),
        "w/s" => ColumnMeaning::Rate(Operation::Write),
        "kr/s" => ColumnMeaning::Bytes(Operation::Read, 1 << 10),
        "kw/s" => ColumnMeaning::Bytes(Operation::Write, 1 << 10),
        "Mr/s" => ColumnMeaning::Bytes(Operation::Read, 1 << 20),
        "Mw/s" => ColumnMeaning::Bytes(Operation::Write, 1 << 20),
        "wait" => ColumnMeaning::Waiting,
        "actv" => ColumnMeaning::Active,
        "wsvc_t" => ColumnMeaning::QueueMs,
        "asvc_t" | "svc_t" => ColumnMeaning::Ms,
        _ => ColumnMeaning::Other,
    }
}

/// The column of sysstat with that name, which is a member of its JSON as well. Old versions write sectors (`rsec/s`),
/// `avgqu-sz` and one `await` for both operations.
#[must_use]
pub fn column_of_sysstat(word: &str) -> ColumnMeaning {
    match word {
        "Device" => ColumnMeaning::Device,
        "await" => ColumnMeaning::Ms,
        "avgqu-sz" | "aqu-sz" => ColumnMeaning::InFlight,
        "tps" => ColumnMeaning::AllRate,
        "kB_read/s" | "rkB" => ColumnMeaning::Bytes(Operation::Read, 1 << 10),
        "kB_wrtn/s" | "wkB" => ColumnMeaning::Bytes(Operation::Write, 1 << 10),
        "kB_dscd/s" | "dkB" => ColumnMeaning::Bytes(Operation::Discard, 1 << 10),
        "MB_read/s" => ColumnMeaning::Bytes(Operation::Read, 1 << 20),
        "MB_wrtn/s" => ColumnMeaning::Bytes(Operation::Write, 1 << 20),
        "MB_dscd/s" => ColumnMeaning::Bytes(Operation::Discard, 1 << 20),
        "Blk_read/s" | "rd_sec/s" | "rd_sec" => ColumnMeaning::Bytes(Operation::Read, 512),
        "Blk_wrtn/s" | "wr_sec/s" | "wr_sec" => ColumnMeaning::Bytes(Operation::Write, 512),
        "Blk_dscd/s" | "dc_sec/s" | "dc_sec" => ColumnMeaning::Bytes(Operation::Discard, 512),
        _ => {
            let Some(letter) = word.chars().next() else {
                return ColumnMeaning::Other;
            };
            let op = match letter {
                'r' => Operation::Read,
                'w' => Operation::Write,
                'd' => Operation::Discard,
                'f' => Operation::Flush,
                _ => return ColumnMeaning::Other,
            };
            match &word[1..] {
                "/s" => ColumnMeaning::Rate(op),
                "kB/s" => ColumnMeaning::Bytes(op, 1 << 10),
                "MB/s" => ColumnMeaning::Bytes(op, 1 << 20),
                "sec/s" => ColumnMeaning::Bytes(op, 512),
                "_await" => ColumnMeaning::OpMs(op),
                _ => ColumnMeaning::Other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLARIS: &str = "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b";
    const SYSSTAT: &str = "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %util";

    #[test]
    fn rates_of_rows_of_all_shapes() {
        let terminals = format!("{SOLARIS}   tin  tout  us sy wt id");
        for (heading, row, expected) in [
            (
                SOLARIS,
                "sd0 1.5 2.0 8.0 16.0 0.0 0.1 30.0 0 1",
                Some(("sd0", [1.5, 2.0])),
            ),
            (
                SOLARIS,
                "sd0,1.5,2.0,8.0,16.0,0.0,0.1,30.0,0,1,",
                Some(("sd0", [1.5, 2.0])),
            ),
            (
                SOLARIS,
                "sd0 1,5 2,0 8,0 16,0 0,0 0,1 30,0 0 1",
                Some(("sd0", [1.5, 2.0])),
            ),
            (
                &terminals,
                "sd0 1.5 2.0 8.0 16.0 0.0 0.1 30.0 0 1 0 10 1 2 0 97",
                Some(("sd0", [1.5, 2.0])),
            ),
            (
                &terminals,
                "sd1 3.0 0.0 24.0 0.0 0.0 0.1 30.0 0 1",
                Some(("sd1", [3.0, 0.0])),
            ),
            (
                SYSSTAT,
                "dm-0 2.38 7.18 98.75 129.42 0.00 0.00 0.34",
                Some(("dm-0", [2.38, 7.18])),
            ),
            (SOLARIS, "sd0 1.5 2.0", None),
            (SOLARIS, "sd0 1O.5 2.0 8.0 16.0 0.0 0.1 30.0 0 1", None),
            (SYSSTAT, "0.14 0.00 0.16 0.00 0.00 99.70", None),
        ] {
            let columns = IostatColumns::of_heading(heading).expect("a heading");
            assert_eq!(columns.rates(row), expected, "{row}");
        }
    }

    #[test]
    fn headings_name_their_tool() {
        let tool = |line| IostatColumns::of_heading(line).map(|columns| columns.tool());
        let brief_of_sysstat = "Device tps kB_read/s kB_wrtn/s kB_read kB_wrtn";
        for (line, expected) in [
            (SOLARIS, Some(Tool::Solaris)),
            (SYSSTAT, Some(Tool::Sysstat)),
            ("Device tps kB_read/s kB_wrtn/s", None),
        ] {
            assert_eq!(tool(line), expected, "{line}");
        }
        let brief = |line| IostatColumns::of_brief_heading(line);
        let tool = |line| brief(line).map(|columns| columns.tool());
        assert_eq!(tool(brief_of_sysstat), Some(Tool::Sysstat));
        let morning = brief("08:25:47 AM DEV tps rkB/s wkB/s areq-sz aqu-sz await %util");
        assert_eq!(
            morning.map(|columns| (columns.tool(), columns.width())),
            Some((Tool::Sar, 8))
        );
        let last = brief("20:25:47 tps rkB/s wkB/s areq-sz aqu-sz await %util DEV");
        assert_eq!(
            last.and_then(|columns| columns.time_of_row("20:25:48 1 2 3 4 5 6 7 sda")),
            Some("20:25:48".to_owned())
        );
        for other in [
            "20:25:47 IFACE rxpck/s tps",
            "Average: DEV tps rkB/s wkB/s",
            "Device tps",
            SYSSTAT,
        ] {
            assert_eq!(tool(other), None, "{other}");
        }
    }
}
