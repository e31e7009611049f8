//! Images of disks that the real tools make and read: the other side of every comparison.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plumb_label::{Label, Partition, Problem, WriteStep, apply, read};
use plumb_testkit::tempdir::TempDir;
use serde_json::Value;

/// An image of a disk, as a sparse file.
pub struct Image {
    dir: TempDir,
    pub sector_bytes: u32,
}

/// Number, first block and number of blocks.
pub type PartitionRow = (u32, u64, u64);

impl Image {
    pub fn new(size_bytes: u64, sector_bytes: u32) -> Self {
        let image = Self {
            dir: plumb_testkit::temp_dir("label"),
            sector_bytes,
        };
        image.resize(size_bytes);
        image
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("disk.img")
    }

    /// Lets the disk grow or cuts it off.
    pub fn resize(&self, size_bytes: u64) {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path())
            .expect("open image");
        file.set_len(size_bytes).expect("set the size of the image");
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("read image")
    }

    pub fn put(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("write image");
    }

    /// Runs a tool with the image as last argument and `input` as its standard input.
    pub fn tool(&self, program: &str, arguments: &[&str], input: &str) -> String {
        let path = self.path();
        let arguments: Vec<&str> = arguments
            .iter()
            .copied()
            .chain([path.to_str().expect("a path of text")])
            .collect();
        run(program, &arguments, self.sector_bytes, input)
    }

    /// Whether `sgdisk` finds no problem of the label.
    pub fn is_whole_for_sgdisk(&self) -> bool {
        self.tool("sgdisk", &["-v"], "")
            .contains("No problems found.")
    }

    /// As [`Image::tool`] for parted, which wants its commands after the image.
    pub fn parted(&self, commands: &str) -> String {
        let path = self.path();
        let mut arguments = vec![
            "-s",
            "-m",
            "-a",
            "none",
            path.to_str().expect("a path of text"),
        ];
        arguments.extend(commands.split_whitespace());
        run("parted", &arguments, self.sector_bytes, "")
    }

    /// The result of sfdisk, sectors of 512 bytes only.
    pub fn sfdisk_json(&self) -> Value {
        let text = self.tool("sfdisk", &["--json"], "");
        let mut value: Value = serde_json::from_str(&text).expect("JSON of sfdisk");
        value["partitiontable"].take()
    }

    /// Partitions as parted prints them, in blocks; free space and the like left out.
    pub fn parted_rows(&self) -> Vec<PartitionRow> {
        let blocks = |field: &str| {
            field
                .trim_end_matches('s')
                .parse()
                .expect("a number of blocks")
        };
        let text = self.parted("unit s print");
        let rows = text.lines().skip(2).map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (
                fields[0].parse().expect("a number"),
                blocks(fields[1]),
                blocks(fields[3]),
            )
        });
        rows.collect()
    }

    pub fn label(&self) -> Label {
        let file = File::open(self.path()).expect("open image");
        let disk = plumb_label::FileDisk::new(file).expect("an end of the image");
        read(&disk, Some(self.sector_bytes))
            .expect("a readable image")
            .expect("a label")
    }
}

/// Runs a program that must succeed, for sectors of that size if it accepts one.
pub fn run(program: &str, arguments: &[&str], sector_bytes: u32, input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("PARTED_SECTOR_SIZE", sector_bytes.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    // A program that does not ask for input may be gone already.
    let _ = child
        .stdin
        .take()
        .expect("its input")
        .write_all(input.as_bytes());
    let out = plumb_testkit::wait::output(program, plumb_testkit::wait::PATIENCE, child);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(out.stdout).expect("text")
}

/// Rows of sfdisk's JSON. Its partitions have no number but their node, `disk.img5`.
pub fn sfdisk_rows(table: &Value) -> Vec<PartitionRow> {
    let number = |partition: &Value| {
        let node = partition["node"].as_str().expect("a node");
        node.rsplit("img")
            .next()
            .and_then(|number| number.parse().ok())
            .expect("a number")
    };
    let blocks =
        |partition: &Value, field: &str| partition[field].as_u64().expect("a number of blocks");
    let partitions = table["partitions"].as_array().expect("partitions").iter();
    partitions
        .map(|p| (number(p), blocks(p, "start"), blocks(p, "size")))
        .collect()
}

pub fn row(partition: &Partition, sector_bytes: u32) -> PartitionRow {
    let blocks = |bytes: u64| bytes / u64::from(sector_bytes);
    (
        partition.id.number,
        blocks(partition.extent.start().0),
        blocks(partition.extent.len().0),
    )
}

pub fn rows(label: &Label) -> Vec<PartitionRow> {
    label
        .partitions
        .iter()
        .map(|partition| row(partition, label.sector_bytes))
        .collect()
}

/// The label of bytes.
pub fn label_of(bytes: &[u8], sector_bytes: u32) -> Label {
    read(&bytes, Some(sector_bytes))
        .expect("readable")
        .expect("a label")
}

/// The result of the steps on an empty disk.
pub fn applied(steps: &[WriteStep], disk: &[u8]) -> Vec<u8> {
    let mut image = disk.to_vec();
    apply(steps, &mut image).expect("steps within the disk");
    image
}

/// Every byte that a label's steps write is in the image already.
pub fn assert_same_bytes(steps: &[WriteStep], image: &[u8]) {
    for step in steps {
        let WriteStep::Write { at, bytes } = step else {
            continue;
        };
        let start = usize::try_from(at.0).expect("a place in memory");
        let differing = image[start..start + bytes.len()]
            .iter()
            .zip(bytes)
            .position(|(a, b)| a != b);
        assert_eq!(
            differing,
            None,
            "first differing byte of the {} bytes at {}",
            bytes.len(),
            at.0
        );
    }
}

pub fn has(label: &Label, test: impl Fn(&Problem) -> bool) -> bool {
    label.problems.iter().any(test)
}
