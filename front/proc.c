/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuGetProcAddress, which uses the generated table of this library's exports; the profiler; calls
 * that are exported but not implemented.
 */
#include <string.h>

#include "base/log.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define ABSENT_ROWS 2048u /* more than the number of exported names; a power of two */

/*
 * The rows of one name are adjacent and sorted by flavour, then version. Works before cuInit and
 * after a fork, because it uses no state of the process.
 */
static const struct obf_proc *first_of(const char *name)
{
	const struct obf_backend *host = obf_process.backend;
	size_t low = 0, high = host ? host->n_procs : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(host->procs[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return host && low < host->n_procs && strcmp(host->procs[low].name, name) == 0
		? &host->procs[low]
		: NULL;
}

/*
 * Returns the newest entry of a flavour that a program of `version` may use. *ret_seen: the name
 * has an entry of that flavour.
 */
static const struct obf_proc *newest(
	const struct obf_proc *row, unsigned flavour, int version, bool *ret_seen)
{
	const struct obf_proc *end = obf_process.backend->procs + obf_process.backend->n_procs,
			      *best = NULL;
	const char *name = row->name;

	*ret_seen = false;
	for (; row < end && strcmp(row->name, name) == 0; row++)
		if (row->flavour == flavour) {
			*ret_seen = true;
			if (row->since <= version)
				best = row;
		}
	return best;
}

static CUdriverProcAddressQueryResult look_up(
	const char *symbol, int version, cuuint64_t flags, void **ret)
{
	const struct obf_proc *first = first_of(symbol), *found = NULL;
	bool seen = false;

	*ret = NULL;
	if (!first)
		return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		found = newest(first, 1, version, &seen);
	/* Functions without a stream parameter have one entry for both flavours. */
	if (!seen)
		found = newest(first, 0, version, &seen);
	if (!found)
		return seen ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	*ret = found->entry;
	return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult obf_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult found;

	if (!symbol || !pfn || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	found = look_up(symbol, version, flags, pfn);
	if (status)
		*status = found;
	return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult obf_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return obf_cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

CUresult obf_absent(const char *name, const char *reason)
{
	static const char *_Atomic rows[ABSENT_ROWS];
	uintptr_t at = (uintptr_t)name;

	/*
	 * Names are string literals, which are compared by address. A hash table with open
	 * addressing; entries are never removed.
	 */
	for (unsigned i = 0; i < ABSENT_ROWS; i++) {
		const char *_Atomic *row = &rows[((at >> 3) + i) & (ABSENT_ROWS - 1)];
		const char *seen = atomic_load_explicit(row, memory_order_relaxed);

		if (seen == name)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!seen && atomic_compare_exchange_strong(row, &seen, name)) {
			ob_warn("%s is not supported: %s", name, reason);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		if (seen == name)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult obf_cuProfilerInitialize(
	const char *config_file, const char *output_file, CUoutput_mode output_mode)
{
	(void)config_file;
	(void)output_file;
	(void)output_mode;
	return CUDA_ERROR_NOT_SUPPORTED; /* like every driver since 12.0 */
}

CUresult obf_cuProfilerStart(void)
{
	struct obf_ctx *ctx;

	return obf_ctx_enter(&ctx);
}

CUresult obf_cuProfilerStop(void)
{
	struct obf_ctx *ctx;

	return obf_ctx_enter(&ctx);
}
