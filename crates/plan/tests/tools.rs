//! The commands that plans print, run for real on images, and what they made read back with another tool.

use std::path::Path;
use std::process::Command;

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_plan::partition::{self, Label, Request, layout};
use plumb_plan::{Harm, Remedy, filesystem};
use plumb_testkit::{require, temp_dir};

/// Length of an image.
const IMAGE: u64 = 64 << 20;

fn image(folder: &Path, bytes: u64) -> String {
    let path = folder.join("disk.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(bytes).expect("its length");
    path.display().to_string()
}

fn request(device: &str, label: Label, grid: (u64, u64), after: u64) -> Request {
    Request {
        device: device.to_owned(),
        label,
        is_new_label: true,
        sector_bytes: 512,
        disk_bytes: Some(Bytes(IMAGE)),
        grids: vec![Grid::new(Bytes(grid.0), Bytes(grid.1), GridKind::Unit).expect("a grid")],
        are_grids_assumed: false,
        after: Bytes(after * SECTOR),
        before: None,
        size: None,
        number: 1,
        current: None,
        content: None,
    }
}

/// Runs all commands of a way in one shell, as somebody would type them.
fn run(folder: &Path, way: &Remedy) {
    let script: Vec<&str> = way.steps.iter().map(|step| step.command.as_str()).collect();
    sh(folder, &format!("set -e\n{}", script.join("\n")));
}

fn sh(folder: &Path, script: &str) -> String {
    let done = Command::new("sh").args(["-c", script]).current_dir(folder).output().expect("sh runs");
    let said = String::from_utf8_lossy(&done.stderr);
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{script}\n{out}{said}");
    out
}

/// First and last sector of partition 1, as parted reads it: `1:48s:1000s:953s:…`.
fn parted_says(device: &str) -> (u64, u64) {
    let out = sh(Path::new("/"), &format!("parted -sm '{device}' unit s print"));
    let line = out.lines().find(|line| line.starts_with("1:")).expect("partition 1");
    let sector = |field: &str| field.trim_end_matches('s').parse().expect("a sector");
    let fields: Vec<&str> = line.split(':').collect();
    (sector(fields[1]), sector(fields[2]))
}

/// The same as sgdisk reads it.
fn sgdisk_says(device: &str) -> (u64, u64) {
    let out = sh(Path::new("/"), &format!("sgdisk -i 1 '{device}'"));
    let sector = |name: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a sector")
    };
    (sector("First sector: "), sector("Last sector: "))
}

fn way<'a>(plan: &'a plumb_plan::Plan, title: &str) -> &'a Remedy {
    plan.remedies.iter().find(|way| way.title == title).unwrap_or_else(|| panic!("no way {title}"))
}

/// Grids, and where a search may begin; a start that the tool would move by itself is among them.
const WANTED: [((u64, u64), u64); 6] = [
    ((8192, 0), 0),
    ((65_536, 0), 0),
    ((1 << 20, 0), 0),
    // As a drive whose first aligned block is 7.
    ((4096, 3584), 2041),
    ((48 << 10, 0), 3000),
    ((512, 0), 63),
];

#[test]
fn sgdisk_puts_a_partition_where_the_plan_says() {
    require!(Tool("sgdisk"), Tool("parted"));
    for (grid, after) in WANTED {
        let folder = temp_dir("plan-sgdisk");
        let device = image(folder.path(), IMAGE);
        let request = request(&device, Label::Gpt, grid, after);
        let layout = layout(&request).expect("a layout");
        run(folder.path(), way(&partition::plan(&request).expect("a plan"), "with sgdisk"));
        let last = layout.last_lba(&request).expect("a length");
        assert_eq!(parted_says(&device), (layout.start.0 / SECTOR, last), "{grid:?}");
    }
}

#[test]
fn sfdisk_puts_a_partition_where_the_plan_says() {
    require!(Tool("sfdisk"), Tool("parted"));
    for label in [Label::Gpt, Label::Dos] {
        for (grid, after) in WANTED {
            let folder = temp_dir("plan-sfdisk");
            let device = image(folder.path(), IMAGE);
            let request = request(&device, label, grid, after);
            let layout = layout(&request).expect("a layout");
            run(folder.path(), way(&partition::plan(&request).expect("a plan"), "with sfdisk"));
            let last = layout.last_lba(&request).expect("a length");
            assert_eq!(parted_says(&device), (layout.start.0 / SECTOR, last), "{label:?} {grid:?}");
        }
    }
}

#[test]
fn parted_puts_a_partition_where_the_plan_says() {
    require!(Tool("parted"), Tool("sgdisk"));
    for (grid, after) in WANTED {
        let folder = temp_dir("plan-parted");
        let device = image(folder.path(), IMAGE);
        let request = request(&device, Label::Gpt, grid, after);
        let layout = layout(&request).expect("a layout");
        run(folder.path(), way(&partition::plan(&request).expect("a plan"), "with parted"));
        let last = layout.last_lba(&request).expect("a length");
        assert_eq!(sgdisk_says(&device), (layout.start.0 / SECTOR, last), "{grid:?}");
    }
}

/// A partition at sector 34 is made anew on 8 KiB: type and UUID stay, and the way back leads back.
#[test]
fn a_partition_is_made_anew_and_back() {
    require!(Tool("sgdisk"), Tool("sfdisk"), Tool("parted"));
    for tool in ["with sgdisk", "with sfdisk"] {
        let folder = temp_dir("plan-anew");
        let device = image(folder.path(), IMAGE);
        sh(folder.path(), &format!("sgdisk -a 1 -n 1:34:20000 -t 1:bf01 -c 1:data '{device}'"));
        let identity = |device: &str| {
            let out = sh(Path::new("/"), &format!("sgdisk -i 1 '{device}'"));
            out.lines().filter(|line| line.contains("GUID")).map(str::to_owned).collect::<Vec<_>>()
        };
        let before = identity(&device);
        let mut request = request(&device, Label::Gpt, (8192, 0), 34);
        (request.is_new_label, request.current) = (false, Some(Bytes(34 * SECTOR)));
        request.size = Some(Bytes((20_000 - 34 + 1) * SECTOR));
        let plan = partition::plan(&request).expect("a plan");
        run(folder.path(), way(&plan, tool));
        assert_eq!(parted_says(&device), (48, 48 + 20_000 - 34), "{tool}");
        assert_eq!(identity(&device), before, "{tool}");
        let undo =
            way(&plan, tool).steps.iter().find(|step| step.undo.contains(&device)).expect("a way back");
        sh(folder.path(), &undo.undo);
        assert_eq!(parted_says(&device), (34, 20_000), "{tool}: {}", undo.undo);
    }
}

/// What moves with `sfdisk --move-data` are the data.
#[test]
fn the_shift_takes_the_data_along() {
    require!(Tool("sfdisk"), Tool("sgdisk"), Tool("parted"));
    let folder = temp_dir("plan-shift");
    let device = image(folder.path(), IMAGE);
    sh(folder.path(), &format!("sgdisk -a 1 -n 1:34:20000 '{device}'"));
    let data: Vec<u8> = (0..(20_000 - 34 + 1) * SECTOR).map(|at| (at / 512 * 7 + at % 251) as u8).collect();
    let mut bytes = std::fs::read(&device).expect("the image");
    bytes[34 * 512..34 * 512 + data.len()].copy_from_slice(&data);
    std::fs::write(&device, &bytes).expect("the image");
    let mut request = request(&device, Label::Gpt, (8192, 0), 34);
    (request.is_new_label, request.current) = (false, Some(Bytes(34 * SECTOR)));
    request.size = Some(Bytes(data.len() as u64));
    let plan = partition::plan(&request).expect("a plan");
    let shift = plan.remedies.last().expect("a way");
    assert_eq!(shift.harm, Harm::Shift, "the most harm comes last");
    run(folder.path(), shift);
    assert_eq!(parted_says(&device).0, 48);
    let moved = std::fs::read(&device).expect("the image");
    assert!(moved[48 * 512..48 * 512 + data.len()] == data[..], "the data are not at the new start");
}

/// sgdisk left to itself puts the partition elsewhere: why `-a 1` is there.
#[test]
fn sgdisk_alone_would_move_the_start() {
    require!(Tool("sgdisk"), Tool("parted"));
    let folder = temp_dir("plan-trap");
    let device = image(folder.path(), IMAGE);
    sh(folder.path(), &format!("sgdisk -o '{device}' && sgdisk -n 1:48:20000 '{device}'"));
    assert_ne!(parted_says(&device).0, 48);
}

fn on_stripe(kind: filesystem::Type, device: &str) -> filesystem::Request {
    filesystem::Request {
        kind,
        device: device.to_owned(),
        mount: None,
        chunk: Some(Bytes(64 << 10)),
        data_members: 3,
        block: None,
        physical: Bytes(4096),
        page: None,
    }
}

#[test]
fn ext4_keeps_what_the_plan_says() {
    require!(Tool("mkfs.ext4"), Tool("dumpe2fs"), Tool("tune2fs"));
    let folder = temp_dir("plan-ext4");
    let device = image(folder.path(), IMAGE);
    let read = || {
        let out = sh(folder.path(), &format!("dumpe2fs -h '{device}' 2>/dev/null"));
        let of = |name: &str| {
            let line = out.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        (of("RAID stride:"), of("RAID stripe width:"))
    };
    // 64 KiB are 16 blocks of 4 KiB, and three of them 48.
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Ext4, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    assert_eq!(read(), (Some(16), Some(48)));
    let mut wider = on_stripe(filesystem::Type::Ext4, &device);
    wider.data_members = 5;
    let plan = filesystem::plan(&wider).expect("a plan");
    run(folder.path(), way(&plan, "on the file system that is there"));
    assert_eq!(read(), (Some(16), Some(80)));
}

#[test]
fn xfs_keeps_what_the_plan_says() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    let folder = temp_dir("plan-xfs");
    // Below about 1 GiB mkfs.xfs passes over the stripe; the image is sparse.
    let device = image(folder.path(), 2 << 30);
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Xfs, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    let out = sh(folder.path(), &format!("xfs_db -r -c 'sb 0' -c 'print unit width' '{device}'"));
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["unit", "=", "16", "width", "=", "48"]);
}

/// A chunk that is more than the log takes: the tool must not refuse what the plan gives it.
#[test]
fn xfs_takes_a_large_chunk() {
    require!(Tool("mkfs.xfs"), Tool("xfs_db"));
    let folder = temp_dir("plan-xfs-large");
    let device = image(folder.path(), 2 << 30);
    let mut request = on_stripe(filesystem::Type::Xfs, &device);
    request.chunk = Some(Bytes(512 << 10));
    run(folder.path(), way(&filesystem::plan(&request).expect("a plan"), "when it is made"));
    let out = sh(folder.path(), &format!("xfs_db -r -c 'sb 0' -c 'print unit width logsunit' '{device}'"));
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(words, ["unit", "=", "128", "width", "=", "384", "logsunit", "=", "32768"]);
}

/// Owner and mode come back by the file that the first step writes.
#[test]
fn owner_and_mode_of_a_node_come_back() {
    require!(Root);
    let folder = temp_dir("plan-nodes");
    let node = folder.path().join("it's sdb1").display().to_string();
    let nodes = plumb_plan::Nodes::of(plumb_plan::System::Linux, std::slice::from_ref(&node));
    let node = plumb_plan::shell::word(&node);
    sh(folder.path(), &format!("touch {node} && chown 12:34 {node} && chmod 640 {node}"));
    sh(folder.path(), &nodes.before[0].command);
    sh(folder.path(), &format!("chown 0:0 {node} && chmod 600 {node}"));
    let saved = std::fs::read_to_string(folder.path().join("nodes.restore")).expect("the list");
    assert!(saved.contains("chmod 640"), "{saved}");
    sh(folder.path(), &nodes.after[0].command);
    assert_eq!(sh(folder.path(), &format!("stat -c '%u:%g %a' {node}")).trim(), "12:34 640");
}

#[test]
fn btrfs_keeps_what_the_plan_says() {
    require!(Tool("mkfs.btrfs"), Tool("btrfs"));
    let folder = temp_dir("plan-btrfs");
    let device = image(folder.path(), 256 << 20);
    let plan = filesystem::plan(&on_stripe(filesystem::Type::Btrfs, &device)).expect("a plan");
    run(folder.path(), way(&plan, "when it is made"));
    let out = sh(folder.path(), &format!("btrfs inspect-internal dump-super '{device}'"));
    let of = |name: &str| {
        let line = out.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().to_owned()
    };
    assert_eq!((of("sectorsize"), of("nodesize")), ("4096".to_owned(), "16384".to_owned()));
}

/// A loop device with its partitions; gone with the value.
struct Loop(String);

impl Loop {
    fn of(image: &str) -> Loop {
        let device = sh(Path::new("/"), &format!("losetup -f --show '{image}'")).trim().to_owned();
        let device = Loop(device);
        sh(Path::new("/"), &format!("partx -a {}", device.0));
        device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let script = format!("partx -d {0}; losetup -d {0}", self.0);
        Command::new("sh").args(["-c", &script]).output().ok();
    }
}

/// A physical volume on a partition at 63 begins so much later that its first extent is on the grid.
#[test]
fn a_physical_volume_makes_up_for_its_partition() {
    require!(Loop, Tool("sgdisk"), Tool("partx"), Tool("pvcreate"));
    let folder = temp_dir("plan-lvm");
    let image = image(folder.path(), IMAGE);
    sh(folder.path(), &format!("sgdisk -a 1 -n 1:63:120000 '{image}'"));
    let device = Loop::of(&image);
    let mut request = request(&device.0, Label::Gpt, (4096, 0), 63);
    (request.is_new_label, request.current) = (false, Some(Bytes(63 * SECTOR)));
    request.content = Some(partition::Content::Lvm { group: "vg0".to_owned() });
    let node = format!("{}p1", device.0);
    let is_block = std::fs::metadata(&node)
        .is_ok_and(|meta| std::os::unix::fs::FileTypeExt::is_block_device(&meta.file_type()));
    if !is_block {
        // Without a node LVM would write to a file of that name.
        plumb_testkit::require::record_skip(
            plumb_testkit::test_name!(),
            "no node for a partition of a loop device",
        );
        return;
    }
    let plan = partition::plan(&request).expect("a plan");
    let way = way(&plan, "the partition stays, the physical volume begins later");
    run(folder.path(), way);
    let out = sh(folder.path(), &format!("pvs --noheadings --units s -o pe_start {node}"));
    let first: u64 = out.trim().trim_end_matches(['S', 's']).parse().expect("a sector");
    assert_eq!((63 + first) % 8, 0, "first extent at {first} of the partition");
    assert_eq!(first, 2049, "1 MiB and the one sector that 63 lacks");
}

/// `fmthard` is not here, but the file that it is given can be made from what `prtvtoc` prints.
#[test]
fn the_new_vtoc_differs_in_one_line() {
    require!(Tool("awk"));
    let folder = temp_dir("plan-vtoc");
    let saved = "* /dev/rdsk/c1t0d0s2 partition map\n*\n*     512 bytes/sector\n\
                 * Partition  Tag  Flags    Sector     Count    Sector  Mount Directory\n       \
                 0      2    00          0    528687    528686   /\n       \
                 1      3    01     528687   4200606   4729292\n       \
                 2      5    01          0  71127180  71127179\n";
    std::fs::write(folder.path().join("c1t0d0.vtoc"), saved).expect("a file");
    let mut request = request("c1t0d0", Label::Smi { cylinder_sectors: 27 * 107 }, (4096, 0), 528_687);
    (request.is_new_label, request.current) = (false, Some(Bytes(528_687 * SECTOR)));
    request.disk_bytes = Some(Bytes(71_127_180 * SECTOR));
    request.size = Some(Bytes(4_200_606 * SECTOR));
    let plan = partition::plan(&request).expect("a plan");
    let write = way(&plan, "with fmthard").steps.iter().find(|step| step.command.contains("awk"));
    let script = &write.expect("a step that writes").command;
    let (make, call) = script.split_once('\n').expect("two lines");
    assert_eq!(call, "fmthard -s c1t0d0.new /dev/rdsk/c1t0d0s2");
    sh(folder.path(), make);
    let made = std::fs::read_to_string(folder.path().join("c1t0d0.new")).expect("the new file");
    // Cylinder 183 is the present start; 184 = 8 × 23 is the first multiple of 8 from there on.
    assert_eq!((528_687 / 2_889, 184 * 2_889), (183, 531_576));
    assert_eq!(made, "0 2 00 0 528687\n2 5 01 0 71127180\n1 4 00 531576 4200606\n");
}
