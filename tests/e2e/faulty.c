/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A library for LD_PRELOAD: sendmsg or recv fails with a given errno on the first socket that the
 * main thread sends on, in any thread. FAULTY="send|recv ERRNO SKIP TIMES": after SKIP successful
 * sendmsg on that socket, the next TIMES calls of the named function fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char what[8];
static int number, skip, times;
static _Atomic int the_socket = -1, sent, failed;

__attribute__((constructor)) static void read_setting(void)
{
	const char *text = getenv("FAULTY");

	if (!text || sscanf(text, "%7s %d %d %d", what, &number, &skip, &times) != 4)
		what[0] = '\0';
}

static bool fails(const char *call, int fd)
{
	if (strcmp(call, what) != 0 || fd != the_socket || sent < skip || failed++ >= times)
		return false;
	errno = number;
	return true;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	if (the_socket < 0 && gettid() == getpid())
		the_socket = fd;
	if (fails("send", fd))
		return -1;
	sent += fd == the_socket;
	return real(fd, msg, flags);
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *data, size_t size, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recv");
	return fails("recv", fd) ? -1 : real(fd, data, size, flags);
}
