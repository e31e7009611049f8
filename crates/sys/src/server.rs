//! File systems whose files another process or host serves: how long it takes to ask it something that it need not read.

use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};

use crate::io_target::IoTarget;

/// Numbers of such file systems (include/uapi/linux/magic.h; fs/smb/client): FUSE, NFS, SMB, 9P, Ceph, AFS.
const SERVED: [u32; 7] = [
    0x6573_5546,
    0x6969,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x00c3_6400,
    0x6b41_4653,
];

/// How long the server of a file takes to answer for its attributes, which no cache of this host does; `None` where it has no
/// server, as block devices and files of a local file system.
#[must_use]
pub fn answer_time(target: &IoTarget) -> Option<Duration> {
    let found = fstatfs(target).ok().filter(|_| !target.is_block_device())?;
    // The number has 32 bits, in a word that is signed or longer.
    SERVED.contains(&(found.f_type as u32)).then_some(())?;
    let begin = Instant::now();
    statx(
        target,
        "",
        AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC,
        StatxFlags::BASIC_STATS,
    )
    .ok()?;
    Some(begin.elapsed())
}
