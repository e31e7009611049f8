// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The block layer, I/O by I/O: a record for each when the last of it completes, in a ring buffer that wakes nobody. Here
 * requests: one that is put back and issued again, or completes in parts, is one I/O from its first issue on.
 */
#include "kernel.h"
#include "request.h"
#include "tally.h"
#include "record_bios.h"

_Static_assert(sizeof(struct plumb_record) == PLUMB_RECORD_BYTES, "record");
_Static_assert(sizeof(struct plumb_open) == PLUMB_OPEN_BYTES, "open");
_Static_assert(sizeof(struct plumb_tally) == PLUMB_TALLY_BYTES, "tally");
_Static_assert(sizeof(struct plumb_origin) == PLUMB_ORIGIN_BYTES, "origin");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader. Each mask is one less than the entries of its map. */
const volatile u32 open_mask;
const volatile u32 origin_mask;

ARRAY_MAP(opens, struct plumb_open);
ARRAY_MAP(origins, struct plumb_origin);

INLINE struct plumb_open *open_of(struct request *rq, u32 disk_dev)
{
	return at(&opens, flight_index(rq, disk_dev) & open_mask);
}

INLINE struct plumb_origin *origin_at(u32 dev, u64 sector)
{
	return at(&origins, sender_index(dev, sector) & origin_mask);
}

/* Who sent it; whether that is somebody who is wanted. */
INLINE u32 sign(struct plumb_record *record, struct plumb_tally *tally)
{
	struct plumb_origin *origin = origin_at(record->dev, record->sector);

	if (origin && origin->sector == record->sector && origin->dev == record->dev) {
		if (!is_wanted_pid(origin->tgid))
			return 0;
		record->tgid = origin->tgid;
		record->thread = origin->thread;
		record->cgroup = origin->cgroup;
		__builtin_memcpy(record->comm, origin->comm, sizeof(record->comm));
		return 1;
	}
	if (record->len_bytes)
		ADD(tally->unknown_senders, 1);
	if (pids)
		return 0;
	record->tgid = 0;
	record->thread = 0;
	record->cgroup = 0;
	record->comm[0] = 0;
	return 1;
}

INLINE int issue(struct request *rq)
{
	u32 cmd_flags = FIELD(rq, cmd_flags), len_bytes = FIELD(rq, __data_len), disk_dev, index;
	u64 sector = FIELD(rq, __sector), last = sector + (len_bytes >> 9), begun, now;
	struct plumb_open *open;
	struct plumb_tally *tally;

	if (is_of_driver(cmd_flags) || !(ops >> op_of(cmd_flags) & 1))
		return 0;
	disk_dev = disk_of(rq);
	tally = tally_of(disk_dev, &index);
	if (!tally)
		return 0;
	open = open_of(rq, disk_dev);
	if (!open)
		return 0;
	begun = FIELD(rq, start_time_ns);
	if (open->address == (u64)rq && open->end == last && open->begun_ns == begun) {
		ADD(tally->requeues, 1);
		return 0;
	}
	if (unlikely(open->address)) {
		give_up(open);
		open->address = 0;
	}
	now = bpf_ktime_get_ns();
	open->record.dev = dev_of(rq);
	open->record.disk = disk_dev;
	open->record.sector = sector;
	open->record.len_bytes = len_bytes;
	open->record.op_flags = op_flags_of(cmd_flags);
	if (!sign(&open->record, tally))
		return 0;
	ADD(tally->sent, 1);
	open->record.issued_ns = now;
	open->record.queue_ns = begun && now >= begun ? now - begun : NEVER;
	open->record.device_ns = NEVER;
	open->record.error = 0;
	open->begun_ns = begun;
	open->end = last;
	open->tally = index;
	open->address = (u64)rq;
	return 0;
}

INLINE int complete(struct request *rq, s32 error, u32 bytes)
{
	u32 disk_dev = disk_of(rq), len_bytes = FIELD(rq, __data_len), cmd_flags = FIELD(rq, cmd_flags), index;
	struct plumb_open *open = open_of(rq, disk_dev);
	struct plumb_tally *tally;
	u64 now;

	if (!open || is_of_driver(cmd_flags))
		return 0;
	if (open->address != (u64)rq) {
		/* Issued before anybody looked, or not wanted; or the end of a flush, which was issued as another request. */
		index = pids || !len_bytes || !(ops >> op_of(cmd_flags) & 1) ? NONE : tally_index(disk_dev);
		tally = index == NONE ? 0 : at(&tallies, index);
		/* A write that asked for a flush ends with its error: that is recorded. */
		if (tally)
			count_unseen(tally, op_of(cmd_flags), cmd_flags & REQ_FLAG(PREFLUSH) ? 0 : error);
		return 0;
	}
	tally = at(&tallies, open->tally & tally_mask);
	if (!tally)
		return 0;
	if (bytes < len_bytes) {
		ADD(tally->partial_completions, 1);
		return 0;
	}
	now = bpf_ktime_get_ns();
	open->record.device_ns = now > open->record.issued_ns ? now - open->record.issued_ns : 0;
	open->record.error = is_failure(error) ? error : 0;
	hand_over(open, tally);
	open->address = 0;
	return 0;
}

/* Notes who sends a bio: what issues its request later may be another. */
INLINE int queue(struct bio *bio)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);
	u32 dev = FIELD(bdev, bd_dev);
	u64 sector = FIELD(bio, bi_iter.bi_sector);
	struct plumb_origin *origin;

	if (!FIELD(bio, bi_iter.bi_size))
		return 0;
	/* A place is taken from whoever had it: others take none. */
	if (only_wanted && tally_index(number_of(FIELD(bdev, bd_disk))) == NONE)
		return 0;
	origin = origin_at(dev, sector);
	if (!origin)
		return 0;
	origin->sector = sector;
	origin->dev = dev;
	origin->tgid = bpf_get_current_pid_tgid() >> 32;
	origin->thread = bpf_get_current_pid_tgid();
	origin->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(origin->comm, sizeof(origin->comm));
	return 0;
}

/* The rest of a bio that was cut has the sender of its front. The tracepoint itself tells but 32 bits of the sector. */
INLINE int split(struct bio *front)
{
	struct block_device *bdev = FIELD(front, bi_bdev);
	u32 dev = FIELD(bdev, bd_dev);
	u64 from = FIELD(front, bi_iter.bi_sector), sector = from + (FIELD(front, bi_iter.bi_size) >> 9);
	struct plumb_origin *origin = origin_at(dev, from), *rest = origin_at(dev, sector);

	if (!origin || !rest || origin->sector != from || origin->dev != dev)
		return 0;
	rest->sector = sector;
	rest->dev = dev;
	rest->tgid = origin->tgid;
	rest->thread = origin->thread;
	rest->cgroup = origin->cgroup;
	__builtin_memcpy(rest->comm, origin->comm, sizeof(rest->comm));
	return 0;
}

TRACEPOINT("block_rq_issue") int issue_request(u64 *ctx)
{
	return issue((struct request *)ctx[0]);
}

/* Where the queue comes first. */
TRACEPOINT("block_rq_issue") int issue_queue_request(u64 *ctx)
{
	return issue((struct request *)ctx[1]);
}

TRACEPOINT("block_rq_complete") int complete_request(u64 *ctx)
{
	return complete((struct request *)ctx[0], (s32)ctx[1], (u32)ctx[2]);
}

TRACEPOINT("block_bio_queue") int queue_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];

	return is_recorded(bio) ? begin(bio) : queue(bio);
}

TRACEPOINT("block_split") int split_bio(u64 *ctx)
{
	return split((struct bio *)ctx[0]);
}

/* Loaded where bios are recorded. The queue comes first. */
TRACEPOINT("block_bio_complete") int end_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];
	s32 error = FIELD(bio, bi_status);

	if (!end_at(address_of(bio), error))
		count_unmatched(bio, error);
	return 0;
}

/* Likewise: a driver may hand a bio on to a disk below that makes a request of it. */
TRACEPOINT("block_rq_complete") int end_request_bios(u64 *ctx)
{
	return end_bios_of((struct request *)ctx[0], (s32)ctx[1], (u32)ctx[2]);
}
