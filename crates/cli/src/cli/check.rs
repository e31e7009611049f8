//! Flags of `plumb check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::plan::{milliseconds, rate, rate_above_0};
use super::{Accepting, Beneath, ColorChoice, FailOn, Verbosity};

/// Flags of `plumb check`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes.\n\
Plumb judges a layer by the positions of its bytes on every grid below it. If no grid is known, 4 KiB is assumed: a start \
off that grid is misaligned, a start on it is unknown, never aligned.\n\
Exit status: 0 clean, 1 findings, 2 usage, 3 an alignment is unknown, or input was read only in part, 4 not \
permitted, 5 failed."
)]
pub struct Check {
    /// Device, mount point or file to check [default: all]
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// Check another host by the output of its tools, or by its collection
    ///
    /// Tools in any mix, for instance prtvtoc, metastat -p or lsblk -J -O -b; collections are made by --collect; - is standard
    /// input.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Where from")]
    pub from: Vec<PathBuf>,
    /// Read the file TARGET as a disk: raw, qcow2, VHD, VHDX or VMDK
    ///
    /// Without it a file is followed down to its device.
    #[arg(
        long,
        requires = "target",
        conflicts_with = "from",
        help_heading = "Where from"
    )]
    pub image: bool,
    /// Take the sysfs and mounts below this directory for those of a host, instead of this one's; no device is opened
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "image"], help_heading = "Where from")]
    pub root: Option<PathBuf>,
    /// Join a saved profile, so that rules that need sizes of I/O use the real ones
    #[arg(long, value_name = "FILE", help_heading = "Where from")]
    pub profile: Option<PathBuf>,
    /// Collect this host into a new file, for --from elsewhere
    ///
    /// Only you can read the file. It holds sysfs, mounts, tables of mapped devices, labels and superblocks, the identification of
    /// NVMe drives and the positions of files that devices use; no content of files, no keys.
    #[arg(long, value_name = "OUT.tar.zst", conflicts_with_all = ["target", "from", "image", "root", "profile", "json", "grid", "segment", "disk_type", "known", "page", "reads", "writes", "disk_rate", "response", "fail_on"], help_heading = "Where from")]
    pub collect: Option<PathBuf>,
    /// Gather the positions of these images of guests as well, and the layout of the virtual disk inside them
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "collect", help_heading = "Where from")]
    pub images: Vec<PathBuf>,
    /// Join a disk of a guest with its device on the host
    ///
    /// For instance vda=kvm3:/dev/vg/web1 or web1:vda=kvm3:/srv/web1.qcow2: the layers below the disk are then those of the
    /// host's collection. The name of a host is its own one, or that of its collection without .tar.zst; without a name it is
    /// this host. May be given several times.
    #[arg(long, value_name = "[HOST:]DISK=[HOST:]DEVICE", value_parser = Join::parse, conflicts_with_all = ["image", "root", "collect"], help_heading = "Where from")]
    pub join: Vec<Join>,

    #[command(flatten)]
    pub beneath: Beneath,
    #[command(flatten)]
    pub accepting: Accepting,

    /// Reads a second that are asked of TARGET, or of the only volume
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Workload")]
    pub reads: Option<f64>,
    /// Writes a second
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Workload")]
    pub writes: Option<f64>,
    /// Measured rate of one disk for such I/O, a second; without --reads and --writes the rates are those of the profile
    /// or of iostat
    #[arg(long, value_name = "RATE", value_parser = rate_above_0, help_heading = "Workload")]
    pub disk_rate: Option<f64>,
    /// Largest mean response of a disk: 50ms
    #[arg(long, value_name = "DURATION", value_parser = milliseconds, requires = "disk_rate", help_heading = "Workload")]
    pub response: Option<f64>,

    /// Print one JSON document instead of text
    #[arg(long, group = "document", help_heading = "Output")]
    pub json: bool,
    /// Print the result for another program
    ///
    /// A plugin line of Nagios, XML of JUnit, CSV, Markdown, or metrics for the textfile collector of node_exporter. As nagios
    /// the exit status is 0, 1, 2 or 3, and 3 for every failure.
    #[arg(
        long = "as",
        value_name = "FORMAT",
        group = "document",
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub export: Option<Export>,
    /// With --json or --as: write the result to FILE, whole or not at all, in the place of a file that has the name
    #[arg(
        long,
        value_name = "FILE",
        requires = "document",
        help_heading = "Output"
    )]
    pub output: Option<PathBuf>,
    /// With --json: every extent of every file, not the first 16
    #[arg(long, requires = "json", help_heading = "Output")]
    pub full: bool,
    /// Severity from which the exit status is 1
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = "warning",
        help_heading = "Output"
    )]
    pub fail_on: FailOn,
    /// When to colour
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// One line with performance data
    Nagios,
    /// The report of a test run
    Junit,
    /// A line for each finding
    Csv,
    /// The verdict and a table
    Markdown,
    /// Metrics for node_exporter
    Prometheus,
}

/// A device or file, and the host that it is on; `None` where none was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedName {
    /// The host.
    pub host: Option<String>,
    /// The device by any of its names, or the path of a file.
    pub name: String,
}

/// A value of `--join`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The disk of the guest.
    pub disk: HostedName,
    /// Its device or file on the host.
    pub device: HostedName,
}

impl HostedName {
    /// A path has no host before it, even if it contains colons.
    pub fn parse(text: &str) -> Result<HostedName, String> {
        let (host, name) = match text.split_once(':') {
            Some((host, name)) if !text.starts_with('/') => (Some(host.to_owned()), name),
            _ => (None, text),
        };
        if name.is_empty() || host.as_ref().is_some_and(String::is_empty) {
            return Err(format!("found `{text}`, expected DEVICE or HOST:DEVICE"));
        }
        Ok(HostedName {
            host,
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for HostedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{host}:{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Join {
    fn parse(text: &str) -> Result<Join, String> {
        let Some((disk, device)) = text.split_once('=') else {
            return Err(format!(
                "found `{text}`, expected DISK=DEVICE, for instance vda=kvm3:/dev/vg/web1"
            ));
        };
        Ok(Join {
            disk: HostedName::parse(disk)?,
            device: HostedName::parse(device)?,
        })
    }
}
