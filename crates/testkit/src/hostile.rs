//! Names as an attacker would choose them, and shells that record the programs that a command line runs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Rng;

/// Words of the shell, of terminals and of plain names, from which a name is put together.
const PARTS: [&str; 64] = [
    "'",
    "\"",
    "`",
    "$",
    "\\",
    ";",
    "&",
    "|",
    "<",
    ">",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "*",
    "?",
    "#",
    "!",
    "~",
    "=",
    "-",
    "--",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\0",
    "\x1b[2J",
    "\x1b]52;c;AAAA\x07",
    "\u{9b}31m",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{85}",
    "\u{2028}",
    "$(canary)",
    "`canary`",
    "; canary;",
    "\ncanary\n",
    "| canary",
    "&& canary",
    "|| canary",
    "' canary '",
    "';canary;'",
    "\";canary;\"",
    "$HOME",
    "${PATH}",
    "$((1+1))",
    "{a,b}",
    "> canary-file",
    "< /dev/null",
    "<(canary)",
    "%s%n",
    "\\n",
    "../",
    "/",
    ".",
    "ü",
    "表",
    "sda",
    "c1t0d0",
];

/// All tools that plans and findings name.
pub const TOOLS: [&str; 63] = [
    "awk",
    "basename",
    "btrfs",
    "chattr",
    "chmod",
    "chown",
    "cmp",
    "cp",
    "dd",
    "diff",
    "dumpe2fs",
    "e2fsck",
    "find",
    "fmthard",
    "format",
    "fstyp",
    "grep",
    "ls",
    "lsattr",
    "lvcreate",
    "lvremove",
    "lvs",
    "mdadm",
    "metaclear",
    "metadetach",
    "metainit",
    "metastat",
    "metasync",
    "metattach",
    "mkfs.btrfs",
    "mkfs.ext4",
    "mkfs.xfs",
    "mount",
    "mv",
    "newfs",
    "parted",
    "partx",
    "plumb",
    "prtvtoc",
    "pvcreate",
    "pvmove",
    "pvremove",
    "pvs",
    "readlink",
    "resize2fs",
    "sed",
    "sfdisk",
    "sgdisk",
    "sh",
    "sort",
    "stat",
    "sudo",
    "tune2fs",
    "tunefs",
    "udevadm",
    "umount",
    "vgextend",
    "vgreduce",
    "xfs_db",
    "xfs_info",
    "zdb",
    "zfs",
    "zpool",
];

/// Names that look random and are the same each time.
pub fn names(seed: u64) -> impl Iterator<Item = String> {
    let mut rng = Rng::new(seed);
    std::iter::from_fn(move || {
        let parts = 1 + rng.below(6);
        Some(
            (0..parts)
                .map(|_| PARTS[rng.below(PARTS.len() as u64) as usize])
                .collect(),
        )
    })
}

/// The arguments of every tool that the shell started for one line, the tool's name first. Tools side by side in a pipe
/// come in any order, and are in ascending order here.
pub type Started = Vec<Vec<Vec<u8>>>;

/// Lets a shell run lines in an empty folder, and records all that it starts. `tools` are the only programs that it can
/// find; each records its arguments and does nothing. The program `canary` is one of them: no line may start it.
///
/// # Panics
/// When a line starts something that is none of the tools, and when the shell does not come to its last line.
#[must_use]
pub fn run_by(
    shell: &str,
    folder: &Path,
    tools: &[&str],
    lines: &[impl AsRef<str>],
) -> Vec<Started> {
    let bin = folder.join("bin");
    let record = folder.join("record");
    std::fs::create_dir_all(&bin).expect("a folder for tools");
    let is_function = |tool: &&str| {
        tool.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let recording = r#"printf '%s\0' "$#" "$TOOL" "$@" >>"$RECORD""#;
    let mut script = String::new();
    for tool in tools.iter().copied().chain(["canary"]) {
        let body = recording.replace("$TOOL", tool);
        // A function starts no process. Not every shell takes a dot in its name.
        if is_function(&tool) {
            script += &format!("{tool}() {{ {body}; }}\n");
        } else {
            let path = bin.join(tool);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a tool");
            make_executable(&path);
        }
    }
    let path = bin.join("canary");
    std::fs::write(
        &path,
        format!("#!/bin/sh\n{}\n", recording.replace("$TOOL", "canary")),
    )
    .expect("a tool");
    make_executable(&path);
    for line in lines {
        script += &format!("{}\nprintf '%s\\0' line >>\"$RECORD\"\n", line.as_ref());
    }
    let file = folder.join("script");
    std::fs::write(&file, script).expect("a script");
    std::fs::write(&record, "").expect("a record");
    let work = folder.join("work");
    let done = Command::new(Path::new("/bin").join(shell))
        .arg(&file)
        .current_dir(&work)
        .env_clear()
        .env("PATH", &bin)
        .env("RECORD", &record)
        .env("HOME", "/home/of/someone")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!said.contains("not found"), "{shell}: {said}");
    let started = read(&std::fs::read(&record).expect("a record"));
    assert_eq!(
        started.len(),
        lines.len(),
        "{shell} ran another number of lines: {said}"
    );
    started
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn read(record: &[u8]) -> Vec<Started> {
    let mut words = record.split(|byte| *byte == 0);
    let (mut all, mut line) = (Vec::new(), Started::new());
    while let Some(word) = words.next() {
        if word == b"line" {
            line.sort();
            all.push(std::mem::take(&mut line));
        } else if let Ok(count) = String::from_utf8_lossy(word).parse::<usize>() {
            line.push(words.by_ref().take(count + 1).map(<[u8]>::to_vec).collect());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_starts_something_else_shows() {
        let folder = crate::temp_dir("hostile");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let lines = ["dd of='a b'", "dd of=$(canary)", "mkfs.x a | dd; canary"];
        for shell in ["sh", "bash"] {
            let started = run_by(shell, folder.path(), &["dd", "mkfs.x"], &lines);
            let words = |line: &[&[&str]]| -> Started {
                line.iter()
                    .map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect())
                    .collect()
            };
            assert_eq!(
                started,
                [
                    words(&[&["dd", "of=a b"]]),
                    words(&[&["canary"], &["dd", "of="]]),
                    words(&[&["canary"], &["dd"], &["mkfs.x", "a"]]),
                ],
                "{shell}"
            );
        }
    }
}
