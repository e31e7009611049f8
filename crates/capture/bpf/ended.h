/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The end of an I/O: its time, and the slowest and the failed ones, which are kept one by one. */
#ifndef PLUMB_ENDED_H
#define PLUMB_ENDED_H

#include "count.h"
#include "file.h"

_Static_assert(sizeof(struct plumb_kept) == PLUMB_KEPT_BYTES, "kept");

const volatile u32 kept_mask;

ARRAY_MAP(kept, struct plumb_kept);

/* An I/O that ended. */
struct ended {
	u32 index; /* of its device */
	u32 op;
	u32 sectors;
	u32 process; /* index */
	u64 end; /* sector */
	u64 key;
	u64 ns;
	u64 now;
	u64 bio; /* address of the first; 0: none */
	s32 error;
};

INLINE struct plumb_kept *kept_at(u32 index, u32 slot)
{
	return at(&kept, (index * 2 * PLUMB_KEPT + slot) & kept_mask);
}

/* The file of an I/O that is kept. A global function, as device_index() is. */
__attribute__((noinline)) u32 keep_file(u32 index, u32 slot, u64 bio, u32 op)
{
	struct plumb_kept *kept = kept_at(index, slot);
	struct inode *inode = bio ? file_of_bio(bio, op) : 0;

	if (!kept)
		return 0;
	*(volatile char *)kept->name = 0;
	*(volatile u64 *)&kept->inode = inode ? COPY(inode, i_ino) : 0;
	if (inode)
		name_of(inode, kept->name, sizeof(kept->name));
	return inode != 0;
}

/* The time goes last, and is 0 meanwhile: a reader passes over what is half written. */
INLINE void keep(u32 slot, const struct ended *io)
{
	struct plumb_kept *kept = kept_at(io->index, slot);

	if (!kept)
		return;
	*(volatile u64 *)&kept->ns = 0;
	*(volatile u64 *)&kept->end = io->end;
	*(volatile u64 *)&kept->ended_ns = io->now;
	*(volatile u32 *)&kept->sectors = io->sectors;
	*(volatile u32 *)&kept->op = io->op;
	*(volatile u32 *)&kept->process = io->process;
	*(volatile s32 *)&kept->error = io->error;
	keep_file(io->index, slot, io->bio, io->op);
	*(volatile u64 *)&kept->ns = io->ns ? io->ns : 1;
}

/* Puts an I/O in the place of the fastest of the slowest. Two CPUs that do so at once may lose one of the two. */
INLINE void keep_slow(struct plumb_device *device, const struct ended *io)
{
	u64 least = ~0ULL, next = ~0ULL;
	u32 slot, place = 0;
	struct plumb_kept *kept;

#pragma unroll
	for (slot = 0; slot < PLUMB_KEPT; slot++) {
		kept = kept_at(io->index, slot);
		if (!kept)
			return;
		if (kept->ns < least) {
			next = least;
			least = kept->ns;
			place = slot;
		} else if (kept->ns < next) {
			next = kept->ns;
		}
	}
	keep(place, io);
	device->slow_floor = next < io->ns ? next : io->ns;
}

INLINE void keep_failed(struct plumb_device *device, const struct ended *io)
{
	u32 slot = (u32)__sync_fetch_and_add(&device->failures_kept, 1);

	if (slot < PLUMB_KEPT)
		keep(PLUMB_KEPT + slot, io);
}

/* Counts the end of an I/O whose beginning nobody saw. A flush has no length, and its beginning is never noted. */
INLINE void end_unseen(struct plumb_device *device, u32 op, u32 length, s32 error)
{
	if (length)
		ADD(device->unmatched_completions, 1);
	if (is_failure(error))
		ADD(device->failed[op & 7], 1);
}

/* Counts the time of an I/O that ended. The lane is that of this CPU, which may be another than that where it began. */
INLINE void end(u32 lane, struct plumb_device *device, const struct ended *io)
{
	u64 key = io->key, ns = io->ns;
	struct plumb_row *row = key && !(key & COARSE_BIT) ? row_of(lane, key) : 0;
	u32 is_shared = lanes_shared;

	if (unlikely(key && !row)) {
		is_shared = 1;
		row = coarse_row_of(key & COARSE_BIT ? key : coarse_key(key, key & ((1 << PLUMB_KEY_LENGTH_BITS) - 1)));
	}
	if (row) {
		u64 squared = ns >> 32 ? ~0ULL : ns * ns, before;

		/* The other way round than a reader takes them, so that no sum is seen without its squares. */
		before = is_shared ? __sync_fetch_and_add(&row->ns_squared_low, squared) : row->ns_squared_low;
		if (!is_shared)
			*(volatile u64 *)&row->ns_squared_low = before + squared;
		if (before + squared < before)
			COUNT_IN(is_shared, row->ns_squared_high, 1);
		COUNT_IN(is_shared, row->ns_sum, ns);
		COUNT_IN(is_shared, row->timed, 1);
	}
	count(lane, io->index, PLUMB_DEVICE_NS + io->op, log_linear(ns));
	if (unlikely(ns > device->slow_floor))
		keep_slow(device, io);
	if (unlikely(is_failure(io->error))) {
		ADD(device->failed[io->op & 7], 1);
		keep_failed(device, io);
	}
	change_depth(lane, io->index, device, PLUMB_DEPTH_LEFT_NS, -1, io->now);
}

#endif
