/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is recorded of requests and bios alike: whose disk, who is wanted, and the way to user space. */
#ifndef PLUMB_TALLY_H
#define PLUMB_TALLY_H

#include "block.h"
#include "mix.h"
#include "record.h"

#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1
#define NEVER (~0ULL)

static long (*bpf_ringbuf_output)(void *ring, void *from, u64 size, u64 flags) = (void *)130;

/* Set by the loader. Each mask is one less than the entries of its map. */
const volatile u32 tally_mask;
const volatile u32 only_wanted; /* disks that are not listed are not recorded */
const volatile u32 ops = ~0u; /* a bit for each operation that is wanted */
const volatile u32 pids; /* how many processes are listed; 0: all are wanted */

ARRAY_MAP(tallies, struct plumb_tally);
ARRAY_MAP(wanted_pids, u32);
ARRAY_MAP(unlisted, u64); /* I/O of disks for which no tally was free */

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 4096);
} ring SEC(".maps");

/* The tally of a disk; a new one gets the next that is free. */
static __attribute__((noinline)) u32 tally_index(u32 dev)
{
	u32 from = MIX(dev), probe;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		u32 index = (from + probe) & tally_mask, found;
		struct plumb_tally *tally = at(&tallies, index);

		if (!tally)
			break;
		found = tally->dev;
		if (!found && !only_wanted) {
			found = __sync_val_compare_and_swap(&tally->dev, 0, dev);
			if (!found)
				return index;
		}
		if (found == dev)
			return index;
	}
	return NONE;
}

INLINE u32 is_wanted_pid(u32 tgid)
{
	u32 place;

	if (!pids)
		return 1;
	for (place = 0; place < PLUMB_PIDS; place++) {
		u32 *wanted = at(&wanted_pids, place);

		if (wanted && *wanted == tgid)
			return 1;
	}
	return 0;
}

/* Where the I/O of a disk are counted; 0 when it is not recorded. */
INLINE struct plumb_tally *tally_of(u32 disk_dev, u32 *index)
{
	struct plumb_tally *tally;

	*index = tally_index(disk_dev);
	tally = *index == NONE ? 0 : at(&tallies, *index);
	if (!tally && !only_wanted) {
		u64 *count = at(&unlisted, 0);

		if (count)
			ADD(*count, 1);
	}
	return tally;
}

/* Hands an I/O over. Its place is given free behind that, so that there is none which is neither here nor there. */
INLINE void hand_over(struct plumb_open *open, struct plumb_tally *tally)
{
	if (bpf_ringbuf_output(&ring, &open->record, sizeof(open->record), BPF_RB_NO_WAKEUP))
		ADD(tally->lost, 1);
}

/* Hands an I/O over of which the completion never came. */
INLINE void give_up(struct plumb_open *open)
{
	struct plumb_tally *tally = at(&tallies, open->tally & tally_mask);

	if (!tally)
		return;
	ADD(tally->unmatched_issues, 1);
	hand_over(open, tally);
}

INLINE u32 op_flags_of(u32 cmd_flags)
{
	u32 op_flags = op_of(cmd_flags);

	if (cmd_flags & REQ_FLAG(SYNC))
		op_flags |= PLUMB_FLAG_SYNC;
	if (cmd_flags & REQ_FLAG(META))
		op_flags |= PLUMB_FLAG_META;
	if (cmd_flags & REQ_FLAG(RAHEAD))
		op_flags |= PLUMB_FLAG_AHEAD;
	if (cmd_flags & REQ_FLAG(FUA))
		op_flags |= PLUMB_FLAG_FUA;
	if (cmd_flags & REQ_FLAG(PREFLUSH))
		op_flags |= PLUMB_FLAG_PREFLUSH;
	return op_flags;
}

/* Counts the end of an I/O whose issue nobody saw. */
INLINE void count_unseen(struct plumb_tally *tally, u32 op, s32 error)
{
	ADD(tally->unmatched_completions, 1);
	if (is_failure(error))
		ADD(tally->unseen_failures[op & 7], 1);
}

#endif
