/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Places in tables: an index is masked, never checked, so that a program stays short. */
#ifndef PLUMB_MIX_H
#define PLUMB_MIX_H

#include "kernel.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL
#define MIX(value) mix((u64)(value))
#define ADD(counter, value) ((void)__sync_fetch_and_add(&(counter), (value)))
#define NONE (~0u)
#define XCHG(word, value) __sync_lock_test_and_set(&(word), (value))

/* Every bit of a value comes to every bit of the result that an index takes: one round would lose the high ones. */
INLINE u32 mix(u64 value)
{
	value *= GOLDEN;
	value ^= value >> 32;
	value *= GOLDEN;
	return value >> 32;
}

INLINE void *at(const void *map, u32 index)
{
	return bpf_map_lookup_elem(map, &index);
}

#endif
