/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Bios in flight, found again at their end by their address: each has a slot of a bucket, and what is noted of it stands at
 * that place in a table of whoever includes this.
 *
 * At its end a bio has moved on: its place is used up, and its device may be another, below. What was noted when it came
 * counts. The rest of a bio that is cut in two comes back without being queued again; the piece cut off ends by itself.
 * A bio that became part of a request ends without notice: with the request that has the end of it.
 */
#ifndef PLUMB_BIOS_H
#define PLUMB_BIOS_H

#include "mix.h"
#include "request.h"

const volatile u32 bios_mask;

ARRAY_MAP(bios, struct plumb_bios);

_Static_assert(sizeof(struct plumb_bios) == PLUMB_BIOS_BYTES, "bios");

/* When the bio came that is noted at a place. */
INLINE u64 came_ns(u32 place);

/*
 * Notes the end of a bio; 0 when nobody saw it begin. Not static, so that the verifier looks at it once and not again for
 * each bio of a request.
 */
__attribute__((noinline)) int end_at(u64 address, s32 error);

/* The slot of a bucket whose bio is longest in flight. */
static __attribute__((noinline)) u32 oldest(u32 bucket)
{
	u64 oldest_ns = ~0ULL;
	u32 slot, found = 0;

	for (slot = 0; slot < PLUMB_BIOS; slot++) {
		u64 ns = came_ns(bucket * PLUMB_BIOS + slot);

		if (ns < oldest_ns) {
			oldest_ns = ns;
			found = slot;
		}
	}
	return found;
}

/*
 * The place for a bio that begins, and the address of another that was noted there, whose end never came; NONE when others
 * took every one in that moment.
 */
INLINE u32 board(u64 address, u64 *before)
{
	u32 bucket = MIX(address) & bios_mask, slot, old;
	struct plumb_bios *alike = at(&bios, bucket);

	*before = 0;
	if (!alike)
		return NONE;
	/* The address of a bio whose end was missed is given to another one. */
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (alike->address[slot] == address) {
			*before = address;
			return bucket * PLUMB_BIOS + slot;
		}
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (!alike->address[slot] && !__sync_val_compare_and_swap(&alike->address[slot], 0, address))
			return bucket * PLUMB_BIOS + slot;
	old = oldest(bucket) & (PLUMB_BIOS - 1);
	*before = alike->address[old];
	if (__sync_val_compare_and_swap(&alike->address[old], *before, address) != *before)
		return NONE;
	return bucket * PLUMB_BIOS + old;
}

/* The place of a bio; NONE when nobody saw it begin. */
INLINE u32 place_of(u64 address)
{
	u32 bucket = MIX(address) & bios_mask, found = NONE, slot;
	struct plumb_bios *alike = at(&bios, bucket);

	if (!alike)
		return NONE;
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (alike->address[slot] == address)
			found = slot;
	return found == NONE ? NONE : bucket * PLUMB_BIOS + found;
}

/* Gives its place free; 0 when another one has it by now. */
INLINE u32 leave(u64 address, u32 place)
{
	struct plumb_bios *alike = at(&bios, place / PLUMB_BIOS & bios_mask);

	return alike && __sync_val_compare_and_swap(&alike->address[place & (PLUMB_BIOS - 1)], address, 0) == address;
}

/* Bios of a request of which the end is noted; the rest of a longer one ends without latency. */
#define REQUEST_BIOS 64

/* The bios that end with a request, or with a part of it. */
INLINE int end_bios_of(struct request *rq, s32 error, u32 bytes)
{
	struct bio *bio = FIELD(rq, bio);
	u32 number;

	if (is_of_driver(FIELD(rq, cmd_flags)))
		return 0;
	for (number = 0; number < REQUEST_BIOS && bio; number++) {
		u32 size = FIELD(bio, bi_iter.bi_size);

		if (size > bytes)
			break;
		bytes -= size;
		end_at(address_of(bio), error);
		bio = FIELD(bio, bi_next);
	}
	return 0;
}

#endif
