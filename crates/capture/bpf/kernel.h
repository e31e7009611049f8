/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Structures of the kernel, as far as the programs read them: offsets are found by the loader in the kernel's own type
 * information. Everything that differs between kernels is in this file.
 *
 * - block_rq_issue has the request as its first argument since a54895fa057c ("block: remove the request_queue to argument
 *   request based tracepoints"); before it was the second. Distributions took that over into older kernels, so the
 *   loader counts the arguments and takes the program that fits.
 * - request_queue has its disk since d152c682f03c ("block: add an explicit ->disk backpointer to the request_queue").
 * - request has `part`, a block_device, since 8446fe9255be ("block: switch partition lookup to use struct block_device").
 */
#ifndef PLUMB_KERNEL_H
#define PLUMB_KERNEL_H

#include "abi.h"

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_MMAPABLE 1024

/*
 * Whether an I/O that ended so has failed. A device may refuse an operation (BLK_STS_NOTSUPP, EOPNOTSUPP), and what was asked
 * not to wait is sent again (BLK_STS_AGAIN, EAGAIN). block_rq_complete has an errno, which is negative, in older kernels and a
 * blk_status_t, which is positive, in later ones.
 */
INLINE int is_failure(s32 error)
{
	return error && error != 1 && error != 12 && error != -95 && error != -11;
}

#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name
#define ARRAY_MAP(name_, type_)                          \
	struct {                                         \
		UINT(type, BPF_MAP_TYPE_ARRAY);          \
		UINT(map_flags, BPF_F_MMAPABLE);         \
		UINT(max_entries, 1);                    \
		TYPE(key, u32);                          \
		TYPE(value, type_);                      \
	} name_ SEC(".maps")

static void *(*bpf_map_lookup_elem)(const void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static u64 (*bpf_get_current_cgroup_id)(void) = (void *)80;
static u64 (*bpf_get_current_ancestor_cgroup_id)(int level) = (void *)123;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;

/* Numbers of include/linux/blk_types.h. */
#define REQ_OP_MASK 255
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZONE_APPEND 7
#define REQ_OP_WRITE_ZEROES 9
#define REQ_OP_DRV_IN 34
#define REQ_OP_DRV_OUT 35

/* Flags of a bio (bi_flags), whose enumeration has no name to find its values by. */
#define BIO_CLONED 1

/* Flags of an operation, with the values of the kernel at hand. */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};
#define REQ_FLAG(name) (1u << __builtin_preserve_enum_value(*(enum req_flag_bits *)__REQ_##name, 1))

/* Flags of a page, with the values of the kernel at hand. */
enum pageflags {
	PG_writeback = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk;

struct block_device {
	u64 bd_start_sect;
	u64 bd_nr_sectors;
	struct gendisk *bd_disk;
	u32 bd_dev;
};

struct blk_mq_ops;

struct request_queue {
	struct gendisk *disk;
	const struct blk_mq_ops *mq_ops;
};

struct gendisk {
	int major;
	int first_minor;
	struct block_device *part0;
	struct request_queue *queue;
};

struct blk_mq_hw_ctx {
	u32 queue_num;
};

struct bvec_iter {
	u64 bi_sector;
	u32 bi_size;
	u32 bi_idx;
};

struct page;

struct bio_vec {
	struct page *bv_page;
	u32 bv_len;
	u32 bv_offset;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	u16 bi_flags;
	u8 bi_status;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	u32 cmd_flags;
	int tag;
	int internal_tag;
	u32 __data_len;
	u64 __sector;
	struct bio *bio;
	struct block_device *part;
	u64 start_time_ns;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct super_block;

struct inode {
	u16 i_mode;
	u32 i_rdev;
	u64 i_ino;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};

struct qstr {
	const char *name;
};

struct dentry {
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct address_space {
	struct inode *host;
};

struct page {
	u64 compound_head;
	struct address_space *mapping;
};

/* The same structure: the loader takes a name up to three underscores. */
struct page___info {
	u64 compound_info;
};

struct folio {
	struct address_space *mapping;
};

struct files_struct;

struct thread_info {
	u64 flags;
	u32 status;
};

struct task_struct {
	struct thread_info thread_info;
	u32 flags;
	s32 tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct files_struct *files;
	char comm[16];
};

#pragma clang attribute pop

/* Numbers of include/uapi/linux/stat.h. */
#define S_IFMT 0170000
#define S_IFREG 0100000

/* A thread of the kernel (task_struct.flags). */
#define PF_KTHREAD 0x00200000

/*
 * A field of a structure: with the kernel's types known to the verifier it is read in place, else copied.
 */
#ifdef PLUMB_COPY_FIELDS
#define FIELD(from, field)                                                                              \
	({                                                                                              \
		typeof((from)->field) to_;                                                              \
		bpf_probe_read_kernel(&to_, sizeof(to_), __builtin_preserve_access_index(&(from)->field)); \
		to_;                                                                                    \
	})
#else
#define FIELD(from, field) ((from)->field)
#endif

/*
 * A field behind a pointer that the verifier does not know the type of: it is copied whatever the way of attaching. The
 * pointer stands in a variable first, since what it is read from would be taken for a structure of the kernel as well.
 */
#define COPY(from, field)                                                                                 \
	({                                                                                                \
		__auto_type from_ = (from);                                                               \
		typeof(from_->field) to_;                                                                 \
		if (bpf_probe_read_kernel(&to_, sizeof(to_), __builtin_preserve_access_index(&from_->field))) \
			__builtin_memset(&to_, 0, sizeof(to_));                                           \
		to_;                                                                                      \
	})

INLINE struct task_struct *current(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

/* Whether the kernel has a field, by what the loader finds. */
#define HAS_FIELD(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)

/* A pointer as a number that can be reckoned with: the verifier knows a copy of it for nothing else. */
INLINE u64 address_of(const void *pointer)
{
#ifdef PLUMB_COPY_FIELDS
	return (u64)pointer;
#else
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &pointer);
	return address;
#endif
}

/* A program at a tracepoint of the kernel. */
#ifdef PLUMB_COPY_FIELDS
#define TRACEPOINT(name) SEC("raw_tracepoint/" name)
#else
#define TRACEPOINT(name) SEC("tp_btf/" name)
#endif

#endif
