//! Collections among the inputs of `plumb fleet report`: the findings on layers form groups, and each host of a group gets a plan.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::fake_sysfs::FakeDisk;
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::require;
use serde_json::Value;

use crate::common::collection::{FORM, Lab, NO_ANSWERS, NO_DEVICES, pack};
use crate::common::schema::Schema;
use crate::common::{Folder, plumb};
use crate::fleet::{merge, profile, read, report};

/// A host with a boot disk, and `sdb` with a partition from a sector on.
struct DataHost<'a> {
    name: &'a str,
    model: &'a str,
    start: u64,
    file_system: &'a str,
}

impl DataHost<'_> {
    /// Writes the collection of the host.
    fn collect(&self, lab: &Lab, to: &Path) {
        let mut host = lab.host(self.name);
        for (device, model) in [("sda", "BOOT"), ("sdb", self.model)] {
            host.disk(&FakeDisk {
                model: model.to_owned(),
                ..FakeDisk::named(device)
            });
        }
        host.partition("sdb", 1, self.start, 1 << 20);
        host.mount("sdb1", "/srv", self.file_system, "rw");
        pack(to, FORM, &lab.path(self.name), &[NO_ANSWERS, NO_DEVICES]);
    }
}

/// Collections of 24 hosts in folders of their names. The partition of every second host is a sector off.
fn collections(lab: &Lab, root: &Path, of: impl Fn(bool) -> (&'static str, &'static str)) {
    for at in 0..24 {
        let name = format!("h{at:02}");
        let is_off = at % 2 == 1;
        let (model, file_system) = of(is_off);
        let host = DataHost {
            name: &name,
            model,
            start: 2048 + u64::from(is_off),
            file_system,
        };
        fs::create_dir_all(root.join(&name)).expect("room");
        host.collect(lab, &root.join(&name).join("host.tar.zst"));
    }
}

/// The groups of misaligned partitions.
fn groups(document: &Value) -> Vec<&Value> {
    let groups = document["result"]["groups"].as_array().expect("groups");
    let of_starts = groups.iter();
    of_starts
        .filter(|group| group["cause"] == "misaligned-partition")
        .collect()
}

#[test]
fn collections_give_findings_and_attributes() {
    let (lab, folder) = (Lab::new(), Folder::new("fleet-layers"));
    let root = folder.path("in");
    let by_model = |is_off| match is_off {
        true => ("AX-20", "ext4"),
        false => ("AX-10", "ext4"),
    };
    collections(&lab, &root, by_model);
    let document = report(&root, "--json --grid 4k").json();
    assert_eq!(Schema::read("fleet").faults(&document), [""; 0]);
    let result = &document["result"];
    let counts = ["hosts", "inputs", "collections", "devices", "ios"];
    let counts = counts.map(|name| result[name].as_u64());
    assert_eq!(counts, [24, 24, 24, 48, 0].map(Some));
    let rules = result["rules"].as_array().expect("rules");
    let rule = rules
        .iter()
        .find(|rule| rule["rule"] == "misaligned-partition");
    let rule = rule.expect("the rule");
    let counts = ["findings", "devices", "hosts"].map(|name| rule[name].as_u64());
    assert_eq!(counts, [12, 12, 12].map(Some));
    let found = groups(&document);
    assert_eq!(found.len(), 1, "{found:#?}");
    let attribute = &found[0]["attribute"];
    assert_eq!(attribute["name"], "model");
    let value = attribute["value"].as_str().expect("a model");
    assert!(value.ends_with("AX-20"), "{value}");
    assert_eq!(found[0]["hosts_with"], 12);
    assert_eq!(found[0]["on"][0]["host"], "h01");
    assert_eq!(found[0]["on"][0]["devices"], Value::from(vec!["sdb"]));
    assert_eq!(found[0]["on"][0]["plan"], Value::Null);
    insta::assert_snapshot!(report(&root, "--grid 4k").passages(&["24 inputs"]));
}

#[test]
fn file_systems_of_collections_are_attributes() {
    let (lab, folder) = (Lab::new(), Folder::new("fleet-file-systems"));
    let root = folder.path("in");
    let by_file_system = |is_off| match is_off {
        true => ("AX-10", "xfs"),
        false => ("AX-10", "ext4"),
    };
    collections(&lab, &root, by_file_system);
    let document = report(&root, "--json --grid 4k").json();
    let found = groups(&document);
    assert_eq!(found.len(), 1, "{found:#?}");
    let attribute = &found[0]["attribute"];
    assert_eq!(
        [&attribute["name"], &attribute["value"]],
        ["file_system", "xfs"]
    );
}

/// I/O of a disk and its layers are one device. A host without I/O is between the others.
#[test]
fn layers_and_io_of_a_disk_are_one_device() {
    let (lab, folder) = (Lab::new(), Folder::new("fleet-one-device"));
    let root = folder.path("in");
    let trace = "# plumb-residue 1 unit=512 modulus=2048\nsdb R 1 16 1000\n";
    for (host, has_io) in [("a", true), ("b", false), ("c", true)] {
        let name = format!("plain-{host}");
        let data = DataHost {
            name: &name,
            model: "AX-10",
            start: 2049,
            file_system: "ext4",
        };
        let place = root.join(host);
        fs::create_dir_all(&place).expect("room");
        data.collect(&lab, &place.join("host.tar.zst"));
        if has_io {
            fs::write(place.join("trace"), trace).expect("room");
        }
    }
    let counts = |document: &Value| {
        let names = [
            "hosts",
            "inputs",
            "collections",
            "devices",
            "with_findings",
            "ios",
        ];
        names.map(|name| document["result"][name].as_u64().expect("a number"))
    };
    let document = report(&root, "--json --grid 4k").json();
    assert_eq!(counts(&document), [3, 5, 3, 6, 3, 2000]);
    // A fleet file has the I/O alone, and the collections come beside it.
    let file = folder.path("io.fleet");
    let mut messages = vec![profile(&root, &file, "").ends(0).complaint()];
    for host in ["a", "c"] {
        fs::remove_file(root.join(host).join("trace")).expect("a trace");
    }
    let flags = format!("--json --grid 4k {}", file.display());
    assert_eq!(counts(&report(&root, &flags).json()), counts(&document));
    // A trace beside a fleet file is refused as before.
    fs::write(root.join("a/trace"), trace).expect("room");
    messages.push(report(&root, &flags).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    merge(&[file], &folder.path("merged")).ends(0);
}

/// A file outside of folders has the name that its host gives itself, and a host has one collection.
#[test]
fn hosts_of_collections_have_one_name() {
    let (lab, folder) = (Lab::new(), Folder::new("fleet-names"));
    let root = folder.path("in");
    fs::create_dir_all(&root).expect("room");
    let host = DataHost {
        name: "own-name",
        model: "AX-10",
        start: 2049,
        file_system: "ext4",
    };
    host.collect(&lab, &root.join("file.tar.zst"));
    let document = report(&root, "--json --grid 4k").json();
    let found = document["findings"].as_array().expect("findings");
    let is_it = |one: &&Value| one["rule"] == "misaligned-partition";
    let target = &found.iter().find(is_it).expect("the finding")["target"];
    assert_eq!(target["host"], "own-name");
    fs::copy(root.join("file.tar.zst"), root.join("twice.tar.zst")).expect("room");
    let mut messages = vec![report(&root, "").ends(2).complaint()];
    let whole = read(&root.join("file.tar.zst"));
    fs::write(root.join("twice.tar.zst"), &whole[..whole.len() - 9]).expect("room");
    messages.push(report(&root, "").ends(5).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    let document = report(&root, "--json --skip-bad").ends(3).json();
    assert_eq!(document["result"]["unread"], 1);
}

/// Eight collections of this host with a partition that is a sector off on one disk, and eight of a healthy host: a group of eight, with a plan
/// for each. `plumb fix plan` takes each plan on this host.
#[test]
fn each_host_of_a_group_gets_a_plan() {
    require!(Loop, Tool("sgdisk"));
    let (lab, folder) = (Lab::new(), Folder::new("fleet-plans"));
    // In memory the image is the lowest layer: on a disk it is a layer of that disk, as the images of other tests are.
    let memory = folder.path("memory");
    fs::create_dir(&memory).expect("room");
    let _mounted = Mounted::tmpfs(80 << 20, &memory);
    let image = memory.join("disk.img");
    let file = fs::File::create(&image).expect("room");
    file.set_len(64 << 20).expect("room");
    run(Command::new("sgdisk")
        .args(["-a1", "-n1:2049:+16M"])
        .arg(&image));
    let device = LoopDevice::attach(&image, &["--sector-size", "512"]);
    assert_eq!(device.add_partitions(), 1);
    // The label is on the file below before the collection reads it.
    fs::File::open(&image)
        .and_then(|file| file.sync_all())
        .expect("written back");
    let here = folder.path("here.tar.zst");
    plumb(["check".as_ref(), "--collect".as_ref(), here.as_os_str()]).ends(0);
    let root = folder.path("in");
    let mut inventory = "host,device,batch\n".to_owned();
    for at in 0..8 {
        let (bad, good) = (format!("bad {at}"), format!("good{at}"));
        for name in [&bad, &good] {
            fs::create_dir_all(root.join(name)).expect("room");
        }
        fs::copy(&here, root.join(&bad).join("host.tar.zst")).expect("room");
        let healthy = DataHost {
            name: &good,
            model: "AX-10",
            start: 2048,
            file_system: "ext4",
        };
        healthy.collect(&lab, &root.join(&good).join("host.tar.zst"));
        inventory += &format!("{bad},{},b\n{good},sdb,a\n", image.display());
    }
    let inventory = folder.file("hosts.csv", &inventory);
    let plans = folder.path("plans");
    let flags = format!(
        "--json --grid 4k --inventory {} --plans {}",
        inventory.display(),
        plans.display()
    );
    let mut messages = vec![report(&root, &flags).ends(5).complaint()];
    fs::create_dir(&plans).expect("room");
    let document = report(&root, &flags).json();
    assert_eq!(Schema::read("fleet").faults(&document), [""; 0]);
    let found = groups(&document);
    let batch = found
        .iter()
        .find(|group| group["attribute"]["name"] == "batch");
    let on = batch.expect("the group")["on"].as_array().expect("hosts");
    assert_eq!(on.len(), 8);
    let names: BTreeSet<PathBuf> = fs::read_dir(&plans)
        .expect("plans")
        .map(|file| file.expect("a file").path())
        .collect();
    let expected = (0..8).map(|at| plans.join(format!("bad%20{at}.json")));
    assert_eq!(names, expected.collect::<BTreeSet<PathBuf>>());
    for (at, host) in on.iter().enumerate() {
        let plan = plans.join(format!("bad%20{at}.json"));
        assert_eq!(host["plan"].as_str(), plan.to_str());
        let command = host["command"].as_str().expect("a command");
        let from = format!("ssh 'bad {at}' 'plumb fix plan -' < {}", plan.display());
        assert_eq!(command, from);
        let text = fs::read(&plan).expect("a plan");
        let written: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(Schema::read("check").faults(&written), [""; 0]);
        let findings = written["findings"].as_array().expect("findings");
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(
            findings[0]["remedies"][0]["class"], "proven",
            "{findings:#?}"
        );
        let action = &findings[0]["remedies"][0]["actions"][0];
        let to = action["to_bytes"].as_u64().expect("a move");
        assert!(to.is_multiple_of(4096), "{to}");
        let node = format!("{}p1", device.path().display());
        let ran = plumb(["fix".as_ref(), "plan".as_ref(), plan.as_os_str()]);
        assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
        messages.push(ran.says(&node).passages(&["from sector"]));
    }
    messages.dedup();
    // A plan that is there stays as it is, and no other one is written.
    for plan in &names {
        fs::remove_file(plan).expect("a plan");
    }
    let kept = plans.join("bad%203.json");
    fs::write(&kept, "mine").expect("room");
    messages.push(report(&root, &flags).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_eq!(read(&kept), b"mine");
    assert_eq!(fs::read_dir(&plans).expect("plans").count(), 1);
}
