//! The backup of a label, written again at the end of its disk.

use plumb_model::{Action, DeviceRef};
use plumb_quoting::Command;
use plumb_quoting::names::KERNEL_DEVICE;

use crate::plan::{Harm, Plan, Remedy, Step, Subject};

/// The plan for a disk, by the kernel's name of it: no partition moves.
#[must_use]
pub fn plan(disk: &str) -> Plan {
    let mut plan = Plan::new("label", format!("backup label of {disk}"));
    plan.subject = Some(Subject {
        device: disk.to_owned(),
        number: None,
    });
    let shown = || {
        Command::new("plumb fix backup-label").named(KERNEL_DEVICE, "/dev/", disk, String::new())
    };
    let done = Step::new(
        shown().option("--yes", disk),
        "none to data: no partition moves, and the old label is saved first",
        Command::new("plumb fix undo FILE")
            .named(KERNEL_DEVICE, "/dev/", disk, String::new())
            .option("--yes", disk)
            .remark("FILE: the saved label, which the command names"),
    );
    let way = Remedy::new(
        Harm::Tune,
        "with plumb fix backup-label",
        "the backup of the label is at the end of the disk",
    );
    plan.add([way
        .step(Step::look(shown()))
        .step(done)
        .action(Action::BackupLabel {
            disk: DeviceRef::named(format!("/dev/{disk}")),
        })]);
    plan
}
