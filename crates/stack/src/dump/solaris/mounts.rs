//! `vfstab`, `mount`, `mount -p`, `mount -v` and mnttab: file systems on devices, and with which options. *Unverified*.
//!
//! A real mount overrides a planned one. Only devices below `/dev` are added; mounts of NFS, ZFS and the kernel are
//! skipped without a note.

use super::super::text::{anything, beginning, count, lines};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::on_solaris;
use crate::builder::Builder;
use crate::grid::Source;
use crate::node::keys;

pub(super) static VFSTAB: Format = Format {
    tool: "vfstab",
    is_verified: false,
    sniff: sniff_vfstab,
    read: read_vfstab,
};
pub(super) static MOUNT: Format = Format {
    tool: "mount",
    is_verified: false,
    sniff: sniff_mount,
    read: read_mount,
};
pub(super) static MNTTAB: Format = Format {
    tool: "mnttab",
    is_verified: false,
    sniff: sniff_mnttab,
    read: read_mnttab,
};

/// A file system on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    device: String,
    directory: Option<String>,
    kind: Option<String>,
    options: Option<String>,
    source: Option<Source>,
}

impl Mount {
    fn tell(&self, source: &Source, builder: &mut Builder) {
        let id = builder.node(&self.device);
        on_solaris(builder, source);
        builder.fact_if(id, keys::MOUNT, self.directory.as_deref(), source);
        builder.fact_if(id, keys::CONTENT, self.kind.as_deref(), source);
        builder.fact_if(id, keys::MOUNT_OPTIONS, self.options.as_deref(), source);
    }
}

/// Adds planned mounts, after all real ones.
pub(super) fn tell_planned(builder: &mut Builder) {
    for mount in std::mem::take(&mut builder.solaris.mounts) {
        if let Some(source) = &mount.source {
            mount.tell(source, builder);
        }
    }
}

/// `-` stands for nothing.
fn given(word: &str) -> Option<String> {
    (word != "-").then(|| word.to_owned())
}

/// Device to mount, device to check, directory, type, pass, whether at boot, options.
fn vfstab_line(line: &str) -> Option<Mount> {
    let words: Vec<&str> = line.split_whitespace().take(9).collect();
    let (&[device, _, directory, kind, pass, at_boot], options) = words.split_first_chunk::<6>()?;
    let is_one = matches!(at_boot, "yes" | "no") && (pass == "-" || pass.parse::<u32>().is_ok());
    (is_one && options.len() <= 1).then(|| Mount {
        device: device.to_owned(),
        directory: given(directory).filter(|directory| directory.starts_with('/')),
        kind: given(kind),
        options: options.first().and_then(|options| given(options)),
        source: None,
    })
}

fn sniff_vfstab(input: &Input<'_>) -> Sniff {
    let mut said = beginning(input)
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    if said.peek().is_some() && said.all(|line| vfstab_line(line).is_some()) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read_vfstab(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let is_planned = lines(input).any(|(_, text)| text.starts_with('#') || !is_mounted(text));
    for (line, text) in lines(input).filter(|(_, text)| !text.starts_with('#')) {
        let mount = vfstab_line(text);
        count(&mut taken, mount.is_some());
        if let Some(mut mount) = mount.filter(|mount| mount.device.starts_with("/dev/")) {
            let source = input.source(if is_planned { VFSTAB.tool } else { "mount -p" }, line);
            if is_planned {
                mount.source = Some(source);
                builder.solaris.mounts.push(mount);
            } else {
                mount.tell(&source, builder);
            }
        }
    }
    anything(
        taken,
        input,
        VFSTAB.tool,
        "device, device to check, directory, type, pass, yes or no, options",
    )
}

/// `mount -p` prints lines of vfstab without anything to check or to do at boot.
fn is_mounted(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    words.next() == Some("-") && words.nth(2) == Some("-") && words.next() == Some("no")
}

/// `DIRECTORY on DEVICE OPTIONS on DATE`, and with `-v` `DEVICE on DIRECTORY type TYPE OPTIONS on DATE`.
fn mount_line(line: &str) -> Option<Mount> {
    let (left, rest) = line.trim().split_once(" on ")?;
    let (said, _) = rest.rsplit_once(" on ")?;
    let (right, said) = said.split_once(' ')?;
    let (kind, options) = match said.strip_prefix("type ") {
        Some(said) => said
            .split_once(' ')
            .map(|(kind, options)| (Some(kind), options))?,
        None => (None, said),
    };
    let (device, directory) = if kind.is_some() {
        (left, right)
    } else {
        (right, left)
    };
    let is_one = directory.starts_with('/') && options.contains('/') && !options.starts_with('(');
    is_one.then(|| Mount {
        device: device.to_owned(),
        directory: Some(directory.to_owned()),
        kind: kind.map(str::to_owned),
        options: Some(options_of(options)),
        source: None,
    })
}

/// `read/write/logging` as mnttab writes it: `rw,logging`.
fn options_of(options: &str) -> String {
    let options = options.trim();
    let (first, rest) = match (
        options.strip_prefix("read/write"),
        options.strip_prefix("read only"),
    ) {
        (Some(rest), _) => ("rw", rest),
        (_, Some(rest)) => ("ro", rest),
        _ => ("", options),
    };
    let rest = rest.split('/').filter(|option| !option.is_empty());
    std::iter::once(first)
        .filter(|first| !first.is_empty())
        .chain(rest)
        .collect::<Vec<_>>()
        .join(",")
}

fn sniff_mount(input: &Input<'_>) -> Sniff {
    if beginning(input).any(|line| mount_line(line).is_some()) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read_mount(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    read_lines(
        input,
        builder,
        MOUNT.tool,
        mount_line,
        "a directory, \"on\", a device, options, \"on\" and a date",
    )
}

/// Device, directory, type, options and seconds, with tabs between.
fn mnttab_line(line: &str) -> Option<Mount> {
    let mut words = line.split('\t');
    let (device, directory, kind, options) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    words.next()?.trim().parse::<u64>().ok()?;
    let is_one = words.next().is_none() && directory.starts_with('/');
    is_one.then(|| Mount {
        device: device.to_owned(),
        directory: Some(directory.to_owned()),
        kind: Some(kind.to_owned()),
        options: Some(options.to_owned()),
        source: None,
    })
}

fn sniff_mnttab(input: &Input<'_>) -> Sniff {
    if beginning(input).any(|line| mnttab_line(line).is_some()) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read_mnttab(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    read_lines(
        input,
        builder,
        MNTTAB.tool,
        mnttab_line,
        "device, directory, type, options and time between tabs",
    )
}

fn read_lines(
    input: &Input<'_>,
    builder: &mut Builder,
    tool: &'static str,
    parse: fn(&str) -> Option<Mount>,
    expected: &str,
) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, text) in lines(input) {
        let mount = parse(text);
        count(&mut taken, mount.is_some());
        if let Some(mount) = mount.filter(|mount| mount.device.starts_with("/dev/")) {
            mount.tell(&input.source(tool, line), builder);
        }
    }
    anything(taken, input, tool, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::{self, join};

    fn facts(texts: &[&str], device: &str) -> [Option<String>; 3] {
        let mut builder = Builder::default();
        for text in texts {
            dump::read(&Input { name: "text", text }, &mut builder).expect("reads");
        }
        join(&mut builder);
        let node = builder
            .find(device)
            .map(|id| builder.get(id).clone())
            .expect("it");
        [
            node.value(keys::MOUNT).cloned(),
            node.value(keys::CONTENT).map(ToString::to_string),
            node.value(keys::MOUNT_OPTIONS)
                .map(|options| options.0.join(",")),
        ]
    }

    fn some(words: [&str; 3]) -> [Option<String>; 3] {
        words.map(|word| (word != "-").then(|| word.to_owned()))
    }

    const VFSTAB: &str = "#device device mount FS fsck mount mount\nfd - /dev/fd fd - no -\n/proc - /proc proc - no -\n\
        /dev/md/dsk/d10 /dev/md/rdsk/d10 / ufs 1 no logging\n/dev/md/dsk/d11 - - swap - no -\n\
        nas:/a - /a nfs - yes rw,soft\n";

    #[test]
    fn lines_of_vfstab() {
        assert_eq!(facts(&[VFSTAB], "d10"), some(["/", "ufs", "logging"]));
        assert_eq!(facts(&[VFSTAB], "d11"), some(["-", "swap", "-"]));
    }

    #[test]
    fn mnttab_overrides_vfstab() {
        let mount = "/ on /dev/md/dsk/d10 read/write/setuid/devices/intr/largefiles/forcedirectio/onerror=panic/dev=1540000 \
                     on Mon Jan  5 10:00:00 2009\n/proc on proc read/write/setuid/dev=5080000 on Mon Jan  5 10:00:00 2009\n";
        let options = "rw,setuid,devices,intr,largefiles,forcedirectio,onerror=panic,dev=1540000";
        for texts in [[VFSTAB, mount], [mount, VFSTAB]] {
            assert_eq!(facts(&texts, "d10"), some(["/", "ufs", options]));
        }
    }

    #[test]
    fn other_ways_to_print_it() {
        let verbose =
            "/dev/dsk/c0t0d0s0 on /u type ufs read only/logging on Mon Jan  5 10:00:00 2009\n";
        assert_eq!(
            facts(&[verbose], "c0t0d0s0"),
            some(["/u", "ufs", "ro,logging"])
        );
        let table = "/dev/dsk/c0t0d0s0\t/u\tufs\trw,forcedirectio,dev=2200000\t1231149600\n";
        assert_eq!(
            facts(&[table], "c0t0d0s0"),
            some(["/u", "ufs", "rw,forcedirectio,dev=2200000"])
        );
        let printed = "/dev/dsk/c0t0d0s0 - /u ufs - no rw,logging\n";
        assert_eq!(
            facts(&[printed, VFSTAB], "c0t0d0s0"),
            some(["/u", "ufs", "rw,logging"])
        );
    }

    #[test]
    fn lines_of_linux_are_others() {
        for line in [
            "/dev/sda1 on / type ext4 (rw,relatime)",
            "proc on /proc type proc (rw,nosuid,nodev) on x",
        ] {
            assert_eq!(mount_line(line), None, "{line}");
        }
        let mtab = "/dev/sda1 / ext4 rw,relatime 0 0";
        assert_eq!(mnttab_line(mtab), None);
        let fstab = "/dev/sda1 / ext4 defaults 0 1";
        assert_eq!(vfstab_line(fstab), None);
    }
}
