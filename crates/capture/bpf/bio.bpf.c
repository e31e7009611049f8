// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The bio layer, summed up: an I/O counts when a device is given it, and is timed when all of it has ended. By default only
 * devices count that make no requests of their bios; those of the others are seen as requests.
 *
 * At its end a bio has moved on: its place is used up, and its device may be another, below. What was noted when it came
 * counts. The rest of a bio that is cut in two comes back without being queued again; the piece cut off ends by itself.
 * A bio that became part of a request ends without notice: with the request that has the end of it.
 */
#include "kernel.h"
#include "count.h"
#include "filter.h"
#include "request.h"

_Static_assert(sizeof(struct plumb_flight) == PLUMB_FLIGHT_BYTES, "flight");
_Static_assert(sizeof(struct plumb_bios) == PLUMB_BIOS_BYTES, "bios");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile u32 bios_mask;
const volatile u32 flight_mask;
const volatile u32 every_device;

ARRAY_MAP(bios, struct plumb_bios);
ARRAY_MAP(flights, struct plumb_flight);

/* The address as a number that can be reckoned with: the verifier knows a copy of it for nothing else. */
INLINE u64 address_of(struct bio *bio)
{
#ifdef PLUMB_COPY_FIELDS
	return (u64)bio;
#else
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &bio);
	return address;
#endif
}

INLINE struct plumb_flight *flight_at(u32 bucket, u32 slot)
{
	return at(&flights, (bucket * PLUMB_BIOS + slot) & flight_mask);
}

/* The slot of a bucket whose bio is longest in flight. */
static __attribute__((noinline)) u32 oldest(u32 bucket)
{
	u64 oldest_ns = ~0ULL;
	u32 slot, found = 0;

	for (slot = 0; slot < PLUMB_BIOS; slot++) {
		struct plumb_flight *flight = flight_at(bucket, slot);

		if (flight && flight->issued_ns < oldest_ns) {
			oldest_ns = flight->issued_ns;
			found = slot;
		}
	}
	return found;
}

/* A bio of which the end never came. */
INLINE void forget(u32 lane, const struct plumb_flight *flight, u64 now)
{
	u32 index = flight->device & device_mask;
	struct plumb_device *device = at(&devices, index);

	if (!device)
		return;
	ADD(device->unmatched_issues, 1);
	change_depth(lane, index, device, -1, now);
}

/* Where a bio that begins is noted; 0 when others took every place in that moment. */
INLINE struct plumb_flight *board(u32 lane, u64 address, u64 now)
{
	u32 bucket = MIX(address) & bios_mask, slot, old;
	struct plumb_bios *alike = at(&bios, bucket);
	struct plumb_flight *flight;
	u64 before;

	if (!alike)
		return 0;
	/* The address of a bio whose end was missed is given to another one. */
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (alike->address[slot] == address) {
			flight = flight_at(bucket, slot);
			if (flight)
				forget(lane, flight, now);
			return flight;
		}
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (!alike->address[slot] && !__sync_val_compare_and_swap(&alike->address[slot], 0, address))
			return flight_at(bucket, slot);
	old = oldest(bucket) & (PLUMB_BIOS - 1);
	before = alike->address[old];
	if (__sync_val_compare_and_swap(&alike->address[old], before, address) != before)
		return 0;
	flight = flight_at(bucket, old);
	if (flight && before)
		forget(lane, flight, now);
	return flight;
}

INLINE struct plumb_device *device_of_bio(struct bio *bio, u32 *index, u32 *place, u32 *dev)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);
	struct gendisk *disk = FIELD(bdev, bd_disk);

	if (!every_device && makes_requests(disk))
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

INLINE int queue(struct bio *bio)
{
	u32 opf = FIELD(bio, bi_opf), sectors = FIELD(bio, bi_iter.bi_size) >> 9, dev = 0, lane;
	struct io io = { .sector = FIELD(bio, bi_iter.bi_sector), .sectors = sectors, .op = op_of(opf) };
	struct plumb_device *device;
	struct plumb_flight *flight;
	u32 process;
	u64 address, key;

	if (!sectors) {
		if (!(opf & REQ_FLAG(PREFLUSH)))
			return 0;
		io.op = PLUMB_OP_FLUSH;
	}
	if (is_unwanted_op(io.op))
		return 0;
	device = device_of_bio(bio, &io.index, &io.place, &dev);
	if (!device || is_unwanted_task())
		return 0;
	if (!sectors) {
		ADD(device->flushes, 1);
		return 0;
	}
	lane = bpf_get_smp_processor_id() & lane_mask;
	io.now = bpf_ktime_get_ns();
	key = begin(lane, device, &io);
	process = process_index(dev);
	count_process(process, io.sector, sectors);
	address = address_of(bio);
	flight = board(lane, address, io.now);
	if (!flight) {
		ADD(device->unmatched_issues, 1);
		return 0;
	}
	flight->issued_ns = io.now;
	flight->key = key;
	flight->device = io.index;
	flight->op = io.op;
	flight->process = process;
	flight->thread = bpf_get_current_pid_tgid();
	flight->address = address;
	change_depth(lane, io.index, device, 1, io.now);
	return 0;
}

/* An end without a beginning: of a bio that came before anybody looked. Pieces that were cut off look alike but for a flag. */
INLINE void count_unmatched(struct bio *bio)
{
	struct plumb_device *device;
	u32 index, place, dev;

	if (FIELD(bio, bi_flags) & (1 << BIO_CLONED) || is_by_sender() || is_unwanted_op(op_of(FIELD(bio, bi_opf))))
		return;
	device = device_of_bio(bio, &index, &place, &dev);
	if (device)
		ADD(device->unmatched_completions, 1);
}

/*
 * Notes the end of a bio; 0 when nobody saw it begin. Not static, so that the verifier looks at it once and not again for
 * each bio of a request.
 */
__attribute__((noinline)) int end_at(u64 address, u32 is_failed)
{
	u32 bucket = MIX(address) & bios_mask, found = NONE, slot, lane, index, op;
	struct plumb_bios *alike = at(&bios, bucket);
	struct plumb_device *device;
	struct plumb_flight *flight;
	u64 now, ns, key;

	if (!alike)
		return 0;
#pragma unroll
	for (slot = 0; slot < PLUMB_BIOS; slot++)
		if (alike->address[slot] == address)
			found = slot;
	flight = found == NONE ? 0 : flight_at(bucket, found);
	if (!flight)
		return 0;
	/* All that is needed of it, before another bio may take its place. */
	now = bpf_ktime_get_ns();
	ns = now > flight->issued_ns ? now - flight->issued_ns : 0;
	key = flight->key;
	op = flight->op;
	index = flight->device & device_mask;
	flight->address = 0;
	if (__sync_val_compare_and_swap(&alike->address[found & (PLUMB_BIOS - 1)], address, 0) != address)
		return 1;
	device = at(&devices, index);
	if (!device)
		return 1;
	lane = bpf_get_smp_processor_id() & lane_mask;
	end(lane, index, device, op, key, ns, is_failed, now);
	return 1;
}

/* Bios of a request of which the end is noted; the rest of a longer one ends without latency. */
#define REQUEST_BIOS 64

INLINE int complete_request(struct request *rq, u32 is_failed, u32 bytes)
{
	struct bio *bio = FIELD(rq, bio);
	u32 number;

	if (is_of_driver(FIELD(rq, cmd_flags)))
		return 0;
	for (number = 0; number < REQUEST_BIOS && bio; number++) {
		u32 size = FIELD(bio, bi_iter.bi_size);

		if (!size || size > bytes)
			break;
		bytes -= size;
		end_at(address_of(bio), is_failed);
		bio = FIELD(bio, bi_next);
	}
	return 0;
}

INLINE int split(struct bio *piece)
{
	struct plumb_device *device;
	u32 index, place, dev;

	if (is_unwanted_op(op_of(FIELD(piece, bi_opf))))
		return 0;
	device = device_of_bio(piece, &index, &place, &dev);
	if (device && !is_unwanted_task())
		ADD(device->splits, 1);
	return 0;
}

TRACEPOINT("block_bio_queue") int begin_bio(u64 *ctx)
{
	return queue((struct bio *)ctx[0]);
}

/* The queue comes first. */
TRACEPOINT("block_bio_complete") int end_bio(u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[1];

	if (!end_at(address_of(bio), FIELD(bio, bi_status)))
		count_unmatched(bio);
	return 0;
}

/* Loaded where devices that make requests are watched. */
TRACEPOINT("block_rq_complete") int end_request_bios(u64 *ctx)
{
	return complete_request((struct request *)ctx[0], (s32)ctx[1] != 0, (u32)ctx[2]);
}

TRACEPOINT("block_split") int split_bio(u64 *ctx)
{
	return split((struct bio *)ctx[0]);
}
