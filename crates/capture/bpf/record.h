/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the recording programs hand to user space. `src/record/abi.rs` has the same structures; both sides assert the sizes,
 * and Rust takes its constants from the lines `#define PLUMB_...`.
 */
#ifndef PLUMB_RECORD_H
#define PLUMB_RECORD_H

#include "abi.h"

/* Stands for a latency that nobody knows. */
#define PLUMB_NEVER 18446744073709551615

/* Flags of an I/O, in the order of the reader. */
#define PLUMB_FLAG_SYNC 256
#define PLUMB_FLAG_META 512
#define PLUMB_FLAG_AHEAD 1024
#define PLUMB_FLAG_FUA 2048
#define PLUMB_FLAG_PREFLUSH 4096
/* Above them: it is a bio, no request. */
#define PLUMB_IS_BIO 1073741824

/* Most processes that a recording can be limited to. */
#define PLUMB_PIDS 16

/* An I/O, handed over when it completes. */
struct plumb_record {
	u64 issued_ns;
	u64 queue_ns; /* NEVER: not told, as of a bio */
	u64 device_ns; /* NEVER: no completion */
	u64 sector;
	u64 cgroup;
	char comm[16];
	u32 dev; /* disk or partition */
	u32 disk;
	u32 len_bytes;
	u32 op_flags; /* PLUMB_OP_... in the low byte, PLUMB_FLAG_... and PLUMB_IS_BIO above */
	u32 tgid; /* 0: nobody knows who sent it */
	s32 error;
	u32 thread; /* 0: nobody knows who sent it */
	u32 unused;
};
#define PLUMB_RECORD_BYTES 88

/* An address in its place while an I/O is handed over. */
#define PLUMB_ENDING 1

/* A request or bio between issue and completion. User space maps them: the oldest tells up to where all records have come. */
struct plumb_open {
	u64 address; /* of the request or bio; 0: none */
	u64 begun_ns; /* when a request was made */
	u64 end; /* sector, of a request */
	u32 tally; /* of its disk */
	u32 unused;
	struct plumb_record record;
	u64 unused_too;
};
#define PLUMB_OPEN_BYTES 128

/* What happened to the I/O of a disk. sent = records handed over + lost + those still open. */
struct plumb_tally {
	u32 dev; /* 0: free */
	u32 is_by_bios; /* the last I/O that was sent was a bio */
	u64 sent;
	u64 lost; /* no room in the ring buffer */
	u64 requeues;
	u64 partial_completions;
	u64 unmatched_issues;
	u64 unmatched_completions;
	u64 unknown_senders;
	u64 unseen_failures[8]; /* of I/O whose issue nobody saw, by operation */
};
#define PLUMB_TALLY_BYTES 128

/* Who sent the bio that begins at a sector. */
struct plumb_origin {
	u64 sector;
	u64 cgroup;
	char comm[16];
	u32 dev;
	u32 tgid;
	u32 thread;
	u32 unused;
	u64 unused_too[2];
};
#define PLUMB_ORIGIN_BYTES 64

#endif
