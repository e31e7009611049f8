// SPDX-License-Identifier: MIT OR GPL-2.0
/* Programs that do nothing, where those of request.bpf.c are: what any program costs there. For the benchmark alone. */
#include "kernel.h"

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
