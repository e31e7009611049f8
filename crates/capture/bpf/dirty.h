/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The tasks that make pages dirty. Later a worker of the kernel writes these pages to the disk, and the I/O belongs to the
 * task. There is a note for each MiB of a file: the task that last made a page of it dirty. The worker keeps the I/O if other
 * notes displaced this one.
 */
#ifndef PLUMB_DIRTY_H
#define PLUMB_DIRTY_H

#include "filter.h"
#include "mix.h"
#include "page.h"

_Static_assert(sizeof(struct plumb_dirtier) == PLUMB_DIRTIER_BYTES, "dirtier");

const volatile u32 dirtier_mask;

ARRAY_MAP(dirtiers, struct plumb_dirtier);

/* Pages of 4 KiB in a MiB. */
#define PART_BITS 8
/* Notes whose hashes are alike. */
#define DIRTIER_WAYS 4
/* Age of a note, in 2^30 ns, from which on it is not believed: by default the kernel writes pages after 30 s. */
#define NOTE_MAX 300

INLINE u32 is_worker(void)
{
	return (COPY(current(), flags) & PF_KTHREAD) != 0;
}

/* The first of the slots for a MiB of a file. */
INLINE u32 dirtier_slot(u64 mapping, u64 part)
{
	return MIX(mapping ^ part << 44) & dirtier_mask & ~(DIRTIER_WAYS - 1);
}

/* The mapping goes last, and is 0 meanwhile: a reader passes over what is half written. */
INLINE void write_note(struct plumb_dirtier *here, const struct page_place *place, u64 task, u64 now)
{
	*(volatile u64 *)&here->mapping = 0;
	here->part = place->index >> PART_BITS;
	here->task = task;
	here->seen = now;
	here->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(here->comm, sizeof(here->comm));
	*(volatile u64 *)&here->mapping = place->mapping;
}

INLINE int note_dirty(u64 page)
{
	struct page_place place = place_of_page(page);
	u64 part = place.index >> PART_BITS, now = bpf_ktime_get_ns() >> 30, task = bpf_get_current_pid_tgid();
	u32 slot = dirtier_slot(place.mapping, part), way;
	struct plumb_dirtier *oldest = 0;

	if (!place.mapping)
		return 0;
#pragma unroll
	for (way = 0; way < DIRTIER_WAYS; way++) {
		struct plumb_dirtier *here = at(&dirtiers, slot + way);

		if (!here)
			return 0;
		if (here->mapping == place.mapping && here->part == part) {
			/* With a filter each thread is judged by itself. */
			if (is_by_sender() ? here->task == task : here->task >> 32 == task >> 32) {
				if (here->seen != now)
					here->seen = now;
				return 0;
			}
			oldest = here;
			break;
		}
		if (!oldest || here->seen < oldest->seen)
			oldest = here;
	}
	/* A worker that could not write a page makes it dirty once more. */
	if (!oldest || is_worker())
		return 0;
	if (is_by_sender() && is_unwanted_task()) {
		/* It takes no place from those that are wanted. */
		if (oldest->mapping == place.mapping && oldest->part == part) {
			oldest->mapping = 0;
			oldest->seen = 0;
		}
		return 0;
	}
	write_note(oldest, &place, task, now);
	return 0;
}

/* The slot of the note of the task that made dirty what a bio writes; `NONE` where that is not known. */
INLINE u32 dirtier_of(struct bio *bio)
{
	struct page_place place = place_of_bio(address_of(bio), FIELD(bio, bi_iter.bi_idx));
	u64 part = place.index >> PART_BITS, now = bpf_ktime_get_ns() >> 30;
	u32 slot = dirtier_slot(place.mapping, part), way;

	if (!place.mapping)
		return NONE;
#pragma unroll
	for (way = 0; way < DIRTIER_WAYS; way++) {
		struct plumb_dirtier *here = at(&dirtiers, slot + way);

		if (here && here->mapping == place.mapping && here->part == part)
			return now - here->seen <= NOTE_MAX ? slot + way : NONE;
	}
	return NONE;
}

TRACEPOINT("writeback_dirty_folio") int dirty_folio(u64 *ctx)
{
	return note_dirty(address_of((void *)ctx[0]));
}

/* Before there were folios. */
TRACEPOINT("writeback_dirty_page") int dirty_page(u64 *ctx)
{
	return note_dirty(address_of((void *)ctx[0]));
}

#endif
