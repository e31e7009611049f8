//! Names as an attacker chooses them, through each way into a command: shells hand them over byte for byte.

use std::collections::BTreeSet;
use std::fs;

use plumb_quoting::Command;
use plumb_quoting::names::{KERNEL_DEVICE, LVM, Names, SOLARIS_DISK, SVM, ZFS};
use plumb_testkit::hostile::{Started, names, run_by};
use plumb_testkit::{require, temp_dir};

const NAMES: usize = 10_000;
const TOOLS: [&str; 2] = ["first", "second"];

/// A command with a name, and the words of each tool that it starts.
type Form = fn(&str) -> (Command, Vec<Vec<String>>);

fn started(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn first() -> Command {
    Command::new("first")
}

fn second() -> Command {
    Command::new("second")
}

/// The path that a tool gets.
fn path(name: &str) -> String {
    match name.starts_with('-') {
        true => format!("./{name}"),
        false => name.to_owned(),
    }
}

fn named(kind: Names, name: &str) -> (Command, Vec<Vec<String>>) {
    let word = format!("before/{name}@behind");
    (
        first().named(kind, "before/", name, "@behind"),
        vec![started(&["first", &word])],
    )
}

const FORMS: [Form; 20] = [
    |name| (first().arg(name), vec![started(&["first", name])]),
    |name| {
        let words = ["of=", "=", "-", "@"].map(|before| format!("{before}{name}"));
        let command = words.iter().fold(first(), Command::arg);
        let words = words.iter().map(String::as_str);
        let all: Vec<&str> = ["first"].into_iter().chain(words).collect();
        (command, vec![started(&all)])
    },
    |name| {
        let command = Command::of_words(["first", name, "last"]);
        (command, vec![started(&["first", name, "last"])])
    },
    |name| (first().operand(name), vec![started(&["first", name])]),
    |name| {
        let words = vec![started(&["first", &path(name)])];
        (first().path(name), words)
    },
    |name| {
        let words = vec![started(&["first", &path(name), "x", &path(name)])];
        (first().paths([name, "x", name]), words)
    },
    |name| {
        let option = format!("--option={name}");
        let words = match name.starts_with('-') {
            true => started(&["first", &option, "x"]),
            false => started(&["first", "--option", name, "x"]),
        };
        (first().option("--option", name).flags("x"), vec![words])
    },
    |name| {
        let words = started(&["first", &format!("{name}value")]);
        let set = Command::set("variable", Command::new("/bin/printf value"));
        (set.then(first().variable(name, "variable")), vec![words])
    },
    |name| {
        let inner = Command::new("/bin/printf %s").arg(name);
        let words = started(&["first", name]);
        (first().output_of(inner), vec![words])
    },
    |name| {
        let inner = Command::new("/bin/printf %s").arg(name);
        let command = Command::set("variable", inner).then(first().variable("", "variable"));
        (command, vec![started(&["first", name])])
    },
    |name| {
        let words = vec![started(&["first", name]), started(&["second", name])];
        (first().arg(name).and(second().arg(name)), words)
    },
    |name| {
        // Each tool succeeds.
        let words = vec![started(&["first", name])];
        (first().arg(name).or(second().arg(name)), words)
    },
    |name| {
        let words = vec![started(&["first", name]), started(&["second", name])];
        (first().arg(name).then(second().arg(name)), words)
    },
    |name| {
        let words = vec![started(&["first", name]), started(&["second", name])];
        (first().arg(name).pipe(second().arg(name)), words)
    },
    |name| {
        let words = vec![started(&["first", name]), started(&["second", name])];
        let command = first().arg(name).group(second().arg(name));
        (command.remark("a remark"), words)
    },
    |name| named(LVM, name),
    |name| named(ZFS, name),
    |name| named(SVM, name),
    |name| named(SOLARIS_DISK, name),
    |name| named(KERNEL_DEVICE, name),
];

fn shells(lines: &[String], mut held: impl FnMut(&str, &[Started], BTreeSet<String>)) {
    for shell in ["sh", "bash"] {
        let folder = temp_dir("hostile-forms");
        let work = folder.path().join("work");
        fs::create_dir(&work).expect("a folder");
        let started = run_by(shell, folder.path(), &TOOLS, lines);
        let files = fs::read_dir(&work).expect("a folder");
        let files = files.map(|file| {
            let name = file.expect("a file").file_name();
            name.into_string().expect("a name of text")
        });
        held(shell, &started, files.collect());
    }
}

#[test]
fn each_form_hands_names_over_byte_for_byte() {
    require!(Tool("bash"));
    let (mut lines, mut expected) = (Vec::new(), Vec::new());
    let mut by_form = [0; FORMS.len()];
    for (number, name) in names(29).take(NAMES).enumerate() {
        let form = number % FORMS.len();
        let (command, words) = FORMS[form](&name);
        let Ok(line) = command.line() else {
            continue;
        };
        by_form[form] += 1;
        let words = words.into_iter();
        let mut words: Started = words
            .map(|words| words.into_iter().map(String::into_bytes).collect())
            .collect();
        words.sort();
        lines.push(line.to_string());
        expected.push((name, words));
    }
    // Names of LVM and of Solaris have few characters: most names are refused there.
    assert!(by_form.iter().all(|count| *count > 0), "{by_form:?}");
    shells(&lines, |shell, started, files| {
        for ((line, (name, words)), started) in lines.iter().zip(&expected).zip(started) {
            assert_eq!(started, words, "{shell}: {name:?} in {line}");
        }
        assert_eq!(files, BTreeSet::new(), "{shell}");
    });
}

#[test]
fn output_goes_to_the_file_of_that_name() {
    require!(Tool("bash"));
    let (mut lines, mut expected) = (Vec::new(), BTreeSet::new());
    for name in names(31).filter(|name| !name.contains('/')).take(NAMES / 5) {
        let to_device = first()
            .flags(">")
            .named(KERNEL_DEVICE, "made-", &name, ".1");
        for (command, file) in [
            (first().to_file(format!("{name}.2")), format!("{name}.2")),
            (to_device, format!("made-{name}.1")),
        ] {
            if let Ok(line) = command.line() {
                lines.push(line.to_string());
                expected.insert(file);
            }
        }
    }
    assert!(lines.len() > NAMES / 20, "{}", lines.len());
    shells(&lines, |shell, started, files| {
        let words = vec![vec![b"first".to_vec()]];
        assert!(started.iter().all(|started| *started == words), "{shell}");
        assert_eq!(files, expected, "{shell}");
    });
}
