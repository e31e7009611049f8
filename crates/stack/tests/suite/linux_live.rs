//! This host: a loop device with partitions and a file system, and the proof of every byte's place by reading it there.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::linux::{self, Host, Live, Root};
use plumb_stack::node::keys;
use plumb_stack::{Builder, Kind, Placing, Stack};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::{require, temp_dir};

const START: [u64; 2] = [63, 20_481];
const LEN: [u64; 2] = [16_384, 98_304];

/// An image with two partitions; the second begins at an odd sector.
fn image(path: &Path) {
    let file = File::create(path).expect("an image");
    file.set_len(64 << 20).expect("its length");
    let mut sfdisk = Command::new("sfdisk")
        .arg("--quiet")
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sfdisk");
    let script = format!(
        "label: dos\nstart={}, size={}, type=83\nstart={}, size={}, type=83\n",
        START[0], LEN[0], START[1], LEN[1]
    );
    sfdisk
        .stdin
        .take()
        .expect("its input")
        .write_all(script.as_bytes())
        .expect("a script");
    assert!(
        plumb_testkit::wait::exit("sfdisk", plumb_testkit::wait::PATIENCE, &mut sfdisk).success()
    );
    file.sync_all().expect("sync");
}

/// 64 KiB of sectors that all differ.
fn pattern() -> Vec<u8> {
    (0..128u32)
        .flat_map(|sector| {
            format!("{sector:>16}plumb-live-test!")
                .repeat(16)
                .into_bytes()
        })
        .collect()
}

fn collected(more: impl FnOnce(&Host, &Root<'_>, &mut Builder)) -> Stack {
    let kernel = Live::default();
    let root = Root::open(Path::new("/"), &kernel).expect("this host");
    let mut builder = Builder::default();
    let host = linux::collect(&root, &mut builder).expect("block devices");
    more(&host, &root, &mut builder);
    builder.finish()
}

#[test]
fn a_file_is_found_byte_by_byte_below_a_loop_device() {
    require!(
        Loop,
        Tool("partx"),
        Tool("sfdisk"),
        Tool("mkfs.ext4"),
        Tool("mount")
    );
    let dir = temp_dir("live");
    let folder = dir.path().canonicalize().expect("its real path");
    let (path, mount) = (folder.join("image"), folder.join("mount"));
    image(&path);
    std::fs::create_dir(&mount).expect("a mount point");
    let device = LoopDevice::attach(&path, &[]);
    assert_eq!(device.add_partitions(), 2);
    let partition = device.path().with_file_name(format!("{}p2", device.name()));
    if !partition.exists() {
        plumb_testkit::skip!("no nodes for new partitions");
    }
    // Small file systems would have blocks of 1 KiB.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-b", "4096"])
        .arg(&partition));
    let mounted = Mounted::mount(&partition, &mount);
    let probe = mount.join("probe");
    let mut file = File::create(&probe).expect("a file");
    file.write_all(&pattern()).expect("write");
    file.sync_all().expect("sync");
    // An open file would keep the file system mounted.
    drop(file);

    let probe_name = probe.to_str().expect("a plain path");
    let stack = collected(|host, root, builder| {
        host.file(root, builder, probe_name);
    });
    let name = device.name();
    let node = |name: &str| stack.node(stack.find(name).unwrap_or_else(|| panic!("no {name}")));
    for (number, (start, len)) in START.into_iter().zip(LEN).enumerate() {
        let part = node(&format!("{name}p{}", number + 1));
        let Placing::Parts { parts } = &part.placing else {
            panic!("{:?}", part.placing)
        };
        assert_eq!(
            (parts[0].start, part.size),
            (Bytes(start * SECTOR), Some(Bytes(len * SECTOR)))
        );
    }
    assert_eq!(node(&name).kind, Kind::Loop);
    let file_system = node(mount.to_str().expect("a plain path"));
    assert_eq!(
        (
            file_system.kind,
            file_system.value(keys::CONTENT).map(|word| word.text())
        ),
        (Kind::FileSystem, Some("ext4"))
    );

    // The image has the file's first byte at the position in the stack.
    let image_node = stack
        .find(path.to_str().expect("a plain path"))
        .expect("the image");
    let landings = stack.landings(stack.find(probe_name).expect("the file"));
    let landing = landings
        .all
        .iter()
        .find(|one| one.on == image_node)
        .expect("a place in the image");
    assert_eq!(
        landing.via.len(),
        5,
        "file, file system, partition, loop device, image: {landing:?}"
    );
    let mut found = vec![0; pattern().len()];
    let place = u64::try_from(landing.shift).expect("inside the image");
    File::open(&path)
        .expect("the image")
        .read_exact_at(&mut found, place)
        .expect("read");
    assert!(found == pattern(), "other bytes at {place}");
    assert_eq!(
        place % 4096,
        (START[1] * SECTOR) % 4096,
        "as far off as the partition"
    );
    drop((mounted, device));
    let left = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(
        !left.contains(mount.to_str().expect("a plain path")),
        "still mounted"
    );
}

/// Without a test's devices: everything this host has is read, and its own root is found.
#[test]
fn this_host_is_read() {
    let stack = collected(|_, _, _| {});
    assert_eq!(
        stack
            .host()
            .and_then(|host| host.value(keys::SYSTEM).map(|word| word.text())),
        Some("linux")
    );
    let sizes = stack.nodes().filter_map(|(_, node)| {
        let path = Path::new("/sys/class/block").join(&node.name).join("size");
        let sectors: u64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
        Some((node.name.clone(), node.size, Bytes(sectors * SECTOR)))
    });
    for (name, ours, kernels) in sizes {
        // Other tests attach and detach devices meanwhile.
        if kernels.0 > 0 && !name.starts_with("loop") {
            assert_eq!(ours, Some(kernels), "{name}");
        }
    }
}
