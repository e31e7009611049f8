//! Actions as JSON and back, and the way back from each.

use plumb_geometry::Bytes;
use plumb_model::action::{
    ExtentRef, FileSystemKind, HostSetting, Manager, QueueChange, SoftPartitionMove,
};
use plumb_model::{Action, DeviceRef, Effect, LocalNode, PartitionRef, Platform};

fn device(name: &str) -> DeviceRef {
    DeviceRef {
        host: Some("web1".to_owned()),
        device: name.to_owned(),
        identity: Some("naa.5000c500a1b2c3d4".to_owned()),
        node: LocalNode::default(),
    }
}

fn partition() -> PartitionRef {
    PartitionRef {
        disk: device("/dev/sdb"),
        number: 1,
        start_bytes: Bytes(63 * 512),
        len_bytes: Some(Bytes(1 << 30)),
        node: LocalNode::default(),
    }
}

fn soft() -> SoftPartitionMove {
    let extent = |start| ExtentRef {
        start_bytes: Bytes(start),
        len_bytes: Bytes(1 << 20),
    };
    SoftPartitionMove {
        volume: device("d94"),
        from: vec![extent(512)],
        to: vec![extent(4096)],
    }
}

/// One of each.
fn all() -> Vec<Action> {
    let to_bytes = Bytes(1 << 20);
    vec![
        Action::Move {
            partition: partition(),
            to_bytes,
        },
        Action::Relabel {
            partition: partition(),
            to_bytes,
            len_bytes: None,
        },
        Action::Shrink {
            partition: partition(),
            len_bytes: Bytes((1 << 30) - 4096),
        },
        Action::Shift {
            partition: partition(),
            to_bytes,
        },
        Action::Migrate {
            partition: partition(),
            to_bytes,
            manager: Manager::Lvm,
        },
        Action::BackupLabel {
            disk: device("/dev/sdb"),
        },
        Action::SetQueue {
            disk: device("/dev/sdb"),
            change: QueueChange::Scheduler {
                name: "none".to_owned(),
                was: "bfq".to_owned(),
            },
        },
        Action::SetHost {
            setting: HostSetting::Maxphys,
            bytes: Bytes(1 << 20),
            was_bytes: Some(Bytes(128 << 10)),
        },
        Action::TuneFileSystem {
            device: device("/dev/md0"),
            kind: FileSystemKind::Ext,
            mount: None,
            block_bytes: Bytes(4096),
            unit_bytes: Bytes(65_536),
            width_bytes: Bytes(196_608),
            was_unit_bytes: Some(Bytes(16_384)),
            was_width_bytes: Some(Bytes(32_768)),
        },
        Action::RecreateFileSystem {
            device: device("/dev/md0"),
            kind: FileSystemKind::Xfs,
            block_bytes: Bytes(4096),
            unit_bytes: None,
            width_bytes: None,
        },
        Action::RecreateStripe {
            volume: device("d10"),
            manager: Manager::Svm,
            members: vec![device("c0t0d0s0"), device("c0t1d0s0")],
            parity: 0,
            chunk_bytes: Bytes(1 << 20),
        },
        Action::RecreateSoftPartitions {
            component: device("d10"),
            moves: vec![soft()],
        },
        Action::CopySoftPartition {
            component: device("d10"),
            change: soft(),
        },
        Action::ResyncSoftPartitions {
            component: device("d10"),
            moves: vec![soft()],
        },
        Action::RecreatePhysicalVolume {
            partition: partition(),
            data_start_bytes: Bytes(1 << 20),
        },
        Action::SetRecord {
            dataset: device("tank/db"),
            bytes: Bytes(8192),
            is_copied: false,
        },
        Action::Command {
            argv: vec!["zpool".to_owned(), "status".to_owned()],
            platform: Platform::Solaris,
            effect: Effect::ReadsOnly,
            undo: None,
        },
    ]
}

#[test]
fn actions_read_back() {
    let mut words = std::collections::BTreeSet::new();
    for action in all() {
        let value = serde_json::to_value(&action).expect("JSON");
        assert_eq!(value["action"], action.word());
        assert!(words.insert(action.word()), "{}", action.word());
        let back: Action = serde_json::from_value(value.clone()).expect("the same");
        assert_eq!(back, action);
        let mut more = value;
        more["then"] = serde_json::json!("reboot");
        let refused = serde_json::from_value::<Action>(more).expect_err("a field too many");
        assert!(refused.to_string().contains("then"), "{refused}");
    }
}

#[test]
fn the_way_back_leads_there_and_its_own_way_back_here() {
    let mut reversible = Vec::new();
    for action in all() {
        let Some(back) = action.inverse() else {
            continue;
        };
        assert_eq!(back.effect(), action.effect());
        assert_eq!(back.inverse().as_ref(), Some(&action));
        reversible.push(action.word());
    }
    assert_eq!(
        reversible,
        [
            "move",
            "migrate",
            "set-queue",
            "set-host",
            "tune-file-system",
            "copy-soft-partition",
            "resync-soft-partitions"
        ]
    );
}

/// An action without a way back is not called data-preserving by mistake: only a file system that shrinks keeps its
/// files without one.
#[test]
fn destructive_actions_have_no_undo() {
    for action in all() {
        if !action.keeps_data() {
            assert_eq!(action.inverse(), None, "{}", action.word());
            assert!(!matches!(action, Action::Move { .. }));
        }
    }
}
