//! A file with a block that cannot be read until it is written, as on a medium that replaces bad sectors: nbdkit's plugin `eval`
//! over another file, shown by nbdfuse. Slow, since each request is a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::loop_device::run;
use crate::slow_disk::Logged;
use crate::tempdir::{TempDir, temp_dir};

/// Length of the block.
const BLOCK_BYTES: u64 = 4096;
/// Sets `at` to the place of the bad block, and succeeds where a request of `$3` bytes at `$4` meets it.
const MEETS: &str = r#"at=$(cat "$BAD" 2>/dev/null) && [ "$4" -lt "$((at + BLOCK))" ] && [ "$(($4 + $3))" -gt "$at" ]"#;

/// A file with possibly one bad block. It ends with the test.
#[derive(Debug)]
pub struct BadBlockDisk {
    server: Logged,
    shown: Logged,
    path: PathBuf,
    /// Place of the bad block; no file as long as all blocks are good.
    bad: PathBuf,
    _room: TempDir,
}

impl BadBlockDisk {
    /// Serves the bytes of a file, whose length stays. All blocks are good.
    ///
    /// # Panics
    /// If nbdkit or nbdfuse do not begin: a test asks for `Tool("nbdkit")` and `Tool("nbdfuse")` first.
    #[must_use]
    pub fn over(file: &Path) -> BadBlockDisk {
        let size_bytes = fs::metadata(file).expect("the file").len();
        let room = temp_dir("bad-block");
        let (socket, path) = (room.path().join("socket"), room.path().join("disk"));
        let bad = room.path().join("bad");
        fs::write(&path, "").expect("a place for it");
        let mut server = Command::new("nbdkit");
        server
            .args(["--foreground", "--exit-with-parent", "--unix"])
            .arg(&socket)
            .arg("eval")
            .arg(format!("get_size=echo {size_bytes}"))
            .args(["can_write=exit 0", "can_flush=exit 0", "flush=exit 0"])
            .arg(format!(
                r#"pread=if {MEETS}; then echo "EIO bad block" >&2; exit 1; fi
                dd if="$IMAGE" bs=64k iflag=skip_bytes,count_bytes skip="$4" count="$3" status=none"#
            ))
            .arg(format!(
                r#"pwrite=dd of="$IMAGE" bs=64k iflag=fullblock oflag=seek_bytes conv=notrunc seek="$4" status=none || exit 1
                if {MEETS}; then rm "$BAD"; fi"#
            ))
            .env("IMAGE", file)
            .env("BAD", &bad)
            .env("BLOCK", BLOCK_BYTES.to_string());
        let mut server = Logged::start("nbdkit", &mut server, room.path());
        let served = server.begins("its socket", || socket.exists());
        served.unwrap_or_else(|failure| panic!("{failure}"));
        let mut client = Command::new("nbdfuse");
        client.arg(&path).arg("--unix").arg(&socket);
        let mut shown = Logged::start("nbdfuse", &mut client, room.path());
        let begun = shown.begins("a file of that size", || {
            fs::metadata(&path).is_ok_and(|found| found.len() == size_bytes)
        });
        begun.unwrap_or_else(|failure| panic!("{failure}"));
        BadBlockDisk {
            server,
            shown,
            path,
            bad,
            _room: room,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a block of 4,096 bytes unreadable, by its first byte, and drops the kernel's cache of the file.
    ///
    /// # Panics
    /// When there is no room for a short file, or dd is missing.
    pub fn spoil(&self, at: u64) {
        let shown = fs::File::open(&self.path).and_then(|file| file.sync_all());
        shown.expect("a file that is served");
        // All of it: a count of 0 reads nothing.
        run(Command::new("dd")
            .arg(format!("if={}", self.path.display()))
            .args(["iflag=nocache", "count=0", "status=none"]));
        fs::write(&self.bad, at.to_string()).expect("a place for it");
    }

    /// Whether the block is still unreadable.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.bad.exists()
    }
}

impl Drop for BadBlockDisk {
    fn drop(&mut self) {
        self.server.end();
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .stderr(Stdio::null())
            .status();
        self.shown.end();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_block_cannot_be_read_until_it_is_written() {
        crate::require!(Tool("nbdkit"), Tool("nbdfuse"), Root);
        let dir = temp_dir("bad-block-image");
        let image = dir.path().join("image");
        fs::write(&image, vec![7; 1 << 20]).expect("room");
        let disk = BadBlockDisk::over(&image);
        disk.spoil(8192);
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(disk.path())
            .expect("the file");
        let mut block = [0; 4096];
        let direct = |at: u64, block: &mut [u8]| file.read_exact_at(block, at);
        direct(0, &mut block).expect("a good block");
        assert_eq!(block, [7; 4096]);
        direct(8192, &mut block).expect_err("a bad block");
        file.write_all_at(&[9; 4096], 8192)
            .expect("it takes writes");
        file.sync_all().expect("a disk");
        assert!(!disk.is_bad());
        direct(8192, &mut block).expect("it was replaced");
        assert_eq!(block, [9; 4096]);
        assert_eq!(fs::read(&image).expect("the file")[8192..12_288], [9; 4096]);
    }
}
