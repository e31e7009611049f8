//! The shapes of lines that iostat prints.

use crate::columns::IostatColumns;

/// One line of a print.
#[derive(Clone, Debug, PartialEq)]
pub enum IostatLine {
    /// The heading of a report.
    Heading(IostatColumns),
    /// `extended device statistics`, which Solaris prints above a heading.
    Title,
    /// `Linux 6.1.0 (host) …`, with which sysstat begins.
    Banner,
    /// `avg-cpu: …`: rows of processors follow until the next heading.
    Processors,
    /// A row, or a line of another origin.
    Other,
}

impl IostatLine {
    /// Recognizes the line. Blanks in front of `Linux` and `avg-cpu:` count: sysstat prints none.
    #[must_use]
    pub fn parse(line: &str) -> IostatLine {
        match IostatColumns::of_heading(line) {
            Some(columns) => IostatLine::Heading(columns),
            None if line.starts_with("Linux ") => IostatLine::Banner,
            None if line.starts_with("avg-cpu:") => IostatLine::Processors,
            None if line.contains("extended device statistics") => IostatLine::Title,
            None => IostatLine::Other,
        }
    }
}
