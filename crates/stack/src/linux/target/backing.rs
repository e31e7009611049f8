//! The backing of an export.

use std::collections::HashMap;

use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::linux::device::SysfsDevice;
use crate::linux::{Host, Root};
use crate::node::Kind;
use crate::obstacle::Obstacle;

/// The place of an export's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// A block device, by number.
    Number(u32, u32),
    /// A block device or a file, as somebody wrote it.
    Path(String),
    /// A SCSI disk, by its address.
    Address(String),
    /// Memory.
    Memory,
    /// Unknown, for this reason.
    Unknown(Obstacle),
}

impl Default for Backing {
    fn default() -> Backing {
        Backing::Unknown(Obstacle::NoBacking)
    }
}

impl Backing {
    /// The node, or the reason why it has none.
    pub(super) fn resolve(
        &self,
        root: &Root<'_>,
        host: &Host,
        builder: &mut Builder,
        devices: &HashMap<NodeId, &SysfsDevice>,
        export: &str,
    ) -> Result<NodeId, Obstacle> {
        match self {
            Backing::Number(major, minor) => {
                let known = host.by_number((*major, *minor));
                let device = format!("{major}:{minor}");
                known.ok_or(Obstacle::NotOfHost { device })
            }
            Backing::Address(address) => {
                let is_it = |device: &&SysfsDevice| device.address.as_ref() == Some(address);
                let found = devices
                    .iter()
                    .find(|(_, device)| is_it(device))
                    .map(|(node, _)| *node);
                found.ok_or_else(|| Obstacle::NotOfHost {
                    device: address.clone(),
                })
            }
            Backing::Path(path) => of_path(root, host, builder, path),
            Backing::Memory => {
                let node = builder.node(&format!("memory of {export}"));
                let source = Source::Kernel {
                    path: "/sys/kernel/config/target/core".to_owned(),
                };
                builder.kind(node, Kind::Ram, &source);
                Ok(node)
            }
            Backing::Unknown(why) => Err(why.clone()),
        }
    }
}

/// A path as an administrator wrote it: links are followed, where they are there to follow.
fn of_path(
    root: &Root<'_>,
    host: &Host,
    builder: &mut Builder,
    path: &str,
) -> Result<NodeId, Obstacle> {
    let resolved = root
        .directory
        .resolved(path)
        .unwrap_or_else(|_| path.to_owned());
    if let Some(known) = [&*resolved, path]
        .into_iter()
        .find_map(|path| builder.find(path))
    {
        return Ok(known);
    }
    if resolved.starts_with("/dev/") {
        return Err(Obstacle::NotOfHost { device: resolved });
    }
    Ok(host.file(root, builder, &resolved))
}
