/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The bio layer, summed up: an I/O counts when a device is given it, and is timed when all of it has ended. By default only
 * devices count that make no requests of their bios; those of the others are seen as requests.
 */
#ifndef PLUMB_COUNT_BIOS_H
#define PLUMB_COUNT_BIOS_H

#include "ended.h"
#include "senders.h"
#include "bios.h"

_Static_assert(sizeof(struct plumb_flight) == PLUMB_FLIGHT_BYTES, "flight");

const volatile u32 bio_flight_mask;

ARRAY_MAP(bio_flights, struct plumb_flight);

INLINE struct plumb_flight *bio_flight_at(u32 place)
{
	return at(&bio_flights, place & bio_flight_mask);
}

INLINE u64 came_ns(u32 place)
{
	struct plumb_flight *flight = bio_flight_at(place);

	return flight ? flight->issued_ns : ~0ULL;
}

/* A bio of which the end never came. */
INLINE void forget(u32 lane, const struct plumb_flight *flight, u64 now)
{
	u32 index = flight->device & device_mask;
	struct plumb_device *device = flight->device == NONE ? 0 : at(&devices, index);

	if (!device)
		return;
	ADD(device->unmatched_issues, 1);
	change_depth(lane, index, device, PLUMB_DEPTH_NS, -1, now);
}

/* Where a bio that begins is noted; 0 when others took every place in that moment. */
INLINE struct plumb_flight *bio_flight_of(u32 lane, u64 address, u64 now)
{
	u64 before;
	u32 place = board(address, &before);
	struct plumb_flight *flight = place == NONE ? 0 : bio_flight_at(place);

	if (flight && before)
		forget(lane, flight, now);
	return flight;
}

/* Notes a bio that does not count. */
INLINE void pass_over(u32 lane, struct bio *bio)
{
	u64 address = address_of(bio), now = bpf_ktime_get_ns();
	struct plumb_flight *flight = bio_flight_of(lane, address, now);

	if (!flight)
		return;
	flight->issued_ns = now;
	flight->device = NONE;
	flight->address = address;
}

INLINE struct plumb_device *device_of_bio(struct bio *bio, u32 *index, u32 *place, u32 *dev)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);
	struct gendisk *disk = FIELD(bdev, bd_disk);

	if (!counts_bios_of(disk))
		return 0;
	*dev = FIELD(bdev, bd_dev);
	*index = *dev ? device_of(disk, *dev, number_of(disk), place) : NONE;
	if (*index == NONE) {
		struct plumb_totals *totals = all();

		if (!only_wanted && totals)
			ADD(totals->unlisted_devices, 1);
		return 0;
	}
	return at(&devices, *index & device_mask);
}

INLINE int begin_bio(struct bio *bio)
{
	u32 opf = FIELD(bio, bi_opf), sectors = FIELD(bio, bi_iter.bi_size) >> 9, dev = 0, lane;
	struct io io = { .sector = FIELD(bio, bi_iter.bi_sector), .sectors = sectors, .op = op_of(opf) };
	struct plumb_device *device;
	struct plumb_flight *flight;
	struct sent_by by;
	u64 address, key;

	if (!sectors) {
		if (!(opf & REQ_FLAG(PREFLUSH)))
			return 0;
		io.op = PLUMB_OP_FLUSH;
	}
	if (is_unwanted_op(io.op))
		return 0;
	device = device_of_bio(bio, &io.index, &io.place, &dev);
	if (!device)
		return 0;
	by = sent_by(bio, dev);
	lane = bpf_get_smp_processor_id() & lane_mask;
	if (!by.is_wanted) {
		/* Its end does not count either; with a filter no end without a beginning does. */
		if (sectors && (!is_by_sender() || place_of(address_of(bio)) != NONE))
			pass_over(lane, bio);
		return 0;
	}
	if (!sectors) {
		ADD(device->flushes, 1);
		return 0;
	}
	io.is_ahead = opf & REQ_FLAG(RAHEAD);
	io.now = bpf_ktime_get_ns();
	key = begin(lane, device, &io);
	count_process(lane, by.process, io.sector, sectors, by.is_written_back);
	note_thread(by.process, by.thread, io.now);
	address = address_of(bio);
	flight = bio_flight_of(lane, address, io.now);
	if (!flight) {
		ADD(device->unmatched_issues, 1);
		return 0;
	}
	flight->issued_ns = io.now;
	flight->end = io.sector + sectors;
	flight->key = key;
	flight->device = io.index;
	flight->op = io.op;
	flight->sectors = sectors;
	flight->process = by.process;
	flight->address = address;
	change_depth(lane, io.index, device, PLUMB_DEPTH_NS, 1, io.now);
	return 0;
}

/* An end without a beginning: of a bio that came before anybody looked. Pieces that were cut off look alike but for a flag. */
INLINE void count_unmatched(struct bio *bio, s32 error)
{
	struct plumb_device *device;
	u32 index, place, dev, opf = FIELD(bio, bi_opf);

	if (FIELD(bio, bi_flags) & (1 << BIO_CLONED) || is_by_sender() || is_unwanted_op(op_of(opf)))
		return;
	device = device_of_bio(bio, &index, &place, &dev);
	if (!device)
		return;
	/* A flush is a write without a length. No flight notes it. */
	if (opf & REQ_FLAG(PREFLUSH))
		end_unseen(device, PLUMB_OP_FLUSH, 0, error);
	else
		end_unseen(device, op_of(opf), 1, error);
}

__attribute__((noinline)) int end_at(u64 address, s32 error)
{
	u32 place = place_of(address);
	struct plumb_flight *flight = place == NONE ? 0 : bio_flight_at(place);
	struct plumb_device *device;
	struct ended io = {};
	u32 is_counted;

	if (!flight)
		return 0;
	/* All that is needed of it, before another bio may take its place. */
	io.now = bpf_ktime_get_ns();
	io.ns = io.now > flight->issued_ns ? io.now - flight->issued_ns : 0;
	io.key = flight->key;
	io.op = flight->op;
	io.sectors = flight->sectors;
	io.process = flight->process;
	io.end = flight->end;
	io.bio = address;
	io.index = flight->device & device_mask;
	io.error = error;
	is_counted = flight->device != NONE;
	flight->address = 0;
	if (!leave(address, place) || !is_counted)
		return 1;
	device = at(&devices, io.index);
	if (!device)
		return 1;
	end(bpf_get_smp_processor_id() & lane_mask, device, &io);
	return 1;
}

INLINE int split_counted_bio(struct bio *piece)
{
	struct plumb_device *device;
	u32 index, place, dev;

	if (is_unwanted_op(op_of(FIELD(piece, bi_opf))))
		return 0;
	device = device_of_bio(piece, &index, &place, &dev);
	if (device && (!(is_by_sender() || own_tgid) || sent_by(piece, dev).is_wanted))
		ADD(device->splits, 1);
	return 0;
}

#endif
