/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the programs in the kernel and the reader in user space share. `src/abi.rs` has the same structures; both sides
 * assert the sizes, and Rust takes its constants from the lines `#define PLUMB_...` of this file.
 */
#ifndef PLUMB_ABI_H
#define PLUMB_ABI_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

/* Operations, in the order of the reader. */
#define PLUMB_OP_READ 0
#define PLUMB_OP_WRITE 1
#define PLUMB_OP_DISCARD 2
#define PLUMB_OP_FLUSH 3
#define PLUMB_OP_ZERO 4
#define PLUMB_OP_OTHER 5

/* Places at which a row may be, from the one its key hashes to. */
#define PLUMB_ROW_PROBES 16
/* Places at which a device or a process may be. */
#define PLUMB_PROBES 8

/* Log-linear buckets that a time in ns can come into: 2^40 ns are 18 minutes, longer ones share the last. */
#define PLUMB_BUCKETS 592

/* Histograms of a device: times from issue to completion by operation, times before the issue by operation, others. */
#define PLUMB_DEVICE_NS 0
#define PLUMB_QUEUE_NS 6
#define PLUMB_INTERARRIVAL_NS 12
#define PLUMB_DEPTH_NS 13
/* Starts of stream heads by hash: 256 buckets of reads, then 256 of writes. */
#define PLUMB_HEADS 14
/* Seeks: 65 powers of two backward, 65 forward, none; behind them runs that reached 3 I/O and each power of two. */
#define PLUMB_ORDER 15
/* Time at each depth that a completion ended; those that an issue ended are in PLUMB_DEPTH_NS. */
#define PLUMB_DEPTH_LEFT_NS 16
#define PLUMB_HISTOGRAMS 17

#define PLUMB_SEEK_BUCKETS 65
#define PLUMB_RUNS_AT 192

/* Fields of a row's key, from the lowest bit. */
#define PLUMB_KEY_LENGTH_BITS 23
#define PLUMB_KEY_RESIDUE_BITS 16
#define PLUMB_KEY_OP_BITS 3
#define PLUMB_KEY_STREAM_BITS 1
#define PLUMB_KEY_PLACE_BITS 12
#define PLUMB_KEY_COARSE_BITS 1

/* I/O with the same residue and the like; one of each for every lane of CPUs. */
struct plumb_row {
	u64 key; /* 0: free */
	u64 ios;
	u64 timed;
	u64 ns_sum;
	u64 ns_squared_low;
	u64 ns_squared_high;
	u64 regions;
	u64 sectors; /* of a coarse row, whose key has no exact length */
};
#define PLUMB_ROW_BYTES 64

/* A disk: cache lines by who writes to them, since those that CPUs take from each other are what an I/O costs most. */
struct plumb_device {
	/* Hardly anybody. */
	u32 dev; /* 0: free */
	u32 by_bios; /* its bios count; 0: its requests */
	u32 region_shift;
	u32 unused;
	u64 flushes;
	u64 requeues;
	u64 partial_completions;
	u64 unmatched_issues;
	u64 unmatched_completions;
	u64 unplaced; /* I/O for which no row was free */
	/* What begins. */
	u64 issues;
	u64 last_issue_ns;
	u64 last_end; /* sector */
	u64 first_ns;
	u64 continuing;
	u64 run_ios;
	u64 splits;
	u64 cached_reads; /* into the page cache: the kernel marks them as read-ahead */
	/* What begins and what ends. */
	s64 depth;
	u64 depth_changed_ns;
	u64 slow_floor; /* the least time among the slowest I/O that are kept */
	u64 failures_kept;
	u64 unused_as_well[4];
	/* What ends badly. */
	u64 failed[8]; /* by operation; a power of two, so that a mask bounds the index */
};
#define PLUMB_DEVICE_BYTES 256

/* A disk or a partition, as the block layer accounts I/O to it. */
struct plumb_place {
	u64 dev_device; /* 0: free; its number in the low half, the index of its disk in the high one */
};
#define PLUMB_PLACE_BYTES 8

/* A request or bio between issue and completion; a cache line, since another CPU may complete it. */
struct plumb_flight {
	u64 address; /* of the request or bio; 0: none */
	u64 begun_ns; /* when the request was made */
	u64 issued_ns;
	u64 end; /* sector */
	u64 key; /* of its row; 0: it found none */
	u32 device;
	u32 op;
	u32 sectors;
	u32 process; /* index; all bits when nobody knows */
	u64 unused;
};
#define PLUMB_FLIGHT_BYTES 64

/* I/O that are kept one by one: for each device the slowest, then the first that failed. */
#define PLUMB_KEPT 8
struct plumb_kept {
	u64 ns; /* issue to completion; 0: free, or being written */
	u64 end; /* sector */
	u64 ended_ns;
	u32 sectors;
	u32 op;
	u32 process; /* index; all bits when nobody knows */
	s32 error; /* an errno below 0, a blk_status_t above */
	u64 inode; /* of the file whose pages it moves; 0: not known */
	char name[32]; /* of that file, without its directory; empty: not known */
};
#define PLUMB_KEPT_BYTES 80

/* Addresses of bios in flight whose hashes are alike; the flight of each has the same place among the flights. */
#define PLUMB_BIOS 8
struct plumb_bios {
	u64 address[PLUMB_BIOS]; /* 0: free */
};
#define PLUMB_BIOS_BYTES 64

/* Where an I/O ended, for the one that goes on from there. */
struct plumb_stream {
	u64 end_place; /* sector; below it 12 bits of the device's index and 3 of the operation; 0: none */
	u32 issue; /* number of the issue, low bits */
	u32 chain;
};
#define PLUMB_STREAM_PLACE_BITS 15

/* Ends that hash alike: a line of the cache. */
#define PLUMB_STREAM_WAYS 4
struct plumb_streams {
	struct plumb_stream ways[PLUMB_STREAM_WAYS];
};
#define PLUMB_STREAMS_BYTES 64

/* Who sent the bio that begins at a sector. */
struct plumb_sender {
	u64 sector;
	u32 dev;
	u32 process; /* index; all bits when no entry was free */
	u32 thread; /* 0: not known */
	u32 is_wanted; /* by the filter */
	u32 is_written_back; /* by a worker of the kernel, from pages that the process made dirty */
	u32 unused; /* so that none lies in two cache lines */
};
#define PLUMB_SENDER_BYTES 32

/* A process by its number, on one disk or partition. */
struct plumb_process {
	u64 dev_tgid; /* 0: free; the number of the process in the low half */
	char comm[16];
	u64 cgroup; /* its number in version 2, when the process was first seen; 0: not known */
	u64 is_own; /* of the watch itself, or a child of it */
	u64 unused[3];
};
#define PLUMB_PROCESS_BYTES 64

/* The task that last made a page dirty in one MiB of a file. */
struct plumb_dirtier {
	u64 mapping; /* address of the file's cache; 0: free */
	u64 part; /* number of the MiB */
	u64 cgroup;
	char comm[16];
	u64 task; /* the number of the process in the high half */
	u64 seen; /* when it last did, in 2^30 ns */
	u64 unused;
};
#define PLUMB_DIRTIER_BYTES 64

/* When a thread of a process last sent an I/O. User space counts those that were seen since it last read. */
struct plumb_thread {
	u64 process_thread; /* index of the process above, number of the thread below; 0: free */
	u64 seen_ns; /* exact to PLUMB_SEEN_BITS below */
};
#define PLUMB_THREAD_BYTES 16
/* A time of a thread is written again only when this many low bits of it have run over: some 1 ms. */
#define PLUMB_SEEN_BITS 20

/* What a process sent, counted in one lane of CPUs. */
struct plumb_sent {
	u64 bytes;
	u64 by_alignment[12]; /* I/O by trailing zeros of the start in sectors, 11 and more together */
	u64 written_back; /* I/O of these that a worker of the kernel sent */
	u64 unused[2];
};
#define PLUMB_SENT_BYTES 128
/* What alone is to count; 0 in a field is no condition. */
struct plumb_filter {
	u64 unwanted_ops; /* a bit for each */
	u64 tgid;
	u64 cgroup; /* its inode; what is below it counts as well */
	u64 comm[2];
};
#define PLUMB_FILTER_WORDS 5
/* What a call at the vfs layer does, an index: bit 0 tells writes from reads, bit 1 those past the cache. */
#define PLUMB_KIND_WRITE 1
#define PLUMB_KIND_DIRECT 2
#define PLUMB_KINDS 4

/* Ways on which a process comes to data of files, a bit each. */
#define PLUMB_WAY_CALLS 1
#define PLUMB_WAY_URING 2
/* Of what goes these ways the bytes are not known. */
#define PLUMB_WAY_URING_SILENT 4
#define PLUMB_WAY_AIO 8
#define PLUMB_WAY_MAPPED 16
#define PLUMB_WAY_FOREIGN_CALLS 32
#define PLUMB_WAY_LOST 64

/* A file system is its number; one of the device nodes has this bit as well, and the number of the device. */
#define PLUMB_NODE_BIT 32

/* Fields of a row's key at the vfs layer, from the lowest bit. */
#define PLUMB_VFS_LENGTH_BITS 31
#define PLUMB_VFS_RESIDUE_BITS 20
#define PLUMB_VFS_OP_BITS 1
#define PLUMB_VFS_STREAM_BITS 1
#define PLUMB_VFS_PLACE_BITS 10
/* Regions of files are 2^34 bytes: 64 of them are a TiB, and the last one has all that lies behind. */
#define PLUMB_VFS_REGION_SHIFT 34

/* A process on one file system, or on none where only the process is known. */
struct plumb_asker {
	u64 tgid; /* 0: free, 1: being made */
	u64 file_system;
	char comm[16];
	u64 ways;
	u64 unplaced; /* I/O that found no row */
	u64 failed;
	u64 calls[PLUMB_KINDS];
	u64 asked_bytes[PLUMB_KINDS];
	u64 moved_bytes[PLUMB_KINDS];
	u64 faults; /* page faults in mapped files that the kernel handed to the file system */
	u64 stores; /* of the program, that made a clean page of a mapped file dirty */
	u64 unused[3];
};
#define PLUMB_ASKER_BYTES 192

/* Threads whose last page fault is kept, those of one hash together. */
#define PLUMB_FAULTS 4096

/* A read or write of io_uring between submission and completion. */
struct plumb_submitted {
	u64 tgid;
	u64 position; /* all bits set: where the file stands */
	u64 asked_bytes;
};
#define PLUMB_SUBMITTED_BYTES 24

/* What does not belong to a device. */
struct plumb_totals {
	u64 unlisted_devices; /* I/O of devices for which no entry was free */
	u64 unknown_senders;
	u64 processes_lost; /* I/O of processes for which no entry was free */
};
#define PLUMB_TOTALS_BYTES 24

#endif
