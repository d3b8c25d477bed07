/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * To be preloaded: the main thread's sendmsg or recv fails with a given errno. FAULTY="send|recv ERRNO SKIP TIMES": once SKIP of its sendmsg have gone well,
 * the next TIMES of what is named fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char what[8];
static int number, skip, times, sent;

__attribute__((constructor)) static void read_setting(void)
{
	const char *text = getenv("FAULTY");

	if (!text || sscanf(text, "%7s %d %d %d", what, &number, &skip, &times) != 4)
		what[0] = '\0';
}

static bool fails(const char *call)
{
	if (strcmp(call, what) != 0 || sent < skip || times-- <= 0)
		return false;
	errno = number;
	return true;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);
	bool main_thread = gettid() == getpid();

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	if (main_thread && fails("send"))
		return -1;
	sent += main_thread;
	return real(fd, msg, flags);
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *data, size_t size, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recv");
	return gettid() == getpid() && fails("recv") ? -1 : real(fd, data, size, flags);
}
