// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What requests do, summed up where they pass: an I/O counts once, when it is first issued, and is timed when the last of
 * it completes. Everything that is counted lies in arrays that user space maps, and only grows: a reader takes the
 * difference to what it saw before, and nothing is ever reset under the hands of a CPU.
 *
 * Counters are added to atomically, since a completion may interrupt an issue on the same CPU. Each CPU has its lane of
 * them (on large hosts a few CPUs share one), so that CPUs do not wait for each other. What depends on the order of I/O
 * of a device is shared by all CPUs and read and written plainly where a race would change a distance and no count.
 */
#include "kernel.h"
#include "index.h"

_Static_assert(sizeof(struct plumb_row) == PLUMB_ROW_BYTES, "row");
_Static_assert(sizeof(struct plumb_device) == PLUMB_DEVICE_BYTES, "device");
_Static_assert(sizeof(struct plumb_place) == PLUMB_PLACE_BYTES, "place");
_Static_assert(sizeof(struct plumb_flight) == PLUMB_FLIGHT_BYTES, "flight");
_Static_assert(sizeof(struct plumb_stream) == PLUMB_STREAM_BYTES, "stream");
_Static_assert(sizeof(struct plumb_sender) == PLUMB_SENDER_BYTES, "sender");
_Static_assert(sizeof(struct plumb_process) == PLUMB_PROCESS_BYTES, "process");
_Static_assert(sizeof(struct plumb_totals) == PLUMB_TOTALS_BYTES, "totals");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader. Each mask is one less than the entries of its map (of a lane's part of it). */
const volatile u32 modulus_sectors = 2048;
const volatile u32 lane_mask;
const volatile u32 row_mask;
const volatile u32 row_shift; /* rows of a lane are 2^shift */
const volatile u32 device_mask;
const volatile u32 place_mask;
const volatile u32 flight_mask;
const volatile u32 stream_mask;
const volatile u32 sender_mask;
const volatile u32 process_mask;
const volatile u32 only_wanted; /* devices that are not listed do not count */

ARRAY_MAP(rows, struct plumb_row);
ARRAY_MAP(counts, u64);
ARRAY_MAP(devices, struct plumb_device);
ARRAY_MAP(places, struct plumb_place);
ARRAY_MAP(flights, struct plumb_flight);
ARRAY_MAP(streams, struct plumb_stream);
ARRAY_MAP(senders, struct plumb_sender);
ARRAY_MAP(processes, struct plumb_process);
ARRAY_MAP(totals, struct plumb_totals);

#define GOLDEN 0x9e3779b97f4a7c15ULL
#define MIX(value) mix((u64)(value))
#define ADD(counter, value) ((void)__sync_fetch_and_add(&(counter), (value)))
#define NONE (~0u)
#define XCHG(word, value) __sync_lock_test_and_set(&(word), (value))

/* Every bit of a value comes to every bit of the result that an index takes: one round would lose the high ones. */
INLINE u32 mix(u64 value)
{
	value *= GOLDEN;
	value ^= value >> 32;
	value *= GOLDEN;
	return value >> 32;
}

INLINE void *at(const void *map, u32 index)
{
	return bpf_map_lookup_elem(map, &index);
}

INLINE struct plumb_totals *all(void)
{
	return at(&totals, 0);
}

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

INLINE void count(u32 lane, u32 device, u32 histogram, u32 bucket)
{
	u32 index = ((lane * (device_mask + 1) + device) * PLUMB_HISTOGRAMS + histogram) * PLUMB_BUCKETS + bucket;
	u64 *counter = at(&counts, index);

	if (counter)
		ADD(*counter, 1);
}

INLINE void add(u32 lane, u32 device, u32 histogram, u32 bucket, u64 weight)
{
	u32 index = ((lane * (device_mask + 1) + device) * PLUMB_HISTOGRAMS + histogram) * PLUMB_BUCKETS + bucket;
	u64 *counter = at(&counts, index);

	if (counter)
		ADD(*counter, weight);
}

/* --- which device --- */

/* The entry of a disk; a new one gets the next that is free. */
static __attribute__((noinline)) u32 device_index(u32 dev, u64 sectors)
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
				return index;
			}
		}
		if (found == dev)
			return index;
	}
	return NONE;
}

INLINE u32 number_of(struct gendisk *disk)
{
	return (u32)FIELD(disk, major) << 20 | (u32)FIELD(disk, first_minor);
}

/* A partition or disk that was not seen before: its entry, as it is to be written in one go. */
static __attribute__((noinline)) u64 new_place(u32 dev, u32 disk_dev, u64 sectors)
{
	u32 device = device_index(disk_dev, sectors);

	return device == NONE ? 0 : (u64)device << 32 | dev;
}

INLINE u32 disk_of(struct request *rq)
{
	struct request_queue *queue = FIELD(rq, q);

	return number_of(FIELD(queue, disk));
}

/*
 * The index of the disk that a disk or partition belongs to. A number of a partition may have been another disk's before:
 * that is another place.
 */
INLINE u32 device_of(struct request *rq, u32 dev, u32 disk_dev, u32 *index)
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
			struct request_queue *queue = FIELD(rq, q);
			struct gendisk *disk = FIELD(queue, disk);
			struct block_device *whole = FIELD(disk, part0);
			u64 made = new_place(dev, disk_dev, FIELD(whole, bd_nr_sectors));

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

/* --- streams --- */

struct told {
	u32 continues;
	u32 chain;
};

INLINE u32 stream_index(u64 sector, u32 place_op)
{
	return MIX(sector ^ (u64)place_op << 44) & stream_mask;
}

/* Whether one of the last 256 I/O of the device, of the same operation, ended where this one begins. */
INLINE struct told follow(u64 sector, u64 end, u32 place_op, u32 issue)
{
	struct plumb_stream *before = at(&streams, stream_index(sector, place_op));
	struct plumb_stream *here = at(&streams, stream_index(end, place_op));
	struct told told = { 0, 1 };

	if (before && before->end == sector && before->place_op == place_op && issue - before->issue <= 256 &&
	    before->issue) {
		told.continues = 1;
		/* The chain goes on in one I/O only. */
		told.chain = XCHG(before->chain, 0) + 1;
	}
	if (here) {
		here->end = end;
		here->place_op = place_op;
		here->issue = issue;
		here->chain = told.chain;
	}
	return told;
}

/* --- rows --- */

INLINE u64 key_of(u32 place, u32 op, u32 continues, u32 residue, u32 sectors)
{
	u64 key = 1;

	key = key << PLUMB_KEY_PLACE_BITS | place;
	key = key << PLUMB_KEY_STREAM_BITS | continues;
	key = key << PLUMB_KEY_OP_BITS | op;
	key = key << PLUMB_KEY_RESIDUE_BITS | residue;
	return key << PLUMB_KEY_LENGTH_BITS | sectors;
}

/* The row of a key in a lane; a new one where none is there. */
INLINE struct plumb_row *row_of(u32 lane, u64 key)
{
	u32 from = MIX(key), probe;

	for (probe = 0; probe < PLUMB_ROW_PROBES; probe++) {
		struct plumb_row *row;
		u64 found;

		row = at(&rows, lane << row_shift | ((from + probe) & row_mask));
		if (!row)
			return 0;
		found = row->key;
		if (likely(found == key))
			return row;
		if (!found) {
			found = __sync_val_compare_and_swap(&row->key, 0, key);
			if (!found || found == key)
				return row;
		}
	}
	return 0;
}

/* --- in flight --- */

/* Accounts the time since the last change to the depth that there was, and changes it. */
INLINE void change_depth(u32 lane, u32 index, struct plumb_device *device, s64 by, u64 now)
{
	u64 since = XCHG(device->depth_changed_ns, now);
	s64 depth = __sync_fetch_and_add(&device->depth, by);

	if (since && now > since && depth >= 0)
		add(lane, index, PLUMB_DEPTH_NS, log_linear(depth), now - since);
}

INLINE struct plumb_flight *flight_of(struct request *rq, u32 disk_dev)
{
	struct blk_mq_hw_ctx *queue = FIELD(rq, mq_hctx);
	/* The scheduler's tag stays when a request is put back and issued again, the driver's changes. */
	s32 tag = FIELD(rq, internal_tag);

	if (tag < 0)
		tag = FIELD(rq, tag);
	/* Tags of a queue lie behind each other, so that none of them share an entry. */
	return at(&flights, MIX((u64)disk_dev << 16 ^ FIELD(queue, queue_num)) + (u32)tag & flight_mask);
}

/* --- who --- */

INLINE u32 sender_index(u32 dev, u64 sector)
{
	return MIX(sector ^ (u64)dev << 36) & sender_mask;
}

INLINE void count_process(u32 dev, u64 sector, u32 sectors)
{
	struct plumb_sender *sender = at(&senders, sender_index(dev, sector));
	struct plumb_totals *totals;

	if (sender && sender->sector == sector && sender->dev == dev) {
		struct plumb_process *process = at(&processes, sender->process & process_mask);
		u64 low = sector & -sector;
		u32 zeros = sector ? bits(low) - 1 : 11;

		if (process) {
			ADD(process->bytes, (u64)sectors << 9);
			ADD(process->by_alignment[zeros < 11 ? zeros : 11], 1);
			return;
		}
	}
	totals = all();
	if (totals)
		ADD(totals->unknown_senders, 1);
}

/* --- programs --- */

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

INLINE int issue(struct request *rq)
{
	u32 cmd_flags = FIELD(rq, cmd_flags), sectors = FIELD(rq, __data_len) >> 9;
	u64 sector = FIELD(rq, __sector), end = sector + sectors, now, begun, key;
	u32 place_index = 0, lane, op, dev, residue, number;
	struct plumb_flight *flight;
	struct plumb_device *device;
	struct plumb_row *row;
	struct told told;
	u32 index, disk_dev;

	if ((cmd_flags & REQ_OP_MASK) >= REQ_OP_DRV_IN && (cmd_flags & REQ_OP_MASK) <= REQ_OP_DRV_OUT)
		return 0;
	op = op_of(cmd_flags);
	dev = dev_of(rq);
	if (!dev)
		return 0;
	disk_dev = disk_of(rq);
	index = device_of(rq, dev, disk_dev, &place_index);
	device = index == NONE ? 0 : at(&devices, index & device_mask);
	if (!device) {
		struct plumb_totals *totals = all();

		if (!only_wanted && totals)
			ADD(totals->unlisted_devices, 1);
		return 0;
	}
	if (!sectors) {
		ADD(device->flushes, 1);
		return 0;
	}
	flight = flight_of(rq, disk_dev);
	if (!flight)
		return 0;
	now = bpf_ktime_get_ns();
	begun = FIELD(rq, start_time_ns);
	lane = bpf_get_smp_processor_id() & lane_mask;
	if (flight->request == (u64)rq && flight->end == end && flight->begun_ns == begun) {
		ADD(device->requeues, 1);
		return 0;
	}
	if (unlikely(flight->request)) {
		/* Its completion never came. */
		struct plumb_device *other = at(&devices, flight->device & device_mask);

		if (other) {
			ADD(other->unmatched_issues, 1);
			change_depth(lane, flight->device & device_mask, other, -1, now);
		}
	}
	number = (u32)__sync_fetch_and_add(&device->issues, 1) + 1;
	told = follow(sector, end, index << 3 | op, number);
	residue = modulus_sectors & (modulus_sectors - 1) ? sector % modulus_sectors : sector & (modulus_sectors - 1);
	key = key_of(place_index, op, told.continues, residue, sectors);
	row = row_of(lane, key);
	if (row) {
		u64 region = 1ULL << ((sector << 9) >> (device->region_shift & 63) & 63);

		ADD(row->ios, 1);
		if (!(row->regions & region))
			(void)__sync_fetch_and_or(&row->regions, region);
	} else {
		ADD(device->unplaced, 1);
		key = 0;
	}
	order(lane, index, device, told, sector, end, op, now);
	if (begun && now > begun)
		count(lane, index, PLUMB_QUEUE_NS + op, log_linear(now - begun));
	count_process(dev, sector, sectors);
	flight->begun_ns = begun;
	flight->issued_ns = now;
	flight->end = end;
	flight->key = key;
	flight->device = index;
	flight->op = op;
	flight->request = (u64)rq;
	change_depth(lane, index, device, 1, now);
	return 0;
}

INLINE int complete(struct request *rq, s32 error, u32 bytes)
{
	struct plumb_flight *flight;
	struct plumb_device *device;
	struct plumb_row *row;
	u32 length = FIELD(rq, __data_len), lane, op, disk_dev, cmd_op = FIELD(rq, cmd_flags) & REQ_OP_MASK;
	u64 now, ns;

	if (!length || (cmd_op >= REQ_OP_DRV_IN && cmd_op <= REQ_OP_DRV_OUT))
		return 0;
	disk_dev = disk_of(rq);
	flight = flight_of(rq, disk_dev);
	if (!flight)
		return 0;
	if (flight->request != (u64)rq) {
		/* Issued before anybody looked, or of a device that nobody asked for, or forgotten. */
		u32 index = 0, dev = dev_of(rq);

		index = dev ? device_of(rq, dev, disk_dev, &index) : NONE;
		device = index == NONE ? 0 : at(&devices, index & device_mask);
		if (device)
			ADD(device->unmatched_completions, 1);
		return 0;
	}
	device = at(&devices, flight->device & device_mask);
	if (!device)
		return 0;
	if (bytes < length) {
		ADD(device->partial_completions, 1);
		return 0;
	}
	now = bpf_ktime_get_ns();
	lane = bpf_get_smp_processor_id() & lane_mask;
	op = flight->op;
	ns = now > flight->issued_ns ? now - flight->issued_ns : 0;
	/* In the lane of this CPU, which may be another than that of the issue. */
	row = flight->key ? row_of(lane, flight->key) : 0;
	flight->request = 0;
	if (row) {
		u64 squared = ns >> 32 ? ~0ULL : ns * ns, before;

		/* The other way round than a reader takes them, so that no sum is seen without its squares. */
		before = __sync_fetch_and_add(&row->ns_squared_low, squared);
		if (before + squared < before)
			ADD(row->ns_squared_high, 1);
		ADD(row->ns_sum, ns);
		ADD(row->timed, 1);
	}
	count(lane, flight->device & device_mask, PLUMB_DEVICE_NS + op, log_linear(ns));
	if (error)
		ADD(device->failed[op & 7], 1);
	change_depth(lane, flight->device & device_mask, device, -1, now);
	return 0;
}

INLINE int queue(struct bio *bio)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);
	u32 dev = FIELD(bdev, bd_dev), from, probe;
	u64 sector = FIELD(bio, bi_iter.bi_sector), who;
	struct plumb_sender *sender;
	struct plumb_totals *totals;

	if (!FIELD(bio, bi_iter.bi_size))
		return 0;
	sender = at(&senders, sender_index(dev, sector));
	if (!sender)
		return 0;
	who = (u64)dev << 32 | bpf_get_current_pid_tgid() >> 32;
	from = MIX(who);
	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		u32 index = (from + probe) & process_mask;
		struct plumb_process *process = at(&processes, index);
		u64 found;

		if (!process)
			return 0;
		found = process->dev_tgid;
		if (!found) {
			found = __sync_val_compare_and_swap(&process->dev_tgid, 0, who);
			if (!found) {
				bpf_get_current_comm(process->comm, sizeof(process->comm));
				found = who;
			}
		}
		if (found == who) {
			sender->sector = sector;
			sender->dev = dev;
			sender->process = index;
			return 0;
		}
	}
	/* Nobody's, rather than that of whoever sent something to this place before. */
	sender->dev = 0;
	totals = all();
	if (totals)
		ADD(totals->processes_lost, 1);
	return 0;
}

#ifdef PLUMB_COPY_FIELDS
#define TRACEPOINT(name) SEC("raw_tracepoint/" name)
#else
#define TRACEPOINT(name) SEC("tp_btf/" name)
#endif

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

TRACEPOINT("block_bio_queue") int queue_bio(u64 *ctx)
{
	return queue((struct bio *)ctx[0]);
}
