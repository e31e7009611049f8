//! The commands that plans print, run for real on images, and the result read with another tool.

use std::path::Path;
use std::process::Command;

use plumb_plan::Remedy;
use plumb_testkit::wait::RunLimited;

mod file_systems;
mod labels;

/// Length of an image.
const IMAGE: u64 = 64 << 20;

fn image(folder: &Path, bytes: u64) -> String {
    let path = folder.join("disk.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(bytes).expect("its length");
    path.display().to_string()
}

/// Runs all commands of a way in one shell, as somebody would type them.
fn run(folder: &Path, way: &Remedy) {
    let script: Vec<&str> = way.steps.iter().map(|step| step.command.as_str()).collect();
    sh(folder, &format!("set -e\n{}", script.join("\n")));
}

fn sh(folder: &Path, script: &str) -> String {
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .limited_output();
    let said = String::from_utf8_lossy(&done.stderr);
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{script}\n{out}{said}");
    out
}

/// First and last sector of partition 1, as parted reads it: `1:48s:1000s:953s:…`.
fn parted_says(device: &str) -> (u64, u64) {
    let out = sh(
        Path::new("/"),
        &format!("parted -sm '{device}' unit s print"),
    );
    let line = out
        .lines()
        .find(|line| line.starts_with("1:"))
        .expect("partition 1");
    let sector = |field: &str| field.trim_end_matches('s').parse().expect("a sector");
    let fields: Vec<&str> = line.split(':').collect();
    (sector(fields[1]), sector(fields[2]))
}

/// The same as sgdisk reads it.
fn sgdisk_says(device: &str) -> (u64, u64) {
    let out = sh(Path::new("/"), &format!("sgdisk -i 1 '{device}'"));
    let sector = |name: &str| {
        let line = out
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line");
        line.split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a sector")
    };
    (sector("First sector: "), sector("Last sector: "))
}

fn way<'a>(plan: &'a plumb_plan::Plan, title: &str) -> &'a Remedy {
    plan.remedies
        .iter()
        .find(|way| way.title == title)
        .unwrap_or_else(|| panic!("no way {title}"))
}
