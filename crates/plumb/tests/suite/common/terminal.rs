//! A terminal as a person sees it: tmux is the terminal, types the keys and returns the screen.

use std::process::Command;
use std::time::{Duration, Instant};

use plumb_testkit::loop_device::run;

/// Time for a screen to show something.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a shell in it, on a server of its own.
pub struct Terminal {
    server: String,
}

impl Terminal {
    pub fn open(name: &str, width: u16, height: u16, environment: &str) -> Terminal {
        let terminal = Terminal {
            server: format!("plumb-{name}-{}", std::process::id()),
        };
        let size = [width, height].map(|cells| cells.to_string());
        terminal.tmux(&[
            "new-session",
            "-d",
            "-x",
            &size[0],
            "-y",
            &size[1],
            &format!("env {environment} PS1=ready: sh"),
        ]);
        terminal.shows("ready:");
        terminal
    }

    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn tmux(&self, args: &[&str]) -> String {
        run(Command::new("tmux")
            .args(["-L", &self.server, "-f", "/dev/null"])
            .args(args))
    }

    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until that is to be seen, and returns the screen.
    #[track_caller]
    pub fn shows(&self, words: &str) -> String {
        self.until(words, |screen| screen.contains(words))
    }

    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let is_last = began.elapsed() > PATIENCE;
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            assert!(
                !is_last,
                "waited {PATIENCE:?} in vain for {what}:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether the shell has its terminal back: the first screen, its cursor, and typed text shows and is run.
    pub fn is_restored(&self) {
        // Not the command line with these words: the shell has run it, and its next prompt is there.
        self.until("the prompt after the status", |screen| {
            screen.lines().any(|line| line.starts_with("status "))
                && screen.trim_end().ends_with("ready:")
        });
        self.press(&["echo $((40+2))now", "Enter"]);
        self.until("the shell", |screen| {
            screen.contains("echo $((40+2))now") && screen.contains("\n42now")
        });
        assert_eq!(
            self.tmux(&["display", "-p", "#{alternate_on} #{cursor_flag}"])
                .trim(),
            "0 1"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has gone where the shell has.
        let _ = Command::new("tmux")
            .args(["-L", &self.server, "kill-server"])
            .output();
    }
}
