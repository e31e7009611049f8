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

/* 1 when any bit is set: by arithmetic, since a branch on what is measured is mispredicted. */
INLINE u64 any(u64 value)
{
	value = -value;
	__asm__("" : "+r"(value));
	return value >> 63;
}

/* Number of bits up to the highest one that is set. */
INLINE u32 bits(u64 value)
{
	u64 bits, shift;

	bits = any(value >> 32) << 5;
	value >>= bits;
	shift = any(value >> 16) << 4;
	value >>= shift;
	bits += shift;
	shift = any(value >> 8) << 3;
	value >>= shift;
	bits += shift;
	shift = any(value >> 4) << 2;
	value >>= shift;
	bits += shift;
	shift = any(value >> 2) << 1;
	value >>= shift;
	bits += shift;
	return bits + value - (value >> 1 & value & 1);
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
