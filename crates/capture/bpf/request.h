/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a request tells of itself. */
#ifndef PLUMB_REQUEST_H
#define PLUMB_REQUEST_H

#include "kernel.h"
#include "mix.h"

INLINE u32 op_of(u32 cmd_flags)
{
	switch (cmd_flags & REQ_OP_MASK) {
	case REQ_OP_READ: return PLUMB_OP_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND: return PLUMB_OP_WRITE;
	case REQ_OP_FLUSH: return PLUMB_OP_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE: return PLUMB_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES: return PLUMB_OP_ZERO;
	default: return PLUMB_OP_OTHER;
	}
}

INLINE u32 number_of(struct gendisk *disk)
{
	return (u32)FIELD(disk, major) << 20 | (u32)FIELD(disk, first_minor);
}

INLINE struct gendisk *gendisk_of(struct request *rq)
{
	struct request_queue *queue = FIELD(rq, q);

	return FIELD(queue, disk);
}

INLINE u32 disk_of(struct request *rq)
{
	return number_of(gendisk_of(rq));
}

/* The disk or partition that the request is accounted to. */
INLINE u32 dev_of(struct request *rq)
{
	struct block_device *part = FIELD(rq, part);

	if (!part) {
		struct bio *bio = FIELD(rq, bio);

		/* Without accounting (queue/iostats) only the bio knows; a flush has none. */
		if (!bio)
			return disk_of(rq);
		part = FIELD(bio, bi_bdev);
	}
	return FIELD(part, bd_dev);
}

/* A command of the driver, which moves no data of the disk. */
INLINE u32 is_of_driver(u32 cmd_flags)
{
	u32 op = cmd_flags & REQ_OP_MASK;

	return op >= REQ_OP_DRV_IN && op <= REQ_OP_DRV_OUT;
}

/* By what a request is found again at its end, for a mask to take. */
INLINE u32 flight_index(struct request *rq, u32 disk_dev)
{
	struct blk_mq_hw_ctx *queue = FIELD(rq, mq_hctx);
	/* The scheduler's tag stays when a request is put back and issued again, the driver's changes. */
	s32 tag = FIELD(rq, internal_tag);

	if (tag < 0)
		tag = FIELD(rq, tag);
	/* Tags of a queue lie behind each other, so that none of them share an entry. */
	return MIX((u64)disk_dev << 16 ^ FIELD(queue, queue_num)) + (u32)tag;
}

/* Where the sender of a bio is noted, for a mask to take. */
INLINE u32 sender_index(u32 dev, u64 sector)
{
	return MIX(sector ^ (u64)dev << 36);
}

#endif
