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
#define PLUMB_HISTOGRAMS 16

#define PLUMB_SEEK_BUCKETS 65
#define PLUMB_RUNS_AT 192

/* Fields of a row's key, from the lowest bit. */
#define PLUMB_KEY_LENGTH_BITS 23
#define PLUMB_KEY_RESIDUE_BITS 16
#define PLUMB_KEY_OP_BITS 3
#define PLUMB_KEY_STREAM_BITS 1
#define PLUMB_KEY_PLACE_BITS 12

/* I/O with the same residue and the like; one of each for every lane of CPUs. */
struct plumb_row {
	u64 key; /* 0: free */
	u64 ios;
	u64 timed;
	u64 ns_sum;
	u64 ns_squared_low;
	u64 ns_squared_high;
	u64 regions;
	u64 unused;
};
#define PLUMB_ROW_BYTES 64

/* A disk. */
struct plumb_device {
	u32 dev; /* 0: free */
	u32 wanted;
	u32 region_shift;
	u32 unused;
	s64 depth;
	u64 depth_changed_ns;
	u64 last_issue_ns;
	u64 last_end; /* sector */
	u64 issues;
	u64 first_ns;
	u64 continuing;
	u64 run_ios;
	u64 failed[8]; /* by operation; a power of two, so that a mask bounds the index */
	u64 flushes;
	u64 requeues;
	u64 partial_completions;
	u64 unmatched_issues;
	u64 unmatched_completions;
	u64 unplaced; /* I/O for which no row was free */
};
#define PLUMB_DEVICE_BYTES 192

/* A disk or a partition, as the block layer accounts I/O to it. */
struct plumb_place {
	u64 dev_device; /* 0: free; its number in the low half, the index of its disk in the high one */
};
#define PLUMB_PLACE_BYTES 8

/* A request between issue and completion; a cache line, since another CPU may complete it. */
struct plumb_flight {
	u64 request; /* 0: none */
	u64 begun_ns; /* when the request was made */
	u64 issued_ns;
	u64 end; /* sector */
	u64 key; /* of its row; 0: it found none */
	u32 device;
	u32 op;
	u64 unused[2];
};
#define PLUMB_FLIGHT_BYTES 64

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
	u32 process; /* index */
};
#define PLUMB_SENDER_BYTES 16

/* A process by its number, on one disk or partition. */
struct plumb_process {
	u64 dev_tgid; /* 0: free; the number of the process in the low half */
	char comm[16];
	u64 bytes;
	u64 by_alignment[12]; /* I/O by trailing zeros of the start in sectors, 11 and more together */
};
#define PLUMB_PROCESS_BYTES 128

/* What does not belong to a device. */
struct plumb_totals {
	u64 unlisted_devices; /* I/O of devices for which no entry was free */
	u64 unknown_senders;
	u64 processes_lost; /* I/O of processes for which no entry was free */
};
#define PLUMB_TOTALS_BYTES 24

#endif
