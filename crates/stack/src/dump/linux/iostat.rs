//! `iostat -x` of Linux (sysstat): I/O a second of each device. Three generations of headings, distinguished by their
//! names.

use plumb_iostat::Tool;

use super::super::iostat::{self, Rates};
use super::super::text::anything;
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, on_linux};
use crate::builder::Builder;
use crate::linux::{Family, kind_of};
use crate::node::keys;

pub(super) static FORMAT: Format = Format {
    tool: "iostat -x",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    iostat::sniff(input, Tool::Sysstat)
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (taken, devices) = iostat::reports(input, Tool::Sysstat);
    for Rates {
        device,
        line,
        per_second,
    } in devices
    {
        let source = input.source(FORMAT.tool, line);
        on_linux(builder, &source);
        builder
            .linux
            .rates
            .push((device.to_owned(), per_second, source));
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "rates below \"Device … r/s … w/s …\"",
    )
}

/// Notes the rates: `dm-0` is known by another name once lsblk was read.
pub(super) fn tell_all(builder: &mut Builder) {
    for (device, [reads, writes], source) in std::mem::take(&mut builder.linux.rates) {
        let node = builder.node(&device);
        let family = Family::from_name(&device);
        let is_disk =
            names::disk_of(&device).is_none() && !family.is_stacked() && family != Family::Loop;
        if is_disk && family != Family::Removable {
            builder.kind(node, kind_of(family, ""), &source);
        }
        builder.fact(node, keys::IOS_PER_SECOND, reads + writes, &source);
        builder.fact(node, keys::WRITES_PER_SECOND, writes, &source);
    }
}
