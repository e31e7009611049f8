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
	u64 bits = 0, shift;

	/* Times over 4 s, disks over 2 TiB: the one thing that is the same from I/O to I/O. */
	if (value >> 32) {
		bits = 32;
		value >>= 32;
	}
	shift = any(value >> 16) << 4;
	value >>= shift;
	bits += shift;
	shift = any(value >> 8) << 3;
	value >>= shift;
	bits += shift;
	shift = any(value >> 4) << 2;
	value >>= shift;
	bits += shift;
	/* A digit for each of the 16 values that are left. */
	return bits + (0x4444444433332210ULL >> (value << 2) & 15);
}

/* Number of zeros below the lowest bit that is set; 11 for more, and for none. */
INLINE u32 zeros_below(u64 value)
{
	u32 low = (value | 1 << 11) & -(value | 1 << 11) & 0xfff;

	/* Times this number, each of 16 powers of two has other digits at the top; the second number has the digit for each. */
	return (0xcd7ea84fb6935210ULL >> (((u16)(low * 0x09af) >> 12) << 2) & 15);
}

/* The bucket of a time: 0 to 15 stand for themselves, then 16 buckets for each power of two. As in Rust. */
INLINE u32 log_linear(u64 value)
{
	u32 shift, bucket;

	/* As depths are. */
	if (value < 32)
		return value;
	shift = bits(value) - 5;
	bucket = shift * 16 + (u32)(value >> shift);
	return bucket < PLUMB_BUCKETS ? bucket : PLUMB_BUCKETS - 1;
}

/* The power of two at or above a value. As in Rust. */
INLINE u32 power(u64 value)
{
	return value < 2 ? 0 : bits(value - 1);
}

#endif
