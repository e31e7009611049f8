//! Directories of a test's own, removed when the test is done.

pub use tempfile::TempDir;

/// A new empty directory whose name tells which test left it, should a kill leave it behind.
///
/// # Panics
/// When the temporary directory of the machine cannot be written: no test can go on from there.
#[must_use]
pub fn temp_dir(test: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(&format!("plumb-{test}-"))
        .tempdir()
        .unwrap_or_else(|e| panic!("cannot make a temporary directory for {test}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_distinct_and_gone_after_drop() {
        let (a, b) = (temp_dir("twin"), temp_dir("twin"));
        assert_ne!(a.path(), b.path());
        let kept = a.path().to_path_buf();
        std::fs::write(kept.join("file"), b"x").expect("write into a fresh directory");
        drop(a);
        assert!(!kept.exists());
        assert!(b.path().exists());
    }
}
