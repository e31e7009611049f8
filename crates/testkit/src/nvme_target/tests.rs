//! A host in a few lines: entries and PDUs built here by the specifications' figures, over a connection as Linux makes it.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::{Drive, Subsystem, serve};

const NAME: &str = "nqn.2014-08.org.example:plumb";

struct TestHost(TcpStream);

/// A PDU of the controller: type, the part after the common header, data.
struct Pdu {
    kind: u8,
    specific: Vec<u8>,
    data: Vec<u8>,
}

/// A submission queue entry: bytes at their places.
fn entry(fields: &[(usize, &[u8])]) -> [u8; 64] {
    let mut entry = [0; 64];
    for (at, bytes) in fields {
        entry[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    entry
}

fn connect_data(controller: u16, name: &str) -> [u8; 1024] {
    let mut data = [0; 1024];
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    data
}

/// Status and the first eight bytes of a CapsuleResp.
fn outcome(pdu: &Pdu) -> (u16, u64) {
    assert_eq!(pdu.kind, 5, "CapsuleResp");
    let status = u16::from_le_bytes([pdu.specific[14], pdu.specific[15]]);
    assert_eq!(
        status >> 15 == 1,
        status != 0,
        "what failed is not to be tried again"
    );
    (
        status >> 1 & 0x7ff,
        u64::from_le_bytes(pdu.specific[..8].try_into().expect("eight")),
    )
}

impl TestHost {
    fn open(port: u16) -> TestHost {
        let mut host = TestHost(TcpStream::connect(("127.0.0.1", port)).expect("the target"));
        host.0.set_nodelay(true).expect("a socket");
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        host.0.write_all(&request).expect("ICReq");
        assert_eq!(host.next().kind, 1, "ICResp");
        host
    }

    fn next(&mut self) -> Pdu {
        let mut common = [0; 8];
        self.0.read_exact(&mut common).expect("a PDU");
        let total = u32::from_le_bytes(common[4..].try_into().expect("four")) as usize;
        let mut rest = vec![0; total - 8];
        self.0.read_exact(&mut rest).expect("the rest of it");
        let data = rest.split_off(usize::from(common[2]) - 8);
        Pdu {
            kind: common[0],
            specific: rest,
            data,
        }
    }

    fn send(&mut self, mut entry: [u8; 64], data: &[u8]) {
        entry[1] = 0x40; // PSDT: an SGL
        let total = (72 + data.len()) as u32;
        let data_at = if data.is_empty() { 0 } else { 72 };
        self.0.write_all(&[4, 0, 72, data_at]).expect("a capsule");
        self.0
            .write_all(&[&total.to_le_bytes()[..], &entry, data].concat())
            .expect("a capsule");
    }

    /// Sends a command with data in its capsule, and tells how it ended.
    fn tell(&mut self, fields: &[(usize, &[u8])], data: &[u8]) -> (u16, u64) {
        let len = (data.len() as u32).to_le_bytes();
        self.send(
            entry(&[fields, &[(32, &len[..]), (39, &[0x01])]].concat()),
            data,
        );
        outcome(&self.next())
    }

    /// Sends one that asks for `len` bytes; they are empty where it fails.
    fn ask(&mut self, fields: &[(usize, &[u8])], len: u32) -> (u16, Vec<u8>) {
        self.send(
            entry(&[fields, &[(32, &len.to_le_bytes()[..]), (39, &[0x5a])]].concat()),
            &[],
        );
        let first = self.next();
        if first.kind != 7 {
            return (outcome(&first).0, Vec::new());
        }
        (outcome(&self.next()).0, first.data)
    }

    /// Connect: status, and the ID of the controller.
    fn connect(&mut self, queue: u8, controller: u16, name: &str) -> (u16, u64) {
        let data = connect_data(controller, name);
        self.tell(
            &[(0, &[0x7f]), (4, &[0x01]), (42, &[queue]), (44, &[31])],
            &data,
        )
    }

    fn property(&mut self, offset: u8) -> (u16, u64) {
        self.tell(&[(0, &[0x7f]), (4, &[0x04]), (44, &[offset])], &[])
    }

    fn identify(&mut self, what: u8, namespace: u8) -> (u16, Vec<u8>) {
        self.ask(&[(0, &[0x06]), (4, &[namespace]), (40, &[what])], 4096)
    }

    fn write(&mut self, start: u8, count: u8, data: &[u8]) -> u16 {
        self.tell(
            &[(0, &[1]), (4, &[1]), (40, &[start]), (48, &[count - 1])],
            data,
        )
        .0
    }

    fn read(&mut self, start: u8, count: u8) -> (u16, Vec<u8>) {
        let fields: [(usize, &[u8]); 4] =
            [(0, &[2]), (4, &[1]), (40, &[start]), (48, &[count - 1])];
        self.ask(&fields, u32::from(count) * 512)
    }
}

/// Starts a drive; it ends with the test program.
fn target(fields: &[&str]) -> u16 {
    let mut drive = Drive::default();
    for field in fields {
        drive.set(field).expect("a field");
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    std::thread::spawn(move || serve(&listener, Subsystem::new(NAME, drive)));
    port
}

#[test]
fn a_controller_is_connected_enabled_and_shut_down() {
    let port = target(&[]);
    let mut host = TestHost::open(port);
    assert_eq!(
        host.property(0).0,
        0x00c,
        "before Connect nothing else is right"
    );
    assert_eq!(
        host.connect(0, 0xffff, "nqn.2014-08.org.example:other").0,
        0x182
    );
    let long = [(0, &[0x7f][..]), (4, &[0x01]), (44, &[128, 0])];
    assert_eq!(
        host.tell(&long, &connect_data(0xffff, NAME)).0,
        0x182,
        "129 entries are too many"
    );
    assert_eq!(host.connect(0, 0xffff, NAME), (0, 1));
    assert_eq!(host.property(8), (0, 0x0001_0400), "VS 1.4");
    let (_, capabilities) = host.property(0);
    assert_eq!(
        (capabilities & 0xffff, capabilities >> 37 & 1),
        (127, 1),
        "MQES, the NVM command set"
    );
    let mut configure = |bytes: &[u8]| {
        let set = host.tell(
            &[(0, &[0x7f]), (4, &[0x00]), (44, &[0x14]), (48, bytes)],
            &[],
        );
        assert_eq!(set.0, 0);
        host.property(0x1c).1
    };
    assert_eq!(configure(&[0x01, 0x00, 0x46, 0x00]), 1, "EN gives RDY");
    assert_eq!(
        configure(&[0x01, 0x40, 0x46, 0x00]),
        1 | 2 << 2,
        "SHN gives SHST"
    );
    assert_eq!(configure(&[0x00]), 0);
    assert_eq!(host.property(0x20).0, 0x002, "no such property");
    // The second controller, and a queue of one that there is not.
    assert_eq!(TestHost::open(port).connect(0, 0xffff, NAME), (0, 2));
    assert_eq!(TestHost::open(port).connect(1, 3, NAME).0, 0x182);
}

#[test]
fn options_set_the_identity() {
    let port = target(&[
        "lba=4096",
        "nsze=16384",
        "optperf=1",
        "npwg=3",
        "npwa=0",
        "model=A model",
    ]);
    let mut host = TestHost::open(port);
    host.connect(0, 0xffff, NAME);
    let (status, namespace) = host.identify(0, 1);
    assert_eq!(
        (status, namespace.len(), namespace[64], namespace[66]),
        (0, 4096, 3, 0)
    );
    let (_, controller) = host.identify(1, 0);
    assert_eq!(&controller[24..32], b"A model ");
    assert_eq!(controller[768..768 + NAME.len()], *NAME.as_bytes());
    let list = |host: &mut TestHost, above| host.identify(2, above).1[..8].to_vec();
    assert_eq!(list(&mut host, 0), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(list(&mut host, 1), [0; 8]);
    assert_eq!(host.identify(3, 1).1[..4], [3, 16, 0, 0], "a UUID");
    assert_eq!(host.identify(0, 2).0, 0x00b, "no second namespace");
    assert_eq!(host.identify(0x1c, 0).0, 0x002);
    assert_eq!(
        host.ask(&[(0, &[0x02]), (40, &[2])], 512),
        (0, vec![0; 512]),
        "an empty log"
    );
    assert_eq!(
        host.tell(&[(0, &[0x09]), (40, &[7]), (44, &[1, 0, 1, 0])], &[]),
        (0, 0x0001_0001)
    );
    // As Linux sends it: an SGL of the transport, of no bytes.
    host.send(
        entry(&[(0, &[0x09]), (39, &[0x5a]), (40, &[7]), (44, &[2, 0, 2, 0])]),
        &[],
    );
    assert_eq!(outcome(&host.next()), (0, 0x0002_0002));
    // Never answered: the next message is the answer to Keep Alive.
    host.send(entry(&[(0, &[0x0c]), (2, &[7])]), &[]);
    host.send(entry(&[(0, &[0x18]), (2, &[8])]), &[]);
    assert_eq!(host.next().specific[12], 8, "CID");
    assert_eq!(host.tell(&[(0, &[0x80])], &[]).0, 0x001, "Format NVM");
    // SQHD goes round: the queue has 32 entries.
    let heads: Vec<u8> = (0..64)
        .map(|_| {
            host.send(entry(&[(0, &[0x18])]), &[]);
            host.next().specific[8]
        })
        .collect();
    assert!(
        heads.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 32),
        "{heads:?}"
    );
}

#[test]
fn blocks_come_back() {
    let port = target(&["nsze=256"]);
    let mut admin = TestHost::open(port);
    let (_, controller) = admin.connect(0, 0xffff, NAME);
    let mut host = TestHost::open(port);
    assert_eq!(host.connect(1, controller as u16, NAME).0, 0);
    assert_eq!(host.write(7, 2, &[1; 1024]), 0);
    let (status, data) = host.read(6, 4);
    assert_eq!(
        (status, data),
        (0, [[0; 512], [1; 512], [1; 512], [0; 512]].concat())
    );
    // 32 KiB do not fit a capsule: they are asked for, and come in two pieces.
    let data: Vec<u8> = (0..32_768_u32).map(|at| (at / 100) as u8).collect();
    let len = 32_768_u32.to_le_bytes();
    host.send(
        entry(&[
            (0, &[1]),
            (2, &[9]),
            (4, &[1]),
            (40, &[100]),
            (48, &[63]),
            (32, &len),
            (39, &[0x5a]),
        ]),
        &[],
    );
    let ready = host.next();
    assert_eq!(
        (ready.kind, &ready.specific[..12]),
        (9, &[9, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 0, 0][..]),
        "R2T"
    );
    for (offset, part) in [(0, &data[..20_000]), (20_000, &data[20_000..])] {
        let total = (24 + part.len() as u32).to_le_bytes();
        let place = [
            u32::to_le_bytes(offset),
            (part.len() as u32).to_le_bytes(),
            [0; 4],
        ]
        .concat();
        let header = [&[6, 4, 24, 24][..], &total, &[9, 0, 9, 0], &place].concat();
        host.0
            .write_all(&[&header[..], part].concat())
            .expect("H2CData");
    }
    assert_eq!(outcome(&host.next()).0, 0);
    assert_eq!(host.read(100, 64), (0, data));
    assert_eq!(host.read(255, 2).0, 0x080, "beyond the end");
    assert_eq!(host.write(0, 2, &[0; 512]), 0x00f, "too few data");
    // An SGL of 1,024 bytes, and half of them in the capsule.
    let fields: [(usize, &[u8]); 5] = [
        (0, &[1]),
        (4, &[1]),
        (48, &[1]),
        (32, &[0, 4]),
        (39, &[0x01]),
    ];
    host.send(entry(&fields), &[0; 512]);
    assert_eq!(outcome(&host.next()).0, 0x00f);
    assert_eq!(host.tell(&[(0, &[0]), (4, &[1])], &[]).0, 0, "Flush");
    assert_eq!(
        host.tell(&[(0, &[9]), (4, &[1])], &[]).0,
        0x001,
        "no discards"
    );
    assert_eq!(host.tell(&[(0, &[0]), (4, &[2])], &[]).0, 0x00b);
}

/// A host that breaks the rules of the transport is disconnected.
#[test]
fn the_rules_of_the_transport() {
    let port = target(&[]);
    let is_cut = |mut host: TestHost, bytes: &[u8]| {
        host.0
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a socket");
        host.0.write_all(bytes).expect("the target listens");
        let mut rest = Vec::new();
        // A reset is an end as well; silence is none.
        match host.0.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    };
    let raw = || TestHost(TcpStream::connect(("127.0.0.1", port)).expect("the target"));
    let padded = |len: u8, at: usize, byte: u8| {
        let mut bytes = vec![0; usize::from(len)];
        (bytes[2], bytes[4], bytes[at]) = (len, len, byte);
        bytes
    };
    assert!(
        is_cut(
            raw(),
            &[[4, 0, 72, 0, 72, 0, 0, 0].as_slice(), &[0; 64]].concat()
        ),
        "before ICReq"
    );
    assert!(is_cut(raw(), &padded(128, 11, 3)), "digests");
    assert!(
        is_cut(TestHost::open(port), &padded(128, 8, 0)),
        "ICReq again"
    );
    assert!(
        is_cut(
            TestHost::open(port),
            &[&[6, 4, 24, 24, 24, 0, 0, 0][..], &[0; 16]].concat()
        ),
        "data not asked for"
    );
    // A Write of 16 KiB was answered with R2T: its data must have its tag, and begin with the first byte.
    for (tag, offset) in [(9, 4), (8, 0)] {
        let mut host = TestHost::open(port);
        host.connect(0, 0xffff, NAME);
        host.send(
            entry(&[(0, &[1]), (2, &[9]), (32, &[0, 64]), (39, &[0x5a])]),
            &[],
        );
        assert_eq!(host.next().kind, 9);
        let mut data = [0; 28];
        data[..16].copy_from_slice(&[6, 4, 24, 24, 28, 0, 0, 0, 9, 0, tag, 0, offset, 0, 0, 0]);
        data[16] = 4;
        assert!(is_cut(host, &data), "tag {tag}, from byte {offset} on");
    }
}
