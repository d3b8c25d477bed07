/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * For programs that consist of two processes with a CUDA context each: starts the second one and
 * passes bytes and descriptors between them. Each wait is limited.
 */
#ifndef TESTS_PROGRAMS_PAIR_H
#define TESTS_PROGRAMS_PAIR_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAIR_WAIT_MS 60000

static int pair_socket;
static pid_t pair_child;

/*
 * In the first process, before cuInit: starts this program again with the arguments "second" and
 * `what`. In the second: returns the argument. NULL: this is the first.
 */
static inline const char *pair_start(int argc, char **argv, const char *what)
{
	char number[16];
	int ends[2];

	if (argc == 4 && strcmp(argv[1], "second") == 0) {
		pair_socket = atoi(argv[3]);
		return argv[2];
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		exit(1);
	snprintf(number, sizeof number, "%d", ends[1]);
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	pair_child = fork();
	if (pair_child == 0) {
		execl("/proc/self/exe", argv[0], "second", what, number, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	pair_socket = ends[0];
	return NULL;
}

/* fd: -1 for none */
static inline void pair_send(const void *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)data, size };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof control.bytes;
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof fd);
	}
	if (sendmsg(pair_socket, &header, MSG_NOSIGNAL) != (ssize_t)size) {
		fprintf(stderr, "the other process is gone\n");
		exit(1);
	}
}

/* The descriptor that came along, or -1. */
static inline int pair_receive(void *data, size_t size)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { data, size };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	struct pollfd ready = { .fd = pair_socket, .events = POLLIN };
	int fd = -1;

	if (poll(&ready, 1, PAIR_WAIT_MS) != 1 ||
		recvmsg(pair_socket, &header, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)size) {
		fprintf(stderr, "the other process did not answer\n");
		exit(1);
	}
	if (CMSG_FIRSTHDR(&header))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
	return fd;
}

/* In the first process: the exit status of the second. */
static inline int pair_end(void)
{
	int status = -1;

	close(pair_socket);
	while (waitpid(pair_child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

#endif
