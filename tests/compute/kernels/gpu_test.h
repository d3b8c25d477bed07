/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the tests of kernels on a device: opens device 0 of the driver in
 * OUTBOARD_TEST_LIBCUDA, or in the first argument if that is not set; random numbers; checks that
 * print the error's text.
 */
#ifndef OBK_GPU_TEST_H
#define OBK_GPU_TEST_H

#include "compute/gpu/gpu.h"
#include "tests/test.h"

static __attribute__((unused)) struct obk_fault fault;
static __attribute__((unused)) struct obk_gpu *gpu;
static __attribute__((unused)) uint64_t random_state = 41; /* each case starts with this value */

static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1d;
}

static inline void check_ok(enum ob_err err)
{
	if (err)
		printf("%s: %s\n", ob_err_name(err), fault.text);
	CHECK_INT(err, OB_ERR_NONE);
}

static inline void open_device(void)
{
	const struct obk_gpu_driver *driver;

	alarm(200); /* for the software device on a busy machine */
	if (obk_gpu_driver_open(getenv("OUTBOARD_TEST_LIBCUDA"), &driver, &fault))
		TEST_SKIP("%s", fault.text);
	check_ok(obk_gpu_open(driver, 0, &gpu, &fault));
}

/* The arguments are the driver of the software device, then names of cases. */
static inline int gpu_test_main(int argc, char **argv)
{
	if (getenv("OUTBOARD_TEST_LIBCUDA"))
		test_fds_allowed = 4096; /* NVIDIA's driver keeps files open */
	else if (argc > 1)
		setenv("OUTBOARD_TEST_LIBCUDA", argv[1], 0);
	return test_main(argc > 2 ? argc - 1 : 1, argc > 2 ? argv + 1 : argv);
}

#endif
