//! Hosts with known I/O.

use plumb_fleet::{FleetMerge, FleetReader, FleetWriter, HostIo, MergeError};
use plumb_profile::profile::{ProfileSet, TimeBase};
use plumb_profile::table::{Row, Table};
use plumb_trace::{Layer, Op};

/// An input with some reads of a device.
pub fn input(host: &str, name: &str, device: &str, ios: u64) -> HostIo {
    let mut profiles = ProfileSet::default();
    let profile = profiles.entry(device, Layer::Request, Table::default);
    let row = Row {
        ios,
        ..Row::default()
    };
    profile.add_residue(Op::Read, 512, 4096, false, &row);
    profile.time_base = TimeBase::Unix;
    (profile.first_ns, profile.last_ns) = (Some(7), Some(7 + 1_000_000_000 * ios as i64));
    HostIo::of_input(host, name, 100 + ios, true, profiles).expect("room")
}

/// A host with several inputs.
pub fn host(inputs: &[HostIo]) -> HostIo {
    let mut whole = HostIo::new(&inputs[0].facts.host);
    for one in inputs {
        whole.absorb(one.clone());
    }
    whole
}

/// The fleet file of hosts in order.
pub fn written(hosts: &[HostIo]) -> Vec<u8> {
    let mut writer = FleetWriter::new(Vec::new()).expect("room");
    for host in hosts {
        writer.add(host.clone()).expect("room");
    }
    writer.finish().expect("room")
}

/// The fleet file of several.
pub fn merged(files: &[&[u8]]) -> Result<Vec<u8>, MergeError> {
    let open = |(at, bytes): (usize, &&[u8])| {
        let reader = FleetReader::new(std::io::Cursor::new(bytes.to_vec()));
        (format!("file {at}"), reader.expect("a fleet file"))
    };
    let mut merge = FleetMerge::new(files.iter().enumerate().map(open).collect());
    let mut hosts = Vec::new();
    while let Some(host) = merge.next_host()? {
        hosts.push(host);
    }
    Ok(written(&hosts))
}
