//! A block device with sectors of 4,096 bytes: the only way to have sfdisk and sgdisk write for those, and a disk
//! whose size no metadata tells.

use std::fs::File;

use crate::common::{Image, assert_same_bytes, rows, run};
use plumb_label::{Detail, FileDisk, Role, read};
use plumb_testkit::require;

const SECTOR_BYTES: u32 = 4096;

/// A loop device that goes away with its test.
struct Loop(String);

impl Loop {
    fn attach(image: &Image) -> Self {
        let path = image.path();
        let path = path.to_str().expect("a path of text");
        let name = run(
            "losetup",
            &["--find", "--show", "--sector-size", "4096", path],
            SECTOR_BYTES,
            "",
        );
        Self(name.trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.0], SECTOR_BYTES, "");
    }
}

#[test]
fn a_block_device_is_read_as_its_image_is() {
    require!(Loop, Tool("sfdisk"), Tool("sgdisk"));
    let script = "label: gpt\nstart=256, size=768, type=linux\nstart=1024, size=4096, type=swap, name=\"swap\"\n";
    let sfdisk = |device: &str| {
        run(
            "sfdisk",
            &["--quiet", "--no-reread", device],
            SECTOR_BYTES,
            script,
        )
    };
    let sgdisk = |device: &str| {
        run(
            "sgdisk",
            &["-a1", "-n1:256:1023", "-n2:1024:5119", device],
            SECTOR_BYTES,
            "",
        )
    };
    for make in [&sfdisk as &dyn Fn(&str) -> String, &sgdisk] {
        let image = Image::new(64 << 20, SECTOR_BYTES);
        let device = Loop::attach(&image);
        make(&device.0);
        let disk =
            FileDisk::new(File::open(&device.0).expect("open the device")).expect("find its end");
        let label = read(&disk, Some(SECTOR_BYTES))
            .expect("readable")
            .expect("a label");
        assert_eq!(
            (label.sector_bytes, &label.problems[..]),
            (SECTOR_BYTES, &[][..])
        );
        assert_eq!(rows(&label), [(1, 256, 768), (2, 1_024, 4_096)]);
        drop(device);
        assert_eq!(image.label(), label);
        let Some(Detail::Gpt(gpt)) = &label.detail else {
            panic!("no GPT")
        };
        assert_same_bytes(
            &gpt.encode_with_mbr(Role::Primary).expect("can be written"),
            &image.bytes(),
        );
    }
}
