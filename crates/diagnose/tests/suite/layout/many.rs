//! A host with 10,000 devices is judged at once, and no rule looks at each device for each device.

use std::time::{Duration, Instant};

use plumb_stack::Kind;
use plumb_stack::node::keys;

use crate::common::lab::Lab;

/// Far above the normal time (a few tens of ms), far below that of work by the square of the devices.
const LIMIT: Duration = Duration::from_secs(4);

#[test]
fn ten_thousand_devices() {
    let mut lab = Lab::default();
    for at in 0..2500u64 {
        let disk = lab.disk(&format!("sd{at}"), 4096, 0);
        lab.fact(disk, keys::READ_AHEAD, plumb_geometry::Bytes(131_072));
        lab.fact(disk, keys::IDENTITY, format!("wwn-{at}"));
        lab.fact(disk, keys::IOS_PER_SECOND, 5);
        let off = if at % 10 == 0 { 63 } else { 2048 };
        let partition = lab.partition(&format!("sd{at}p1"), disk, off);
        let volume = lab.runs(
            Kind::LogicalVolume,
            &format!("vg{at}/lv"),
            &[(partition, 2048, 1 << 10)],
        );
        lab.fact(volume, keys::IOS_PER_SECOND, 5);
        let system = lab.runs(
            Kind::FileSystem,
            &format!("/mnt/{at}"),
            &[(volume, 0, 1 << 10)],
        );
        lab.fact(system, keys::CONTENT, "ext4");
    }
    let start = Instant::now();
    let judged = lab.judge();
    let took = start.elapsed();
    println!("10,000 devices judged in {took:?}");
    assert_eq!(judged.found_on("misaligned-partition").len(), 250);
    assert_eq!(judged.found_on("double-counted").len(), 2500);
    assert!(took < LIMIT, "{took:?}");
}
