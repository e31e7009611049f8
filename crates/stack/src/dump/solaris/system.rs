//! `/etc/system` and `/kernel/drv/md.conf`: settings of the kernel that volumes depend on. *Unverified*.

use plumb_geometry::{Bytes, SECTOR};

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::on_solaris;
use crate::builder::Builder;
use crate::node::keys;

pub(super) static SYSTEM: Format = Format {
    tool: "/etc/system",
    is_verified: false,
    sniff: sniff_system,
    read: read_system,
};
pub(super) static MD_CONF: Format = Format {
    tool: "md.conf",
    is_verified: false,
    sniff: sniff_md_conf,
    read: read_md_conf,
};

/// Commands besides `set`.
const COMMANDS: [&str; 6] = [
    "exclude:",
    "include:",
    "forceload:",
    "rootdev:",
    "rootfs:",
    "moddir:",
];

fn sniff_system(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        setting(line).is_some() || COMMANDS.iter().any(|command| line.starts_with(command))
    })
}

fn read_system(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    // The last setting of a name is the one that holds, and the first fact is: read from the end.
    let all: Vec<(usize, &str)> = lines(input)
        .filter(|(_, text)| !text.starts_with(['*', '#']))
        .collect();
    for (line, text) in all.into_iter().rev() {
        let setting = setting(text);
        count(
            &mut taken,
            setting.is_some() || COMMANDS.iter().any(|command| text.starts_with(command)),
        );
        let Some((name, value)) = setting else {
            continue;
        };
        let (source, host) = (input.source(SYSTEM.tool, line), builder.host());
        on_solaris(builder, &source);
        match name.rsplit(':').next() {
            Some("maxphys") => builder.fact(host, keys::MAXPHYS, Bytes(value), &source),
            Some("md_mirror_wow_flg") => builder.fact(host, keys::MIRROR_WOW, value, &source),
            Some("segmap_percent") => builder.fact(host, keys::SEGMAP_PERCENT, value, &source),
            Some("md_resync_bufsz") => {
                let bytes = value.checked_mul(SECTOR).map(Bytes);
                builder.fact_if(host, keys::RESYNC_BYTES, bytes, &source);
            }
            _ => {}
        }
    }
    anything(
        taken,
        input,
        SYSTEM.tool,
        "a setting as in \"set maxphys=1048576\"",
    )
}

/// `set [MODULE:]NAME=VALUE`; only those whose value is a number.
fn setting(line: &str) -> Option<(&str, u64)> {
    let rest = line.trim().strip_prefix("set")?;
    let (name, value) = rest.strip_prefix(char::is_whitespace)?.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    let value = value.split_whitespace().next()?;
    is_name.then_some((name, number(value)?))
}

/// A number as C writes it: decimal, `0x` and hexadecimal, `0` and octal.
fn number(value: &str) -> Option<u64> {
    if let Some(hex) = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"))
    {
        return u64::from_str_radix(hex, 16).ok();
    }
    match value.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => value.parse().ok(),
    }
}

fn sniff_md_conf(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        !line.trim_start().starts_with('#') && property(line, "nmd").is_some()
    })
}

fn read_md_conf(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, text) in lines(input).filter(|(_, text)| !text.starts_with('#')) {
        let known = [("nmd", keys::NMD), ("md_nsets", keys::MD_NSETS)];
        for (value, key) in known
            .into_iter()
            .filter_map(|(name, key)| Some((property(text, name)?, key)))
        {
            let (source, host) = (input.source(MD_CONF.tool, line), builder.host());
            on_solaris(builder, &source);
            builder.fact(host, key, value, &source);
            taken.understood += 1;
        }
    }
    anything(taken, input, MD_CONF.tool, "a property as in \"nmd=128\"")
}

/// `NAME=NUMBER` between blanks and semicolons.
fn property(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split(|c: char| c.is_whitespace() || c == ';');
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_kernel() {
        let text = "* a comment\nset maxphys=8388608\nset maxphys = 1048576\nset md_mirror:md_mirror_wow_flg=0x20\n\
                    forceload: misc/md_mirror\nset segmap_percent=010\nset md_mirror:md_resync_bufsz = 2048\n\
                    set md:mirrored_root_flag=1\nset broken\n";
        let mut builder = Builder::default();
        let taken = read_system(
            &Input {
                name: "system",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!(
            taken,
            Taken {
                understood: 7,
                passed_over: 1
            }
        );
        let host = builder.host();
        let host = builder.get(host);
        assert_eq!(host.number(keys::MAXPHYS), Some(Bytes(1 << 20)));
        assert_eq!(host.number(keys::MIRROR_WOW), Some(32));
        assert_eq!(host.number(keys::SEGMAP_PERCENT), Some(8));
        assert_eq!(host.number(keys::RESYNC_BYTES), Some(Bytes(1 << 20)));
    }

    #[test]
    fn properties_of_md() {
        let text = "# the default nmd=128\nname=\"md\" parent=\"pseudo\" nmd=8192 md_nsets=4;\n";
        let mut builder = Builder::default();
        read_md_conf(
            &Input {
                name: "md.conf",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        let host = builder.host();
        assert_eq!(builder.get(host).number(keys::NMD), Some(8192));
        assert_eq!(builder.get(host).number(keys::MD_NSETS), Some(4));
    }
}
