//! Another process that has a device or file open and does nothing else, as a database has its raw device.
//!
//! It opens the file itself: a file opened by a test is for a moment in every process that its threads start.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::wait;

/// Ended with the test, well or not.
#[derive(Debug)]
pub struct Opener(Child);

impl Opener {
    /// Starts one, and returns when the file is open.
    ///
    /// # Panics
    /// If it does not exist.
    #[must_use]
    pub fn start(file: &Path) -> Opener {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", r#"exec 3<"$0" && echo open && read -r line"#])
            .arg(file);
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let said = wait::Lines::of("the shell", child.stdout.take().expect("its output")).next();
        let opener = Opener(child);
        assert!(
            said.as_deref() == Some("open"),
            "{}: cannot be opened",
            file.display()
        );
        opener
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its command, as the kernel has it.
    #[must_use]
    pub fn command(&self) -> &'static str {
        "sh"
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        wait::stop(&mut self.0);
    }
}
