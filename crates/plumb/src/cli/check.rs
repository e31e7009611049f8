//! Flags of `plumb check`.

use std::path::PathBuf;

use clap::Args;

use super::plan::{milliseconds, rate, rate_above_0};
use super::{Beneath, ColorChoice, FailOn, Verbosity};

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
    /// The device, mount point or file to check, with all layers below and above it; all devices when not
    /// given
    #[arg(value_name = "TARGET")]
    pub target: Option<PathBuf>,
    /// Output of tools of another host, in any mix, for instance prtvtoc, metastat -p, lsblk -J -O -b, or a collection that
    /// --collect gathered there; - for standard input
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Where from")]
    pub from: Vec<PathBuf>,
    /// Read TARGET, a regular file, as a disk, raw, qcow2, VHD, VHDX or VMDK, instead of following it down to its device
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
    /// Gather the facts on this host that a check needs into a new file that only you can read, for --from elsewhere: sysfs,
    /// mounts, tables of mapped devices, labels and superblocks, statements of NVMe drives, and the positions of files that
    /// devices use; no content of files, no keys
    #[arg(long, value_name = "OUT.tar.zst", conflicts_with_all = ["target", "from", "image", "root", "profile", "json", "grid", "segment", "disk_type", "known", "page", "reads", "writes", "disk_rate", "response", "fail_on"], help_heading = "Where from")]
    pub collect: Option<PathBuf>,
    /// Gather the positions of these images of guests as well, and the layout of the virtual disk inside them
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "collect", help_heading = "Where from")]
    pub images: Vec<PathBuf>,
    /// A disk of a guest and its device or file on the host, for instance vda=kvm3:/dev/vg/web1 or web1:vda=kvm3:/srv/web1.qcow2:
    /// the layers below the disk are then known from the host's collection. The name of a host is its own name for itself, or
    /// as its collection without .tar.zst; without one it is this host. May be given several times
    #[arg(long, value_name = "[HOST:]DISK=[HOST:]DEVICE", value_parser = Join::parse, conflicts_with_all = ["image", "root", "collect"], help_heading = "Where from")]
    pub join: Vec<Join>,

    #[command(flatten)]
    pub beneath: Beneath,

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
    #[arg(long, help_heading = "Output")]
    pub json: bool,
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
