//! Output of `plumb plan` and `plumb check`, run unchanged on disks, arrays and volumes of a guest: see
//! `lab/plan-guest`. The result is read from mdadm, LVM, dumpe2fs, xfs_info and the kernel.

use std::path::PathBuf;

use plumb_testkit::require;
use serde_json::Value;

use crate::common::rows_of_guest;

/// The guest's files of a case.
struct PlanCase(PathBuf);

impl PlanCase {
    #[track_caller]
    fn read(&self, name: &str) -> String {
        let path = self.0.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[track_caller]
    fn json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}: {text}", self.0.display()))
    }

    /// Names of the findings of a check.
    #[track_caller]
    fn findings(&self, name: &str) -> Vec<String> {
        let document = self.json(name);
        let findings = document["findings"].as_array().expect("findings").iter();
        findings
            .map(|one| one["rule"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// A figure that was planned.
    #[track_caller]
    fn planned(&self, name: &str) -> u64 {
        let document = self.json("plan.json");
        let figures = document["result"]["plans"][0]["target"]
            .as_array()
            .expect("figures");
        let found = figures.iter().find(|figure| figure["name"] == name);
        found
            .and_then(|figure| figure["value"].as_u64())
            .unwrap_or_else(|| panic!("no {name}: {document}"))
    }

    /// The number behind `name`, a sign or none, and blanks.
    #[track_caller]
    fn says(&self, file: &str, name: &str) -> u64 {
        let text = self.read(file);
        let number = text.split(name).nth(1).and_then(|rest| {
            let rest = rest.trim_start_matches([' ', ':', '=']);
            rest[..rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len())]
                .parse()
                .ok()
        });
        number.unwrap_or_else(|| panic!("no {name}: {text}"))
    }

    /// The check before recommends a remedy as proven: afterwards its rule is silent, and each other finding was there before.
    #[track_caller]
    fn is_as_predicted(&self, rule: &str) {
        let case = self.0.display();
        let before = self.json("before.json");
        let mut found = before["findings"].as_array().expect("findings").iter();
        let finding = found.find(|one| one["rule"] == rule).expect("the finding");
        assert_eq!(finding["remedies"][0]["class"], "proven", "{case}");
        let (before, after) = (self.findings("before.json"), self.findings("check.json"));
        assert!(
            !after.iter().any(|after| after == rule),
            "{case}: {after:?}"
        );
        let new: Vec<_> = after
            .iter()
            .filter(|after| !before.contains(after))
            .collect();
        assert!(new.is_empty(), "{case}: {new:?}");
    }

    /// The commands ran to their end.
    #[track_caller]
    fn ran(&self) -> &PlanCase {
        assert!(
            !self.read("script").trim().is_empty(),
            "no commands: {}",
            self.0.display()
        );
        assert_eq!(
            self.read("status").trim(),
            "0",
            "{}\n{}",
            self.read("script"),
            self.read("ran")
        );
        self
    }
}

/// Findings that a plan fixes. The host's parity, and the kernel's impossible hints, remain.
const OF_LAYOUT: [&str; 8] = [
    "misaligned-partition",
    "geometry-mismatch",
    "stripe-segment-mismatch",
    "split-io",
    "beyond-device",
    "broken-label",
    "contradiction",
    "indirection-unit",
];

#[test]
fn commands_make_the_planned_layout() {
    require!(Qemu, Tool("apt-get"));
    let out = tempfile::tempdir().expect("a directory");
    let said = super::run_lab("plan-guest", [out.path(), super::program().as_path()]);
    let said_by_guest: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("GUEST:"))
        .collect();
    let parts = ["partitions", "settings", "md", "lvm"].map(|part| format!("GUEST: {part} done"));
    let expected = [&parts[..], &["GUEST: done".to_owned()]].concat();
    assert_eq!(said_by_guest, expected, "{said}");
    let of = |name: &str| PlanCase(out.path().join(name));
    let rows = rows_of_guest(out.path());
    // Ten partitions, three settings, a label, four arrays, four file systems, two volumes in chunks, three moves.
    assert_eq!(rows.len(), 27, "{rows:?}");
    for name in rows.iter().filter_map(|fields| fields.first()) {
        let findings = of(name).ran().findings("check.json");
        let wrong: Vec<&String> = findings
            .iter()
            .filter(|id| OF_LAYOUT.contains(&id.as_str()))
            .collect();
        assert!(
            wrong.is_empty(),
            "{name}: {wrong:?}\n{}",
            of(name).read("check.json")
        );
    }
    for (name, rule) in [
        ("part-fixed", "misaligned-partition"),
        ("queue-read-ahead", "queue-setting"),
        ("queue-request", "queue-setting"),
        ("queue-scheduler", "queue-setting"),
        ("label-backup", "stranded-backup-label"),
        ("ext4-retrofit", "geometry-mismatch"),
    ] {
        of(name).is_as_predicted(rule);
    }
    partitions(&of);
    settings(&of);
    arrays(&of);
    file_systems(&of);
    volumes(&of);
    moves(&of);
}

/// The kernel counts sectors of 512 bytes, for any blocks of the disk.
fn partitions(of: &dyn Fn(&str) -> PlanCase) {
    for tool in ["sgdisk", "sfdisk", "parted"] {
        for (geometry, first) in [
            // The first 64 KiB from block 33 of 4 KiB on: 128 sectors of 512 bytes.
            ("4kn", 128),
            // 2047 = 7 + 255 × 8.
            ("offset", 2047),
        ] {
            let case = of(&format!("part-{geometry}-{tool}"));
            let start: u64 = case.read("start").trim().parse().expect("a sector");
            assert_eq!(
                (start, case.planned("start_sectors")),
                (first, first),
                "{geometry} {tool}"
            );
        }
    }
    let fixed = of("part-fixed");
    assert!(
        fixed
            .findings("before.json")
            .contains(&"misaligned-partition".to_owned())
    );
    assert_eq!(
        fixed.read("start").trim(),
        "64",
        "the first multiple of 8 from 63 on"
    );
}

/// The files of a queue hold the values that the actions name.
fn settings(of: &dyn Fn(&str) -> PlanCase) {
    for (name, setting) in [
        ("queue-read-ahead", "read-ahead"),
        ("queue-request", "max-request"),
        ("queue-scheduler", "scheduler"),
    ] {
        let case = of(name);
        let before = case.json("before.json");
        let mut actions = before["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .flat_map(|finding| finding["remedies"][0]["actions"].as_array())
            .flatten();
        let change = actions
            .find_map(|action| (action["change"]["setting"] == setting).then(|| &action["change"]))
            .unwrap_or_else(|| panic!("no {setting}: {before}"));
        let now = case.read("value");
        match change["bytes"].as_u64() {
            Some(bytes) => assert_eq!(now.trim(), (bytes >> 10).to_string(), "{name}"),
            None => {
                let chosen = format!("[{}]", change["name"].as_str().expect("a scheduler"));
                assert!(now.contains(&chosen), "{name}: {now}");
            }
        }
    }
    let verified = of("label-backup").read("verified");
    assert!(verified.contains("No problems found"), "{verified}");
}

fn arrays(of: &dyn Fn(&str) -> PlanCase) {
    for (name, level, chunk) in [
        ("md-raid0", "raid0", 64),
        ("md-raid5", "raid5", 64),
        ("md-raid6", "raid6", 64),
        ("md-raid10", "raid10", 1024),
    ] {
        let case = of(name);
        assert_eq!(case.says("detail", "Raid Devices"), 4, "{name}");
        assert!(
            case.read("detail")
                .contains(&format!("Raid Level : {level}\n")),
            "{}",
            case.read("detail")
        );
        assert!(
            case.read("examine")
                .contains(&format!("Chunk Size : {chunk}K")),
            "{}",
            case.read("examine")
        );
        // So far the data begin on each member: a multiple of its physical block.
        assert_eq!(case.says("examine", "Data Offset") % 8, 0, "{name}");
    }
    assert_eq!(of("md-raid5").planned("chunk_bytes"), 64 << 10);
    assert_eq!(of("md-raid5").planned("stripe_bytes"), 192 << 10);
}

/// The truth: 64 KiB are 16 blocks, on four, three and two members with data.
fn file_systems(of: &dyn Fn(&str) -> PlanCase) {
    for (name, data) in [("ext4-made", 4), ("ext4-retrofit", 3)] {
        let case = of(name);
        assert_eq!(case.says("dumpe2fs", "RAID stride"), 16, "{name}");
        assert_eq!(
            case.says("dumpe2fs", "RAID stripe width"),
            16 * data,
            "{name}"
        );
    }
    for (name, data) in [("xfs-made", 2), ("xfs-retrofit", 3)] {
        let case = of(name);
        assert_eq!(
            (
                case.says("xfs_info", "sunit"),
                case.says("xfs_info", "swidth")
            ),
            (16, 16 * data),
            "{name}"
        );
    }
    // Left alone both used the kernel's statement, which is no stripe.
    for name in ["ext4-retrofit", "xfs-retrofit"] {
        assert!(
            of(name)
                .findings("before.json")
                .contains(&"geometry-mismatch".to_owned()),
            "{name}"
        );
    }
}

fn volumes(of: &dyn Fn(&str) -> PlanCase) {
    for (name, kind, members, data) in [
        ("lvm-parity0", "striped", 4, 4),
        ("lvm-parity1", "raid5", 4, 3),
    ] {
        let lvs = of(name).read("lvs");
        let words: Vec<&str> = lvs.split_whitespace().collect();
        let expected = [
            kind.to_owned(),
            members.to_string(),
            "64.00".to_owned(),
            data.to_string(),
        ];
        assert_eq!(words, expected, "{name}");
    }
    // 1 MiB, and the sector that 63 lacks.
    assert!(
        of("pv-later")
            .read("pvs")
            .contains(&((1 << 20) + 512).to_string()),
        "{}",
        of("pv-later").read("pvs")
    );
}

/// Data in use move with it, from their misaligned place.
fn moves(of: &dyn Fn(&str) -> PlanCase) {
    for name in ["lvm-online", "md-online"] {
        let case = of(name);
        assert!(
            case.findings("before.json")
                .contains(&"misaligned-partition".to_owned()),
            "{name}"
        );
        assert_eq!(
            case.read("sum-before").len(),
            "d41d8cd98f00b204e9800998ecf8427e  -\n".len()
        );
        assert_eq!(case.read("sum-before"), case.read("sum-after"), "{name}");
    }
    of("md-first").ran();
    let pvs = of("lvm-online").read("pvs");
    assert!(
        pvs.contains("/dev/sdb1") && !pvs.contains("/dev/sda1"),
        "{pvs}"
    );
    let detail = of("md-online").read("detail");
    let active: Vec<&str> = detail
        .lines()
        .filter(|line| line.contains("active sync"))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(active, ["/dev/sdc1", "/dev/sdd1"], "{detail}");
}
