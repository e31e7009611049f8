/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Into which bucket of a histogram a number comes. Rust has the same functions in `plumb_profile::histogram`; a test
 * compiles these for the processor and holds them against those.
 */
#ifndef PLUMB_INDEX_H
#define PLUMB_INDEX_H

#include "abi.h"

#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

/* Number of bits up to the highest one that is set. */
INLINE u32 bits(u64 value)
{
	u32 bits = 0;

	if (value >> 32) { bits += 32; value >>= 32; }
	if (value >> 16) { bits += 16; value >>= 16; }
	if (value >> 8) { bits += 8; value >>= 8; }
	if (value >> 4) { bits += 4; value >>= 4; }
	if (value >> 2) { bits += 2; value >>= 2; }
	return bits + (value > 1 ? 2 : (u32)value);
}

/* The bucket of a time: 0 to 15 stand for themselves, then 16 buckets for each power of two. As in Rust. */
INLINE u32 log_linear(u64 value)
{
	u32 shift, bucket;

	shift = bits(value | 16) - 5;
	bucket = shift * 16 + (u32)(value >> shift);
	return bucket < PLUMB_BUCKETS ? bucket : PLUMB_BUCKETS - 1;
}

/* The power of two at or above a value. As in Rust. */
INLINE u32 power(u64 value)
{
	return value < 2 ? 0 : bits(value - 1);
}

#endif
