/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* MPS: what the environment of a driver says if a control daemon listens, and if none does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

TEST(a_daemon_that_listens)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	CHECK_INT(obs_mps_share(), 0);
	CHECK_INT(obs_mps_begin(250001, (5u << 20) - 1, &cause), OB_ERR_NONE);
	CHECK_INT(obs_mps_share(), 250001);
	CHECK_STR(getenv(PERCENT), "26");
	CHECK(strncmp(getenv(MEMORY), "0=5M", 4) == 0);
	control_close(fd);
}

TEST(without_a_limit_of_memory)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK(listen(fd, 1) == 0);
	CHECK_INT(obs_mps_begin(10000, 0, &cause), OB_ERR_NONE);
	CHECK_STR(getenv(PERCENT), "1");
	CHECK(!getenv(MEMORY));
	control_close(fd);
}

TEST(a_daemon_that_has_ended)
{
	struct ob_cause cause;
	int fd = control_bind();

	CHECK_INT(obs_mps_begin(500000, 1u << 30, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "no MPS control daemon answers at") &&
		strstr(cause.text, folder) && strstr(cause.text, "Connection refused"));
	CHECK(!obs_mps_share() && !getenv(PERCENT) && !getenv(MEMORY));
	control_close(fd);
}

TEST(no_such_directory)
{
	char name[200];
	struct ob_cause cause;

	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
	CHECK_INT(obs_mps_begin(500000, 0, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "/nonexistent/control") != NULL);
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	setenv("CUDA_MPS_PIPE_DIRECTORY", name, 1);
	CHECK_INT(obs_mps_begin(500000, 0, &cause), OB_ERR_DRIVER);
	CHECK(strstr(cause.text, "longer than") != NULL);
	CHECK(!obs_mps_share());
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
