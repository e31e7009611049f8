//! Completions in the shells themselves: devices of this host, names of findings, commands, paths.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/completions/{name}"))
}

/// A block device of this host, as the kernel lists it.
fn device() -> Option<String> {
    let entries = std::fs::read_dir("/sys/class/block").ok()?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names.into_iter().next()
}

fn output(program: &str, args: &[&str]) -> Vec<String> {
    let done = Command::new(program).args(args).limited_output();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// Words that bash offers for the last word, asked as readline asks.
fn bash(words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={}; \
         spec=$(complete -p plumb); name=${{spec#*-F }}; name=${{name%% *}}; \
         $name plumb \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file("plumb.bash").display(),
        quoted.join(" "),
        words.len() - 1
    );
    output("bash", &["-c", &script])
}

#[track_caller]
fn offers(found: &[String], word: &str) {
    assert!(
        found.iter().any(|one| one == word),
        "no {word} in {found:?}"
    );
}

#[test]
fn bash_completes_devices_findings_and_commands() {
    require!(Tool("bash"));
    if let Some(device) = device() {
        let part = &device[..1];
        for command in [
            &["check"][..],
            &["diagnose"],
            &["watch"],
            &["record"],
            &["probe"],
            &["bench"],
            &["plan", "partition"],
            &["fix", "relabel"],
        ] {
            let mut words = vec!["plumb"];
            words.extend(command);
            words.push(part);
            offers(&bash(&words), &device);
        }
        // Commands that take none offer none.
        assert!(!bash(&["plumb", "explain", part]).contains(&device));
        assert!(!bash(&["plumb", "compare", part]).contains(&device));
    }
    offers(&bash(&["plumb", "explain", "mis"]), "misaligned-partition");
    offers(
        &bash(&["plumb", "check", "--ignore", "queue"]),
        "queue-setting",
    );
    offers(&bash(&["plumb", "dia"]), "diagnose");
    offers(&bash(&["plumb", "help", "dia"]), "diagnose");
    offers(&bash(&["plumb", "check", "--fail"]), "--fail-on");
    offers(&bash(&["plumb", "check", "--as", "pro"]), "prometheus");
}

#[test]
fn zsh_completes_devices_and_findings() {
    require!(Tool("zsh"));
    let device = device().expect("a block device");
    // The function is loaded without a terminal, so the test looks for its words in the arguments of the function that hands them to the system.
    let script = format!(
        "autoload -U compinit; compinit -D; source {}; \
         _alternative() {{ print -l -- $names }}; _plumb_devices",
        file("_plumb").display()
    );
    offers(&output("zsh", &["-f", "-c", &script]), &device);
    let text = std::fs::read_to_string(file("_plumb")).expect("completions");
    let operands = text
        .lines()
        .filter(|line| line.contains(":_plumb_devices'"));
    assert!(operands.count() >= 8);
    assert!(text.contains("misaligned-partition"));
}

#[test]
fn fish_completes_devices_and_findings() {
    require!(Tool("fish"));
    let fish = |line: &str| {
        let script = format!(
            "source {}; complete -C '{line}'",
            file("plumb.fish").display()
        );
        let lines = output("fish", &["--no-config", "-c", &script]);
        let words = lines.iter().filter_map(|line| line.split('\t').next());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    if let Some(device) = device() {
        offers(&fish(&format!("plumb check {}", &device[..1])), &device);
        offers(
            &fish(&format!("plumb fix relabel {}", &device[..1])),
            &device,
        );
    }
    offers(&fish("plumb explain mis"), "misaligned-partition");
    offers(&fish("plumb check --ignore queue"), "queue-setting");
}
