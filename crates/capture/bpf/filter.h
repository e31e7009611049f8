/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What alone is to count. The filter is set before the programs are loaded, so that the kernel drops what a condition that
 * was not set would take.
 */
#ifndef PLUMB_FILTER_H
#define PLUMB_FILTER_H

#include "kernel.h"

_Static_assert(sizeof(struct plumb_filter) == 8 * PLUMB_FILTER_WORDS, "filter");

const volatile struct plumb_filter only;

/* Levels of cgroups that are looked through. */
#define CGROUP_LEVELS 16

INLINE u32 is_unwanted_op(u32 op)
{
	return only.unwanted_ops && (only.unwanted_ops >> (op & 7) & 1);
}

/* Whether it matters who sends an I/O. */
INLINE u32 is_by_sender(void)
{
	return only.tgid || only.cgroup || only.comm[0];
}

/* Whether the task is in the cgroup or one below it: at which level the cgroup is differs between namespaces. */
INLINE u32 is_in_cgroup(void)
{
	int level;

#pragma unroll
	for (level = 0; level < CGROUP_LEVELS; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == only.cgroup)
			return 1;
	return 0;
}

INLINE u32 is_unwanted_task(void)
{
	if (only.tgid && only.tgid != bpf_get_current_pid_tgid() >> 32)
		return 1;
	if (only.comm[0]) {
		u64 comm[2] = { 0, 0 };

		bpf_get_current_comm(comm, sizeof(comm));
		if (comm[0] != only.comm[0] || comm[1] != only.comm[1])
			return 1;
	}
	return only.cgroup && !is_in_cgroup();
}

#endif
