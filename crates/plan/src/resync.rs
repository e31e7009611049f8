//! The size of I/O with which Solaris Volume Manager copies one side of a mirror to the other.
//!
//! `metasync -r` counts in blocks of 512 bytes: 2048 of them are 1 MiB. (Sun's paper of November 2003 says "512-Kbyte
//! blocks", which would make it 1 GiB.) The driver cuts I/O at maxphys, so that has to be as large.

use plumb_geometry::{Bytes, SECTOR};
use plumb_quoting::Command;

use crate::error::PlanError;
use crate::plan::{Harm, Plan, Remedy, Step, Unit};

/// Most blocks that metasync takes (illumos' metasync(8): maximum and recommended).
pub const BLOCKS_MAX: u64 = 2048;
/// Solaris 9's default, 32 KiB, and illumos's present one.
const BLOCKS_OLD: u64 = 64;
const BLOCKS_NOW: u64 = 1024;

/// A resync to be made faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResyncRequest {
    /// I/O size wanted.
    pub size: Bytes,
    /// maxphys of the host, if known.
    pub maxphys: Option<Bytes>,
    /// Bytes to be copied, if known.
    pub mirror: Option<Bytes>,
}

/// The I/O size in the blocks that metasync counts in.
///
/// # Errors
/// When it is no whole number of them, or more than it takes.
pub fn blocks(size: Bytes) -> Result<u64, PlanError> {
    let blocks = size.to_sectors_exact().ok_or(PlanError::NotAMultiple {
        what: "the size of a resync I/O",
        found: size,
        of: "blocks",
        unit: Bytes(SECTOR),
    })?;
    if (1..=BLOCKS_MAX).contains(&blocks.0) {
        return Ok(blocks.0);
    }
    let what = "the number of blocks of a resync I/O";
    Err(PlanError::OutOfRange {
        what,
        found: blocks.0.to_string(),
        expected: "1 to 2048 blocks of 512 bytes (1 MiB)",
    })
}

/// Works out the plan.
///
/// # Errors
/// As [`blocks`].
pub fn plan(request: &ResyncRequest) -> Result<Plan, PlanError> {
    let blocks = blocks(request.size)?;
    let mut plan = Plan::new("resync", format!("resync in I/O of {}", request.size));
    plan.figure("size_bytes", request.size, Unit::Bytes, "I/O of a resync");
    plan.figure(
        "size_blocks",
        blocks,
        Unit::Sectors,
        "the same in blocks of 512 B, as metasync -r counts",
    );
    if let Some(mirror) = request.mirror {
        let words = |blocks: u64| format!("I/O to copy {mirror} at {}", Bytes(blocks * SECTOR));
        for (name, of) in [
            ("ios_old", BLOCKS_OLD),
            ("ios_default", BLOCKS_NOW),
            ("ios", blocks),
        ] {
            plan.figure(name, mirror.0.div_ceil(of * SECTOR), Unit::Count, words(of));
        }
    }
    if let Some(maxphys) = request.maxphys {
        plan.figure(
            "maxphys_bytes",
            maxphys,
            Unit::Bytes,
            "maxphys now: larger I/O are cut here",
        );
    }
    plan.add([now(blocks), at_boot(blocks)]);
    if request.maxphys.is_none_or(|maxphys| maxphys < request.size) {
        plan.add([maxphys(request)]);
    }
    plan.note("Solaris 9 took 32 KiB by default; illumos takes 512 KiB (1024 blocks)");
    Ok(plan)
}

fn now(blocks: u64) -> Remedy {
    Remedy::new(
        Harm::Tune,
        "for a resync that is started by hand",
        "fewer and longer I/O: less time for the same bytes",
    )
    .step(Step::new(
        Command::new("metasync -r").arg(blocks),
        "resyncs every mirror that needs it, and competes with the load",
        "a resync that runs can be left alone; the next one takes the default again",
    ))
    .constraint("blocks are of 512 bytes: 2048 are 1 MiB, the most it takes")
    .constraint("on illumos only svc:/system/mdmonitor may call it")
}

fn system_back() -> Command {
    Command::new("cp -p /etc/system.before /etc/system").remark("boot -a asks for another file")
}

fn at_boot(blocks: u64) -> Remedy {
    Remedy::new(
        Harm::Tune,
        "for every resync from the next boot on",
        "the same after a crash",
    )
    .step(Step::save(Command::new(
        "cp -p /etc/system /etc/system.before",
    )))
    .step(Step::new(
        Command::echo(format!("set md_mirror:md_resync_bufsz = {blocks}")).flags(">> /etc/system"),
        "a wrong line in /etc/system can keep a host from booting",
        system_back(),
    ))
    .constraint("Solaris 9: add -r to the metasync of /etc/rc2.d/S95svm.resync instead")
}

fn maxphys(request: &ResyncRequest) -> Remedy {
    Remedy::new(Harm::Tune, "maxphys", "I/O of that size go to the driver in one piece")
        .step(Step::look(Command::new("echo 'maxphys/D' | mdb -k")))
        .step(Step::save(Command::new("cp -p /etc/system /etc/system.before")))
        .step(Step::new(
            Command::echo(format!("set maxphys={}", request.size.0)).flags(">> /etc/system"),
            "a wrong line in /etc/system can keep a host from booting",
            system_back(),
        ))
        .constraint("from the next boot on; sd and ssd have limits of their own (sd_max_xfer_size, ssd_max_xfer_size)")
}
