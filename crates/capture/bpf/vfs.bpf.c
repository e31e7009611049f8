// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The vfs layer, summed up: what processes ask of regular files and of device nodes, and what they get.
 *
 * A call counts when it returns: its arguments are still in the registers, and a file stands behind what was moved, also
 * where it was opened for appending. Requests of io_uring count at their completion, those of io_submit when they are
 * submitted, since no tracepoint has their end. The bytes of other ways are not known: a note says that the process uses
 * such a way. Page faults of mapped files count by themselves, since a fault is no measure of the bytes that a program uses.
 */
#include "count.h"
#include "vfs.h"

_Static_assert(sizeof(struct plumb_asker) == PLUMB_ASKER_BYTES, "asker");
_Static_assert(sizeof(struct plumb_submitted) == PLUMB_SUBMITTED_BYTES, "submitted");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile u32 asker_mask;
const volatile u32 sees_uring;

ARRAY_MAP(askers, struct plumb_asker);
ARRAY_MAP(last_faults, u64); /* of threads whose numbers hash alike: the place of the last one */
HASH_MAP(submissions, u64, struct plumb_submitted, 1 << 14);

#define NODE (1ULL << PLUMB_NODE_BIT)
/* So that no file system is an entry that is free. */
#define USED (1ULL << 63)
#define WHERE_IT_STANDS (~0ULL)

/* What was asked of a file, and what came of it. */
struct ask {
	struct file *file;
	u64 tgid;
	u64 position;
	u64 asked_bytes;
	s64 moved_bytes;
	u32 op;
	u32 way;
};

INLINE u64 this_process(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/* --- who --- */

/* The entry of a process on a file system; 0 when none is free. */
static __attribute__((noinline)) struct plumb_asker *find_asker(u64 tgid, u64 file_system)
{
	u32 from = MIX(tgid << 34 ^ file_system), probe;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		struct plumb_asker *asker = at(&askers, (from + probe) & asker_mask);
		struct task_struct *leader;

		if (!asker)
			return 0;
		if (!asker->tgid && !__sync_val_compare_and_swap(&asker->tgid, 0, 1)) {
			leader = COPY(current(), group_leader);
			bpf_probe_read_kernel(asker->comm, sizeof(asker->comm),
					      __builtin_preserve_access_index(&leader->comm));
			asker->file_system = file_system;
			XCHG(asker->tgid, tgid);
			return asker;
		}
		if (asker->tgid == tgid && asker->file_system == file_system)
			return asker;
	}
	return 0;
}

/* The same for a call, which counts as lost where no entry is free. */
INLINE struct plumb_asker *asker_of(u64 tgid, u64 file_system)
{
	struct plumb_asker *asker = find_asker(tgid, file_system);
	struct plumb_totals *totals = asker ? 0 : all();

	if (totals)
		ADD(totals->processes_lost, 1);
	return asker;
}

/* Notes that a process uses a way; without a file system on whatever it uses. */
INLINE void note_way(u64 tgid, u64 file_system, u64 way)
{
	struct plumb_asker *asker = asker_of(tgid, file_system);

	if (asker && !(asker->ways & way))
		(void)__sync_fetch_and_or(&asker->ways, way);
}

/* --- where --- */

/* The file system of a file, or the device of a node; 0 for what lies on no storage: pipes, sockets, procfs and such. */
static __attribute__((noinline)) u64 file_system_of(struct inode *inode)
{
	struct super_block *super = COPY(inode, i_sb);
	struct backing_dev_info *backing;
	u32 type = COPY(inode, i_mode) & S_IFMT;

	if (type == S_IFBLK)
		return USED | NODE | COPY(inode, i_rdev);
	if (type != S_IFREG)
		return 0;
	backing = COPY(super, s_bdi);
	if (!(COPY(backing, capabilities) & BDI_CAP_WRITEBACK) && COPY(super, s_magic) != OVERLAYFS_SUPER_MAGIC)
		return 0;
	return USED | COPY(super, s_dev);
}

INLINE u32 place_of(u64 file_system)
{
	u32 from = MIX(file_system), probe;

	for (probe = 0; probe < PLUMB_PROBES; probe++) {
		u32 index = (from + probe) & place_mask;
		struct plumb_place *place = at(&places, index);
		u64 found;

		if (!place)
			return NONE;
		found = place->dev_device;
		if (!found)
			found = __sync_val_compare_and_swap(&place->dev_device, 0, file_system);
		if (!found || found == file_system)
			return index;
	}
	return NONE;
}

/* Counts an extent of a file in the residue table. */
INLINE u32 count_extent(const struct ask *ask, u64 file_system, u64 start)
{
	u32 lane = bpf_get_smp_processor_id() & lane_mask, place = place_of(file_system);
	u64 moved = ask->moved_bytes, file = (u64)MIX(ask->file) << 32, key = 1, region = start >> PLUMB_VFS_REGION_SHIFT;
	u64 *ios;
	struct told told;
	struct plumb_row *row;

	ios = place == NONE ? 0 : at(&counts, place);
	if (!ios)
		return 0;
	told = follow(start + file, start + moved + file, place << 1 | ask->op, (u32)__sync_fetch_and_add(ios, 1) + 1);
	key = key << PLUMB_VFS_PLACE_BITS | place;
	key = key << PLUMB_VFS_STREAM_BITS | told.continues;
	key = key << PLUMB_VFS_OP_BITS | ask->op;
	key = key << PLUMB_VFS_RESIDUE_BITS | (start & ((1 << PLUMB_VFS_RESIDUE_BITS) - 1));
	key = key << PLUMB_VFS_LENGTH_BITS | (moved & ((1ULL << PLUMB_VFS_LENGTH_BITS) - 1));
	row = row_of(lane, key);
	if (!row)
		return 0;
	region = 1ULL << (region < 63 ? region : 63);
	if (!(row->regions & region))
		(void)__sync_fetch_and_or(&row->regions, region);
	ADD(row->ios, 1);
	return 1;
}

static __attribute__((noinline)) int account(struct ask *ask)
{
	u64 file_system = ask->file ? file_system_of(COPY(ask->file, f_inode)) : 0;
	struct plumb_asker *asker;
	u32 kind;

	if (!ask->file) {
		/* Closed by another thread before it could be looked at. */
		note_way(ask->tgid, 0, PLUMB_WAY_LOST);
		return 0;
	}
	if (!file_system)
		return 0;
	asker = asker_of(ask->tgid, file_system);
	if (!asker)
		return 0;
	if (!(asker->ways & ask->way))
		(void)__sync_fetch_and_or(&asker->ways, ask->way);
	if (ask->moved_bytes < 0) {
		ADD(asker->failed, 1);
		return 0;
	}
	kind = (ask->op & 1) | (COPY(ask->file, f_flags) & O_DIRECT ? PLUMB_KIND_DIRECT : 0);
	/* Masked where the verifier sees it: that of 6.1 loses a bound on the way through |. */
	asm volatile("" : "+r"(kind));
	kind &= PLUMB_KINDS - 1;
	ADD(asker->calls[kind], 1);
	ADD(asker->asked_bytes[kind], ask->asked_bytes < MAX_RW_COUNT ? ask->asked_bytes : MAX_RW_COUNT);
	ADD(asker->moved_bytes[kind], ask->moved_bytes);
	if (ask->moved_bytes > 0) {
		u64 end = ask->position == WHERE_IT_STANDS ? COPY(ask->file, f_pos) : ask->position + ask->moved_bytes;

		if (!count_extent(ask, file_system, end - ask->moved_bytes))
			ADD(asker->unplaced, 1);
	}
	return 0;
}

/* --- system calls --- */

struct vector {
	u64 base;
	u64 len;
};

/* Bytes of a vector of buffers. */
static __attribute__((noinline)) u64 bytes_of(u64 vectors, u64 count)
{
	u64 bytes = 0;
	u32 index;

#pragma clang loop unroll(disable)
	for (index = 0; index < UIO_MAXIOV; index++) {
		struct vector vector;

		if (index >= count)
			break;
		if (bpf_probe_read_user(&vector, sizeof(vector), (void *)(vectors + index * sizeof(vector))))
			break;
		bytes += vector.len;
	}
	return bytes;
}

/* Where a call began that was handed the place of an offset: the kernel has moved it on. */
INLINE u64 pointed(u64 pointer, s64 moved)
{
	u64 end;

	if (!pointer || bpf_probe_read_user(&end, sizeof(end), (void *)pointer))
		return WHERE_IT_STANDS;
	return end - moved;
}

INLINE int returned(u32 op, u32 descriptor, u64 position, u64 asked_bytes, s64 moved_bytes)
{
	struct ask ask = {
		.file = file_of(descriptor),
		.tgid = this_process(),
		.position = position,
		.asked_bytes = asked_bytes,
		.moved_bytes = moved_bytes,
		.op = op,
		.way = PLUMB_WAY_CALLS,
	};

	/* A descriptor that never was one. */
	if (!ask.file && moved_bytes < 0)
		return 0;
	return account(&ask);
}

/*
 * From one file to another; ends that are no files count nothing. Programs ask for as much as there is and more, so what was
 * moved stands for what was asked.
 */
INLINE void moved_between(u32 from, u64 from_position, u32 to, u64 to_position, s64 moved)
{
	returned(PLUMB_OP_READ, from, from_position, moved, moved);
	returned(PLUMB_OP_WRITE, to, to_position, moved, moved);
}

/* `ld.so.cache` in two words, since a program has no memcmp. */
#ifdef __BYTE_ORDER__
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "letters of a word");
#endif
#define LD_SO_CA 0x61632e6f732e646cULL
#define CHE 0x656863ULL

/* What the loader of programs maps is no data: libraries, and the list of them. */
INLINE u32 is_of_loader(struct file *file, u64 flags, u64 protection)
{
	struct dentry *dentry = COPY(file, f_path.dentry);
	u64 name[2] = {};

	if (protection & PROT_EXEC || flags & MAP_DENYWRITE)
		return 1;
	bpf_probe_read_kernel(name, sizeof("ld.so.cache"), COPY(dentry, d_name.name));
	return name[0] == LD_SO_CA && name[1] == CHE;
}

static __attribute__((noinline)) int mapped(u32 descriptor, u64 flags, u64 protection)
{
	struct file *file = file_of(descriptor);
	u64 file_system;

	if (!file || is_of_loader(file, flags, protection))
		return 0;
	file_system = file_system_of(COPY(file, f_inode));
	if (file_system)
		note_way(this_process(), file_system, PLUMB_WAY_MAPPED);
	return 0;
}

/*
 * A request of io_submit counts as if it moved all that it asks for: programs read completions from memory that they share with
 * the kernel. The verifier looks at a global function once, and not once for each round of the loop that calls it.
 */
__attribute__((noinline)) int submit_block(u64 pointer)
{
	struct ask ask = { .tgid = this_process(), .way = PLUMB_WAY_AIO };
	struct user_iocb block;

	if (bpf_probe_read_user(&block, sizeof(block), (void *)pointer)) {
		note_way(ask.tgid, 0, PLUMB_WAY_LOST);
		return 0;
	}
	switch (block.opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PWRITE: ask.asked_bytes = block.bytes; break;
	case IOCB_CMD_PREADV:
	case IOCB_CMD_PWRITEV: ask.asked_bytes = bytes_of(block.buffer, block.bytes); break;
	default: return 0;
	}
	ask.op = block.opcode == IOCB_CMD_PWRITE || block.opcode == IOCB_CMD_PWRITEV ? PLUMB_OP_WRITE : PLUMB_OP_READ;
	ask.file = file_of(block.descriptor);
	ask.position = block.offset;
	ask.moved_bytes = ask.asked_bytes < MAX_RW_COUNT ? ask.asked_bytes : MAX_RW_COUNT;
	return account(&ask);
}

/* Counts the requests of a call that the kernel took. */
static __attribute__((noinline)) int submitted_blocks(u64 blocks, u64 taken)
{
	u32 index;

#pragma clang loop unroll(disable)
	for (index = 0; index < IOCBS_MAX; index++) {
		u64 pointer;

		if (index >= taken)
			return 0;
		if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)(blocks + index * sizeof(pointer))))
			break;
		submit_block(pointer);
	}
	if (index < taken)
		note_way(this_process(), 0, PLUMB_WAY_LOST);
	return 0;
}

/* Whether a 32-bit program means reading, writing or mapping by a number, on any processor. */
INLINE u32 moves_in_32_bits(u64 call)
{
	return call == 3 || call == 4 || call - 145 < 2 || call - 180 < 2 || call == 192 || call - 333 < 2 ||
	       call - 361 < 2;
}

TRACEPOINT("sys_exit") int return_from_call(u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	s64 moved = ctx[1];
	u64 call = CALL_OF(regs);

	if (unlikely(moves_in_32_bits(call) || is_x32(call)) && is_foreign(call)) {
		note_way(this_process(), 0, PLUMB_WAY_FOREIGN_CALLS);
		return 0;
	}
	switch (call) {
	case SYS_read:
		return returned(PLUMB_OP_READ, FIRST(regs), WHERE_IT_STANDS, THIRD(regs), moved);
	case SYS_write:
		return returned(PLUMB_OP_WRITE, FIRST(regs), WHERE_IT_STANDS, THIRD(regs), moved);
	case SYS_pread64:
		return returned(PLUMB_OP_READ, FIRST(regs), FOURTH(regs), THIRD(regs), moved);
	case SYS_pwrite64:
		return returned(PLUMB_OP_WRITE, FIRST(regs), FOURTH(regs), THIRD(regs), moved);
	case SYS_readv:
		return returned(PLUMB_OP_READ, FIRST(regs), WHERE_IT_STANDS, bytes_of(SECOND(regs), THIRD(regs)), moved);
	case SYS_writev:
		return returned(PLUMB_OP_WRITE, FIRST(regs), WHERE_IT_STANDS, bytes_of(SECOND(regs), THIRD(regs)), moved);
	case SYS_preadv:
	case SYS_preadv2: /* -1 is where it stands as well */
		return returned(PLUMB_OP_READ, FIRST(regs), FOURTH(regs), bytes_of(SECOND(regs), THIRD(regs)), moved);
	case SYS_pwritev:
	case SYS_pwritev2:
		return returned(PLUMB_OP_WRITE, FIRST(regs), FOURTH(regs), bytes_of(SECOND(regs), THIRD(regs)), moved);
	case SYS_sendfile:
		moved_between(SECOND(regs), pointed(THIRD(regs), moved), FIRST(regs), WHERE_IT_STANDS, moved);
		return 0;
	case SYS_splice:
	case SYS_copy_file_range:
		moved_between(FIRST(regs), pointed(SECOND(regs), moved), THIRD(regs), pointed(FOURTH(regs), moved),
			      moved);
		return 0;
	case SYS_mmap:
		if (moved > 0 || moved < -4095) {
			if (!(FOURTH(regs) & MAP_ANONYMOUS))
				mapped(FIFTH(regs), FOURTH(regs), THIRD(regs));
		}
		return 0;
	case SYS_io_uring_setup:
	case SYS_io_uring_enter:
		if (!sees_uring && moved > 0)
			note_way(this_process(), 0, PLUMB_WAY_URING_SILENT);
		return 0;
	case SYS_io_submit:
		return moved > 0 ? submitted_blocks(THIRD(regs), moved) : 0;
	default:
		return 0;
	}
}

/* --- mapped files --- */

/* The entry of this process on the file system of a mapped file; 0 for what lies on no storage. */
INLINE struct plumb_asker *asker_of_mapping(u64 mapping)
{
	u64 file_system = mapping ? file_system_of(COPY((struct address_space *)mapping, host)) : 0;

	return file_system ? find_asker(this_process(), file_system) : 0;
}

/*
 * A page fault for which the kernel asks the file system. Pages in the cache that lie around such a page are mapped with it, and
 * have no fault of their own. After a wait for the disk the kernel repeats the fault, which counts once.
 */
TRACEPOINT("mm_filemap_fault") int fault(u64 *ctx)
{
	u64 mapping = address_of((void *)ctx[0]), thread = bpf_get_current_pid_tgid();
	u64 place = thread << 40 ^ (u64)MIX(mapping) << 32 ^ ctx[1], *last = at(&last_faults, MIX(thread) & (PLUMB_FAULTS - 1));
	struct plumb_asker *asker;

	if (!last || *last == place)
		return 0;
	asker = asker_of_mapping(mapping);
	if (!asker)
		return 0;
	*last = place;
	ADD(asker->faults, 1);
	return 0;
}

/*
 * A clean page, or a large folio, that becomes dirty. Outside of all system calls a store of the program is the reason, but for a core
 * dump, memory that the kernel reclaims meanwhile, and workers of io_uring, which look like the program.
 */
TRACEPOINT("writeback_dirty_folio") int store(u64 *ctx)
{
	struct pt_regs *regs = bpf_task_pt_regs(bpf_get_current_task_btf());
	struct plumb_asker *asker;

	if ((s32)CALL_OF(regs) != NO_CALL || COPY(current(), flags) & NO_PROGRAM)
		return 0;
	asker = asker_of_mapping(address_of((void *)ctx[1]));
	if (asker)
		ADD(asker->stores, 1);
	return 0;
}

/* --- io_uring --- */

enum uring { OTHER, READS, WRITES, IS_SILENT };

INLINE enum uring uring_op(u8 opcode)
{
	switch (opcode) {
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
	case IORING_OP_READV_FIXED: return READS;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV_FIXED: return WRITES;
	case IORING_OP_SPLICE: return IS_SILENT;
	default: return OTHER;
	}
}

INLINE u32 is_vectored(u8 opcode)
{
	return opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV || opcode == IORING_OP_READV_FIXED ||
	       opcode == IORING_OP_WRITEV_FIXED;
}

/* Its file is not known yet. */
TRACEPOINT("io_uring_submit_req") int submit_request(u64 *ctx)
{
	struct io_kiocb *request = (struct io_kiocb *)ctx[0];
	struct io_rw *rw = (struct io_rw *)ctx[0];
	u64 number = ctx[0], len;
	u8 opcode = COPY(request, opcode);
	enum uring op = uring_op(opcode);
	struct plumb_submitted submitted = { .tgid = this_process() };

	if (op == OTHER)
		return 0;
	if (op == IS_SILENT || COPY(request, flags) & IOSQE_CQE_SKIP_SUCCESS) {
		note_way(submitted.tgid, 0, PLUMB_WAY_URING_SILENT);
		return 0;
	}
	len = COPY(rw, len);
	submitted.position = COPY(rw, kiocb.ki_pos);
	submitted.asked_bytes = is_vectored(opcode) ? bytes_of(COPY(rw, addr), len) : len;
	if (bpf_map_update_elem(&submissions, &number, &submitted, 0))
		note_way(submitted.tgid, 0, PLUMB_WAY_LOST);
	return 0;
}

INLINE int completed(u64 number, s64 moved)
{
	struct io_kiocb *request = (struct io_kiocb *)number;
	struct plumb_submitted *submitted = bpf_map_lookup_elem(&submissions, &number);
	struct ask ask = {};

	/* Nothing that reads or writes, or submitted before anybody looked. */
	if (!submitted)
		return 0;
	ask.tgid = submitted->tgid;
	ask.position = submitted->position;
	ask.asked_bytes = submitted->asked_bytes;
	bpf_map_delete_elem(&submissions, &number);
	ask.file = COPY(request, file);
	ask.moved_bytes = moved;
	ask.op = uring_op(COPY(request, opcode)) == WRITES ? PLUMB_OP_WRITE : PLUMB_OP_READ;
	ask.way = PLUMB_WAY_URING;
	if (!ask.file && moved < 0)
		return 0;
	return account(&ask);
}

/* Where the result is an argument. */
TRACEPOINT("io_uring_complete") int complete_result(u64 *ctx)
{
	return completed(ctx[1], (s32)ctx[3]);
}

/* Where the whole completion is. */
TRACEPOINT("io_uring_complete") int complete_entry(u64 *ctx)
{
	struct io_uring_cqe *entry = (struct io_uring_cqe *)ctx[2];

	return completed(ctx[1], COPY(entry, res));
}

/* A completion for which its queue has no room is told only as this. */
TRACEPOINT("io_uring_cqe_overflow") int overflow(u64 *ctx)
{
	note_way(this_process(), 0, PLUMB_WAY_URING_SILENT);
	return 0;
}
