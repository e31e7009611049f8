//! The user's statements on the disks below, for every command that judges a layout.

use std::path::PathBuf;

use clap::Args;
use plumb_geometry::{Bytes, Grid, parse_block_size};

use super::{boundary, grid, whole};

/// The user's statements on the disks and their workload.
#[derive(Clone, Debug, Default, Args)]
pub struct Beneath {
    /// Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid, help_heading = "Storage below")]
    pub grid: Vec<Grid>,
    /// Segment of the hardware array that shows the disks, for instance 48k
    #[arg(long, value_name = "SIZE[@O]", value_parser = boundary, help_heading = "Storage below")]
    pub segment: Option<Grid>,
    /// Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k
    #[arg(long, value_name = "NAME", help_heading = "Storage below")]
    pub disk_type: Option<String>,
    /// More known arrays, in TOML
    #[arg(long, value_name = "FILE", help_heading = "Storage below")]
    pub known: Option<PathBuf>,
    /// Page of the database on top: its usual I/O
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Storage below")]
    pub page: Option<Bytes>,
}

fn size(text: &str) -> Result<Bytes, String> {
    parse_block_size(text).map_err(|error| whole(&error))
}
