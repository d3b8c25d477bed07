/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/member_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/terminal.h"

int obs_member_pair(int ret_fds[2])
{
	/* One message is one packet, and must fit into the buffer. */
	int size = 2 * (int)sizeof(struct obs_member_message);

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) != 0)
		return -1;
	for (int i = 0; i < 2; i++)
		setsockopt(ret_fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (fcntl(ret_fds[0], F_SETFL, O_NONBLOCK) == 0)
		return 0;
	close(ret_fds[0]);
	close(ret_fds[1]);
	return -1;
}

bool obs_member_send(int channel, const struct obs_member_message *message)
{
	size_t size = offsetof(struct obs_member_message, frame) + message->size;

	return send(channel, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

static void text_settle(char *text, size_t size)
{
	text[ob_text_clean(text, strnlen(text, size - 1))] = '\0';
}

int obs_member_recv(int channel, struct obs_member_message *ret)
{
	ssize_t n = recv(channel, ret, sizeof *ret, MSG_DONTWAIT);

	if (n < 0)
		return errno == ECONNRESET ? 0 : -1;
	if (n == 0)
		return 0;
	if ((size_t)n < offsetof(struct obs_member_message, frame) ||
		ret->size > sizeof ret->frame ||
		(size_t)n != offsetof(struct obs_member_message, frame) + ret->size) {
		errno = EPROTO;
		return -1;
	}
	if (ret->type == OBS_MEMBER_REGISTERED)
		text_settle(ret->u.registered.balancer, sizeof ret->u.registered.balancer);
	if (ret->type == OBS_MEMBER_ORDER || ret->type == OBS_MEMBER_LOST)
		text_settle(ret->u.order.text, sizeof ret->u.order.text);
	return 1;
}
