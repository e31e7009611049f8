/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a request and a bio tell alike. */
#ifndef PLUMB_BLOCK_H
#define PLUMB_BLOCK_H

#include "kernel.h"

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

/* Whether a disk makes requests of the bios that it is given; else its driver takes them as they are (dm, md, zram). */
INLINE u32 makes_requests(struct gendisk *disk)
{
	struct request_queue *queue = FIELD(disk, queue);

	return FIELD(queue, mq_ops) != 0;
}

#endif
