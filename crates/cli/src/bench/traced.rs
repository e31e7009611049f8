//! Every I/O of a measurement in a file.

use std::path::{Path, PathBuf};

use plumb_geometry::group_digits;
use plumb_trace::parquet::grow::GrowingWriter;
use plumb_trace::{Batch, Clock, Error, SourceInfo};

use crate::failure::Failure;
use crate::moment::now_ns;
use crate::output;

/// Names for the traces of a number of runs: the requested one, or with the number of each run after its stem.
pub fn names(path: &Path, runs: usize) -> Vec<PathBuf> {
    if runs == 1 {
        return vec![path.to_owned()];
    }
    let stem = path.file_stem().unwrap_or_default();
    let digits = runs.to_string().len();
    let numbered = |number: usize| {
        let mut name = stem.to_owned();
        name.push(format!("-{number:0digits$}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    };
    (1..=runs).map(numbered).collect()
}

/// A file that grows while it is measured.
pub struct TraceFile {
    writer: GrowingWriter,
    info: SourceInfo,
    path: String,
    began: std::time::Instant,
}

impl TraceFile {
    /// Begins it.
    ///
    /// # Errors
    /// When the name is not free, or the file cannot be written.
    pub fn begin(path: &Path) -> Result<TraceFile, Failure> {
        output::must_be_new(path)?;
        let info = SourceInfo {
            format: "parquet",
            verified: true,
            one_layer_a_device: true,
            clock: Clock::Start,
            unix_ns_at_zero: now_ns(),
            notes: vec![
                "I/O of a measurement: queue_ns counts from the moment an I/O was due".to_owned(),
            ],
            ..SourceInfo::default()
        };
        let writer = GrowingWriter::create(path, &info).map_err(|error| Failure::failed(&error))?;
        let path = path.display().to_string();
        Ok(TraceFile {
            writer,
            info,
            path,
            began: std::time::Instant::now(),
        })
    }

    /// Takes events in.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        self.writer.write(batch, &self.info, self.began.elapsed())
    }

    /// Ends the file, and reports its content.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, lost: u64) -> Result<String, Failure> {
        self.info.counts.lost = lost;
        let ios = self.writer.events();
        let written = self.writer.finish(&self.info, self.began.elapsed());
        written.map_err(|error| Failure::failed(&error))?;
        let lost = match lost {
            0 => String::new(),
            lost => format!(
                ", and {} I/O are not in it: it was written too slowly",
                group_digits(lost)
            ),
        };
        Ok(format!(
            "wrote {}: {} I/O{lost}",
            self.path,
            group_digits(ios)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_name() {
        let named = |path: &str, runs| names(Path::new(path), runs);
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(named("a/b.parquet", 1), paths(&["a/b.parquet"]));
        assert_eq!(
            named("a/b.parquet", 2),
            paths(&["a/b-1.parquet", "a/b-2.parquet"])
        );
        assert_eq!(named("b", 2), paths(&["b-1", "b-2"]));
        assert_eq!(
            named("b.c.parquet", 10)[..2],
            paths(&["b.c-01.parquet", "b.c-02.parquet"])
        );
    }
}
