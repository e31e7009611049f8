//! Settings of a block queue of Linux: the values that a finding wants, and the files that hold them.

use plumb_model::action::QueueChange;
use plumb_model::facts::BadSetting;
use plumb_model::{Action, DeviceRef};
use plumb_quoting::Command;
use plumb_quoting::names::KERNEL_DEVICE;

use crate::plan::{Harm, Plan, Remedy, Step, Subject};

/// The change that a setting wants.
#[must_use]
pub fn change(bad: &BadSetting) -> QueueChange {
    match bad {
        BadSetting::ReadAhead {
            bytes,
            better_bytes,
            ..
        } => QueueChange::ReadAhead {
            bytes: *better_bytes,
            was_bytes: *bytes,
        },
        BadSetting::Request {
            bytes,
            better_bytes,
            ..
        } => QueueChange::MaxRequest {
            bytes: *better_bytes,
            was_bytes: *bytes,
        },
        BadSetting::Scheduler { name, better, .. } => QueueChange::Scheduler {
            name: better.clone(),
            was: name.clone(),
        },
    }
}

/// A file of a queue below `/sys/block/DISK/queue`, the value that it should hold, and the present one.
#[must_use]
pub fn file_and_values(change: &QueueChange) -> (&'static str, String, String) {
    let kib = |bytes: u64| (bytes >> 10).to_string();
    match change {
        QueueChange::ReadAhead { bytes, was_bytes } => {
            ("read_ahead_kb", kib(bytes.0), kib(was_bytes.0))
        }
        QueueChange::MaxRequest { bytes, was_bytes } => {
            ("max_sectors_kb", kib(bytes.0), kib(was_bytes.0))
        }
        QueueChange::Scheduler { name, was } => ("scheduler", name.clone(), was.clone()),
    }
}

/// The plan for a disk, by the kernel's name of it.
#[must_use]
pub fn plan(disk: &str, changes: &[QueueChange]) -> Plan {
    let mut plan = Plan::new("queue", format!("settings of the queue of {disk}"));
    plan.subject = Some(Subject {
        device: disk.to_owned(),
        number: None,
    });
    let way = Remedy::new(
        Harm::Tune,
        "settings of the queue",
        "read-ahead, requests and scheduler fit the device",
    )
    .constraint("after a boot it is as before: a rule of udev makes it last");
    plan.add([changes.iter().fold(way, |way, change| {
        way.step(step(disk, change)).action(Action::SetQueue {
            disk: DeviceRef::named(format!("/dev/{disk}")),
            change: change.clone(),
        })
    })]);
    plan
}

fn step(disk: &str, change: &QueueChange) -> Result<Step, plumb_quoting::NoCommand> {
    let (file, better, now) = file_and_values(change);
    // The kernel writes the slash of a device in a folder as an exclamation mark.
    let name = disk.replace('/', "!");
    let write = |value: &str| {
        Command::echo(value).flags(">").named(
            KERNEL_DEVICE,
            "/sys/block/",
            &name,
            format!("/queue/{file}"),
        )
    };
    Step::new(
        write(&better),
        "none to data; I/O in flight are not touched, and after a boot it is as before",
        write(&now),
    )
}
