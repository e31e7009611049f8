/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Structures of the kernel behind a file descriptor and behind a request of io_uring, and the numbers of system calls.
 * Everything that differs between kernels and processors at the vfs layer is in this file.
 *
 * - io_kiocb holds an io_rw in the place of its first field since f3b44f92e59a ("io_uring: move read/write related opcodes
 *   to its own file"); the two tracepoints of io_uring have their forms told apart by the loader.
 * - The bits of `flags` that the caller sets are those of the submission queue entry.
 */
#ifndef PLUMB_VFS_H
#define PLUMB_VFS_H

#include "kernel.h"

#define BPF_MAP_TYPE_HASH 1
#define HASH_MAP(name_, key_, value_, entries_)         \
	struct {                                        \
		UINT(type, BPF_MAP_TYPE_HASH);          \
		UINT(max_entries, entries_);            \
		TYPE(key, key_);                        \
		TYPE(value, value_);                    \
	} name_ SEC(".maps")

static long (*bpf_map_update_elem)(const void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(const void *map, const void *key) = (void *)3;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

/* Numbers of include/linux/fs.h, uapi/linux/stat.h and backing-dev.h. */
#define S_IFBLK 0060000
#define BDI_CAP_WRITEBACK 1
#define OVERLAYFS_SUPER_MAGIC 0x794c7630

/* Numbers of uapi/linux/io_uring.h. */
#define IORING_OP_READV 1
#define IORING_OP_WRITEV 2
#define IORING_OP_READ_FIXED 4
#define IORING_OP_WRITE_FIXED 5
#define IORING_OP_READ 22
#define IORING_OP_WRITE 23
#define IORING_OP_SPLICE 30
#define IORING_OP_READV_FIXED 60
#define IORING_OP_WRITEV_FIXED 61
#define IOSQE_CQE_SKIP_SUCCESS (1 << 6)

/* Numbers of uapi/linux/aio_abi.h; programs submit a few hundred requests at once. */
#define IOCB_CMD_PREAD 0
#define IOCB_CMD_PWRITE 1
#define IOCB_CMD_PREADV 7
#define IOCB_CMD_PWRITEV 8
#define IOCBS_MAX 1024

/* A request of io_submit in the memory of a process: struct iocb. */
struct user_iocb {
	u64 data;
	u64 key_flags;
	u16 opcode;
	u16 priority;
	u32 descriptor;
	u64 buffer;
	u64 bytes;
	s64 offset;
};

/* Numbers of uapi/linux/mman.h and of uio.h. */
#define PROT_EXEC 4
#define MAP_ANONYMOUS 0x20
#define MAP_DENYWRITE 0x800
#define UIO_MAXIOV 1024

/* No call moves more, whatever it asks (include/linux/fs.h), in pages of 4 KiB. */
#define MAX_RW_COUNT 0x7ffff000ULL

#ifdef PLUMB_AARCH64
#define O_DIRECT 0200000
#define SYS_io_submit 2
#define SYS_read 63
#define SYS_write 64
#define SYS_readv 65
#define SYS_writev 66
#define SYS_pread64 67
#define SYS_pwrite64 68
#define SYS_preadv 69
#define SYS_pwritev 70
#define SYS_sendfile 71
#define SYS_splice 76
#define SYS_mmap 222
#define SYS_copy_file_range 285
#define SYS_preadv2 286
#define SYS_pwritev2 287
#else
#define O_DIRECT 040000
#define SYS_read 0
#define SYS_write 1
#define SYS_mmap 9
#define SYS_pread64 17
#define SYS_pwrite64 18
#define SYS_readv 19
#define SYS_writev 20
#define SYS_sendfile 40
#define SYS_io_submit 209
#define SYS_splice 275
#define SYS_preadv 295
#define SYS_pwritev 296
#define SYS_copy_file_range 326
#define SYS_preadv2 327
#define SYS_pwritev2 328
#endif

#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct backing_dev_info {
	u32 capabilities;
};

struct super_block {
	u32 s_dev;
	u64 s_magic;
	struct backing_dev_info *s_bdi;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	u32 f_flags;
	s64 f_pos;
};

struct fdtable {
	u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u32 flags;
};

struct io_uring_cqe {
	s32 res;
};

#ifdef PLUMB_AARCH64
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#else
struct pt_regs {
	u64 r10;
	u64 r9;
	u64 r8;
	u64 dx;
	u64 si;
	u64 di;
	u64 orig_ax;
};
#endif

#pragma clang attribute pop

#ifdef PLUMB_AARCH64
#define CALL_OF(regs) ((u64)(u32)FIELD(regs, syscallno))
#define FIRST(regs) FIELD(regs, orig_x0)
#define SECOND(regs) FIELD(regs, regs[1])
#define THIRD(regs) FIELD(regs, regs[2])
#define FOURTH(regs) FIELD(regs, regs[3])
#define FIFTH(regs) FIELD(regs, regs[4])
#else
#define CALL_OF(regs) FIELD(regs, orig_ax)
#define FIRST(regs) FIELD(regs, di)
#define SECOND(regs) FIELD(regs, si)
#define THIRD(regs) FIELD(regs, dx)
#define FOURTH(regs) FIELD(regs, r10)
#define FIFTH(regs) FIELD(regs, r8)
#endif

/* Flags of a task (include/linux/sched.h, since 6.4) that does the work of the kernel: it exits, is a worker of io_uring or of the kernel,
 * dumps core, or frees memory. */
#define NO_PROGRAM (0x4 | 0x10 | 0x4000 | PF_KTHREAD | 0x200 | 0x800)

/* The number of a call where a task is in none. */
#define NO_CALL -1

/* __X32_SYSCALL_BIT and a number; not -1, which stands where no call is told. */
INLINE u32 is_x32(u64 call)
{
	return call >> 10 == 1 << 20;
}

/* Whether a call came by a table of calls with other numbers: that of 32-bit programs, or x32. */
INLINE u32 is_foreign(u64 call)
{
#ifdef PLUMB_AARCH64
	return !!(COPY(current(), thread_info.flags) & 1 << 22); /* TIF_32BIT */
#else
	return is_x32(call) || COPY(current(), thread_info.status) & 2; /* TS_COMPAT */
#endif
}

/* The file of a descriptor of this process; 0 when it has been closed. */
INLINE struct file *file_of(u32 descriptor)
{
	struct files_struct *files = COPY(current(), files);
	struct fdtable *table = COPY(files, fdt);
	struct file **files_of_table = COPY(table, fd), *file;

	if (descriptor >= COPY(table, max_fds))
		return 0;
	return bpf_probe_read_kernel(&file, sizeof(file), files_of_table + descriptor) ? 0 : file;
}

#endif
