//! Disks of the guests that run on this host, by the command lines of QEMU: the file or device of each, and the
//! identity that its guest sees.
//!
//! Read are `-drive`, `-blockdev` and `-device`, as people and libvirt write them, in the form of words and in JSON. A serial
//! number of virtio is anybody's choice and unique only within a guest: it counts together with the UUID of the machine
//! (`-uuid`), which the guest finds in its SMBIOS. Nothing else of a command line is kept. Left out: backing files, and
//! disks that a running guest was given or lost later.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use plumb_geometry::SmallSort;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest command line that is looked at.
const LINE_MAX: usize = 1 << 20;
/// Nodes of QEMU below each other: format, filter, protocol.
const DEPTH_MAX: usize = 8;

/// A disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestDisk {
    /// The file or device.
    pub path: String,
    /// As the guest's kernel has it; see [`crate::node::keys::EXPORTED_AS`].
    pub identity: String,
}

/// The identity of a disk of virtio: the machine and the serial number.
pub(super) fn of_virtio(machine: &str, serial: &str) -> String {
    format!("smbios.{}.{serial}", machine.trim().to_lowercase())
}

/// Disks of all guests that run here and whose command line can be read.
pub(super) fn running() -> Vec<GuestDisk> {
    let mut disks = Vec::new();
    for entry in fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let Ok(line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE_MAX)]).into_owned();
        let args: Vec<&str> = line.split('\0').collect();
        let program = args[0].rsplit('/').next().unwrap_or_default();
        if program.starts_with("qemu-system") || matches!(program, "qemu-kvm" | "kvm") {
            disks.extend(of_command_line(&args));
        }
    }
    for disk in &mut disks {
        // Nodes of devices are links to the one that the kernel knows.
        if let Some(whole) = fs::canonicalize(&disk.path)
            .ok()
            .and_then(|it| it.to_str().map(str::to_owned))
        {
            disk.path = whole;
        }
    }
    disks.retain(|disk| Path::new(&disk.path).is_absolute());
    disks.small_sort_by(|a, b| (&a.path, &a.identity).cmp(&(&b.path, &b.identity)));
    disks.dedup();
    disks
}

/// Options of one argument.
type Options = Map<String, Value>;

fn of_command_line(args: &[&str]) -> Vec<GuestDisk> {
    let pairs = || {
        args.windows(2)
            .map(|pair| (pair[0].trim_start_matches('-'), pair[1]))
    };
    let machine = pairs()
        .find(|(name, _)| *name == "uuid")
        .map(|(_, uuid)| uuid);
    let mut nodes: HashMap<String, Options> = HashMap::new();
    let mut devices = Vec::new();
    for (name, text) in pairs() {
        let found = options(text, if name == "device" { "driver" } else { "file" });
        let id = word(&found, "node-name")
            .or_else(|| word(&found, "id"))
            .map(str::to_owned);
        match (name, id) {
            ("device", _) => devices.push(found),
            ("drive" | "blockdev", Some(id)) => drop(nodes.insert(id, found)),
            // `-drive if=virtio` is a disk by itself.
            ("drive", None) if word(&found, "if") == Some("virtio") => devices.push(found),
            _ => {}
        }
    }
    let disk = |device: &Options| {
        let node = word(device, "drive").and_then(|drive| nodes.get(drive));
        let path = path_of(&nodes, node.unwrap_or(device))?;
        let identity = identity(device, machine).or_else(|| identity(node?, machine))?;
        Some(GuestDisk { path, identity })
    };
    devices.iter().filter_map(disk).collect()
}

/// Words `a=1,b=2`, where two commas are one of the value, or an object of JSON.
fn options(text: &str, first: &str) -> Options {
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        return object;
    }
    let text = text.replace(",,", "\0");
    let words = text
        .split(',')
        .enumerate()
        .map(|(at, word)| match word.split_once('=') {
            Some((name, value)) => (name, value),
            None if at == 0 => (first, word),
            None => (word, "on"),
        });
    words
        .map(|(name, value)| (name.to_owned(), Value::String(value.replace('\0', ","))))
        .collect()
}

fn word<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options
        .get(name)?
        .as_str()
        .filter(|value| !value.is_empty())
}

/// The file or device below a node.
fn path_of<'a>(nodes: &'a HashMap<String, Options>, mut node: &'a Options) -> Option<String> {
    for _ in 0..DEPTH_MAX {
        if let Some(path) = word(node, "filename").or_else(|| word(node, "file.filename")) {
            return Some(path.to_owned());
        }
        node = match node.get("file")? {
            Value::Object(inner) => inner,
            Value::String(name) => match nodes.get(name) {
                Some(inner) => inner,
                None => return name.starts_with('/').then(|| name.clone()),
            },
            _ => return None,
        };
    }
    None
}

/// The most certain identity of a device.
fn identity(device: &Options, machine: Option<&str>) -> Option<String> {
    let hexadecimal = |name: &str| {
        let digits = word(device, name)?.trim_start_matches("0x").to_lowercase();
        u64::from_str_radix(&digits, 16)
            .ok()
            .filter(|number| *number > 0)
            .map(|number| format!("{number:016x}"))
    };
    let is_virtio = |name: &str| name.starts_with("virtio-blk");
    let is_virtio = word(device, "driver").map_or(word(device, "if") == Some("virtio"), is_virtio);
    hexadecimal("wwn")
        .map(|wwn| format!("naa.{wwn}"))
        .or_else(|| hexadecimal("eui64").map(|eui| format!("eui.{eui}")))
        .or_else(|| {
            Some(of_virtio(
                machine?,
                word(device, "serial").filter(|_| is_virtio)?,
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";

    /// A line, and path and identity of the disks in it.
    fn check(line: &[&str], expected: &[(&str, &str)]) {
        let found = of_command_line(line);
        let found: Vec<_> = found
            .iter()
            .map(|disk| (disk.path.as_str(), disk.identity.as_str()))
            .collect();
        assert_eq!(found, expected, "{line:?}");
    }

    #[test]
    fn lines_as_people_write_them() {
        let identity = format!("smbios.{MACHINE}.root");
        let drive = "file=/srv/a,,b.img,if=none,id=d0,format=raw";
        let line = [
            "qemu-system-x86_64",
            "-uuid",
            MACHINE,
            "-drive",
            drive,
            "-device",
        ];
        let with = |device| [&line[..], &[device]].concat();
        check(
            &with("virtio-blk-pci,drive=d0,serial=root"),
            &[("/srv/a,b.img", &identity)],
        );
        check(
            &with("scsi-hd,drive=d0,wwn=0x5000C500A1B2C3D4"),
            &[("/srv/a,b.img", "naa.5000c500a1b2c3d4")],
        );
        check(&with("scsi-hd,drive=d0,serial=root"), &[]);
        check(&with("virtio-blk-pci,drive=d0"), &[]);
        check(&with("virtio-blk-pci,drive=none,serial=root"), &[]);
        let short = "file=/dev/vg/a,if=virtio,serial=root";
        check(
            &["kvm", "-drive", short, "-uuid", MACHINE],
            &[("/dev/vg/a", &identity)],
        );
        check(&["kvm", "-drive", short], &[]);
        check(&["kvm", "-drive"], &[]);
    }

    /// As libvirt 9 does.
    #[test]
    fn lines_as_libvirt_writes_them() {
        let line = [
            "/usr/bin/qemu-system-x86_64",
            "-uuid",
            MACHINE,
            "-blockdev",
            r#"{"driver":"file","filename":"/var/lib/libvirt/images/web1.qcow2","node-name":"libvirt-2-storage"}"#,
            "-blockdev",
            r#"{"node-name":"libvirt-2-format","driver":"qcow2","file":"libvirt-2-storage","backing":null}"#,
            "-device",
            r#"{"driver":"virtio-blk-pci","drive":"libvirt-2-format","id":"virtio-disk0","serial":"WEB1ROOT"}"#,
            "-blockdev",
            r#"{"driver":"raw","node-name":"libvirt-1-format","file":{"driver":"host_device","filename":"/dev/vg/b"}}"#,
            "-device",
            r#"{"driver":"scsi-hd","drive":"libvirt-1-format","wwn":"5000c50015ea71ad"}"#,
        ];
        let identity = format!("smbios.{MACHINE}.WEB1ROOT");
        let image = "/var/lib/libvirt/images/web1.qcow2";
        check(
            &line,
            &[(image, &identity), ("/dev/vg/b", "naa.5000c50015ea71ad")],
        );
    }

    #[test]
    fn nodes_that_go_round_end() {
        let device = "virtio-blk-pci,drive=a,serial=x";
        check(
            &[
                "kvm",
                "-uuid",
                MACHINE,
                "-blockdev",
                "node-name=a,file=a",
                "-device",
                device,
            ],
            &[],
        );
    }
}
