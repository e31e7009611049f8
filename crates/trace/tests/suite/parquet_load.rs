//! Tables that Plumb writes for other programs, read again: whole, cut, and with flipped bits.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_testkit::{Rng, temp_dir};
use plumb_trace::parquet::load::load;
use plumb_trace::parquet::table::{Cells, TableColumn, TableWriter, write};
use plumb_trace::write::{Gathered, Output};

/// Rows of a table by their number.
fn columns(rows: std::ops::Range<i64>) -> Vec<TableColumn> {
    let words = rows.clone().map(|at| format!("disk{}", at % 3)).collect();
    let blob = |at: i64| at.to_le_bytes().repeat((at % 40) as usize);
    let columns = [
        ("device", Cells::Words(words)),
        ("from", Cells::Times(rows.clone().collect())),
        (
            "ios",
            Cells::Numbers(rows.clone().map(|at| at * at).collect()),
        ),
        (
            "p50_ns",
            Cells::Perhaps(rows.clone().map(|at| (at % 2 == 0).then_some(at)).collect()),
        ),
        ("profile", Cells::Blobs(rows.map(blob).collect())),
    ];
    let column = |(name, cells)| TableColumn { name, cells };
    columns.into_iter().map(column).collect()
}

type LoadedRow = (i64, i64, Vec<u8>, Vec<u8>);

fn loaded(path: &Path) -> Result<Vec<LoadedRow>, String> {
    let mut all = Vec::new();
    let done = load(
        path,
        &["ios", "from"],
        &["device", "profile"],
        &mut |rows| {
            for at in 0..rows.numbers[0].len() {
                let blob = |column: usize| rows.blobs[column][at].data().to_vec();
                all.push((rows.numbers[0][at], rows.numbers[1][at], blob(0), blob(1)));
            }
        },
    );
    done.map(|()| all).map_err(|error| error.to_string())
}

fn expected(rows: i64) -> Vec<LoadedRow> {
    let row = |at: i64| {
        let blob = at.to_le_bytes().repeat((at % 40) as usize);
        (at * at, at, format!("disk{}", at % 3).into_bytes(), blob)
    };
    (0..rows).map(row).collect()
}

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("table.parquet");
    fs::write(&path, bytes).expect("room");
    path
}

fn table(rows: i64) -> Vec<u8> {
    let gathered = Gathered::default();
    write(&columns(0..rows), &[], Output::gather("a table", &gathered)).expect("memory");
    gathered.take()
}

#[test]
fn a_table_is_read_as_it_was_written() {
    let folder = temp_dir("table");
    for rows in [0, 1, 1_000, 200_003] {
        let path = file(folder.path(), &table(rows));
        assert_eq!(loaded(&path), Ok(expected(rows)), "{rows} rows");
    }
    // In parts.
    let gathered = Gathered::default();
    let output = Output::gather("a table", &gathered);
    let mut writer = TableWriter::new(&columns(0..0), output).expect("memory");
    for begin in (0..1_000).step_by(100) {
        writer.add(&columns(begin..begin + 100)).expect("memory");
    }
    writer.finish(&[("a", "b")]).expect("memory");
    let path = file(folder.path(), &gathered.take());
    assert_eq!(loaded(&path), Ok(expected(1_000)));
}

#[test]
fn columns_of_another_kind_are_refused() {
    let folder = temp_dir("table-kinds");
    let path = file(folder.path(), &table(100));
    for (numbers, blobs, complaint) in [
        (
            &["absent"][..],
            &[][..],
            "found no column absent of type INT64",
        ),
        (&["profile"], &[], "found no column profile of type INT64"),
        (&[], &["ios"], "found no column ios of type BYTE_ARRAY"),
        (&["p50_ns"], &[], "found a null"),
    ] {
        let refused = load(&path, numbers, blobs, &mut |_| {}).expect_err(complaint);
        let words =
            std::error::Error::source(&refused).map_or_else(String::new, ToString::to_string);
        assert!(words.contains(complaint), "{refused}: {words}");
    }
}

/// Cut files are refused; a flipped bit changes an answer or is refused, and never ends the program.
#[test]
fn damaged_tables_end_no_program() {
    let folder = temp_dir("table-damage");
    let whole = table(300);
    for len in (0..whole.len()).step_by(97) {
        let path = file(folder.path(), &whole[..len]);
        assert!(loaded(&path).is_err(), "{len} bytes");
    }
    let path = file(folder.path(), &[&whole[..], b"rest"].concat());
    assert!(loaded(&path).is_err());
    let mut rng = Rng::new(31);
    let mut refused = 0;
    for _ in 0..2_000 {
        let mut damaged = whole.clone();
        let at = rng.below(damaged.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        refused += u64::from(loaded(&file(folder.path(), &damaged)).is_err());
    }
    assert!(refused > 100, "{refused}");
}
