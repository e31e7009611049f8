/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The request layer, summed up: an I/O counts once, when it is first issued, and is timed when the last of it completes. */
#ifndef PLUMB_COUNT_REQUESTS_H
#define PLUMB_COUNT_REQUESTS_H

#include "ended.h"
#include "request.h"
#include "senders.h"

_Static_assert(sizeof(struct plumb_flight) == PLUMB_FLIGHT_BYTES, "flight");
_Static_assert(sizeof(struct plumb_sender) == PLUMB_SENDER_BYTES, "sender");

const volatile u32 flight_mask;
const volatile u32 sender_mask;

ARRAY_MAP(flights, struct plumb_flight);
ARRAY_MAP(senders, struct plumb_sender);

INLINE struct plumb_flight *flight_of(struct request *rq, u32 disk_dev)
{
	return at(&flights, flight_index(rq, disk_dev) & flight_mask);
}

INLINE struct plumb_sender *note_at(u32 dev, u64 sector)
{
	return at(&senders, sender_index(dev, sector) & sender_mask);
}

/* Who sent what begins at a sector; 0 when that is forgotten. */
INLINE struct plumb_sender *sender_of(u32 dev, u64 sector)
{
	struct plumb_sender *sender = note_at(dev, sector);

	return sender && sender->sector == sector && sender->dev == dev ? sender : 0;
}

INLINE void count_unknown_sender(void)
{
	struct plumb_totals *totals = all();

	if (totals)
		ADD(totals->unknown_senders, 1);
}

INLINE int issue(struct request *rq)
{
	u32 cmd_flags = FIELD(rq, cmd_flags), sectors = FIELD(rq, __data_len) >> 9, lane, dev, disk_dev;
	u64 last = FIELD(rq, __sector) + sectors, begun, key;
	struct io io = { .sector = FIELD(rq, __sector), .sectors = sectors, .op = op_of(cmd_flags) };
	struct plumb_flight *flight;
	struct plumb_device *device;
	struct plumb_sender *sender;

	if (is_of_driver(cmd_flags) || is_unwanted_op(io.op))
		return 0;
	dev = dev_of(rq);
	if (!dev)
		return 0;
	disk_dev = disk_of(rq);
	io.index = device_of(gendisk_of(rq), dev, disk_dev, &io.place);
	device = io.index == NONE ? 0 : at(&devices, io.index & device_mask);
	if (!device) {
		struct plumb_totals *totals = all();

		if (!only_wanted && totals)
			ADD(totals->unlisted_devices, 1);
		return 0;
	}
	if (!sectors) {
		/* Whose it is nobody knows. */
		if (!is_by_sender())
			ADD(device->flushes, 1);
		return 0;
	}
	flight = flight_of(rq, disk_dev);
	if (!flight)
		return 0;
	io.is_ahead = cmd_flags & REQ_FLAG(RAHEAD);
	io.now = bpf_ktime_get_ns();
	begun = FIELD(rq, start_time_ns);
	io.waited_ns = begun && io.now > begun ? io.now - begun : 0;
	lane = bpf_get_smp_processor_id() & lane_mask;
	if (flight->address == (u64)rq && flight->end == last && flight->begun_ns == begun) {
		if (flight->device != NONE)
			ADD(device->requeues, 1);
		return 0;
	}
	sender = sender_of(dev, io.sector);
	if (!sender)
		count_unknown_sender();
	if (unlikely(flight->address && flight->device != NONE)) {
		/* Its completion never came. */
		struct plumb_device *other = at(&devices, flight->device & device_mask);

		if (other) {
			ADD(other->unmatched_issues, 1);
			change_depth(lane, flight->device & device_mask, other, PLUMB_DEPTH_NS, -1, io.now);
		}
	}
	if (sender ? !sender->is_wanted : is_by_sender()) {
		/* Its end does not count either, nor does the request if it is issued again. */
		flight->device = NONE;
		flight->begun_ns = begun;
		flight->end = last;
		flight->address = (u64)rq;
		return 0;
	}
	key = begin(lane, device, &io);
	change_depth(lane, io.index, device, PLUMB_DEPTH_NS, 1, io.now);
	/* Behind all that waits for what was written before: nothing ends this I/O as yet. */
	flight->key = key;
	if (sender) {
		count_process(lane, sender->process, io.sector, sectors, sender->is_written_back);
		note_thread(sender->process, sender->thread, io.now);
	}
	flight->begun_ns = begun;
	flight->issued_ns = io.now;
	flight->end = last;
	flight->device = io.index;
	flight->op = io.op;
	flight->sectors = sectors;
	flight->process = sender ? sender->process : NONE;
	flight->address = (u64)rq;
	return 0;
}

INLINE int complete(struct request *rq, s32 error, u32 bytes)
{
	struct plumb_flight *flight;
	struct plumb_device *device;
	u32 length = FIELD(rq, __data_len), cmd_flags = FIELD(rq, cmd_flags), disk_dev;
	struct ended io = {};

	/* A flush has no flight, and is passed over unless it failed. The request that asked for it ends as well, with another operation. */
	if (is_of_driver(cmd_flags) || (!length && (op_of(cmd_flags) != PLUMB_OP_FLUSH || !is_failure(error))))
		return 0;
	disk_dev = disk_of(rq);
	flight = flight_of(rq, disk_dev);
	if (!flight)
		return 0;
	if (flight->address != (u64)rq) {
		/* Issued before anybody looked, or nothing that was asked for, or forgotten. */
		u32 index = 0, dev = dev_of(rq);

		if (is_by_sender() || is_unwanted_op(op_of(cmd_flags)))
			return 0;
		index = dev ? device_of(gendisk_of(rq), dev, disk_dev, &index) : NONE;
		device = index == NONE ? 0 : at(&devices, index & device_mask);
		/* A write that asked for a flush ends with its error: that is counted already. */
		if (device)
			end_unseen(device, op_of(cmd_flags), length, length && cmd_flags & REQ_FLAG(PREFLUSH) ? 0 : error);
		return 0;
	}
	if (flight->device == NONE) {
		if (bytes >= length)
			flight->address = 0;
		return 0;
	}
	device = at(&devices, flight->device & device_mask);
	if (!device)
		return 0;
	if (bytes < length) {
		ADD(device->partial_completions, 1);
		return 0;
	}
	io.index = flight->device & device_mask;
	io.op = flight->op;
	io.sectors = flight->sectors;
	io.process = flight->process;
	io.end = flight->end;
	io.key = flight->key;
	io.bio = address_of(FIELD(rq, bio));
	io.error = error;
	io.now = bpf_ktime_get_ns();
	io.ns = io.now > flight->issued_ns ? io.now - flight->issued_ns : 0;
	flight->address = 0;
	end(bpf_get_smp_processor_id() & lane_mask, device, &io);
	return 0;
}

/* Notes who sends a bio: what issues its request later may be another. */
INLINE int note_sender(struct bio *bio)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);
	u32 dev = FIELD(bdev, bd_dev);
	u64 sector = FIELD(bio, bi_iter.bi_sector);
	struct plumb_sender *sender;
	struct sent_by by;

	if (!FIELD(bio, bi_iter.bi_size))
		return 0;
	/* A note displaces another one: I/O of disks that are not watched leave none. */
	if (only_wanted && device_index(number_of(FIELD(bdev, bd_disk)), 0, 0) == NONE)
		return 0;
	sender = note_at(dev, sector);
	if (!sender)
		return 0;
	by = sent_by(bio, dev);
	sender->is_wanted = by.is_wanted;
	sender->process = by.process;
	sender->thread = by.thread;
	sender->is_written_back = by.is_written_back;
	sender->sector = sector;
	sender->dev = dev;
	return 0;
}

/* A bio is cut in two: what is left of it behind the piece is sent by the same. */
INLINE int split_request_bio(struct bio *piece)
{
	struct block_device *bdev = FIELD(piece, bi_bdev);
	struct gendisk *disk = FIELD(bdev, bd_disk);
	u32 dev = FIELD(bdev, bd_dev), place, index;
	u64 sector = FIELD(piece, bi_iter.bi_sector);
	struct plumb_sender *sender, *rest;
	struct plumb_device *device;

	if (!makes_requests(disk) || is_unwanted_op(op_of(FIELD(piece, bi_opf))))
		return 0;
	sender = sender_of(dev, sector);
	if (sender ? sender->is_wanted : !is_by_sender()) {
		index = device_of(disk, dev, number_of(disk), &place);
		device = index == NONE ? 0 : at(&devices, index & device_mask);
		if (device)
			ADD(device->splits, 1);
	}
	sector += FIELD(piece, bi_iter.bi_size) >> 9;
	rest = note_at(dev, sector);
	if (sender && rest) {
		rest->is_wanted = sender->is_wanted;
		rest->process = sender->process;
		rest->thread = sender->thread;
		rest->is_written_back = sender->is_written_back;
		rest->sector = sector;
		rest->dev = dev;
	}
	return 0;
}

#endif
