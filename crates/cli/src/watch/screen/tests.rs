//! The content of the view, cell by cell.

use plumb_profile::table::{Row as Sums, Table as Residues};
use plumb_trace::{Layer, Op};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;

fn view(grids: &[Grid], colored: bool) -> Screen {
    let how = "request layer by typed tracepoints".to_owned();
    let filter = Some("process 4711".to_owned());
    let watched = WatchSubject {
        disks: vec!["sda".to_owned(), "sdb".to_owned()],
        how,
        filter,
        interval_s: 2.5,
    };
    Screen::new(watched, grids, colored, false)
}

/// Reads of 4 KiB at these sectors modulo 1 MiB, with their numbers.
fn seen(devices: &[(&str, &[(u64, u64)])]) -> ShownInterval {
    let mut profiles = plumb_profile::ProfileSet::default();
    for (name, starts) in devices {
        let profile = profiles.entry(name, Layer::Request, Residues::default);
        for (sector, ios) in *starts {
            profile.add_residue(
                Op::Read,
                sector * 512,
                4096,
                false,
                &Sums {
                    ios: *ios,
                    ..Sums::default()
                },
            );
        }
    }
    let process = |disk: &&str| plumb_capture::Process {
        device: format!("{disk}1"),
        disk: (*disk).to_owned(),
        pid: 4711,
        comm: "postgres".to_owned(),
        cgroup: Some("/system.slice/postgresql.service".to_owned()),
        command_line: Some("/usr/lib/postgresql/15/bin/postgres -D /var/lib/main".to_owned()),
        ios: 9,
        written_back: 4,
        bytes: 9 * 4096,
        threads: 3,
        by_alignment: [3, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    let processes = devices.iter().map(|(name, _)| process(name)).collect();
    let reading = Reading {
        profiles,
        processes,
        ..Reading::default()
    };
    ShownInterval {
        time: "noon".to_owned(),
        seconds: 2.0,
        position: None,
        reading,
        notes: Vec::new(),
        asked: None,
    }
}

#[test]
fn answers_take_the_place_of_a_device() {
    let mut screen = view(&[], false);
    let asked = Some("  Asked of  /srv".to_owned());
    screen.see(ShownInterval {
        asked,
        ..seen(&[SDA])
    });
    let has_asked = |screen: &Screen| {
        drawn(screen, 80, 24)
            .iter()
            .any(|line| line.contains("/srv"))
    };
    let foot = |screen: &Screen| line(&drawn(screen, 80, 24), "q quit").to_owned();
    assert!(!has_asked(&screen) && foot(&screen).contains("a applications"));
    press(&mut screen, "a");
    assert!(has_asked(&screen));
    press(&mut screen, "a");
    assert!(!has_asked(&screen));
    // Without a viewer there is nothing to show.
    screen.see(seen(&[SDA]));
    press(&mut screen, "a");
    assert!(!foot(&screen).contains("a applications"));
}

fn terminal(width: u16, height: u16) -> Terminal<TestBackend> {
    Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory")
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = terminal(width, height);
    terminal.draw(|frame| screen.draw(frame)).expect("room");
    let buffer = terminal.backend().buffer().clone();
    let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
    cells
        .chunks(usize::from(width))
        .map(|line| line.concat())
        .collect()
}

fn press(screen: &mut Screen, letters: &str) {
    for letter in letters.chars() {
        screen.press(ViewKey::Letter(letter));
    }
}

fn line<'a>(lines: &'a [String], begin: &str) -> &'a str {
    lines
        .iter()
        .find(|line| line.starts_with(begin))
        .unwrap_or_else(|| panic!("no {begin} in {lines:#?}"))
}

const SDA: (&str, &[(u64, u64)]) = ("sda", &[(0, 100), (8, 100)]);
const SDB: (&str, &[(u64, u64)]) = ("sdb", &[(0, 30), (7, 10)]);

#[test]
fn devices_are_ranked_by_misfit_and_the_grid_changes_at_once() {
    let mut screen = view(&[], false);
    screen.see(seen(&[SDA, SDB]));
    let lines = drawn(&screen, 80, 24);
    assert!(lines[2].starts_with("sdb"), "{lines:#?}");
    assert!(line(&lines, "sdb").contains("25.0 %"), "{lines:#?}");
    assert!(
        line(&drawn(&screen, 100, 24), "sdb").starts_with("sdb       request "),
        "{lines:#?}"
    );
    assert!(line(&lines, "sda").contains(" 0 %"), "{lines:#?}");
    assert!(
        lines[0].contains("4 KiB at offset 0, assumed"),
        "{lines:#?}"
    );
    // Of 200 I/O of sda 100 start in the middle of 8 KiB.
    assert_eq!(screen.press(ViewKey::Letter('g')), Wish::None);
    let lines = drawn(&screen, 80, 24);
    assert!(line(&lines, "sda").contains("50.0 %"), "{lines:#?}");
    assert!(!lines[0].contains("assumed"), "{lines:#?}");
    // By name again, and back to 4 KiB, then seven sectors on.
    press(&mut screen, "ssss");
    press(&mut screen, "Gooooooo");
    let lines = drawn(&screen, 80, 24);
    assert!(
        lines[2].starts_with("sda") && lines[0].contains("3,584 B"),
        "{lines:#?}"
    );
    assert!(line(&lines, "sdb").contains("75.0 %"), "{lines:#?}");
}

/// A terminal view drops undrawn characters: the name would pass for another one.
#[test]
fn a_hostile_name_shows_as_escapes() {
    let mut screen = view(&[], false);
    let mut interval = seen(&[SDA]);
    interval.reading.processes[0].comm = "e\u{1b}[2J\u{202e}".to_owned();
    screen.see(interval);
    let text = drawn(&screen, 160, 60).join("\n");
    assert!(text.contains("e\\u{1b}[2J\\u{202e} "), "{text}");
}

#[test]
fn the_detail_is_that_of_the_selected_device() {
    let mut screen = view(&[], false);
    screen.see(seen(&[SDA, SDB]));
    screen.press(ViewKey::Down);
    for (width, height) in [(80, 24), (200, 60)] {
        let lines = drawn(&screen, width, height);
        let text = lines.join("\n");
        assert!(text.contains("device sda (request layer)"), "{text}");
        assert!(
            text.contains("postgres") && text.contains("4711") && text.contains("33.3 %   3"),
            "{text}"
        );
        assert!(text.contains("lengths up to"), "{text}");
    }
}

#[test]
fn any_size_and_devices_that_go() {
    let mut screen = view(&[Grid::ASSUMED], true);
    for devices in [&[SDA, SDB][..], &[SDB], &[], &[SDA]] {
        screen.press(ViewKey::Down);
        screen.see(seen(devices));
        for (width, height) in [(80, 24), (200, 60), (40, 8), (20, 3), (1, 1)] {
            drawn(&screen, width, height);
        }
    }
    assert!(drawn(&screen, 80, 24)[2].starts_with("sda"));
}

#[test]
fn frozen_and_filtered() {
    let mut screen = view(&[], false);
    screen.see(seen(&[SDA, SDB]));
    screen.press(ViewKey::Letter('f'));
    let frozen = drawn(&screen, 80, 24);
    screen.see(seen(&[SDA]));
    assert_eq!(drawn(&screen, 80, 24), frozen);
    assert!(frozen[0].contains("FROZEN") && frozen.iter().any(|line| line.starts_with("sdb")));
    screen.press(ViewKey::Letter('f'));
    screen.see(seen(&[SDA]));
    assert!(
        !drawn(&screen, 80, 24)
            .iter()
            .any(|line| line.starts_with("sdb"))
    );
    press(&mut screen, "/sdb");
    assert_eq!(
        screen.press(ViewKey::Letter('q')),
        Wish::None,
        "a letter of the filter"
    );
    assert!(drawn(&screen, 80, 24).join("").contains("filter: sdbq_"));
    screen.press(ViewKey::Escape);
    assert_eq!(screen.press(ViewKey::Letter('q')), Wish::Quit);
    assert_eq!(screen.press(ViewKey::Letter('w')), Wish::Save);
}

#[test]
fn a_note_leaves_the_keys_in_sight() {
    let mut screen = view(&[], false);
    let notes = vec!["I/O issued more than once, counted once: sda".to_owned()];
    screen.see(ShownInterval {
        notes,
        ..seen(&[SDA])
    });
    let lines = drawn(&screen, 80, 24);
    assert!(
        lines[22].starts_with("I/O issued more than once") && lines[23].starts_with("q quit"),
        "{lines:#?}"
    );
}

/// The longest grid, a filter and a frozen view: signs of an incomplete view come first.
#[test]
fn the_head_of_a_narrow_screen() {
    let mut screen = view(&[], false);
    screen.see(ShownInterval {
        time: "2026-11-22T06:38:03Z".to_owned(),
        ..seen(&[SDA, SDB])
    });
    press(&mut screen, "ooo/sdb");
    screen.press(ViewKey::Enter);
    press(&mut screen, "f");
    let head = drawn(&screen, 80, 24).remove(0);
    assert!(
        head.starts_with("06:38:03Z  FROZEN  filter sdb  2.0 s  grid 4 KiB at offset 1,536 B"),
        "{head}"
    );
    assert!(drawn(&screen, 200, 60)[0].starts_with("plumb watch  2026-11-22T06:38:03Z  FROZEN"));
}

#[test]
fn no_colour_where_none_is_wanted() {
    for colored in [false, true] {
        let mut screen = view(&[], colored);
        screen.see(seen(&[SDA, SDB]));
        let mut terminal = terminal(80, 24);
        terminal.draw(|frame| screen.draw(frame)).expect("room");
        let has_colors = terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .any(|cell| cell.fg != Color::Reset);
        assert_eq!(has_colors, colored);
    }
}

/// An empty view gives the reason, and is never left blank.
#[test]
fn an_idle_view_names_the_devices_it_waits_for() {
    let mut screen = view(&[], false);
    let waiting = drawn(&screen, 80, 24).join("\n");
    for words in [
        "waiting for the first interval to end: 2.5 s",
        "sda, sdb: request layer by typed",
        "only process 4711",
    ] {
        assert!(waiting.contains(words), "no {words:?} in {waiting}");
    }
    screen.see(seen(&[]));
    let idle = drawn(&screen, 80, 24).join("\n");
    assert!(
        idle.contains("no I/O in this interval") && idle.contains("watched: sda, sdb"),
        "{idle}"
    );
    screen.see(seen(&[SDA]));
    press(&mut screen, "/xyz");
    let filtered = drawn(&screen, 80, 24).join("\n");
    assert!(
        filtered.contains("has `xyz` in its name") && !filtered.contains("no I/O in this"),
        "{filtered}"
    );
}

/// Each key of the last line is explained, on the smallest terminal that is usual.
#[test]
fn the_help_lists_all_keys() {
    let mut screen = view(&[], false);
    screen.see(seen(&[SDA]));
    let foot = drawn(&screen, 80, 24).pop().expect("a line");
    assert!(foot.starts_with("q quit  ? help  s sort"), "{foot}");
    for open in ['?', 'h'] {
        screen.press(ViewKey::Letter(open));
        let help = drawn(&screen, 80, 24);
        assert!(
            !help.iter().any(|line| line.starts_with("sda")),
            "{help:#?}"
        );
        for pair in foot.split("  ").filter(|pair| !pair.is_empty()) {
            let key = pair.split(' ').next().expect("a key");
            line(&help, &format!("  {key} "));
        }
        // The last line is in sight, and no line is cut off.
        assert!(line(&help, "  depth").contains("on average"));
        assert!(
            help.iter()
                .all(|line| line.chars().count() <= 80 && !line.ends_with(char::is_alphanumeric))
        );
        screen.press(if open == '?' {
            ViewKey::Escape
        } else {
            ViewKey::Letter('h')
        });
        assert!(
            drawn(&screen, 80, 24)
                .iter()
                .any(|line| line.starts_with("sda"))
        );
    }
}

/// Narrow screens have fewer columns, and no number is cut.
#[test]
fn columns_of_the_list_fit_the_width() {
    let mut screen = view(&[], false);
    let many = |sector| (sector, 6_006_900);
    let starts = [many(0), many(7)];
    screen.see(seen(&[("sda", &starts)]));
    let shown = |width| {
        let lines = drawn(&screen, width, 24);
        let head = line(&lines, "device").trim_end().to_owned();
        (head, line(&lines, "sda").trim_end().to_owned())
    };
    let (head, row) = shown(60);
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        ["device", "I/O/s", "bytes/s", "off", "median", "99", "%"]
    );
    // 6,006,900 I/O/s of 4 KiB are 22.9 GiB/s.
    let figures: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(figures[1..6], ["6,006,900", "22.9", "GiB", "50.0", "%"]);
    for (width, added) in [(80, "split"), (100, "layer"), (200, "last 2 s")] {
        assert!(shown(width).0.contains(added), "{:?}", shown(width));
    }
    assert!(!shown(80).0.contains("layer") && !shown(100).0.contains("last"));
}

#[test]
fn the_view_goes_back_in_time() {
    let mut screen = view(&[], false);
    for ios in 1..=5 {
        let mut interval = seen(&[("sda", &[(0, ios * 100)])]);
        interval.time = format!("2026-11-22T06:38:0{ios}Z");
        screen.see(interval);
    }
    let rate = |screen: &Screen| {
        let lines = drawn(screen, 80, 24);
        let row = line(&lines, "sda").to_owned();
        (
            lines[0].clone(),
            row.split_whitespace().nth(1).expect("a rate").to_owned(),
        )
    };
    assert_eq!(rate(&screen).1, "250");
    screen.press(ViewKey::Left);
    screen.press(ViewKey::Left);
    let (head, ios) = rate(&screen);
    assert!(head.starts_with("06:38:03Z  FROZEN"), "{head}");
    assert_eq!(ios, "150");
    // A new interval leaves it there.
    screen.see(seen(&[("sda", &[(0, 700)])]));
    assert_eq!(rate(&screen).1, "150");
    screen.press(ViewKey::Right);
    assert_eq!(rate(&screen).1, "200");
    screen.press(ViewKey::End);
    let (head, ios) = rate(&screen);
    assert!(!head.contains("FROZEN") && ios == "350", "{head} {ios}");
    for _ in 0..2 * KEPT {
        screen.press(ViewKey::Left);
    }
    assert_eq!(rate(&screen).1, "50");
    for _ in 0..2 * KEPT {
        screen.press(ViewKey::Right);
    }
    assert!(!rate(&screen).0.contains("FROZEN"));
}

#[test]
fn the_page_of_a_device_shows_its_course() {
    let mut screen = view(&[], false);
    for _ in 0..30 {
        screen.see(seen(&[SDA, SDB]));
    }
    screen.press(ViewKey::Enter);
    for (width, height) in [(60, 20), (80, 24), (120, 40), (200, 50)] {
        let lines = drawn(&screen, width, height);
        let text = lines.join("\n");
        assert!(text.contains("device sdb (request layer)"), "{text}");
        assert!(!lines.iter().any(|line| line.starts_with("sda")), "{text}");
        for words in ["I/O/s", "off grid", "phases", "length up to"] {
            assert!(text.contains(words), "no {words:?} at {width} in\n{text}");
        }
        // 4 KiB in each of 30 intervals, or in all that fit.
        let sizes = lines.iter().find(|line| line.contains("4 KiB █"));
        let cells = sizes.map_or(0, |line| line.matches('█').count());
        assert_eq!(cells, 30, "{text}");
        assert_eq!(
            lines
                .iter()
                .filter(|line| line.contains(&"r".repeat(30)))
                .count(),
            1
        );
    }
    // Two intervals to a column.
    press(&mut screen, "z");
    let zoomed = drawn(&screen, 80, 24).join("\n");
    assert!(zoomed.contains(&"r".repeat(15)) && !zoomed.contains(&"r".repeat(16)));
    screen.press(ViewKey::Escape);
    assert!(drawn(&screen, 80, 24)[2].starts_with("sdb"));
}

#[test]
fn processes_scroll() {
    let mut screen = view(&[], false);
    let mut interval = seen(&[SDA]);
    let one = interval.reading.processes[0].clone();
    interval.reading.processes = (0..50)
        .map(|pid| plumb_capture::Process { pid, ..one.clone() })
        .collect();
    screen.see(interval);
    press(&mut screen, "p");
    let first = |screen: &Screen| {
        let lines = drawn(screen, 80, 24);
        let row = line(&lines, "postgres").split_whitespace().nth(1);
        row.expect("a PID").to_owned()
    };
    assert_eq!(first(&screen), "0");
    // 3 of 9 I/O start at odd sectors.
    assert!(line(&drawn(&screen, 80, 24), "postgres").contains("33.3 %"));
    assert!(line(&drawn(&screen, 80, 24), "process").starts_with("process (1 of 50)"));
    press(&mut screen, "jjj");
    assert_eq!(first(&screen), "3");
    screen.press(ViewKey::PageDown);
    assert_eq!(first(&screen), "13");
    for _ in 0..10 {
        screen.press(ViewKey::PageDown);
    }
    assert_eq!(first(&screen), "49");
    screen.press(ViewKey::Up);
    assert_eq!(first(&screen), "48");
}

#[test]
fn a_click_selects_and_opens_a_device() {
    let mut screen = view(&[], false);
    screen.see(seen(&[SDA, SDB]));
    let title = |screen: &Screen| {
        let lines = drawn(screen, 80, 24);
        let title = lines.iter().find(|line| line.contains("device sd"));
        title.expect("a device").clone()
    };
    assert!(title(&screen).starts_with(" device sdb"));
    screen.press(ViewKey::Click(3));
    assert!(title(&screen).starts_with(" device sda"));
    for row in [0, 1, 4, 23] {
        screen.press(ViewKey::Click(row));
        assert!(drawn(&screen, 80, 24)[2].starts_with("sdb"), "{row}");
    }
    screen.press(ViewKey::Click(3));
    assert!(!drawn(&screen, 80, 24)[2].starts_with("sdb"));
}

#[test]
fn plus_and_minus_change_the_interval() {
    let mut screen = view(&[], false);
    assert_eq!(screen.press(ViewKey::Letter('+')), Wish::Longer);
    assert_eq!(screen.press(ViewKey::Letter('-')), Wish::Shorter);
    press(&mut screen, "/");
    assert_eq!(screen.press(ViewKey::Letter('+')), Wish::None);
}

/// A terminal without UTF-8 gets ASCII alone, in the same places.
#[test]
fn a_plain_terminal_has_plain_signs() {
    let watched = WatchSubject {
        disks: Vec::new(),
        how: "request layer".to_owned(),
        filter: None,
        interval_s: 1.0,
    };
    let mut screen = Screen::new(watched, &[], false, true);
    for _ in 0..3 {
        screen.see(seen(&[SDA, SDB]));
    }
    for view in ["", "p", "p?", "?"] {
        press(&mut screen, view);
        let lines = drawn(&screen, 120, 40);
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
    }
    screen.press(ViewKey::Enter);
    let page = drawn(&screen, 120, 40).join("\n");
    assert!(page.is_ascii() && page.contains("4 KiB ###"), "{page}");
}

/// Large tables are kept for fewer intervals, and a frozen view stays at the oldest one that is left.
#[test]
fn kept_intervals_have_a_limit_in_rows() {
    const ROWS: usize = 1 << 16;
    let mut screen = view(&[], false);
    for number in 0..12 {
        let mut interval = seen(&[]);
        interval.time = format!("interval {number}");
        let profile = interval
            .reading
            .profiles
            .entry("sda", Layer::Request, Residues::default);
        for row in 0..ROWS as u64 {
            let (sector, length) = (row % 2048, 512 * (1 + row / 2048));
            let sums = Sums {
                ios: 1,
                ..Sums::default()
            };
            profile.add_residue(Op::Read, sector * 512, length, false, &sums);
        }
        assert_eq!(interval.rows(), ROWS);
        screen.see(interval);
        if number == 0 {
            press(&mut screen, "f");
        }
    }
    assert_eq!(screen.kept.len(), KEPT_ROWS / ROWS);
    let oldest = drawn(&screen, 80, 24).remove(0);
    assert!(oldest.starts_with("interval 4  FROZEN"), "{oldest}");
}
