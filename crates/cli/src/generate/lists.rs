//! The lists of modules, rules, formats, writers and dumps in the sources, made from the files beside them. A new file then
//! needs no line elsewhere.
//!
//! The method reads text and not the registries: a registry lacks a file that no list names yet. `make docs` therefore runs
//! twice, and the second run knows the new entries. If the order of a list has a meaning, known lines keep their order and
//! new lines come last: move a line to its place by hand.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use plumb_geometry::SmallSort;

use super::FilesToWrite;
use super::region::Region;

/// Texts of the modules beside a `mod.rs`, by their names.
type Modules = BTreeMap<String, String>;

/// Makes the lines of a list. It is given the modules and the present lines.
type MakeLines = fn(&Modules, &[&str]) -> Vec<String>;

/// A list between two marks.
struct List {
    file: &'static str,
    /// The folder whose files it lists.
    folder: &'static str,
    /// Its name in the first mark.
    name: &'static str,
    /// Spaces before each line and before the second mark.
    indent: usize,
    lines: MakeLines,
}

const fn list(file: &'static str, folder: &'static str, name: &'static str) -> List {
    List {
        file,
        folder,
        name,
        indent: 0,
        lines: private_modules,
    }
}

const MODEL: &str = "crates/model/src/facts";
const IO: &str = "crates/diagnose/src/rules";
const LAYOUT: &str = "crates/diagnose/src/layout";
const COURSE: &str = "crates/diagnose/src/course";
const WORDS: &str = "crates/report/src/words";
const FORMATS: &str = "crates/trace/src/format";
const WRITERS: &str = "crates/testkit/src/write";
const LINUX: &str = "crates/stack/src/dump/linux";
const SOLARIS: &str = "crates/stack/src/dump/solaris";

static LISTS: &[List] = &[
    list("mod.rs", MODEL, "modules"),
    List {
        lines: names,
        ..list("mod.rs", MODEL, "names")
    },
    List {
        lines: registry,
        indent: 4,
        ..list("../rule.rs", MODEL, "rules")
    },
    list_of_judges(IO),
    entries_of(IO, judges),
    list_of_judges(LAYOUT),
    entries_of(LAYOUT, judges),
    list_of_judges(COURSE),
    entries_of(COURSE, judges),
    list("mod.rs", WORDS, "modules"),
    List {
        lines: sentences,
        indent: 8,
        ..list("mod.rs", WORDS, "sentences")
    },
    List {
        lines: examples,
        indent: 8,
        ..list("tests.rs", WORDS, "examples")
    },
    list("mod.rs", FORMATS, "modules"),
    entries_of(FORMATS, formats),
    List {
        lines: public_modules,
        ..list("mod.rs", WRITERS, "modules")
    },
    entries_of(WRITERS, writers),
    list("mod.rs", LINUX, "modules"),
    entries_of(LINUX, formats),
    list("mod.rs", SOLARIS, "modules"),
    entries_of(SOLARIS, formats),
];

const fn list_of_judges(folder: &'static str) -> List {
    List {
        lines: modules_of_judges,
        ..list("mod.rs", folder, "modules")
    }
}

const fn entries_of(folder: &'static str, lines: MakeLines) -> List {
    List {
        lines,
        indent: 4,
        ..list("mod.rs", folder, "entries")
    }
}

/// Adds every source with a list. A tree without one of the folders has none of its lists.
///
/// # Errors
/// When a source cannot be read, or has no place for its list.
pub fn add(root: &Path, files: &mut FilesToWrite) -> io::Result<()> {
    for list in LISTS {
        if root.join(list.folder).is_dir() {
            add_list(root, list, files)?;
        }
    }
    Ok(())
}

fn add_list(root: &Path, list: &List, files: &mut FilesToWrite) -> io::Result<()> {
    let path = match list.file.strip_prefix("../") {
        Some(name) => Path::new(list.folder).with_file_name(name),
        None => Path::new(list.folder).join(list.file),
    };
    let text = match files.remove(&path) {
        Some(text) => text,
        None => fs::read_to_string(root.join(&path))?,
    };
    let region = Region::of_source(list.name);
    let missing = || {
        let (path, name) = (path.display(), list.name);
        io::Error::other(format!("{path}: found no place for the list `{name}`"))
    };
    let present = region.inner(&text).ok_or_else(missing)?;
    let present: Vec<&str> = present.lines().map(str::trim).collect();
    let indent = " ".repeat(list.indent);
    let mut inner: String = (list.lines)(&modules(&root.join(list.folder))?, &present)
        .iter()
        .map(|line| format!("{indent}{line}\n"))
        .collect();
    // The mark at the end has the indent of the lines.
    inner.push_str(&indent);
    let replaced = region.replaced(&text, &inner).ok_or_else(missing)?;
    files.insert(path, replaced);
    Ok(())
}

/// The modules of a folder: `NAME.rs` and `NAME/mod.rs`, without the file of the folder itself and its tests.
fn modules(folder: &Path) -> io::Result<Modules> {
    let mut modules = Modules::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let source = match path.is_dir() {
            true => path.join("mod.rs"),
            false => path.clone(),
        };
        let is_module = is_source || (path.is_dir() && source.exists());
        if is_module && name != "mod" && name != "tests" {
            modules.insert(name.into_owned(), fs::read_to_string(source)?);
        }
    }
    Ok(modules)
}

/// Present lines in their order, without those whose key is gone; then the new ones.
fn in_present_order(
    found: Vec<String>,
    present: &[&str],
    key: impl Fn(&str) -> String,
) -> Vec<String> {
    let place = |line: &String| {
        let key_of_line = key(line);
        let at = present.iter().position(|known| key(known) == key_of_line);
        at.unwrap_or(present.len())
    };
    let mut lines = found;
    lines.small_sort_by_key(place);
    lines
}

/// `mod NAME;`, by name. A present line keeps its visibility.
fn declared(modules: &Modules, present: &[&str], is_public: fn(&str) -> bool) -> Vec<String> {
    let line = |(name, text): (&String, &String)| {
        let ending = format!("mod {name};");
        let known = present
            .iter()
            .find(|line| line.strip_suffix(&ending).is_some_and(is_visibility));
        match known {
            Some(known) => (*known).to_owned(),
            None if is_public(text) => format!("pub {ending}"),
            None => ending,
        }
    };
    modules.iter().map(line).collect()
}

fn is_visibility(text: &str) -> bool {
    matches!(text, "" | "pub " | "pub(crate) ")
}

fn private_modules(modules: &Modules, present: &[&str]) -> Vec<String> {
    declared(modules, present, |_| false)
}

fn public_modules(modules: &Modules, present: &[&str]) -> Vec<String> {
    declared(modules, present, |_| true)
}

fn modules_of_judges(modules: &Modules, present: &[&str]) -> Vec<String> {
    declared(modules, present, |text| !items(text, &JUDGES).is_empty())
}

/// `pub use NAME::*;`
fn names(modules: &Modules, _: &[&str]) -> Vec<String> {
    let line = |name| format!("pub use {name}::*;");
    modules.keys().map(line).collect()
}

/// Names of the constants and statics of one of these types.
fn items<'a>(text: &'a str, types: &[&str]) -> Vec<&'a str> {
    let name = |line: &'a str| {
        let (visibility, rest) = line
            .split_once("const ")
            .or_else(|| line.split_once("static "))?;
        let (name, rest) = rest.split_once(": ")?;
        let (of_type, _) = rest.split_once(" = ")?;
        (visibility.starts_with("pub") && types.contains(&of_type)).then_some(name)
    };
    text.lines().filter_map(name).collect()
}

fn entries(modules: &Modules, present: &[&str], types: &[&str], sign: &str) -> Vec<String> {
    let found = modules.iter().flat_map(|(module, text)| {
        let names = items(text, types).into_iter();
        names.map(move |name| format!("{sign}{module}::{name},"))
    });
    in_present_order(found.collect(), present, str::to_owned)
}

const JUDGES: [&str; 3] = ["IoRule", "LayoutRule", "CourseRule"];

fn judges(modules: &Modules, present: &[&str]) -> Vec<String> {
    entries(modules, present, &JUDGES, "")
}

fn formats(modules: &Modules, present: &[&str]) -> Vec<String> {
    entries(modules, present, &["Format"], "&")
}

fn writers(modules: &Modules, present: &[&str]) -> Vec<String> {
    entries(modules, present, &["Writer"], "&")
}

/// `Rule(Facts) "name" ENTRY;` from `ENTRY: Rule(Facts) "name", …` in a `rule!`.
fn registry(modules: &Modules, present: &[&str]) -> Vec<String> {
    let row = |line: &str| {
        let (entry, rest) = line.strip_prefix("    ")?.split_once(": ")?;
        let (rule, rest) = rest.split_once(" \"")?;
        let (name, _) = rest.split_once("\", ")?;
        let is_entry = entry
            .chars()
            .all(|sign| sign == '_' || sign.is_ascii_uppercase() || sign.is_ascii_digit());
        (is_entry && rule.ends_with(')')).then(|| format!("{rule} \"{name}\" {entry};"))
    };
    let rows = modules.values().flat_map(|text| {
        let blocks = text.split("\nrule! {\n").skip(1);
        let inner = blocks.filter_map(|block| block.split("\n}\n").next());
        inner.flat_map(str::lines).filter_map(row)
    });
    in_present_order(rows.collect(), present, |line| before(line, '('))
}

/// An arm for each file whose `words` takes the facts of one rule, or those and a target.
fn sentences(modules: &Modules, present: &[&str]) -> Vec<String> {
    let arm = |(module, text): (&String, &String)| {
        let (_, rest) = text.split_once("pub(super) fn words(")?;
        let (parameters, _) = rest.split_once(')')?;
        let parameters: Vec<&str> = parameters.split_whitespace().collect();
        let parameters = parameters.join(" ");
        let parameters = parameters.trim_end_matches(',');
        let (given, facts) = match parameters.split_once("&Target, ") {
            Some((_, facts)) => ("on, facts", facts),
            None => ("facts", parameters),
        };
        // The sentences of the problems take the rule too.
        let (name, facts) = facts.split_once(": &")?;
        if !matches!(name, "facts" | "_facts") || parameters.starts_with("rule") {
            return None;
        }
        let (head, call) = (
            format!("Facts::{facts}(facts) =>"),
            format!("{module}::words({given})"),
        );
        // As rustfmt breaks it.
        Some(match head.len() + call.len() + " ,".len() + 8 > 100 {
            true => format!("{head} {{\n            {call}\n        }}"),
            false => format!("{head} {call},"),
        })
    };
    let arms = modules.iter().filter_map(arm);
    in_present_order(arms.collect(), present, |line| before(line, '('))
}

/// The function of a file of sentences with examples of its facts.
const EXAMPLES: &str = "\npub(super) fn examples()";

/// The examples of the facts that each file of sentences has for the snapshots.
fn examples(modules: &Modules, _: &[&str]) -> Vec<String> {
    let has = modules.iter().filter(|(_, text)| text.contains(EXAMPLES));
    has.map(|(module, _)| format!("super::{module}::examples(),"))
        .collect()
}

fn before(line: &str, sign: char) -> String {
    line.split(sign).take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules_of(texts: &[(&str, &str)]) -> Modules {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        texts.iter().map(owned).collect()
    }

    #[test]
    fn new_entries_come_last_and_lost_ones_go() {
        let modules = modules_of(&[
            ("a", "pub static FORMAT: Format = Format {\n"),
            (
                "b",
                "pub(super) static TWO: Format = x;\npub const ONE: Format = y;\n",
            ),
            (
                "c",
                "static HIDDEN: Format = x;\npub static OTHER: Writer = y;\n",
            ),
        ]);
        let lines = formats(&modules, &["&b::ONE,", "&gone::FORMAT,"]);
        assert_eq!(lines, ["&b::ONE,", "&a::FORMAT,", "&b::TWO,"]);
        assert_eq!(writers(&modules, &[]), ["&c::OTHER,"]);
    }

    #[test]
    fn modules_keep_their_visibility() {
        let judge = "pub const RULE: IoRule = IoRule {\n";
        let modules = modules_of(&[("a_b", ""), ("b", ""), ("c", judge), ("d", judge)]);
        let lines = modules_of_judges(&modules, &["pub(crate) mod b;", "mod d;", "mod gone;"]);
        assert_eq!(
            lines,
            ["mod a_b;", "pub(crate) mod b;", "pub mod c;", "mod d;"]
        );
    }

    #[test]
    fn rows_of_the_registry() {
        let text = "/// Facts.\npub struct New;\n\nrule! {\n    NEW_ONE: NewOne(New) \"new-one\", Io, true, None,\n\
            \x20       \"a \\\"title\\\"\", \"nothing\";\n    RAID5: Raid5(New) \"raid5\", Io, true, None,\n\
            \x20       \"a title\", \"nothing\";\n}\n";
        let modules = modules_of(&[("new", text)]);
        let lines = registry(&modules, &["Raid5(Old) \"raid5\" RAID5;"]);
        let expected = [
            "Raid5(New) \"raid5\" RAID5;",
            "NewOne(New) \"new-one\" NEW_ONE;",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn arms_of_the_sentences() {
        let long = "a_name_of_a_rule_that_is_too_long";
        let words =
            |parameters: &str| format!("pub(super) fn words({parameters}) -> Sentences {{\n");
        let texts = [
            ("host", words("facts: &OfHost")),
            ("plain", words("on: &Target, _facts: &Plain")),
            (
                long,
                words("\n    on: &Target,\n    facts: &ANameOfARuleThatIsTooLong,\n"),
            ),
            (
                "problem",
                words("rule: RuleId, on: &Target, facts: &NoticedProblem"),
            ),
            ("phrase", "pub fn list() {}\n".to_owned()),
        ];
        let texts: Vec<_> = texts
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let expected = [
            format!(
                "Facts::ANameOfARuleThatIsTooLong(facts) => {{\n            {long}::words(on, facts)\n        }}"
            ),
            "Facts::OfHost(facts) => host::words(facts),".to_owned(),
            "Facts::Plain(facts) => plain::words(on, facts),".to_owned(),
        ];
        assert_eq!(sentences(&modules_of(&texts), &[]), expected);
    }
}
