/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The CUDA runtime's self-test, answered. No state; any thread: the calling thread's id goes into
 * the answer.
 */
#ifndef OBF_EXPORT_SELFTEST_H
#define OBF_EXPORT_SELFTEST_H

#include "front/front.h"

#define OBF_SELFTEST_SIZE 16

struct obf_selftest {
	uint32_t version;            /* as the runtime asks */
	uint64_t seconds;            /* likewise */
	int driver_version;          /* as cuDriverGetVersion says */
	const void *interface_table; /* addresses as cuGetExportTable gave them */
	const void *check_table;
	const void *check_entry; /* the word in slot 1 of the latter */
	const struct obf_device *devices;
	int n_devices; /* at most OBF_DEVICE_MAX */
};

CUresult obf_selftest_answer(const struct obf_selftest *test, uint8_t ret[OBF_SELFTEST_SIZE]);
/* HMAC-MD2 under the self-test's key; on its own for test vectors. */
void obf_selftest_hmac(const void *data, size_t size, uint8_t ret[OBF_SELFTEST_SIZE]);

#endif
