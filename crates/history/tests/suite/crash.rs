//! `kill -9` of a process that writes: the store opens, nothing is counted twice, and at most the time since the last
//! checkpoint is lost. Each increment has seven I/O. `PLUMB_HISTORY_KILLS` sets the number of kills.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plumb_history::{Settings, Span, Tier, Writer};
use plumb_profile::{Profile, Table};
use plumb_testkit::{Rng, temp_dir, wait};
use plumb_trace::Layer;

use crate::support::{BEGIN, DAY, HOUR, SECOND, add, ios, ios_of_tier, is_sound};

/// The store of the child: this test again, which writes until it is killed.
const FOLDER: &str = "PLUMB_HISTORY_CRASH";
const IOS: u64 = 7;
const STEP: i64 = 10 * SECOND;
/// A checkpoint after as many increments: every 60 s.
const STEPS_A_CHECKPOINT: i64 = 6;
/// Kills unless `PLUMB_HISTORY_KILLS` sets another number.
const KILLS: u64 = 30;

/// Bounds that keep everything: hundreds of children write more than the two days of a default store.
fn settings() -> Settings {
    let mut settings = Settings::default();
    for tier in &mut settings.tiers {
        tier.keep_ns = 3650 * DAY;
    }
    settings
}

fn kills() -> u64 {
    std::env::var("PLUMB_HISTORY_KILLS").map_or(KILLS, |text| {
        text.parse().expect("PLUMB_HISTORY_KILLS is a number")
    })
}

/// Seven I/O in ten seconds.
fn increment(step: i64) -> (Span, Profile) {
    let mut profile = Profile::new("sda", Layer::Request, Table::default());
    let row = plumb_profile::table::Row {
        ios: IOS,
        ..Default::default()
    };
    let residue = (step as u64 % 2048) * 512;
    profile.add_residue(plumb_trace::Op::Write, residue, 4096, false, &row);
    let from_ns = BEGIN + step * STEP;
    let span = Span {
        from_ns,
        to_ns: from_ns + STEP,
    };
    (span, profile)
}

/// The process that is killed: it continues at the end of the store, until the kill.
fn write_until_killed(folder: &Path) -> ! {
    let mut writer = Writer::open(folder, settings()).expect("a store");
    let mut step = ((writer.upto_ns() - BEGIN) / STEP).max(0);
    loop {
        let (span, profile) = increment(step);
        add(&mut writer, span, &profile);
        step += 1;
        if step % STEPS_A_CHECKPOINT == 0 {
            writer.checkpoint(span.to_ns).expect("a checkpoint");
            // The parent may have closed its end already.
            let _ = writeln!(std::io::stdout(), "stored {step}");
        }
    }
}

/// Lets a child write some checkpoints, kills it, and returns the last step that it reported.
fn write_and_kill(folder: &Path, rng: &mut Rng) -> i64 {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "crash::a_killed_writer_loses_at_most_a_minute",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let wanted = 1 + rng.below(40);
    let mut reported = 0;
    let steps = lines.filter_map(|line| {
        let line = line.ok()?;
        line.strip_prefix("stored ")?.parse::<i64>().ok()
    });
    for (seen, step) in (1..).zip(steps) {
        reported = step;
        if seen == wanted {
            break;
        }
    }
    // The kill meets any moment of the next checkpoints.
    std::thread::sleep(Duration::from_micros(rng.below(20_000)));
    child.kill().expect("SIGKILL");
    wait::exit("the killed writer", wait::PATIENCE, &mut child);
    reported
}

#[test]
fn a_killed_writer_loses_at_most_a_minute() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_until_killed(Path::new(&folder));
    }
    let room = temp_dir("crash");
    let mut rng = Rng::new(23);
    let mut before = 0;
    let kills = kills();
    for kill in 0..kills {
        let reported = write_and_kill(room.path(), &mut rng);
        assert!(reported > 0, "kill {kill}: the child wrote nothing");
        let found = ios(room.path());
        let steps = (found / IOS) as i64;
        assert_eq!(
            found,
            steps as u64 * IOS,
            "kill {kill}: a part of an increment"
        );
        // Checkpoints that were stored and not reported may be there; half of one may not.
        assert!(
            steps >= reported && steps >= before,
            "kill {kill}: {before} {reported} {steps}"
        );
        assert_eq!(steps % STEPS_A_CHECKPOINT, 0, "kill {kill}");
        let writer = Writer::open(room.path(), settings()).expect("it opens");
        assert_eq!(writer.upto_ns(), BEGIN + steps * STEP, "kill {kill}");
        before = steps;
    }
    // Everything closes: each tier has each I/O that it is to keep once.
    let mut writer = Writer::open(room.path(), settings()).expect("it opens");
    let end = BEGIN + before * STEP;
    writer.checkpoint(end + 24 * HOUR).expect("a checkpoint");
    drop(writer);
    assert!(is_sound(room.path()));
    for tier in Tier::ALL {
        assert_eq!(
            ios_of_tier(room.path(), tier),
            before as u64 * IOS,
            "{tier:?}"
        );
    }
    eprintln!(
        "{kills} kills, {} checkpoints stored",
        before / STEPS_A_CHECKPOINT
    );
}
