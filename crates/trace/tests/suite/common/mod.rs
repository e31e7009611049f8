//! Readers run to their end, and checks that several formats share.

pub mod counts;
pub mod lines;
pub mod tool;

/// Completions that name no I/O, as the second one of a flush does.
pub fn completions_without_length(info: &plumb_trace::SourceInfo) -> u64 {
    info.tallies["completion without length"]
}
