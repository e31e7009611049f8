// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Programs that do nothing, where those of block.bpf.c are: what any program costs there; and programs that do no more than
 * hand a record of 32 bytes over. For the benchmark alone.
 */
#include "kernel.h"

#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1

static long (*bpf_ringbuf_output)(void *ring, void *from, u64 size, u64 flags) = (void *)130;

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 1 << 24);
} ring SEC(".maps");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("tp_btf/block_rq_issue") int empty_issue(u64 *ctx)
{
	return 0;
}

SEC("tp_btf/block_rq_complete") int empty_complete(u64 *ctx)
{
	return 0;
}

SEC("tp_btf/block_bio_queue") int empty_queue(u64 *ctx)
{
	return 0;
}

INLINE int hand_over(void)
{
	u64 record[4] = { bpf_ktime_get_ns() };

	bpf_ringbuf_output(&ring, record, sizeof(record), BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/block_rq_issue") int ring_issue(u64 *ctx)
{
	return hand_over();
}

SEC("tp_btf/block_rq_complete") int ring_complete(u64 *ctx)
{
	return hand_over();
}
