// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The block layers, summed up, in one set of maps: each disk is seen at one layer. One program serves both layers at a
 * tracepoint, because a run of a program costs more than the question for the layer.
 */
#include "kernel.h"
#include "count_requests.h"
#include "count_bios.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader. */
const volatile u32 watches_requests;
const volatile u32 watches_bios;

TRACEPOINT("block_rq_issue") int issue_request(u64 *ctx)
{
	return issue((struct request *)ctx[0]);
}

/* Where the queue comes first. */
TRACEPOINT("block_rq_issue") int issue_queue_request(u64 *ctx)
{
	return issue((struct request *)ctx[1]);
}

TRACEPOINT("block_rq_complete") int complete_request(u64 *ctx)
{
	return complete((struct request *)ctx[0], (s32)ctx[1], (u32)ctx[2]);
}

/* Whether the bio counts by itself; else it is part of a request. */
INLINE u32 is_counted(struct bio *bio)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);

	return watches_bios && counts_bios_of(FIELD(bdev, bd_disk));
}

TRACEPOINT("block_bio_queue") int queue_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];

	if (is_counted(bio))
		return begin_bio(bio);
	return watches_requests ? note_sender(bio) : 0;
}

TRACEPOINT("block_split") int split_bio(u64 *ctx)
{
	struct bio *piece = (struct bio *)ctx[0];

	if (is_counted(piece))
		return split_counted_bio(piece);
	return watches_requests ? split_request_bio(piece) : 0;
}

/* The queue comes first. */
TRACEPOINT("block_bio_complete") int end_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];
	s32 error = FIELD(bio, bi_status);

	if (!end_at(address_of(bio), error))
		count_unmatched(bio, error);
	return 0;
}

/* Loaded where devices that make requests are watched by their bios. */
TRACEPOINT("block_rq_complete") int end_request_bios(u64 *ctx)
{
	return end_bios_of((struct request *)ctx[0], (s32)ctx[1], (u32)ctx[2]);
}
