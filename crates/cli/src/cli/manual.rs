//! The text of help and manual pages beside the flags of each command: the group, examples, files, and the flags that `-h` leaves to
//! `--help`.
//!
//! One row a command. Help, manual pages and their test take everything from here.

use clap::{Command, CommandFactory};

use super::Cli;

/// A command in help and manual.
pub struct Manual {
    /// Words of the command behind `plumb`.
    pub path: &'static [&'static str],
    /// Examples, each with its purpose.
    pub examples: &'static [(&'static str, &'static str)],
    /// Long names of the flags that `-h` shows beside those without a long name; all of them where the list is empty.
    usual: &'static [&'static str],
}

/// The group whose commands need no explanation: a line has all of them.
const OTHER: &str = "Other";

/// Groups of commands, as `plumb -h` lists them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Look", &["diagnose", "check", "analyze", "explain"]),
    (
        "Keep watching",
        &["watch", "record", "agent", "history", "serve", "fleet"],
    ),
    ("Measure", &["probe", "bench", "replay", "compare"]),
    ("Change", &["plan", "fix"]),
    (OTHER, &["convert", "help", "version"]),
];

/// Files that more than one command reads or writes, with the first word of each such command.
pub const FILES: [(&str, &str, &[&str]); 5] = [
    (
        "/etc/plumb/agent.toml",
        "the configuration of the agent",
        &["", "agent"],
    ),
    (
        "/etc/plumb/config.toml",
        "findings that this host accepts",
        &["", "diagnose", "check"],
    ),
    (
        "/run/plumb-survey/check.json",
        "the survey of the layout that the agent reads",
        &["agent"],
    ),
    (
        "/var/lib/plumb",
        "journals of moves, and labels that were replaced",
        &["", "fix"],
    ),
    (
        "/var/lib/plumb-agent",
        "the history of the disks",
        &[
            "", "agent", "history", "serve", "analyze", "compare", "watch",
        ],
    ),
];

const MANUALS: &[Manual] = &[
    Manual {
        path: &[],
        examples: &[
            ("plumb diagnose", "Find the problems of this host"),
            ("plumb explain misaligned-partition", "Explain a finding"),
            ("plumb help probe", "Show all options of a command"),
        ],
        usual: &[],
    },
    Manual {
        path: &["diagnose"],
        examples: &[
            (
                "sudo plumb diagnose",
                "Check all disks and watch their I/O for 10 s",
            ),
            (
                "sudo plumb diagnose /srv/db --for 5m",
                "Judge the layers below a mount point under a real load",
            ),
            (
                "sudo plumb diagnose --html report.html",
                "Write a page with the pictures of the I/O",
            ),
        ],
        usual: &[
            "for", "grid", "page", "config", "ignore", "json", "html", "save", "fail-on", "verbose",
        ],
    },
    Manual {
        path: &["check"],
        examples: &[
            ("plumb check", "Check every layer of this host"),
            (
                "plumb check --from prtvtoc.txt metastat-p.txt",
                "Check another host by the output of its tools",
            ),
            (
                "plumb check --as prometheus --output /var/lib/node_exporter/plumb.prom",
                "Write metrics for node_exporter",
            ),
        ],
        usual: &[
            "from", "image", "collect", "grid", "config", "ignore", "json", "as", "fail-on",
            "verbose",
        ],
    },
    Manual {
        path: &["analyze"],
        examples: &[
            (
                "plumb analyze trace.txt.gz",
                "Judge the I/O of a trace; the format is recognized",
            ),
            (
                "plumb analyze trace.txt.gz --grid 4k --shift +1s",
                "Show the fit if the partition started one sector later",
            ),
            (
                "plumb analyze blktrace-directory --html page.html",
                "Draw the I/O",
            ),
        ],
        usual: &[
            "grid", "chunk", "record", "shift", "device", "since", "until", "json", "html", "save",
            "fail-on",
        ],
    },
    Manual {
        path: &["compare"],
        examples: &[
            (
                "plumb compare before.plumb after.plumb",
                "Compare two saved profiles",
            ),
            (
                "plumb compare before.txt after.txt --device sda=sdb",
                "Compare iostat of a disk that got another name",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["agent"],
        examples: &[
            ("sudo plumb agent", "Count all I/O until SIGTERM"),
            (
                "sudo plumb agent --state-dir /srv/plumb --duration 1h",
                "Count for an hour into another folder",
            ),
            (
                "plumb agent --check-config",
                "Check the configuration and print it",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history"],
        examples: &[
            (
                "sudo plumb history list",
                "List the devices and their times",
            ),
            (
                "sudo plumb history show sda@2d",
                "Print the I/O of the last two days",
            ),
            (
                "sudo plumb compare history:sda@2026-11-01..2026-11-08 history:sda@2026-11-08..2026-11-15",
                "Compare two weeks",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "list"],
        examples: &[
            (
                "sudo plumb history list",
                "List the devices and their times",
            ),
            (
                "sudo plumb history list --json",
                "List them for another program",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "show"],
        examples: &[
            ("sudo plumb history show sda", "Print the whole time"),
            (
                "sudo plumb history show sda@2026-11-01..2026-11-08",
                "Print a week",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "senders"],
        examples: &[
            (
                "sudo plumb history senders sda@2d",
                "Print the senders of the last two days",
            ),
            (
                "sudo plumb history senders sda@2026-11-14T02:00..2026-11-14T04:00 --json",
                "Name the senders of a night as JSON",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "findings"],
        examples: &[
            (
                "sudo plumb history findings",
                "Print all findings, with their times",
            ),
            (
                "sudo plumb history findings sda@7d --json",
                "Print those of a week for other programs",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "changes"],
        examples: &[
            (
                "sudo plumb history changes",
                "Print the day from which on a device is another one",
            ),
            (
                "sudo plumb history changes sda@90d --json",
                "Search 90 days of a device, for other programs",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "dump"],
        examples: &[
            (
                "sudo plumb history dump --last 2h -o incident.plumb",
                "Write the last two hours of all devices to a file",
            ),
            (
                "sudo plumb history dump sda@7d sdb@1d -o two.plumb",
                "Write the profiles of two devices",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "prune"],
        examples: &[
            (
                "sudo plumb history prune --keep 90d",
                "Delete windows that are older than 90 days",
            ),
            (
                "sudo plumb history prune --keep 12h --state-dir /srv/history",
                "The same with another history and 12 hours",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "export"],
        examples: &[
            ("sudo plumb history export sda@7d", "Print a week as CSV"),
            (
                "sudo plumb history export --last 30d --as parquet -o db1.parquet",
                "Write a month of all devices as Parquet, for engines that read it",
            ),
            (
                "sudo plumb history export --fleet /srv/fleet",
                "Write each day that is over for plumb fleet",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "import"],
        examples: &[
            (
                "sudo plumb history import monday.plumb",
                "Add a profile that plumb watch has saved",
            ),
            (
                "sudo plumb history import old.plumb --as naa.5000c500a1b2c3d4",
                "Add it to the device of this identity, also if it had another name or host",
            ),
            (
                "plumb history import monday.plumb --state-dir other",
                "Add it to a history of your own",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "backup"],
        examples: &[
            (
                "sudo plumb history backup /srv/backup",
                "Copy the history while the agent runs",
            ),
            (
                "plumb history list --state-dir /srv/backup",
                "List the devices in the copy",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "verify"],
        examples: &[
            ("sudo plumb history verify", "Check all records"),
            (
                "sudo plumb history verify --json",
                "Check them for another program",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["history", "estimate"],
        examples: &[
            ("sudo plumb history estimate", "Print sizes and reach"),
            (
                "sudo plumb history estimate --json",
                "Print them for another program",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fleet"],
        examples: &[
            (
                "plumb fleet report /srv/recordings",
                "Rank the disks of all hosts whose recordings are in a folder",
            ),
            (
                "plumb fleet profile --shard 0/8 /srv/recordings -o 0.fleet",
                "Profile the first of eight shards",
            ),
            (
                "plumb fleet merge 0.fleet 1.fleet -o all.fleet",
                "Merge two shards",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fleet", "report"],
        examples: &[
            (
                "plumb fleet report /srv/recordings --state /srv/plumb.fleet",
                "Rank the disks of all hosts, and read only new recordings the next time",
            ),
            (
                "plumb fleet report all.fleet collections --plans plans",
                "Write a plan for each host with a finding that its group explains",
            ),
            (
                "plumb fleet report 47.fleet --since 46.fleet --inventory hosts.csv",
                "Find the images, racks and kernels behind findings, and the changes of a week",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fleet", "profile"],
        examples: &[
            (
                "plumb fleet profile /srv/recordings -o all.fleet",
                "Profile all recordings of a folder",
            ),
            (
                "plumb fleet profile --shard 3/64 --skip-bad /srv/recordings -o 3.fleet",
                "Profile the fourth of 64 shards, without files that cannot be read",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fleet", "merge"],
        examples: &[
            (
                "plumb fleet merge 0.fleet 1.fleet 2.fleet -o all.fleet",
                "Merge the shards of a fleet",
            ),
            (
                "plumb fleet merge monday.fleet tuesday.fleet -o week.fleet",
                "Merge two days",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fleet", "rows"],
        examples: &[
            (
                "plumb fleet rows all.fleet -o rows.parquet",
                "Write the rows of a merged fleet",
            ),
            (
                "plumb fleet rows shards -o rows.parquet",
                "Write the rows of the fleet files in a folder",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["convert"],
        examples: &[
            (
                "plumb convert trace.blktrace.0 trace.parquet",
                "Write a trace as Parquet",
            ),
            (
                "plumb convert trace.parquet replay.iolog --device sda",
                "Write the I/O of one disk for fio",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["record"],
        examples: &[
            (
                "sudo plumb record -o trace.parquet --duration 1m",
                "Record all disks for a minute",
            ),
            (
                "sudo plumb record sda -o t.parquet --max-size 1g --files 4",
                "Keep the last 4 GiB",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["watch"],
        examples: &[
            ("sudo plumb watch", "Show all disks live"),
            (
                "sudo plumb watch sda --interval 1s --count 10 --plain",
                "Print ten seconds of one disk",
            ),
            (
                "sudo plumb watch --from history:sda@2d",
                "Step through the windows of the history",
            ),
        ],
        usual: &[
            "interval", "count", "grid", "op", "pid", "comm", "app", "plain", "json", "save",
            "fail-on",
        ],
    },
    Manual {
        path: &["serve"],
        examples: &[
            ("sudo plumb serve", "Serve the history of this host"),
            (
                "plumb serve /srv/backup --listen 127.0.0.1:8080",
                "Serve a copy at another port",
            ),
            (
                "sudo plumb serve --listen 0.0.0.0:9975 --tls-certificate tls.crt --tls-key tls.key --token-file token",
                "Serve other hosts by TLS, to clients with a token",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["probe"],
        examples: &[
            (
                "sudo plumb probe /dev/sdb",
                "Measure the block grid with reads",
            ),
            (
                "sudo plumb probe /dev/sdb --write",
                "Measure writes; each writes back the bytes that it has read",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["bench"],
        examples: &[
            (
                "sudo plumb bench /dev/sdb --size 8k --depth 16 --for 30s",
                "Measure random reads",
            ),
            (
                "plumb bench scratch.img --study gather --write",
                "Measure the gain of gathered writes; destroys scratch.img",
            ),
            (
                "sudo plumb bench --vdbench parmfile",
                "Run a parameter file of Vdbench",
            ),
        ],
        usual: &[
            "read", "size", "random", "threads", "depth", "rate", "for", "vdbench", "study",
            "write", "json", "html",
        ],
    },
    Manual {
        path: &["replay"],
        examples: &[
            (
                "sudo plumb replay trace.parquet /dev/sdb",
                "Send the reads of a trace again, at its speed",
            ),
            (
                "sudo plumb replay trace.parquet /dev/sdb --compare --shift +1s",
                "Measure the gain of another start",
            ),
        ],
        usual: &[
            "speed", "depth", "shift", "layout", "compare", "device", "write", "html", "json",
        ],
    },
    Manual {
        path: &["plan"],
        examples: &[
            (
                "plumb plan partition /dev/sdb --grid 8k",
                "Plan the start of a partition",
            ),
            (
                "plumb plan stripe --io 8k sda sdb sdc sdd",
                "Plan the chunk of a stripe",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "partition"],
        examples: &[
            (
                "plumb plan partition /dev/sdb --grid 8k",
                "Plan a start on blocks of 8 KiB",
            ),
            (
                "plumb plan partition c1t0d0s0 --from prtvtoc.txt",
                "Plan a slice of another host",
            ),
        ],
        usual: &[
            "grid",
            "from",
            "label",
            "new-label",
            "disk-size",
            "after",
            "before",
            "size",
            "number",
            "current",
            "json",
        ],
    },
    Manual {
        path: &["plan", "stripe"],
        examples: &[
            (
                "plumb plan stripe --io 8k sda sdb sdc sdd",
                "Plan a chunk that few pages cross",
            ),
            (
                "plumb plan stripe --io 8k --chunk 16k sda sdb",
                "Judge a chunk",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "softpart"],
        examples: &[
            (
                "plumb plan softpart --from metastat-p.txt --unit 64k",
                "Place all soft partitions on 64 KiB",
            ),
            (
                "plumb plan softpart d0 --unit 64k --new d11:1g",
                "Place a new soft partition",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "filesystem"],
        examples: &[
            (
                "plumb plan filesystem /dev/md0 --type ext4 --chunk 64k --members 4",
                "Plan the stripe of ext4",
            ),
            (
                "plumb plan filesystem tank/db --type zfs --page 8k",
                "Plan a data set for a database",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "record"],
        examples: &[
            (
                "plumb plan record tank/db --page 8k --current 128k",
                "Plan the record for a page",
            ),
            (
                "plumb plan record tank/db --profile app.plumb",
                "Plan the record for observed I/O",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "resync"],
        examples: &[
            (
                "plumb plan resync --size 1m",
                "Plan resyncs in I/O of 1 MiB",
            ),
            (
                "plumb plan resync --size 1m --mirror 500g",
                "Estimate their number",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "disks"],
        examples: &[
            (
                "plumb plan disks --reads 800 --writes 265 --disk-rate 150 --raid 10",
                "Plan the number of disks",
            ),
            (
                "plumb plan disks --writes 265 --disk-rate 80 --response 50ms",
                "Limit the response time",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["plan", "writes"],
        examples: &[
            (
                "plumb plan writes --record 512 --gather 16 --random 80 --demand 265",
                "Plan gathered writes",
            ),
            (
                "plumb plan writes --record 512 --gather 16 --random 80 --sequential 320",
                "Use a measured rate in sequence",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix"],
        examples: &[
            (
                "plumb check --json | plumb fix plan -",
                "Preview the remedies of a check",
            ),
            (
                "sudo plumb fix move /dev/sdb1 --aligned",
                "Preview a move of a partition with its data",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "relabel"],
        examples: &[
            (
                "sudo plumb fix relabel /dev/sdb",
                "Preview a partition on the grid of an empty disk",
            ),
            (
                "sudo plumb fix relabel /dev/sdb --start 2048s --yes sdb",
                "Write it",
            ),
        ],
        usual: &[
            "start",
            "plan",
            "size",
            "number",
            "label",
            "new-label",
            "yes",
            "json",
            "save",
        ],
    },
    Manual {
        path: &["fix", "undo"],
        examples: &[
            (
                "sudo plumb fix undo /var/lib/plumb/sdb.label",
                "Preview the old label",
            ),
            (
                "sudo plumb fix undo /var/lib/plumb/sdb.label --yes sdb",
                "Write it back",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "backup-label"],
        examples: &[
            (
                "sudo plumb fix backup-label /dev/sdb",
                "Preview the repair of a GPT",
            ),
            ("sudo plumb fix backup-label /dev/sdb --yes sdb", "Write it"),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "plan"],
        examples: &[
            (
                "plumb check --json | sudo plumb fix plan -",
                "Preview all remedies of a check",
            ),
            (
                "sudo plumb fix plan check.json --yes sdb1",
                "Carry out those of one partition",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "move"],
        examples: &[
            (
                "sudo plumb fix move /dev/sdb1 --to 2048s",
                "Preview the move; works while it is mounted",
            ),
            (
                "sudo plumb fix move /dev/sdb1 --aligned --yes sdb1",
                "Move the partition with its data",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "resume"],
        examples: &[
            (
                "sudo plumb fix resume /dev/sdb",
                "Continue the move of a partition of a disk",
            ),
            (
                "sudo plumb fix resume /var/lib/plumb/sdb1.journal",
                "Continue the move of a journal",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "rollback"],
        examples: &[
            (
                "sudo plumb fix rollback /dev/sdb",
                "Move the data of an unfinished move back",
            ),
            (
                "sudo plumb fix rollback /var/lib/plumb/sdb1.journal",
                "The same by its journal",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["fix", "status"],
        examples: &[
            (
                "sudo plumb fix status /dev/sdb",
                "Show the progress of a move",
            ),
            (
                "sudo plumb fix status /var/lib/plumb/sdb1.journal --json",
                "Show it for a program",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["explain"],
        examples: &[
            ("plumb explain", "List all findings"),
            ("plumb explain misaligned-partition", "Explain one"),
        ],
        usual: &[],
    },
    Manual {
        path: &["help"],
        examples: &[
            ("plumb help check", "Show all options of plumb check"),
            (
                "plumb help fix move",
                "Show those of a command of plumb fix",
            ),
        ],
        usual: &[],
    },
    Manual {
        path: &["version"],
        examples: &[
            ("plumb version", "Print the version"),
            (
                "plumb version --verbose",
                "Also print commit, target and the protections of this kernel",
            ),
        ],
        usual: &[],
    },
];

/// The row of a command.
#[must_use]
pub fn manual(path: &[&str]) -> Option<&'static Manual> {
    MANUALS.iter().find(|manual| manual.path == path)
}

/// The parser with the texts of this manual.
#[must_use]
pub fn command() -> Command {
    let command = with_texts(Cli::command(), &mut Vec::new());
    let template = template(&command);
    command.help_template(template)
}

fn with_texts(mut command: Command, path: &mut Vec<&str>) -> Command {
    if let Some(manual) = manual(path) {
        command = with_examples(command, manual);
        command = with_usual_flags(command, manual);
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(&name, |sub| {
            let mut path: Vec<&str> = path.clone();
            path.push(&name);
            with_texts(sub, &mut path)
        });
    }
    command
}

fn with_examples(command: Command, manual: &Manual) -> Command {
    let mut text = "Examples:".to_owned();
    for (line, purpose) in manual.examples {
        text += &format!("\n  {purpose}:\n      {line}");
    }
    if let Some(behind) = command
        .get_after_long_help()
        .or_else(|| command.get_after_help())
    {
        text += &format!("\n\n{behind}");
    }
    command.after_long_help(text)
}

fn with_usual_flags(command: Command, manual: &Manual) -> Command {
    if manual.usual.is_empty() {
        return command;
    }
    let is_rare = |arg: &clap::Arg| {
        arg.get_long()
            .is_some_and(|long| !manual.usual.contains(&long))
    };
    let name = manual.path.join(" ");
    let number = command.get_arguments().filter(|arg| is_rare(arg)).count();
    command
        .mut_args(move |arg| match is_rare(&arg) {
            true => arg.hide_short_help(true),
            false => arg,
        })
        .after_help(format!(
            "{number} more options, and examples: plumb {name} --help"
        ))
}

/// The help of the program: commands by group. It fits a terminal of 24 lines.
fn template(command: &Command) -> String {
    let mut text =
        "{about}\nUsage: plumb COMMAND [OPTIONS]; plumb help COMMAND shows the options.\n"
            .to_owned();
    for (group, names) in GROUPS {
        text += &format!("\n{group}:");
        if group == OTHER {
            text += &format!(" {}", names.join(", "));
            continue;
        }
        for name in names {
            let sub = command
                .get_subcommands()
                .find(|sub| sub.get_name() == *name);
            let about = sub.and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("\n  {name:<9} {about}");
        }
    }
    text + "{after-help}"
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// Each command with its path, hidden ones aside.
    fn all() -> Vec<(Vec<String>, Command)> {
        fn add(command: &Command, path: &[String], all: &mut Vec<(Vec<String>, Command)>) {
            all.push((path.to_vec(), command.clone()));
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                let mut path = path.to_vec();
                path.push(sub.get_name().to_owned());
                add(sub, &path, all);
            }
        }
        let mut all = Vec::new();
        add(&command(), &[], &mut all);
        all
    }

    #[test]
    fn each_command_has_examples_and_no_row_is_left_over() {
        let all = all();
        assert_eq!(all.len(), MANUALS.len());
        for (path, _) in &all {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let manual = manual(&path).unwrap_or_else(|| panic!("no row for {path:?}"));
            assert!((2..=3).contains(&manual.examples.len()), "{path:?}");
        }
    }

    #[test]
    fn examples_are_command_lines() {
        for manual in MANUALS {
            for (line, _) in manual.examples {
                for part in line.split(" | ") {
                    let words = part.trim_start_matches("sudo ").split(' ');
                    let words: Vec<&str> = words.collect();
                    // Texts of --help and --version end the parser as well.
                    let parsed = Cli::try_parse_from(&words);
                    assert!(parsed.is_ok(), "{part}: {}", parsed.expect_err("an error"));
                }
            }
        }
    }

    #[test]
    fn usual_flags_exist() {
        for (path, command) in all() {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let manual = manual(&path).expect("a row");
            for flag in manual.usual {
                let is_it = |arg: &clap::Arg| arg.get_long() == Some(flag);
                assert!(command.get_arguments().any(is_it), "{path:?} --{flag}");
            }
        }
    }

    #[test]
    fn each_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let command = command();
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut names: Vec<&str> = shown.map(Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }
}
