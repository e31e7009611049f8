/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What an I/O adds to, whatever layer it was seen at. Everything that is counted lies in arrays that user space maps, and
 * only grows: a reader takes the difference to what it saw before, and nothing is ever reset under the hands of a CPU.
 *
 * Each CPU has its lane of counters, so that CPUs do not wait for each other. The kernel lets no program interrupt itself
 * on a CPU, so what only one program counts in a lane is added to plainly (COUNT); what two of them count, or what CPUs
 * share, atomically (ADD). On large hosts a few CPUs share a lane: then all is atomic. What depends on the order of I/O of
 * a device is shared by all CPUs and read and written plainly where a race would change a distance and no count.
 */
#ifndef PLUMB_COUNT_H
#define PLUMB_COUNT_H

#include "block.h"
#include "index.h"
#include "mix.h"

_Static_assert(sizeof(struct plumb_row) == PLUMB_ROW_BYTES, "row");
_Static_assert(sizeof(struct plumb_device) == PLUMB_DEVICE_BYTES, "device");
_Static_assert(sizeof(struct plumb_place) == PLUMB_PLACE_BYTES, "place");
_Static_assert(sizeof(struct plumb_streams) == PLUMB_STREAMS_BYTES, "streams");
_Static_assert(sizeof(struct plumb_totals) == PLUMB_TOTALS_BYTES, "totals");

/* Set by the loader. Each mask is one less than the entries of its map (of a lane's part of it). */
const volatile u32 modulus_sectors = 2048;
const volatile u32 lane_mask;
const volatile u32 lanes_shared; /* by several CPUs */
const volatile u32 row_mask;
const volatile u32 row_shift; /* rows of a lane are 2^shift */
const volatile u32 coarse_mask;
const volatile u32 device_mask;
const volatile u32 place_mask;
const volatile u32 stream_mask;
const volatile u32 only_wanted; /* devices that are not listed do not count */
const volatile u32 every_device; /* the bios of disks that make requests count as well, in place of these */

ARRAY_MAP(rows, struct plumb_row);
ARRAY_MAP(coarse_rows, struct plumb_row);
ARRAY_MAP(counts, u64);
ARRAY_MAP(devices, struct plumb_device);
ARRAY_MAP(places, struct plumb_place);
ARRAY_MAP(streams, struct plumb_streams);
ARRAY_MAP(totals, struct plumb_totals);

/* Adds to a counter that no other program adds to, and no other CPU unless it is shared. */
#define COUNT_IN(is_shared, counter, value)                                        \
	do {                                                                       \
		if (is_shared)                                                     \
			ADD(counter, value);                                       \
		else                                                               \
			*(volatile u64 *)&(counter) = (counter) + (value);         \
	} while (0)

/* The same in this CPU's lane. */
#define COUNT(counter, value) COUNT_IN(lanes_shared, counter, value)

INLINE struct plumb_totals *all(void)
{
	return at(&totals, 0);
}

INLINE void add(u32 lane, u32 device, u32 histogram, u32 bucket, u64 weight)
{
	u32 index = ((lane * (device_mask + 1) + device) * PLUMB_HISTOGRAMS + histogram) * PLUMB_BUCKETS + bucket;
	u64 *counter = at(&counts, index);

	if (counter)
		COUNT(*counter, weight);
}

INLINE void count(u32 lane, u32 device, u32 histogram, u32 bucket)
{
	add(lane, device, histogram, bucket, 1);
}

/* --- which device --- */

/* Whether a disk is seen by its bios: by default one that makes no requests of them. No disk is seen by both. */
INLINE u32 counts_bios_of(struct gendisk *disk)
{
	return every_device || !makes_requests(disk);
}

/*
 * The entry of a disk; a new one gets the next that is free. A global function, which the verifier looks at once: as a part of
 * its callers it took most of the time in which the programs are loaded.
 */
__attribute__((noinline)) u32 device_index(u32 dev, u64 sectors, u32 by_bios)
{
	u32 from = MIX(dev), probe;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		u32 index = (from + probe) & device_mask, found;
		struct plumb_device *device = at(&devices, index);

		if (!device)
			break;
		found = device->dev;
		if (!found && !only_wanted) {
			u32 shift = bits((sectors << 9) - 1);

			found = __sync_val_compare_and_swap(&device->dev, 0, dev);
			if (!found) {
				device->region_shift = shift > 26 ? shift - 6 : 20;
				device->by_bios = by_bios;
				return index;
			}
		}
		if (found == dev)
			return index;
	}
	return NONE;
}

/* A partition or disk that was not seen before: its entry, as it is to be written in one go. */
__attribute__((noinline)) u64 new_place(u32 dev, u32 disk_dev, u64 sectors, u32 by_bios)
{
	u32 device = device_index(disk_dev, sectors, by_bios);

	return device == NONE ? 0 : (u64)device << 32 | dev;
}

/*
 * The index of the disk that a disk or partition belongs to. A number of a partition may have been another disk's before:
 * that is another place.
 */
INLINE u32 device_of(struct gendisk *disk, u32 dev, u32 disk_dev, u32 *index)
{
	u32 from = MIX(dev), probe;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		struct plumb_device *device;
		struct plumb_place *place;
		u64 found;

		*index = (from + probe) & place_mask;
		place = at(&places, *index);
		if (!place)
			return NONE;
		found = place->dev_device;
		if (unlikely(!found)) {
			struct block_device *whole = FIELD(disk, part0);
			u64 made = new_place(dev, disk_dev, FIELD(whole, bd_nr_sectors), counts_bios_of(disk));

			if (!made)
				return NONE;
			found = __sync_val_compare_and_swap(&place->dev_device, 0, made);
			if (!found)
				found = made;
		}
		if ((u32)found != dev)
			continue;
		device = at(&devices, found >> 32 & device_mask);
		if (device && likely(device->dev == disk_dev))
			return found >> 32;
	}
	return NONE;
}

/* --- streams --- */

struct told {
	u32 continues;
	u32 chain;
};

/* Ends of I/O in the same 64 KiB lie in one line, so that most I/O need only that one. */
INLINE struct plumb_streams *streams_at(u64 sector, u32 place_op)
{
	return at(&streams, MIX(sector >> 7 ^ (u64)place_op << 44) & stream_mask);
}

/*
 * Whether one of the last 256 I/O of the device, of the same operation, ended where this one begins. A global function, as
 * device_index() is: the number of a chain below, whether the I/O continues it above.
 */
__attribute__((noinline)) u64 follow_stream(u64 sector, u64 end, u32 place_op, u32 issue)
{
	struct plumb_streams *before = streams_at(sector, place_op), *here = streams_at(end, place_op);
	u64 from = sector << PLUMB_STREAM_PLACE_BITS | place_op, to = end << PLUMB_STREAM_PLACE_BITS | place_op;
	struct told told = { 0, 1 };
	u32 way, oldest = 0, age = 0;

	if (!before || !here)
		return told.chain;
#pragma unroll
	for (way = 0; way < PLUMB_STREAM_WAYS; way++) {
		struct plumb_stream *one = &before->ways[way];

		if (one->end_place == from && one->issue && issue - one->issue <= 256) {
			told.continues = 1;
			/* The chain goes on in one I/O only. */
			told.chain = XCHG(one->chain, 0) + 1;
			break;
		}
	}
#pragma unroll
	for (way = 0; way < PLUMB_STREAM_WAYS; way++) {
		struct plumb_stream *one = &here->ways[way];
		u32 its_age = one->end_place == to ? NONE : issue - one->issue;

		if (its_age > age) {
			age = its_age;
			oldest = way;
		}
	}
	here->ways[oldest & (PLUMB_STREAM_WAYS - 1)] =
		(struct plumb_stream){ .end_place = to, .issue = issue, .chain = told.chain };
	return (u64)told.continues << 32 | told.chain;
}

INLINE struct told follow(u64 sector, u64 end, u32 place_op, u32 issue)
{
	u64 found = follow_stream(sector, end, place_op, issue);
	struct told told = { .continues = found >> 32, .chain = found };

	return told;
}

/* --- rows --- */

INLINE u64 key_of(u32 place, u32 op, u32 continues, u32 residue, u32 sectors)
{
	u64 key = 2; /* above the bit of coarse rows, so that no key is 0 */

	key = key << PLUMB_KEY_PLACE_BITS | place;
	key = key << PLUMB_KEY_STREAM_BITS | continues;
	key = key << PLUMB_KEY_OP_BITS | op;
	key = key << PLUMB_KEY_RESIDUE_BITS | residue;
	return key << PLUMB_KEY_LENGTH_BITS | sectors;
}

/* Whether a row is that of a key; a free one becomes it. */
INLINE u32 is_of(struct plumb_row *row, u64 key)
{
	u64 found = row->key;

	if (likely(found == key))
		return 1;
	if (found)
		return 0;
	found = __sync_val_compare_and_swap(&row->key, 0, key);
	return !found || found == key;
}

/* The row of a key in a lane; a new one where none is there. */
INLINE struct plumb_row *row_of(u32 lane, u64 key)
{
	u32 from = MIX(key), probe;

	for (probe = 0; probe < PLUMB_ROW_PROBES; probe++) {
		struct plumb_row *row = at(&rows, lane << row_shift | ((from + probe) & row_mask));

		if (!row || likely(is_of(row, key)))
			return row;
	}
	return 0;
}

#define COARSE_BIT                                                                                                 \
	(1ULL << (PLUMB_KEY_LENGTH_BITS + PLUMB_KEY_RESIDUE_BITS + PLUMB_KEY_OP_BITS + PLUMB_KEY_STREAM_BITS +       \
		  PLUMB_KEY_PLACE_BITS))

/*
 * The key of the row for I/O that found no row of their own: all lengths between two powers of two have that of the
 * upper one less a sector, powers themselves stay.
 */
INLINE u64 coarse_key(u64 key, u32 sectors)
{
	u64 upper = 1ULL << power(sectors);

	return (key & ~((1ULL << PLUMB_KEY_LENGTH_BITS) - 1)) | COARSE_BIT | (upper == sectors ? upper : upper - 1);
}

/* A coarse row, of all CPUs together. */
static __attribute__((noinline)) struct plumb_row *coarse_row_of(u64 key)
{
	u32 from = MIX(key), probe;

	for (probe = 0; probe < PLUMB_ROW_PROBES; probe++) {
		struct plumb_row *row = at(&coarse_rows, (from + probe) & coarse_mask);

		if (!row || is_of(row, key))
			return row;
	}
	return 0;
}

/* --- depth --- */

/*
 * Accounts the time since the last change to the depth that there was, and changes it. The histogram is that of the program
 * that calls. Both words are exchanged without being looked at before: their line is then asked of the other CPU only once.
 */
INLINE void change_depth(u32 lane, u32 index, struct plumb_device *device, u32 histogram, s64 by, u64 now)
{
	u64 since = XCHG(device->depth_changed_ns, now);
	s64 depth = __sync_fetch_and_add(&device->depth, by);

	if (since && now > since && depth >= 0)
		add(lane, index, histogram, log_linear(depth), now - since);
}

/* --- an I/O --- */

INLINE void order(u32 lane, u32 index, struct plumb_device *device, struct told told, u64 sector, u64 end, u32 op, u64 now)
{
	u64 last_end = device->last_end, last_ns = device->last_issue_ns;

	device->last_end = end;
	device->last_issue_ns = now;
	if (last_ns) {
		u64 way = sector > last_end ? sector - last_end : last_end - sector;
		u32 bucket = power(way << 9);

		if (sector > last_end)
			bucket += PLUMB_SEEK_BUCKETS;
		else if (sector == last_end)
			bucket = 2 * PLUMB_SEEK_BUCKETS;
		count(lane, index, PLUMB_ORDER, bucket);
		count(lane, index, PLUMB_INTERARRIVAL_NS, log_linear(now > last_ns ? now - last_ns : 0));
	} else {
		device->first_ns = now;
	}
	if (!told.continues) {
		u64 start = sector << 9;
		u32 bucket = (u32)(((start ^ start >> 32) * GOLDEN) >> 56);

		if (op <= PLUMB_OP_WRITE)
			count(lane, index, PLUMB_HEADS, op << 8 | bucket);
		return;
	}
	ADD(device->continuing, 1);
	if (told.chain >= 3) {
		ADD(device->run_ios, told.chain == 3 ? 3 : 1);
		if (told.chain == 3)
			count(lane, index, PLUMB_ORDER, PLUMB_RUNS_AT);
		else if (!(told.chain & (told.chain - 1)))
			count(lane, index, PLUMB_ORDER, PLUMB_RUNS_AT + bits(told.chain) - 1);
	}
}

/* Where an I/O begins, and when. */
struct io {
	u32 index; /* of its device */
	u32 place;
	u32 op;
	u32 sectors;
	u64 sector;
	u64 waited_ns; /* before this */
	u32 is_ahead; /* marked as read-ahead */
	u64 now;
};

/* Counts an I/O that begins; the key of its row, or 0 when none was free. */
INLINE u64 begin(u32 lane, struct plumb_device *device, const struct io *io)
{
	u64 end = io->sector + io->sectors, key;
	u32 number = (u32)__sync_fetch_and_add(&device->issues, 1) + 1;
	struct told told = follow(io->sector, end, io->index << 3 | io->op, number);
	u32 residue = modulus_sectors & (modulus_sectors - 1) ? io->sector % modulus_sectors
							     : io->sector & (modulus_sectors - 1);
	struct plumb_row *row;

	key = key_of(io->place, io->op, told.continues, residue, io->sectors);
	row = row_of(lane, key);
	if (likely(row)) {
		COUNT(row->ios, 1);
	} else {
		key = coarse_key(key, io->sectors);
		row = coarse_row_of(key);
		if (row) {
			ADD(row->sectors, io->sectors);
			ADD(row->ios, 1);
		}
	}
	if (row) {
		u64 region = 1ULL << ((io->sector << 9) >> (device->region_shift & 63) & 63);

		if (!(row->regions & region))
			(void)__sync_fetch_and_or(&row->regions, region);
	} else {
		ADD(device->unplaced, 1);
		key = 0;
	}
	order(lane, io->index, device, told, io->sector, end, io->op, io->now);
	if (io->is_ahead && io->op == PLUMB_OP_READ)
		ADD(device->cached_reads, 1);

	if (io->waited_ns)
		count(lane, io->index, PLUMB_QUEUE_NS + io->op, log_linear(io->waited_ns));
	return key;
}

#endif
