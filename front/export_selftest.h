/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Computes the answer to the CUDA runtime's self-test. No state; any thread: the calling thread's
 * id is part of the answer.
 */
#ifndef OBF_EXPORT_SELFTEST_H
#define OBF_EXPORT_SELFTEST_H

#include "front/front.h"

#define OBF_SELFTEST_SIZE 16

struct obf_selftest {
	uint32_t version;            /* from the runtime's request */
	uint64_t seconds;            /* likewise */
	int driver_version;          /* the result of cuDriverGetVersion */
	const void *interface_table; /* addresses that cuGetExportTable returned */
	const void *check_table;
	const void *check_entry; /* the word in slot 1 of check_table */
	const struct obf_device *devices;
	int n_devices; /* at most OBF_DEVICE_MAX */
};

CUresult obf_selftest_answer(const struct obf_selftest *test, uint8_t ret[OBF_SELFTEST_SIZE]);
/* HMAC-MD2 with the key of the self-test; a separate function for test vectors. */
void obf_selftest_hmac(const void *data, size_t size, uint8_t ret[OBF_SELFTEST_SIZE]);

#endif
