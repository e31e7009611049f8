//! Flags of `plumb check`.

use std::path::PathBuf;

use clap::Args;
use plumb_geometry::{Bytes, Grid, parse_size};

use super::plan::milliseconds;
use super::{ColorChoice, FailOn, boundary, grid, whole};

/// Flags of `plumb check`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes.\n\
A layer is judged by where its bytes come to lie on every grid below it. Where no grid is known 4 KiB is assumed: off \
it is misaligned, on it is unknown, never aligned.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 how something lies is unknown, or input was read only in part, 4 not \
permitted, 5 failed."
)]
pub struct Check {
    /// What to check, with what it stands on and what stands on it: a device, a mount point or a file; all when not
    /// given
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// What tools print of another host, in any mix, for instance prtvtoc, metastat -p, lsblk -J -O -b, or what --collect
    /// gathered there; - for standard input
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Where from")]
    pub from: Vec<PathBuf>,
    /// Read TARGET, a regular file, as a disk, raw, qcow2, VHD, VHDX or VMDK, instead of following it down to its device
    #[arg(long, requires = "target", conflicts_with = "from", help_heading = "Where from")]
    pub image: bool,
    /// Take the sysfs and mounts below this directory for those of a host, instead of this one's; no device is opened
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "image"], help_heading = "Where from")]
    pub root: Option<PathBuf>,
    /// Join a saved profile, so that rules that need sizes of I/O use the real ones
    #[arg(long, value_name = "FILE", help_heading = "Where from")]
    pub profile: Option<PathBuf>,
    /// Gather what a check reads of this host into a file, for --from elsewhere: sysfs, mounts and what volume managers
    /// print; no data, no keys, no serial numbers
    #[arg(long, value_name = "OUT.tar.zst", conflicts_with_all = ["target", "from", "image", "root", "profile", "json"], help_heading = "Where from")]
    pub collect: Option<PathBuf>,

    /// Unit of the disks: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid, help_heading = "What lies beneath")]
    pub grid: Vec<Grid>,
    /// Segment of the hardware array that shows the disks, for instance 48k
    #[arg(long, value_name = "SIZE[@O]", value_parser = boundary, help_heading = "What lies beneath")]
    pub segment: Option<Grid>,
    /// Known array or drive to take for disks whose model is unknown, for instance sun-zfs-appliance-8k
    #[arg(long, value_name = "NAME", help_heading = "What lies beneath")]
    pub disk_type: Option<String>,
    /// More known arrays, in TOML
    #[arg(long, value_name = "FILE", help_heading = "What lies beneath")]
    pub known: Option<PathBuf>,
    /// Page of the database on top: its usual I/O
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "What lies beneath")]
    pub page: Option<Bytes>,

    /// Reads a second that are asked of TARGET, or of the only volume
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "What is asked")]
    pub reads: Option<f64>,
    /// Writes a second
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "What is asked")]
    pub writes: Option<f64>,
    /// What one disk gives of such I/O a second, measured; without --reads and --writes the rates are those of the profile
    /// or of iostat
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "What is asked")]
    pub disk_rate: Option<f64>,
    /// Largest mean response of a disk: 50ms
    #[arg(long, value_name = "DURATION", value_parser = milliseconds, requires = "disk_rate", help_heading = "What is asked")]
    pub response: Option<f64>,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Severity from which the exit status is 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning", help_heading = "Output")]
    pub fail_on: FailOn,
    /// When to colour
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub color: ColorChoice,
}

/// A size above 0.
fn size(text: &str) -> Result<Bytes, String> {
    match parse_size(text).map_err(|error| whole(&error))? {
        Bytes(0) => Err("found 0, expected a size above 0".to_owned()),
        size => Ok(size),
    }
}

/// So many a second, 0 included.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| format!("found `{text}`, expected a rate a second, as in 265"))
}
