//! The integration tests of `plumb-trace`, in one program: linking costs more than compiling them.

mod blk;
mod blktrace;
mod blktrace_guest;
mod blktrace_records;
mod csv;
mod ftrace;
mod histograms;
mod parquet;
mod parquet_damage;
mod parquet_foreign;
mod parquet_growing;
mod regressions;
mod series;
mod tools;
mod vscsi;
mod writers;
