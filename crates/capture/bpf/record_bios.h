/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The bio layer, I/O by I/O: an I/O is what a disk is given, and ends when all of it has. Its sender is the task at hand. By
 * default bios are recorded of disks that make no requests of them.
 */
#ifndef PLUMB_RECORD_BIOS_H
#define PLUMB_RECORD_BIOS_H

#include "bios.h"
#include "tally.h"

const volatile u32 bio_mask;
const volatile u32 records_bios;
const volatile u32 every_device;

ARRAY_MAP(open_bios, struct plumb_open);

INLINE struct plumb_open *open_bio_at(u32 place)
{
	return at(&open_bios, place & bio_mask);
}

INLINE u64 came_ns(u32 place)
{
	struct plumb_open *open = open_bio_at(place);

	return open ? open->record.issued_ns : NEVER;
}

INLINE struct gendisk *disk_of_bio(struct bio *bio)
{
	struct block_device *bdev = FIELD(bio, bi_bdev);

	return FIELD(bdev, bd_disk);
}

/* Whether a bio is an I/O of its own, and not a part of a request. */
INLINE u32 is_recorded(struct bio *bio)
{
	return records_bios && (every_device || !makes_requests(disk_of_bio(bio)));
}

/* The place for a bio that begins; 0 when others have every one. */
INLINE struct plumb_open *open_bio(u64 address)
{
	u64 before;
	u32 place = board(address, &before);
	struct plumb_open *open = place == NONE ? 0 : open_bio_at(place);

	if (!open)
		return 0;
	/* One whose end never came is handed over, unless its end does so in this moment. */
	before = open->address;
	if (before == PLUMB_ENDING || __sync_val_compare_and_swap(&open->address, before, PLUMB_ENDING) != before) {
		leave(address, place);
		return 0;
	}
	if (before)
		give_up(open);
	return open;
}

INLINE int begin(struct bio *bio)
{
	u32 opf = FIELD(bio, bi_opf), len_bytes = FIELD(bio, bi_iter.bi_size), op_flags = op_flags_of(opf), disk_dev, index;
	struct block_device *bdev = FIELD(bio, bi_bdev);
	struct plumb_open *open;
	struct plumb_tally *tally;
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	u64 address;

	if (!len_bytes) {
		if (!(opf & REQ_FLAG(PREFLUSH)))
			return 0;
		op_flags = (op_flags & ~0xffu) | PLUMB_OP_FLUSH;
	}
	if (!(ops >> (op_flags & 7) & 1) || !is_wanted_pid(tgid))
		return 0;
	disk_dev = number_of(disk_of_bio(bio));
	tally = tally_of(disk_dev, &index);
	if (!tally)
		return 0;
	tally->is_by_bios = 1;
	ADD(tally->sent, 1);
	address = address_of(bio);
	open = open_bio(address);
	if (!open) {
		ADD(tally->lost, 1);
		return 0;
	}
	open->record.dev = FIELD(bdev, bd_dev);
	open->record.disk = disk_dev;
	open->record.sector = FIELD(bio, bi_iter.bi_sector);
	open->record.len_bytes = len_bytes;
	open->record.op_flags = op_flags | PLUMB_IS_BIO;
	open->record.tgid = tgid;
	open->record.thread = bpf_get_current_pid_tgid();
	open->record.cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(open->record.comm, sizeof(open->record.comm));
	open->record.issued_ns = bpf_ktime_get_ns();
	open->record.queue_ns = NEVER;
	open->record.device_ns = NEVER;
	open->record.error = 0;
	open->tally = index;
	open->address = address;
	return 0;
}

/* An end without a beginning: of a bio that came before anybody looked. Pieces that were cut off look alike but for a flag. */
INLINE void count_unmatched(struct bio *bio, s32 error)
{
	struct plumb_tally *tally;
	u32 index;

	if (FIELD(bio, bi_flags) & (1 << BIO_CLONED) || pids || !(ops >> op_of(FIELD(bio, bi_opf)) & 1) || !is_recorded(bio))
		return;
	tally = tally_of(number_of(disk_of_bio(bio)), &index);
	if (tally)
		count_unseen(tally, op_of(FIELD(bio, bi_opf)), error);
}

__attribute__((noinline)) int end_at(u64 address, s32 error)
{
	u32 place = place_of(address);
	struct plumb_open *open = place == NONE ? 0 : open_bio_at(place);
	struct plumb_tally *tally;
	u64 now;

	/* Another one may be taking its place: then that hands it over. */
	if (!open || __sync_val_compare_and_swap(&open->address, address, PLUMB_ENDING) != address)
		return open != 0;
	tally = at(&tallies, open->tally & tally_mask);
	if (!tally)
		return 1;
	now = bpf_ktime_get_ns();
	open->record.device_ns = now > open->record.issued_ns ? now - open->record.issued_ns : 0;
	open->record.error = is_failure(error) ? error : 0;
	hand_over(open, tally);
	open->address = 0;
	leave(address, place);
	return 1;
}

#endif
