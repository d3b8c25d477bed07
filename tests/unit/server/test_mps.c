/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* MPS: what the environment of a driver says if a control daemon listens, and if none does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "protocol/load.h"
#include "protocol/obs_driver.h"
#include "server/layers/mps.h"
#include "tests/test.h"

#define PERCENT "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define MEMORY  "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

static char folder[] = "/tmp/outboard-mps-XXXXXX";

/* A socket in the folder, of which CUDA_MPS_PIPE_DIRECTORY is the name; nobody listens yet. */
static int control_bind(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unsetenv(PERCENT);
	unsetenv(MEMORY);
	CHECK(mkdtemp(folder) != NULL);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/control", folder);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
	return fd;
}

static void control_close(int fd)
{
	char path[64];

	close(fd);
	snprintf(path, sizeof path, "%s/control", folder);
	unlink(path);
	rmdir(folder);
}

/* What the driver says of MPS: 1 or 0 on each of two devices, or an error. */
static CUresult attribute_result;
static int enabled[2];

static CUresult attribute(int *ret, CUdevice_attribute which, CUdevice device)
{
	CHECK_INT(which, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
	if (attribute_result == CUDA_SUCCESS)
		*ret = enabled[device];
	return attribute_result;
}

static const struct obs_driver driver = { .cuDeviceGetAttribute = attribute };

TEST(a_daemon_that_listens)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	CHECK(!obs_mps_begun());
	CHECK_INT(obs_mps_begin(250001, &cause), OB_ERR_NONE);
	CHECK(obs_mps_begun());
	CHECK_STR(getenv(PERCENT), "26");
	CHECK(!getenv(MEMORY)); /* the quota layer keeps it */
	enabled[0] = enabled[1] = 1;
	CHECK_INT(obs_mps_confirm(&driver, 2, &cause), OB_ERR_NONE);
	CHECK_INT(obs_mps_check(250001, &cause), OB_ERR_NONE);
	CHECK_INT(obs_mps_check(250000, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "250001 millionths, and this session's is 250000") != NULL);
	control_close(fd);
}

/* Something listens, and the driver runs without MPS all the same. */
static void denied(CUresult result, int first, const char *words)
{
	struct ob_cause cause;

	CHECK_INT(obs_mps_begin(500000, &cause), OB_ERR_NONE);
	attribute_result = result;
	enabled[0] = first;
	enabled[1] = 0;
	CHECK_INT(obs_mps_confirm(&driver, 2, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, words) != NULL);
	obs_mps_refuse(&cause);
	cause.text[0] = '\0';
	CHECK_INT(obs_mps_check(500000, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, words) != NULL);
}

TEST(a_driver_that_does_not_use_it)
{
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	denied(CUDA_SUCCESS, 0, "does not use MPS on device 0");
	denied(CUDA_SUCCESS, 1, "does not use MPS on device 1");
	denied(CUDA_ERROR_INVALID_VALUE, 1, "does not say whether it uses MPS on device 0");
	control_close(fd);
}

TEST(what_an_operator_has_set)
{
	static const char *const bad[] = { "26", "x", "-1", "0", "nan", "1e3", "20%" };
	struct ob_cause cause;
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	setenv(MEMORY, "0=1G", 1);
	setenv(PERCENT, "10", 1);
	CHECK_INT(obs_mps_begin(250000, &cause), OB_ERR_NONE);
	CHECK_STR(getenv(PERCENT), "10");
	CHECK_STR(getenv(MEMORY), "0=1G");
	setenv(PERCENT, "25", 1);
	CHECK_INT(obs_mps_begin(250000, &cause), OB_ERR_NONE);
	for (size_t i = 0; i < ob_count(bad); i++) {
		setenv(PERCENT, bad[i], 1);
		CHECK_INT(obs_mps_begin(250000, &cause), OB_ERR_DRIVER);
		CHECK(strstr(cause.text, bad[i]) && strstr(cause.text, "the 25 of"));
		CHECK_STR(getenv(PERCENT), bad[i]);
	}
	control_close(fd);
}

TEST(a_server_without_a_share)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	CHECK_INT(obs_mps_begin(OBP_SHARE_ALL, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "the server's --share, which is not below 1") != NULL);
	CHECK(!obs_mps_begun() && !getenv(PERCENT));
	control_close(fd);
}

TEST(a_daemon_that_has_ended)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK_INT(obs_mps_begin(500000, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "no MPS control daemon answers at") &&
		strstr(cause.text, folder) && strstr(cause.text, "Connection refused"));
	CHECK(!obs_mps_begun() && !getenv(PERCENT) && !getenv(MEMORY));
	control_close(fd);
}

TEST(no_such_directory)
{
	char name[200];
	struct ob_cause cause;

	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	CHECK_INT(obs_mps_begin(500000, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "/nonexistent/control") != NULL);
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	setenv("CUDA_MPS_PIPE_DIRECTORY", name, 1);
	CHECK_INT(obs_mps_begin(500000, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "longer than") != NULL);
	CHECK(!obs_mps_begun());
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
