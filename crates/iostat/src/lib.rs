//! Lines that `iostat -x` of Solaris and `iostat` and `sar -d` of sysstat print: headings, the columns below them, and the numbers of a row.
//!
//! Two readers share this crate. The interval series (`plumb_trace::series`) keep each report for `plumb compare`; the dump
//! readers of `plumb_stack` take the mean rates of each device for a check. Left out: reports, and the average since boot,
//! which each of them treats in its own way. Left out as well is `-I` of Solaris, which prints counts in place of rates. The
//! columns were held against real prints.

#![forbid(unsafe_code)]

mod columns;
mod line;
mod number;

pub use columns::{ColumnMeaning, IostatColumns, Operation, Span, Tool, column_of_sysstat, words};
pub use line::IostatLine;
pub use number::Printed;
