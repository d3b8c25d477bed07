/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * libcu++: cuda::atomic in three scopes with acquire and release, atomic_ref, and messages between
 * blocks.
 */
#include "check.h"
#include <cuda/atomic>

enum { THREADS = 64, BLOCKS = 6, MESSAGES = 20 };

struct mail {
	cuda::atomic<int, cuda::thread_scope_device> flag;
	int payload[8];
};

__global__ void count(cuda::atomic<unsigned, cuda::thread_scope_device> *total, unsigned *plain,
	unsigned long long *most)
{
	__shared__ cuda::atomic<unsigned, cuda::thread_scope_block> local;
	int id = blockIdx.x * THREADS + threadIdx.x;

	if (threadIdx.x == 0)
		local.store(0, cuda::memory_order_relaxed);
	__syncthreads();
	local.fetch_add((unsigned)id, cuda::memory_order_relaxed);
	__syncthreads();
	if (threadIdx.x == 0)
		total->fetch_add(
			local.load(cuda::memory_order_acquire), cuda::memory_order_acq_rel);
	cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*plain);
	ref.fetch_xor((unsigned)id * 40503u);
	cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> largest(*most);
	largest.fetch_max((unsigned long long)id << 35, cuda::memory_order_relaxed);
}

/* Block 0 sends, block 1 sums. Their only synchronisation is the mailbox. */
__global__ void pass_on(mail *box, long long *sum)
{
	if (threadIdx.x)
		return;
	for (int m = 1; m <= MESSAGES; m++) {
		if (blockIdx.x == 0) {
			while (box->flag.load(cuda::memory_order_acquire) != 0)
				;
			for (int k = 0; k < 8; k++)
				box->payload[k] = m * 10 + k;
			box->flag.store(m, cuda::memory_order_release);
		} else {
			while (box->flag.load(cuda::memory_order_acquire) != m)
				;
			for (int k = 0; k < 8; k++)
				*sum = *sum * 3 + box->payload[k];
			box->flag.store(0, cuda::memory_order_release);
		}
	}
}

int main()
{
	cuda::atomic<unsigned, cuda::thread_scope_device> *total;
	unsigned *plain, got_total, got_plain, want_total = 0, want_plain = 0;
	unsigned long long *most, got_most;
	long long *sum, got_sum, want_sum = 0;
	mail *box;

	CU(cudaMalloc(&total, sizeof(*total)));
	CU(cudaMalloc(&plain, sizeof(*plain)));
	CU(cudaMalloc(&most, sizeof(*most)));
	CU(cudaMalloc(&sum, sizeof(*sum)));
	CU(cudaMalloc(&box, sizeof(*box)));
	CU(cudaMemset(total, 0, sizeof(*total)));
	CU(cudaMemset(plain, 0, sizeof(*plain)));
	CU(cudaMemset(most, 0, sizeof(*most)));
	CU(cudaMemset(sum, 0, sizeof(*sum)));
	CU(cudaMemset(box, 0, sizeof(*box)));
	count<<<BLOCKS, THREADS>>>(total, plain, most);
	CU(cudaMemcpy(&got_total, total, sizeof(got_total), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&got_plain, plain, sizeof(got_plain), cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(&got_most, most, sizeof(got_most), cudaMemcpyDeviceToHost));
	for (unsigned id = 0; id < THREADS * BLOCKS; id++) {
		want_total += id;
		want_plain ^= id * 40503u;
	}
	OK(got_total == want_total && got_plain == want_plain);
	OK(got_most == (THREADS * BLOCKS - 1ull) << 35);
	pass_on<<<2, 32>>>(box, sum);
	CU(cudaMemcpy(&got_sum, sum, sizeof(got_sum), cudaMemcpyDeviceToHost));
	for (int m = 1; m <= MESSAGES; m++)
		for (int k = 0; k < 8; k++)
			want_sum = (long long)((unsigned long long)want_sum * 3 +
				(unsigned long long)(m * 10 + k));
	OK(got_sum == want_sum);
	printf("total %u xor %08x most %llx sum %llx\n", got_total, got_plain, got_most,
		(unsigned long long)got_sum);
	return verdict("cuda_atomic");
}
