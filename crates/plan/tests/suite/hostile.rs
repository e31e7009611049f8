//! Names as an attacker chooses them, in every plan: shells run its commands, and each argument arrives byte for byte.

use std::fs;

use plumb_geometry::{Bytes, Grid, GridKind, Share};
use plumb_plan::filesystem::{self, FilesystemRequest, Type};
use plumb_plan::partition::{self, Content, FileSystem, LabelScheme, PartitionRequest};
use plumb_plan::record::{self, Keeper, Load, RecordRequest};
use plumb_plan::softpart::{self, SoftPartition, SoftpartRequest, Submirror};
use plumb_plan::stripe::{self, IoStarts, Manager, StripeRequest};
use plumb_plan::{Plan, PlanError};
use plumb_testkit::hostile::{Started, TOOLS, names, run_by};
use plumb_testkit::{require, temp_dir};

use crate::common::partition;

/// Names without quotes: the replacement of the hostile name in the commands that are compared. A file name has a
/// hyphen for the `@`; names with a slash are paths; some tools accept no `@`.
const PLAIN: [&str; 4] = ["plain@name", "a/plain@name", "plainname", "a/plainname"];
const NAMES: usize = 10_000;
/// Names in `make test`.
const NAMES_SHORT: usize = 2_500;
const BATCH: usize = 500;

type Planned = Result<Plan, PlanError>;

fn grid(bytes: u64) -> Grid {
    Grid::new(Bytes(bytes), Bytes(0), GridKind::Boundary).expect("a grid")
}

fn existing(disk: &str, label: LabelScheme) -> PartitionRequest {
    PartitionRequest {
        disk_bytes: Some(Bytes(64 << 30)),
        size: Some(Bytes(1 << 30)),
        current: Some(Bytes(63 * 512)),
        ..partition(disk, label, grid(1 << 20), 34)
    }
}

/// Every plan that has names in its commands, with this one. The letter behind the name of a disk keeps rules for digits
/// at its end away.
fn plans(name: &str) -> Vec<Box<dyn Fn() -> Planned>> {
    let disk = format!("/dev/{name}q");
    let own = || name.to_owned();
    let mut plans: Vec<Box<dyn Fn() -> Planned>> = Vec::new();
    let cylinder_sectors = 255 * 63;
    for label in [
        LabelScheme::Gpt,
        LabelScheme::Dos,
        LabelScheme::SolarisEfi,
        LabelScheme::Smi { cylinder_sectors },
        LabelScheme::SmiX86 {
            cylinder_sectors,
            fdisk_start: Bytes(1 << 20),
        },
    ] {
        for content in [
            None,
            Some(Content::Lvm { group: own() }),
            Some(Content::Md { array: own() }),
            Some(Content::Zfs { pool: own() }),
            Some(Content::SvmMirror {
                mirror: own(),
                submirror: own(),
            }),
        ] {
            let request = PartitionRequest {
                content,
                ..existing(&disk, label)
            };
            plans.push(Box::new(move || partition::plan(&request)));
        }
        let new = PartitionRequest {
            is_new_label: true,
            current: None,
            ..existing(&disk, label)
        };
        plans.push(Box::new(move || partition::plan(&new)));
    }
    for (kind, mount) in [
        ("ext4", None),
        ("ext4", Some(name)),
        ("btrfs", Some(name)),
        ("xfs", Some(name)),
    ] {
        let request = PartitionRequest {
            file_system: Some(FileSystem {
                kind: kind.to_owned(),
                mount: mount.map(str::to_owned),
            }),
            smaller_by: Some(Bytes(1 << 20)),
            ..existing(&disk, LabelScheme::Gpt)
        };
        plans.push(Box::new(move || partition::plan(&request)));
    }
    for kind in [Type::Ext4, Type::Xfs, Type::Btrfs, Type::Ufs, Type::Zfs] {
        for (chunk, device) in [
            (None, &disk),
            (Some(Bytes(64 << 10)), &disk),
            (None, &own()),
        ] {
            let request = FilesystemRequest {
                kind,
                device: device.clone(),
                mount: Some(own()),
                chunk,
                data_members: 2,
                block: None,
                physical: Bytes(4096),
                page: Some(Bytes(8192)),
            };
            plans.push(Box::new(move || filesystem::plan(&request)));
        }
    }
    for manager in [Manager::Svm, Manager::Md, Manager::Lvm] {
        let request = StripeRequest {
            io: Bytes(8192),
            base: Bytes(0),
            starts: IoStarts::Pages,
            share_max: Share {
                numerator: 1,
                denominator: 100,
            },
            chunk: None,
            segment: None,
            manager,
            members: vec![own(), disk.clone()],
            parity: 0,
        };
        plans.push(Box::new(move || stripe::plan(&request)));
    }
    for mirror in [
        None,
        Some(Submirror {
            mirror: own(),
            submirror: own(),
        }),
    ] {
        let request = SoftpartRequest {
            component: own(),
            unit: Bytes(32 << 10),
            is_unit_assumed: false,
            off_below: None,
            base: Bytes(0),
            component_bytes: Some(Bytes(64 << 30)),
            existing: vec![SoftPartition {
                name: own(),
                extents: vec![(1, 8192)],
                mirror,
                users: Vec::new(),
            }],
            new: vec![(own(), Bytes(1 << 20))],
        };
        plans.push(Box::new(move || softpart::plan(&request)));
    }
    for keeper in [Keeper::Zfs, Keeper::ZfsVolume, Keeper::Ufs] {
        let name = own();
        plans.push(Box::new(move || {
            record::plan(&RecordRequest {
                load: Load::Page(Bytes(8192)),
                keeper,
                name: name.clone(),
                current: Some(Bytes(128 << 10)),
            })
        }));
    }
    plans
}

/// The commands of each remedy and for the nodes, ways back included.
fn commands(plan: &Planned) -> Vec<Vec<String>> {
    let Ok(plan) = plan else {
        return Vec::new();
    };
    let nodes = plan.nodes.iter();
    let nodes = nodes.flat_map(|nodes| [&nodes.before, &nodes.after]);
    let all = plan.remedies.iter().map(|remedy| &remedy.steps);
    all.chain(nodes)
        .map(|steps| {
            let lines = steps.iter().flat_map(|step| {
                let back = step.undo.command().map(ToString::to_string);
                [Some(step.command.to_string()), back]
            });
            lines.flatten().collect()
        })
        .collect()
}

/// A file name as `plumb_quoting::shell::file_name` documents it.
fn file_name(path: &str) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let last: String = last
        .chars()
        .map(|letter| if plain(letter) { letter } else { '-' })
        .collect();
    match last.is_empty() || last.starts_with('-') {
        true => format!("disk{last}"),
        false => last,
    }
}

/// The arguments with the hostile name, from those with a plain one.
fn expected(plain: &Started, in_place_of: &str, name: &str) -> Started {
    let argument = |bytes: &Vec<u8>| {
        let text = String::from_utf8(bytes.clone()).expect("a plain name");
        // The pool of a data set.
        let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        if in_place_of.contains('/') && text == first(in_place_of) {
            return first(name).into_bytes();
        }
        let in_file = "plain-name";
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let text = text
            .replace(in_place_of, "\u{1}")
            .replace(&last(in_place_of), &last(name))
            .replace(&format!("{in_file}q"), &file_name(&format!("{name}q")))
            .replace(in_file, &file_name(name));
        text.replace('\u{1}', name).into_bytes()
    };
    let mut all: Started = plain
        .iter()
        .map(|words| words.iter().map(argument).collect())
        .collect();
    all.sort();
    all
}

/// A name with a leading hyphen follows `./` if it is a path, and `--option=` if it is a value.
fn without_guards(started: &Started, name: &str) -> Started {
    let words = |words: &Vec<Vec<u8>>| {
        let words = words.iter().flat_map(|word| {
            let text = String::from_utf8_lossy(word).into_owned();
            if !name.starts_with('-') {
                return vec![text];
            }
            let behind_folder = text.strip_prefix("./");
            if let Some(path) = behind_folder.filter(|path| path.starts_with(name)) {
                return vec![path.to_owned()];
            }
            match text.split_once('=') {
                Some((option, value))
                    if option.starts_with("--")
                        && value.starts_with('-')
                        && value.contains(name) =>
                {
                    vec![option.to_owned(), value.to_owned()]
                }
                _ => vec![text],
            }
        });
        words.map(String::into_bytes).collect()
    };
    let mut all: Started = started.iter().map(words).collect();
    all.sort();
    all
}

/// Commands with a hostile name, and the same ones with a plain name.
struct Pair {
    name: String,
    plain_name: &'static str,
    hostile: String,
    plain: String,
}

/// The pairs of one plan, and how many remedies have no command for the name.
fn pairs(at: usize, name: &str, pairs: &mut Vec<Pair>) -> usize {
    let hostile = commands(&plans(name)[at]());
    let mut refused = 0;
    for (remedy, lines) in hostile.iter().enumerate() {
        if lines.is_empty() {
            refused += 1;
            continue;
        }
        let is_path = name.contains('/');
        let same = |plain: &&str| {
            let all = commands(&plans(plain)[at]());
            let same = all.get(remedy).filter(|all| all.len() == lines.len());
            same.cloned()
        };
        let candidates = PLAIN.iter().filter(|plain| plain.contains('/') == is_path);
        let (plain_name, plain) = candidates
            .filter_map(|plain| same(plain).map(|same| (*plain, same)))
            .next()
            .unwrap_or_else(|| {
                panic!("{name:?} gives commands that no plain name gives: {lines:?}")
            });
        pairs.extend(lines.iter().zip(plain).map(|(hostile, plain)| Pair {
            name: name.to_owned(),
            plain_name,
            hostile: hostile.clone(),
            plain,
        }));
    }
    refused
}

fn held(shell: &str, pairs: &[Pair]) {
    let folder = temp_dir("hostile-names");
    let work = folder.path().join("work");
    let run = |lines: Vec<&str>| {
        fs::create_dir(&work).expect("a folder");
        let started = run_by(shell, folder.path(), &TOOLS, &lines);
        let files = fs::read_dir(&work).expect("a folder");
        let files: Vec<String> = files
            .map(|file| {
                file.expect("a file")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        fs::remove_dir_all(&work).expect("to remove it");
        (started, files)
    };
    let (plain, _) = run(pairs.iter().map(|pair| pair.plain.as_str()).collect());
    let (hostile, files) = run(pairs.iter().map(|pair| pair.hostile.as_str()).collect());
    for (pair, (plain, hostile)) in pairs.iter().zip(plain.iter().zip(&hostile)) {
        assert!(!pair.hostile.contains('\n'), "{:?}", pair.hostile);
        assert_eq!(
            without_guards(hostile, &pair.name),
            without_guards(&expected(plain, pair.plain_name, &pair.name), &pair.name),
            "{shell}: {:?} in {}",
            pair.name,
            pair.hostile
        );
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    for file in files {
        assert!(file.chars().all(is_plain), "{shell} made the file {file:?}");
        assert!(
            !file.starts_with("canary-file"),
            "{shell} made the file {file}"
        );
    }
}

/// Runs the commands of plans with names. `least` is a number of commands and of refused remedies.
fn hold(names: impl Iterator<Item = (usize, String)>, least: usize) {
    let (mut all, mut refused, mut ran) = (Vec::new(), 0, 0);
    let mut hold_all = |all: &mut Vec<Pair>| {
        ran += all.len();
        std::thread::scope(|scope| {
            let pairs = &*all;
            let other = scope.spawn(move || held("sh", pairs));
            held("bash", pairs);
            other.join().expect("what sh started");
        });
        all.clear();
    };
    for (count, (at, name)) in names.enumerate() {
        refused += pairs(at, &name, &mut all);
        if count % BATCH == BATCH - 1 {
            hold_all(&mut all);
        }
    }
    hold_all(&mut all);
    // Names that no command can hold are many, and not all.
    assert!(
        ran > least && refused > least,
        "{ran} commands ran, {refused} remedies have none"
    );
}

/// Names of a slash alone are none.
fn hostile_names() -> impl Iterator<Item = String> {
    names(17).filter(|name| !name.trim_matches('/').is_empty())
}

/// Each name in one plan, and so in each plan some 44 names; `make soak` has four times as many names, each in each plan.
#[test]
fn names_reach_tools_byte_for_byte() {
    require!(Tool("bash"));
    let count = plans("x").len();
    let names = hostile_names().take(NAMES_SHORT).enumerate();
    let names = names.map(|(number, name)| (number % count, name));
    hold(names, NAMES_SHORT);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn all_names_in_all_plans_reach_tools() {
    require!(Tool("bash"));
    let count = plans("x").len();
    let names = hostile_names().take(NAMES);
    let names = names.flat_map(|name| (0..count).map(move |at| (at, name.clone())));
    hold(names, NAMES);
}
