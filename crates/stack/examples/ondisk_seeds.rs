//! Cuts an image down to the sectors that are looked at, for the fuzzer to begin with: `ondisk_seeds IMAGE SEED`.

#[path = "../tests/suite/ondisk/sparse.rs"]
mod sparse;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::{env, fs};

use plumb_label::{Disk, FileDisk};
use plumb_stack::Builder;
use plumb_stack::ondisk::Scan;
use sparse::{Recorder, Sparse};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(image), Some(seed)) = (arguments.next(), arguments.next()) else {
        return Err("expected an image and a seed to write".into());
    };
    let file = FileDisk::new(fs::File::open(image)?)?;
    let recorder = Recorder {
        disk: &file,
        read: RefCell::new(BTreeSet::new()),
    };
    let (mut builder, mut scan) = (Builder::default(), Scan::default());
    let id = builder.node("disk.img");
    scan.probe_image(&mut builder, &recorder, id);
    let mut found = Sparse {
        len: file.size_bytes(),
        ..Sparse::default()
    };
    for number in recorder.read.into_inner() {
        let mut sector = [0; 512];
        let at = number * 512;
        let len = file.size_bytes().saturating_sub(at).min(512) as usize;
        file.read_at(at, &mut sector[..len])?;
        if sector.iter().any(|byte| *byte != 0) {
            found.sectors.insert(number, sector);
        }
    }
    // An image may end within a sector.
    found.len = found.len.next_multiple_of(512);
    Ok(fs::write(seed, found.encode())?)
}
