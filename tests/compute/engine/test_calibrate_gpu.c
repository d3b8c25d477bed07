/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Profiles of a GPU's MSM that calibration stores.
 *     test_service_calibrate_gpu DRIVER     DRIVER is the software device's library;
 *                                           OUTBOARD_TEST_LIBCUDA overrides it
 */
#include "outboard.h"
#include "../../test.h"

static const char *driver;

static int calibrate(void)
{
	struct outboard_options o = { .devices = "gpu:0", .driver = driver, .no_fallback = 1 };
	struct outboard *ob = NULL;

	CHECK_INT(outboard_open(&o, &ob, NULL), OUTBOARD_OK);
	CHECK_INT(outboard_calibrate(ob, 0.1, NULL), OUTBOARD_OK);
	outboard_close(ob);
	return 0;
}

/* With the switch `tune` off, calibration does not measure the GPU's MSM and stores no profile. */
TEST(calibration_may_be_switched_off)
{
	char folder[] = "/tmp/ob-service-XXXXXX", command[512];

	if (TEST_SANITIZED)
		return;
	CHECK(mkdtemp(folder) != NULL);
	setenv("XDG_CACHE_HOME", folder, 1);
	for (unsigned on = 0; on < 2; on++) {
		/* a separate process, because the library reads switches when it is loaded */
		snprintf(command, sizeof(command), "OUTBOARD_OPT=%s /proc/%d/exe '%s' calibrate",
			on ? "tune" : "-tune", (int)getpid(), driver);
		CHECK_INT(system(command), 0);
		snprintf(command, sizeof(command), "ls %s/outboard/msm-gpu-*.profile >%s/out 2>&1",
			folder, folder);
		CHECK((system(command) == 0) == on);
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return TEST_SKIP_EXIT;
	driver = argv[1];
	if (argc > 2)
		return calibrate();
	if (getenv("OUTBOARD_TEST_LIBCUDA")) {
		driver = getenv("OUTBOARD_TEST_LIBCUDA");
		test_fds_allowed = 4096;
	}
	return test_main(1, argv);
}
