/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The processes and threads that send I/O, and the counters of each. */
#ifndef PLUMB_SENDERS_H
#define PLUMB_SENDERS_H

#include "block.h"
#include "count.h"
#include "dirty.h"
#include "filter.h"

_Static_assert(sizeof(struct plumb_process) == PLUMB_PROCESS_BYTES, "process");
_Static_assert(sizeof(struct plumb_thread) == PLUMB_THREAD_BYTES, "thread");
_Static_assert(sizeof(struct plumb_sent) == PLUMB_SENT_BYTES, "sent");

/* Set by the loader. Each mask is one less than the entries of its map (of a lane's part of it). */
const volatile u32 process_mask;
const volatile u32 thread_mask;
const volatile u32 own_tgid; /* reads of this process and its children do not count; 0: all do */

ARRAY_MAP(processes, struct plumb_process);
ARRAY_MAP(threads, struct plumb_thread);
ARRAY_MAP(sent, struct plumb_sent);

INLINE u32 is_own_task(u32 tgid)
{
	if (!own_tgid || tgid == own_tgid)
		return own_tgid != 0;
	return (u32)COPY(COPY(current(), real_parent), tgid) == own_tgid;
}

/*
 * The entry of a process on a disk or partition: the one of a note of dirty pages, or the task at hand for `NONE`. `NONE` when
 * no entry is free. A global function, as device_index() is.
 */
__attribute__((noinline)) u32 process_index(u32 dev, u32 dirtier_slot)
{
	struct plumb_dirtier *dirtier = dirtier_slot == NONE ? 0 : at(&dirtiers, dirtier_slot & dirtier_mask);
	u32 tgid = (dirtier ? dirtier->task : bpf_get_current_pid_tgid()) >> 32;
	u64 who = (u64)dev << 32 | tgid;
	u32 from = MIX(who), probe;
	struct plumb_totals *totals;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		u32 index = (from + probe) & process_mask;
		struct plumb_process *process = at(&processes, index);
		u64 found;

		if (!process)
			return NONE;
		found = process->dev_tgid;
		if (!found) {
			found = __sync_val_compare_and_swap(&process->dev_tgid, 0, who);
			if (!found) {
				/* User space may have given the entry free: all of it is written. */
				if (dirtier) {
					__builtin_memcpy(process->comm, dirtier->comm, sizeof(process->comm));
					process->cgroup = dirtier->cgroup;
					process->is_own = own_tgid && tgid == own_tgid;
				} else {
					bpf_get_current_comm(process->comm, sizeof(process->comm));
					process->cgroup = bpf_get_current_cgroup_id();
					process->is_own = is_own_task(tgid);
				}
				return index;
			}
		}
		if (found == who)
			return index;
	}
	totals = all();
	if (totals)
		ADD(totals->processes_lost, 1);
	return NONE;
}

/* Who sends a bio. */
struct sent_by {
	u32 process; /* index; `NONE` when it is not wanted, or nobody knows */
	u32 thread; /* 0: not known */
	u32 is_wanted;
	u32 is_written_back;
};

/* The sender of a bio: the task at hand or, where that is a worker of the kernel, the one that made the pages dirty. */
INLINE struct sent_by sent_by(struct bio *bio, u32 dev)
{
	struct sent_by by = { NONE, bpf_get_current_pid_tgid(), 1, 0 };
	u32 op = op_of(FIELD(bio, bi_opf)), slot = op == PLUMB_OP_WRITE && is_worker() ? dirtier_of(bio) : NONE;
	struct plumb_process *process;

	if (slot != NONE) {
		/* Only wanted tasks have notes. */
		by.thread = 0;
		by.is_written_back = 1;
	} else if (is_by_sender()) {
		by.is_wanted = !is_unwanted_task();
	}
	if (!by.is_wanted)
		return by;
	by.process = process_index(dev, slot);
	process = own_tgid && op == PLUMB_OP_READ && by.process != NONE ? at(&processes, by.process) : 0;
	if (process && process->is_own)
		by.is_wanted = 0;
	return by;
}

/* Notes that a thread sends an I/O now. Of many that hash alike the one that was not seen for longest is forgotten. */
INLINE void note_thread(u32 process, u32 thread, u64 now)
{
	u64 who = (u64)process << 32 | thread;
	struct plumb_thread *oldest = 0;
	u32 from = MIX(who), probe;

	if (process == NONE || !thread)
		return;
	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		struct plumb_thread *here = at(&threads, (from + probe) & thread_mask);
		u64 found;

		if (!here)
			return;
		found = here->process_thread;
		if (!found)
			found = __sync_val_compare_and_swap(&here->process_thread, 0, who);
		if (!found || found == who) {
			/* A line that several CPUs read is written seldom. */
			if (here->seen_ns >> PLUMB_SEEN_BITS != now >> PLUMB_SEEN_BITS)
				here->seen_ns = now;
			return;
		}
		if (!oldest || here->seen_ns < oldest->seen_ns)
			oldest = here;
	}
	if (oldest) {
		oldest->process_thread = who;
		oldest->seen_ns = now;
	}
}

/* Nothing for `NONE`. */
INLINE void count_process(u32 lane, u32 index, u64 sector, u32 sectors, u32 is_written_back)
{
	struct plumb_sent *here = index == NONE ? 0 : at(&sent, lane * (process_mask + 1) + (index & process_mask));
	u32 zeros = zeros_below(sector);

	if (!here)
		return;
	COUNT(here->bytes, (u64)sectors << 9);
	/* It is never more, which the verifier cannot know. */
	COUNT(here->by_alignment[zeros < 11 ? zeros : 11], 1);
	if (is_written_back)
		COUNT(here->written_back, 1);
}

#endif
