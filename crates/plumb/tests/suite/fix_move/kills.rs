//! Moves whose process is killed, to and fro on one disk: resumed or rolled back, all is right each time.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use plumb_testkit::loop_device::run;
use plumb_testkit::{require, wait};

use super::disk::{DiskFormat, MIB, MoveDisk, assert_done, output_text};

const KILLS: u32 = 6;
const SOAK_KILLS: u32 = 200;
const SOAK_MIB: u64 = 2048;
/// Within this number of sectors a move writes other things than data: at its start label and markers, at its end label
/// and signatures.
const EDGE_SECTORS: f64 = 64.0;

/// A moment of a move: after a number of written sectors, and a while later.
struct Moment {
    sectors_written: u64,
    later: Duration,
}

/// An undisturbed move.
struct Whole {
    sectors_written: u64,
    /// From the last write on.
    verifying: Duration,
}

impl Whole {
    fn measure(disk: &MoveDisk, to: u64) -> Whole {
        let before = disk.sectors_written();
        let mut child = disk.begun(to);
        let (mut sectors_written, mut last) = (0, Instant::now());
        let until = Instant::now() + wait::PATIENCE;
        while child.try_wait().expect("a child").is_none() {
            assert!(
                Instant::now() < until,
                "waited in vain for the end of a move"
            );
            let by_now = disk.sectors_written() - before;
            if by_now > sectors_written {
                (sectors_written, last) = (by_now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let verifying = last.elapsed();
        assert!(wait::exit("a move", wait::PATIENCE, &mut child).success());
        disk.assert_right(to);
        Whole {
            sectors_written,
            verifying,
        }
    }

    /// Five of eight anywhere between the first and the last write, one at either end of these, one while all is read again.
    fn moment(&self, attempt: u32) -> Moment {
        // Multiples of the golden section are spread evenly, however many there are.
        let share = (f64::from(attempt) * 0.618_033_988_75 + 0.31).fract();
        let all = self.sectors_written;
        let within = |sectors: f64| (sectors * share) as u64;
        let (sectors_written, later) = match attempt % 8 {
            3 => (1 + within(EDGE_SECTORS), Duration::ZERO),
            5 => (all - within(EDGE_SECTORS), Duration::ZERO),
            7 => (all, self.verifying.mul_f64(share)),
            _ => (1 + within(all as f64), Duration::ZERO),
        };
        Moment {
            sectors_written,
            later,
        }
    }
}

/// The result of killing a move.
enum Cut {
    /// It had ended.
    Ended,
    /// It had written nothing yet.
    NotBegun,
    /// It had written all, without updating the kernel: it was resumed.
    Complete,
    /// In between: its status, and whether it can still go back.
    Between { stage: String, may_go_back: bool },
}

/// Kills a move at that moment.
fn cut(disk: &MoveDisk, from: u64, to: u64, at: &Moment) -> Cut {
    let before = disk.sectors_written();
    let mut child = disk.begun(to);
    let has_come = || disk.sectors_written() - before >= at.sectors_written;
    let until = Instant::now() + wait::PATIENCE;
    while !has_come() && child.try_wait().expect("a child").is_none() {
        assert!(
            Instant::now() < until,
            "waited in vain for the writes of a move"
        );
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(at.later);
    let _ = child.kill();
    if wait::exit("a move", wait::PATIENCE, &mut child).success() || !disk.journal().exists() {
        disk.assert_right(to);
        return Cut::Ended;
    }
    let stands = disk.go("status");
    let words = output_text(&stands);
    if ["never begun", "no good record"]
        .iter()
        .any(|what| words.contains(what))
    {
        run(Command::new("partx")
            .args(["--add", "--nr", "1"])
            .arg(disk.device.path()));
        disk.assert_right(from);
        fs::remove_file(disk.journal()).expect("a journal of no use");
        return Cut::NotBegun;
    }
    if words.contains("the move is complete") {
        // Going on does no more than to tell the kernel.
        assert_done(&disk.go("resume"));
        disk.assert_right(to);
        return Cut::Complete;
    }
    assert_eq!(stands.status.code(), Some(6), "{words}");
    let stage = words
        .lines()
        .find(|line| line.starts_with("incomplete"))
        .unwrap_or_default()
        .to_owned();
    // Not once its last signature has begun to come back.
    Cut::Between {
        stage,
        may_go_back: words.contains("fix rollback"),
    }
}

/// Kills a number of moves between two places, and resumes or rolls back.
fn survives(disk: &MoveDisk, places: [u64; 2], kills: u32) {
    let whole = [1, 0].map(|to| Whole::measure(disk, places[to]));
    let (began, mut at, mut killed) = (Instant::now(), 0, 0);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for attempt in 0..4 * kills {
        if killed == kills {
            break;
        }
        let (from, to) = (places[at], places[1 - at]);
        let cut = cut(disk, from, to, &whole[at].moment(attempt));
        let words = match &cut {
            Cut::Ended => "ended before",
            Cut::NotBegun => "not begun",
            Cut::Complete => "complete",
            Cut::Between { stage, .. } => stage.split(',').next().unwrap_or_default(),
        };
        *counts.entry(words.to_owned()).or_default() += 1;
        let is_moved = match cut {
            Cut::NotBegun => false,
            Cut::Ended | Cut::Complete => true,
            Cut::Between { stage, may_go_back } => {
                println!("{:?} from {from} to {to}: {stage}", disk.format);
                // By turns, and the other way about for the next eight moments.
                let goes_on = (killed + killed / 8) % 2 == 0 || !may_go_back;
                killed += 1;
                assert_done(&disk.go(if goes_on { "resume" } else { "rollback" }));
                disk.assert_right(if goes_on { to } else { from });
                goes_on
            }
        };
        at = if is_moved { 1 - at } else { at };
    }
    let seconds = began.elapsed().as_secs_f64() / f64::from(killed.max(1));
    println!(
        "{:?}: {killed} killed while they moved, {seconds:.1} s each: {counts:#?}",
        disk.format
    );
    assert_eq!(
        killed, kills,
        "{:?}: too few were killed while they moved",
        disk.format
    );
}

/// The same on 2 GiB, two hundred times or as often as PLUMB_MOVE_KILLS says.
fn survives_often(format: DiskFormat, places: [u64; 2]) {
    let words = std::env::var("PLUMB_MOVE_KILLS");
    let kills = words.map_or(SOAK_KILLS, |words| {
        words.parse().expect("PLUMB_MOVE_KILLS: a number")
    });
    let disk = MoveDisk::full(
        format,
        places,
        SOAK_MIB,
        &[(7, 64 * MIB as usize), (8, 32 * MIB as usize)],
    );
    survives(&disk, places, kills);
}

#[test]
#[ignore = "ten minutes: run by make soak"]
fn moves_of_ext4_survive_hundreds_of_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    survives_often(DiskFormat::Ext4, [34, 2_048]);
}

#[test]
#[ignore = "ten minutes: run by make soak"]
fn moves_of_xfs_survive_hundreds_of_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.xfs"));
    survives_often(DiskFormat::Xfs, [63, 4_096]);
}

#[test]
#[ignore = "ten minutes: run by make soak"]
fn moves_of_ntfs_survive_hundreds_of_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ntfs"), Tool("ntfscat"));
    survives_often(DiskFormat::Ntfs, [63, 4_096]);
}

fn survives_kills(format: DiskFormat, places: [u64; 2], mib: u64) {
    survives(&MoveDisk::full(format, places, mib, &[]), places, KILLS);
}

/// In batches through the journal, since the shift is short.
#[test]
fn ext4_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ext4"));
    survives_kills(DiskFormat::Ext4, [34, 2_048], 160);
}

/// In windows straight from place to place.
#[test]
fn xfs_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.xfs"));
    survives_kills(DiskFormat::Xfs, [63, 4_096], 320);
}

#[test]
fn ntfs_survives_kills() {
    require!(Loop, Tool("sgdisk"), Tool("mkfs.ntfs"), Tool("ntfscat"));
    survives_kills(DiskFormat::Ntfs, [63, 4_096], 24);
}
