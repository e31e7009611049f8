//! A year of a host with 200 devices, for `bench/run.py`: `year make FOLDER [HOURS [DAYS [SEED]]]`, then `year glance FOLDER` and
//! `year histograms FOLDER DEVICE`, which answer the questions that the benchmark times. `year weigh FOLDER [SEED]` prints the bytes of such
//! a year without making it, and leaves the day of the mixes, which takes most of the time, for a later `make`. `year day FOLDER` makes a
//! day of a host with 20 devices, for `bench/scaling.py`.
//!
//! 20 devices are busy, 60 light and 120 idle. The last HOURS (48) are made from events, in increments of 5 minutes, as an agent
//! writes them. An agent would need hours of the processor for the rest, so the windows before are copies of those of 150 mixes,
//! 50 of each class: the writer made a day of each mix from its events, by the way of an agent from windows of 5 minutes to the day, and
//! a copy differs in device and times alone. Times are fixed, and the year is the same for the same seed.

mod load;
mod weigh;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use plumb_history::{
    DeviceIncrement, Notice, Reader, Senders, SeriesFacts, Settings, Span, Tier, Window, Writer,
};
use plumb_profile::Profile;
use plumb_trace::Layer;

use load::{Class, Device, HOUR, MIXES, Mix};
use weigh::weigh;

const DAY: i64 = 24 * HOUR;
const STEP: i64 = HOUR / 12;
/// 2027-01-01, the end of the year.
const END: i64 = 20_819 * DAY;
const DEVICES: [u64; 3] = [20, 60, 120];
/// Of the host with a day.
const DEVICES_OF_DAY: [u64; 3] = [2, 6, 12];
const DAYS_OF_HOURS: i64 = 35;
const DAYS_OF_STEPS: i64 = 2;
const DAYS: i64 = 365;
/// The day of the mixes in their own store.
const DAY_OF_MIXES: i64 = END - DAY;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["make", folder] => make(Path::new(folder), 48, DAYS, 1),
        ["make", folder, hours] => make(Path::new(folder), hours.parse()?, DAYS, 1),
        ["make", folder, hours, days] => {
            make(Path::new(folder), hours.parse()?, days.parse()?, 1)
        }
        ["make", folder, hours, days, seed] => make(
            Path::new(folder),
            hours.parse()?,
            days.parse()?,
            seed.parse()?,
        ),
        ["weigh", folder] => weigh(Path::new(folder), 1),
        ["weigh", folder, seed] => weigh(Path::new(folder), seed.parse()?),
        ["day", folder] => day(Path::new(folder)),
        ["glance", folder] => glance(Path::new(folder)),
        ["histograms", folder, device] => histograms(Path::new(folder), device),
        _ => Err(
            "usage: year make FOLDER [HOURS [DAYS [SEED]]] | weigh FOLDER [SEED] | day FOLDER | glance FOLDER | histograms FOLDER DEVICE"
                .into(),
        ),
    }
}

/// The 150 mixes, 50 of each class.
fn mixes() -> Vec<Mix> {
    let of_class = |class| (0..MIXES).map(move |number| Mix::new(class, number));
    Class::ALL.into_iter().flat_map(of_class).collect()
}

/// The mix of a device on a day, if the host has these devices of each class.
fn mix_of([busy, light, _]: [u64; 3], device: u64, day: i64) -> usize {
    let (class, number) = match device {
        at if at < busy => (0, at),
        at if at < busy + light => (1, at - busy),
        at => (2, at - busy - light),
    };
    let number = (number + day as u64 * 7) % MIXES;
    (class * MIXES + number) as usize
}

/// I/O of one device in the windows of a tier, one after the other.
type Course = Vec<(Span, Tier, Profile, Senders)>;

/// A day of a mix: the events of an hour in each quarter of the day, which then repeats it. The hour at noon comes in windows of 5
/// minutes, as an agent adds them up.
fn day_of(mix: &Mix, seed: u64) -> Course {
    let mut course = Course::new();
    for quarter in 0..4 {
        let from_ns = DAY_OF_MIXES + quarter * 6 * HOUR;
        let mut device = Device::new(mix, seed + quarter as u64, from_ns);
        let mut whole: Option<(Profile, Senders)> = None;
        for step in 0..12 {
            let (from_ns, to_ns) = (from_ns + step * STEP, from_ns + (step + 1) * STEP);
            let Some((profile, senders)) = device.until(to_ns) else {
                continue;
            };
            match &mut whole {
                None => whole = Some((profile.clone(), senders.clone())),
                Some((sum, of)) => {
                    sum.merge(&profile);
                    of.merge(&senders);
                }
            }
            if quarter == 2 {
                let span = Span { from_ns, to_ns };
                course.push((span, Tier::FiveMinutes, profile, senders));
            }
        }
        let Some((profile, senders)) = whole else {
            continue;
        };
        for hour in i64::from(quarter == 2)..6 {
            let from_ns = from_ns + hour * HOUR;
            let span = Span {
                from_ns,
                to_ns: from_ns + HOUR,
            };
            course.push((span, Tier::Hour, profile.clone(), senders.clone()));
        }
    }
    course
}

/// Makes something for each index in threads, and takes the results in the order of the indices.
fn in_order<T: Send>(
    count: usize,
    make: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let threads = threads();
    std::thread::scope(|scope| {
        let mut made = Vec::new();
        for thread in 0..threads {
            let (send, receive) = sync_channel(1);
            made.push(receive);
            let make = &make;
            scope.spawn(move || {
                for at in (thread..count).step_by(threads) {
                    if send.send(make(at)).is_err() {
                        return;
                    }
                }
            });
        }
        for at in 0..count {
            take(at, made[at % threads].recv()?)?;
        }
        Ok(())
    })
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A store in the making.
struct Year {
    writer: Writer,
    evicted: u64,
}

impl Year {
    fn open(folder: &Path) -> Result<Year, Failure> {
        std::fs::create_dir_all(folder)?;
        Ok(Year {
            writer: Writer::open(folder, Settings::default())?,
            evicted: 0,
        })
    }

    fn add(
        &mut self,
        device: &SeriesFacts,
        (span, tier, mut profile, senders): (Span, Tier, Profile, Senders),
    ) -> Result<(), Failure> {
        profile.first_ns = Some(span.from_ns);
        profile.last_ns = Some(span.to_ns - 1);
        let increment = DeviceIncrement {
            identity: &device.identity,
            name: device.name(),
            profile: &profile,
            senders: Some(&senders),
        };
        match tier {
            Tier::FiveMinutes => self.writer.add(span, &increment)?,
            _ => self.writer.import(span, &increment)?,
        }
        Ok(())
    }

    fn checkpoint(&mut self, now_ns: i64) -> Result<(), Failure> {
        self.writer.checkpoint(now_ns)?;
        for notice in self.writer.take_notices() {
            match notice {
                Notice::Evicted { windows } => self.evicted += windows,
                other => return Err(format!("{other:?}").into()),
            }
        }
        Ok(())
    }
}

/// The facts of a device, which has a number from 0.
fn device(number: u64) -> SeriesFacts {
    // `sda` to `sdz`, `sdaa` and on.
    let letter = |at: u64| char::from(b'a' + at as u8);
    let name = match number {
        at if at < 26 => format!("sd{}", letter(at)),
        at => format!("sd{}{}", letter(at / 26 - 1), letter(at % 26)),
    };
    SeriesFacts {
        number: number as u32,
        identity: format!("naa.5000c500{number:08x}"),
        layer: Layer::Request,
        names: vec![(0, name)],
        span: None,
    }
}

fn make(folder: &Path, hours_of_events: i64, days: i64, seed: u64) -> Result<(), Failure> {
    let started = std::time::Instant::now();
    let said = |what: &str| eprintln!("{:.0} s: {what}", started.elapsed().as_secs_f64());
    let mixes = mixes();
    let folder_of_mixes = make_mixes(folder, &mixes, seed)?;
    said("150 mixes have a day");
    let of_mixes = Reader::open(&folder_of_mixes, &Settings::default())?;
    let mut year = Year::open(folder)?;
    copy_mixes(&mut year, &of_mixes, days, END - hours_of_events * HOUR)?;
    drop(of_mixes);
    std::fs::remove_dir_all(&folder_of_mixes)?;
    said("the time without events is written");
    add_events(&mut year, DEVICES, hours_of_events, seed)?;
    said("the events are written");
    let evicted = year.evicted;
    drop(year);
    print_sizes(folder, evicted)
}

/// Makes a store with a day of each mix beside that of the year, unless a whole one is there, and returns its folder.
fn make_mixes(folder: &Path, mixes: &[Mix], seed: u64) -> Result<PathBuf, Failure> {
    let whole = folder.join(format!("mixes-{seed}"));
    if whole.exists() {
        return Ok(whole);
    }
    let part = folder.join(format!("mixes-{seed}.part"));
    // A run that was stopped leaves a part.
    let _ = std::fs::remove_dir_all(&part);
    let mut made = Year::open(&part)?;
    let day = |at: usize| day_of(&mixes[at], seed);
    in_order(mixes.len(), day, |at, course| {
        for part in course {
            made.add(&device(at as u64), part)?;
        }
        made.checkpoint(DAY_OF_MIXES + DAY)
    })?;
    drop(made);
    std::fs::rename(&part, &whole)?;
    Ok(whole)
}

/// Makes a day of a host with 20 devices from events.
fn day(folder: &Path) -> Result<(), Failure> {
    let mut year = Year::open(folder)?;
    add_events(&mut year, DEVICES_OF_DAY, 24, 1)?;
    let evicted = year.evicted;
    drop(year);
    print_sizes(folder, evicted)
}

/// Writes the windows up to a time as those of the mixes, in the order in which an agent closes them.
fn copy_mixes(year: &mut Year, of_mixes: &Reader, days: i64, until_ns: i64) -> Result<(), Failure> {
    let series = of_mixes.names()?;
    let number_of = |mix: usize| {
        let identity = device(mix as u64).identity;
        let known = series.iter().find(|series| series.identity == identity);
        known
            .map(|series| series.number)
            .ok_or("a mix without a device")
    };
    let numbers: Vec<u32> = (0..series.len()).map(number_of).collect::<Result<_, _>>()?;
    let devices: Vec<SeriesFacts> = (0..DEVICES.iter().sum()).map(device).collect();
    let mut copy = |window: Window, original_ns: i64| -> Result<(), Failure> {
        let original = Window::at(window.tier, original_ns);
        let day = window.span().from_ns / DAY;
        for device in &devices {
            let mix = numbers[mix_of(DEVICES, u64::from(device.number), day)];
            year.writer
                .copy_window(of_mixes, (mix, original), device, window)?;
        }
        year.checkpoint(window.span().to_ns)
    };
    for day in (END / DAY - days)..END / DAY {
        let day_ns = day * DAY;
        let has_hours = END - day_ns <= DAYS_OF_HOURS * DAY;
        for hour in 0..if has_hours { 24 } else { 0 } {
            let hour_ns = day_ns + hour * HOUR;
            if hour_ns >= until_ns {
                break;
            }
            let has_steps = END - day_ns <= DAYS_OF_STEPS * DAY;
            for step in 0..if has_steps { 12 } else { 0 } {
                let noon = DAY_OF_MIXES + 12 * HOUR;
                copy(
                    Window::at(Tier::FiveMinutes, hour_ns + step * STEP),
                    noon + step * STEP,
                )?;
            }
            copy(Window::at(Tier::Hour, hour_ns), DAY_OF_MIXES + hour * HOUR)?;
        }
        if day_ns < until_ns {
            copy(Window::at(Tier::Day, day_ns), DAY_OF_MIXES)?;
        }
    }
    Ok(())
}

/// The last hours, from events, in increments of 5 minutes.
fn add_events(year: &mut Year, of_class: [u64; 3], hours: i64, seed: u64) -> Result<(), Failure> {
    let begin = END - hours * HOUR;
    let devices: u64 = of_class.iter().sum();
    let mixes = &mixes();
    let threads = threads() as u64;
    std::thread::scope(|scope| {
        let mut made = Vec::new();
        for thread in 0..threads {
            let (send, receive) = sync_channel(2);
            made.push(receive);
            scope.spawn(move || {
                let mine = (thread..devices).step_by(threads as usize);
                let mix = |at| &mixes[mix_of(of_class, at, begin / DAY)];
                let mut mine: Vec<(u64, Device)> = mine
                    .map(|at| (at, Device::new(mix(at), seed + 7 + at, begin)))
                    .collect();
                for step in 1..=hours * 12 {
                    let of_step: Vec<_> = mine
                        .iter_mut()
                        .filter_map(|(at, device)| Some((*at, device.until(begin + step * STEP)?)))
                        .collect();
                    if send.send(of_step).is_err() {
                        return;
                    }
                }
            });
        }
        for step in 0..hours * 12 {
            let from_ns = begin + step * STEP;
            let span = Span {
                from_ns,
                to_ns: from_ns + STEP,
            };
            for receive in &made {
                for (at, (profile, senders)) in receive.recv()? {
                    year.add(&device(at), (span, Tier::FiveMinutes, profile, senders))?;
                }
            }
            year.checkpoint(span.to_ns)?;
        }
        Ok(())
    })
}

fn print_sizes(folder: &Path, evicted: u64) -> Result<(), Failure> {
    let mut bytes = 0;
    for name in ["recent.db", "recent.db-wal", "history.db", "history.db-wal"] {
        let len = std::fs::metadata(folder.join(name)).map_or(0, |found| found.len());
        println!("{name} {len}");
        bytes += len;
    }
    println!("bytes {bytes}");
    let reader = Reader::open(folder, &Settings::default())?;
    for tier in Tier::ALL {
        println!(
            "windows_{} {}",
            tier.word(),
            reader.glance(tier, Span::EVER, None)?.len()
        );
    }
    println!("evicted {evicted}");
    Ok(())
}

/// Prints the number of windows of the last 24 h of all devices, and their I/O.
fn glance(folder: &Path) -> Result<(), Failure> {
    let reader = Reader::open(folder, &Settings::default())?;
    let last_day = Span {
        from_ns: END - DAY,
        to_ns: END,
    };
    let (mut windows, mut ios) = (0, 0);
    reader.each_glance(Tier::FiveMinutes, last_day, None, &mut |row| {
        windows += 1;
        ios += row.glance.ios;
    })?;
    println!("{windows} {ios}");
    Ok(())
}

/// Prints the I/O of a device over the year, and its timed reads and writes.
fn histograms(folder: &Path, device: &str) -> Result<(), Failure> {
    let reader = Reader::open(folder, &Settings::default())?;
    let series = reader.series()?;
    let known = series
        .iter()
        .find(|series| series.name() == device)
        .ok_or("no such device")?;
    let found = reader.profile(known, Span::EVER)?.ok_or("no I/O")?;
    println!(
        "{} {}",
        found.profile.ios(),
        found.profile.places.table.len()
    );
    Ok(())
}
