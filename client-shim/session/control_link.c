/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/control_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "protocol/conn.h"
#include "transport/message.h"

void obc_control_link_set(struct obc_control_link *link, const struct obt_stream *stream)
{
	pthread_mutex_lock(&link->lock);
	/*
	 * before it is closed, so that obc_control_link_ours_or_none does not assume that the
	 * program closed it
	 */
	atomic_store(&link->fd, -1);
	if (link->connected)
		obt_stream_close(&link->stream);
	link->connected = stream != NULL;
	if (stream) {
		link->stream = *stream;
		atomic_store(&link->ino, stream->file.ino);
		atomic_store(&link->fd, stream->fd);
	}
	pthread_mutex_unlock(&link->lock);
}

/* Under the lock. */
static bool usable(struct obc_control_link *link)
{
	return link->connected && obt_stream_ours(&link->stream);
}

/*
 * The thread that gets the lock sends. Another thread has stored its number before, and the thread
 * with the lock sends it.
 */
static void ack_flush(struct obc_control_link *link)
{
	while (atomic_load(&link->ack_wanted) && pthread_mutex_trylock(&link->lock) == 0) {
		uint64_t number = atomic_exchange(&link->ack_wanted, 0);
		struct obp_frame frame;
		struct iovec iov = { &frame, sizeof frame };

		if (number && usable(link)) {
			obp_frame_fill(&frame, OBP_FRAME_ACK, 0, 0, 0, number);
			if (link->stream.ops->send(&link->stream, &iov, 1, false) !=
				(ssize_t)sizeof frame)
				/* no frame may follow an incomplete one */
				obt_stream_shutdown(&link->stream);
		}
		pthread_mutex_unlock(&link->lock);
	}
}

void obc_control_link_ack(struct obc_control_link *link, uint64_t replies)
{
	atomic_store(&link->ack_wanted, replies);
	ack_flush(link);
}

bool obc_control_link_send(
	struct obc_control_link *link, const struct obp_message *message, uint64_t deadline)
{
	bool sent;

	pthread_mutex_lock(&link->lock);
	sent = usable(link) &&
		obt_message_send(&link->stream, message, NULL, 0, deadline) == OB_ERR_NONE;
	pthread_mutex_unlock(&link->lock);
	ack_flush(link);
	return sent;
}

void obc_control_link_try_send(
	struct obc_control_link *link, const struct obp_message *message, uint64_t deadline)
{
	if (pthread_mutex_trylock(&link->lock) != 0)
		return;
	if (usable(link))
		obt_message_send(&link->stream, message, NULL, 0, deadline);
	pthread_mutex_unlock(&link->lock);
}

/*
 * Called without the lock: by other threads, by a child after fork, and while the holder of the
 * lock waits in a send.
 */
static bool fd_ours(struct obc_control_link *link)
{
	int fd = atomic_load(&link->fd);

	return fd >= 0 && ob_fd_file(fd).ino == atomic_load(&link->ino);
}

bool obc_control_link_ours_or_none(struct obc_control_link *link)
{
	int fd = atomic_load(&link->fd);

	/*
	 * The number is read twice because the control thread may replace the connection between
	 * the two checks.
	 */
	return fd < 0 || fd_ours(link) || atomic_load(&link->fd) != fd;
}

void obc_control_link_wake(struct obc_control_link *link)
{
	/*
	 * The holder of the lock may be blocked in a send; the connection is not replaced
	 * meanwhile, and shutting it down ends that send.
	 */
	bool locked = pthread_mutex_trylock(&link->lock) == 0;

	if (locked ? usable(link) : fd_ours(link))
		shutdown(atomic_load(&link->fd), SHUT_RDWR);
	if (locked)
		pthread_mutex_unlock(&link->lock);
}

void obc_control_link_forget(struct obc_control_link *link)
{
	if (fd_ours(link))
		close(atomic_load(&link->fd));
	*link = (struct obc_control_link)OBC_CONTROL_LINK_INIT;
}
