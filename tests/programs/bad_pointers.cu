/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Null, freed, foreign and too short pointers in copies, memsets and frees: the call refuses them,
 * and later calls work.
 */
#include "check.h"

static void refused(const char *call, cudaError_t status, int line)
{
	cudaError_t last = cudaGetLastError();

	code_note(call, (int)status);
	if (status != cudaErrorInvalidValue || last != status) {
		fprintf(stderr, "line %d: %s, last %s\n", line, cudaGetErrorName(status),
			cudaGetErrorName(last));
		check_failures++;
	}
}

#define REFUSED(call) refused(#call, call, __LINE__)

int main()
{
	enum { BYTES = 4096 };
	static char host[BYTES], back[BYTES];
	char *live, *gone, *pinned;
	void *null = nullptr;

	CU(cudaMalloc(&live, BYTES));
	CU(cudaMalloc(&gone, BYTES));
	CU(cudaFree(gone));
	memset(host, 7, sizeof(host));

	REFUSED(cudaMemcpy(null, host, BYTES, cudaMemcpyHostToDevice));
	REFUSED(cudaMemcpy(host, null, BYTES, cudaMemcpyDeviceToHost));
	REFUSED(cudaMemcpy(gone, host, BYTES, cudaMemcpyHostToDevice));
	REFUSED(cudaMemcpy(host, gone, BYTES, cudaMemcpyDeviceToHost));
	REFUSED(cudaMemcpy(gone, live, BYTES, cudaMemcpyDeviceToDevice));
	REFUSED(cudaMemcpy(live, gone, BYTES, cudaMemcpyDeviceToDevice));
	REFUSED(cudaMemset(null, 0, BYTES));
	REFUSED(cudaMemset(gone, 0, BYTES));
	REFUSED(cudaMemcpyAsync(gone, host, BYTES, cudaMemcpyHostToDevice, 0));
	REFUSED(cudaMemsetAsync(gone, 0, BYTES, 0));
	puts("null and freed pointers refused");

	/* Far beyond the end: an address just beyond it may be in the same page of memory. */
	REFUSED(cudaMemcpy(live, host, (size_t)1 << 44, cudaMemcpyHostToDevice));
	REFUSED(cudaMemset(live, 0, (size_t)1 << 44));
	REFUSED(cudaFree(gone));
	REFUSED(cudaFree(live + 256));
	REFUSED(cudaFree(host));
	REFUSED(cudaFreeHost(host));
	EXPECT(cudaSuccess, cudaFree(nullptr));
	EXPECT(cudaSuccess, cudaFreeHost(nullptr));
	puts("double free, inner and foreign pointers refused");

	CU(cudaMallocHost(&pinned, BYTES));
	CU(cudaFreeHost(pinned));
	REFUSED(cudaFreeHost(pinned));
	EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(live, host, BYTES, (cudaMemcpyKind)17));
	EXPECT(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
	EXPECT(cudaSuccess, cudaMemcpy(null, host, 0, cudaMemcpyHostToDevice));

	/* Later calls still work. */
	CU(cudaMemcpy(live, host, BYTES, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(back, live, BYTES, cudaMemcpyDeviceToHost));
	OK(!memcmp(host, back, BYTES));
	CU(cudaFree(live));
	REFUSED(cudaFree(live));
	return verdict("bad_pointers");
}
