/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/terminal.h"

int obs_handoff_pair(int ret_fds[2])
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return -1;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

int obs_handoff_send(int channel, const struct obs_handoff *message, const int fds[OBS_HANDOFF_FDS])
{
	struct iovec iov = { (void *)(uintptr_t)message,
		offsetof(struct obs_handoff, body) + message->size };
	union {
		char bytes[CMSG_SPACE(OBS_HANDOFF_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t n_fds = 0;
	int list[OBS_HANDOFF_FDS];
	ssize_t n;

	for (int i = 0; fds && i < OBS_HANDOFF_FDS; i++)
		if (fds[i] >= 0)
			list[n_fds++] = fds[i];
	if (n_fds) {
		struct cmsghdr *cmsg;

		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), list, n_fds * sizeof(int));
	}
	do
		n = sendmsg(channel, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)iov.iov_len ? 0 : -1;
}

void obs_handoff_drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void obs_handoff_close(int fds[OBS_HANDOFF_FDS])
{
	for (int i = 0; i < OBS_HANDOFF_FDS; i++)
		obs_handoff_drop(&fds[i]);
}

/* Takes the descriptors in their order: the first is the socket. */
static void fds_take(struct msghdr *header, int ret_fds[OBS_HANDOFF_FDS])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0;
			i < OBS_HANDOFF_FDS && CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++)
			memcpy(&ret_fds[i], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
}

/* Terminates and cleans a text. */
static void text_settle(char *text, size_t size)
{
	text[ob_text_clean(text, strnlen(text, size - 1))] = '\0';
}

/* Makes a byte from a peer a valid bool. */
static void flag_settle(bool *flag)
{
	uint8_t byte;

	memcpy(&byte, flag, sizeof byte);
	*flag = byte != 0;
}

bool obs_handoff_send_up(const struct obs_handoff *message, int fd, int memfd)
{
	return obs_handoff_send(
		       OBS_HANDOFF_FD, message, (const int[OBS_HANDOFF_FDS]){ fd, memfd, -1 }) == 0;
}

int obs_handoff_recv(int channel, struct obs_handoff *ret, int ret_fds[OBS_HANDOFF_FDS])
{
	struct iovec iov = { ret, sizeof *ret };
	union {
		char bytes[CMSG_SPACE(OBS_HANDOFF_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		/* Not with its padding, which has room for one descriptor more. */
		.msg_controllen = CMSG_LEN(OBS_HANDOFF_FDS * sizeof(int)) };
	ssize_t n;

	for (int i = 0; i < OBS_HANDOFF_FDS; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -1;
	fds_take(&header, ret_fds);
	if (n == 0) { /* end of the channel, or an empty message, which may carry descriptors */
		obs_handoff_close(ret_fds);
		return 0;
	}
	/*
	 * A child may have been taken over by a client: check its numbers and texts like a
	 * client's.
	 */
	if ((size_t)n < offsetof(struct obs_handoff, body) || ret->size > sizeof ret->body ||
		(size_t)n != offsetof(struct obs_handoff, body) + ret->size) {
		obs_handoff_close(ret_fds);
		errno = EPROTO;
		return -1;
	}
	text_settle(ret->text, sizeof ret->text);
	text_settle(ret->program, sizeof ret->program);
	text_settle(ret->identity.who, sizeof ret->identity.who);
	text_settle(ret->identity.from, sizeof ret->identity.from);
	text_settle(ret->identity.address, sizeof ret->identity.address);
	flag_settle(&ret->identity.proved);
	flag_settle(&ret->identity.local);
	flag_settle(&ret->ticketed);
	flag_settle(&ret->ticket.exclusive);
	text_settle(ret->ticket.server, sizeof ret->ticket.server);
	text_settle(ret->ticket.tenant, sizeof ret->ticket.tenant);
	return 1;
}
