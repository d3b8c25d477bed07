/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/end.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/common/stats_page.h"
#include "server/common/handoff.h"
#include "server/common/refuse.h"
#include "server/layers/stats.h"

#define LAST_WORDS_MS 500 /* for the client to read why its session ends */

void obs_session_publish(const struct obs_session *session)
{
	uint64_t executed = atomic_load_explicit(&session->replies.executed, memory_order_relaxed);
	uint64_t blocking = atomic_load_explicit(&session->blocking, memory_order_relaxed);

	if (executed != obs_stats_page_read(&obs_stats_page->calls) || blocking)
		atomic_store_explicit(
			&obs_stats_page->last_ns, ob_clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&obs_stats_page->calls, executed, memory_order_relaxed);
}

static void packed_print(const char *direction, const struct obp_pack_stats *stats)
{
	for (unsigned i = 0; i < OBZ_CODEC_COUNT; i++)
		if (stats->chunks[i])
			ob_info("stats: compression %s: %s: %llu chunks, %llu bytes became %llu, "
				"%.3f ms in all codecs",
				direction, obz_codec_name((enum obz_codec)i),
				(unsigned long long)stats->chunks[i],
				(unsigned long long)stats->raw[i],
				(unsigned long long)stats->wire[i], (double)stats->ns / 1e6);
}

/* Tells the supervisor, which writes the audit log, why the session ended. */
static void end_report(const struct obs_session *session, const char *reason)
{
	struct obs_handoff message = { .type = OBS_HANDOFF_ENDED };

	if (session->channel < 0)
		return;
	snprintf(message.text, sizeof message.text, "%s", reason);
	obs_handoff_send(session->channel, &message, NULL);
}

_Noreturn void obs_session_exit(struct obs_session *session, int status)
{
	static _Atomic bool leaving;

	while (atomic_exchange(&leaving, true))
		/* two threads may see that the client has left; only the first ends the process */
		pause();
	obs_session_publish(session);
	end_report(session,
		session->end_reason[0] ? session->end_reason
			: status       ? "the client could not be reached"
				       : "the client left");
	obs_stats_print();
	if (obs_stats_on) {
		packed_print("in", &session->conn.unpacker.stats);
		packed_print("out", &session->packer.stats);
	}
	/* Not exit(): a driver's destructors could wait for a device that never finishes. */
	_exit(status);
}

void obs_session_linger(int fd)
{
	uint64_t deadline = ob_clock_ns() + LAST_WORDS_MS * OB_MS;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char bytes[4096];

	shutdown(fd, SHUT_WR);
	while (poll(&pfd, 1, ob_clock_poll_ms(deadline)) > 0 && ob_clock_ns() < deadline)
		if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
			return;
}

_Noreturn void obs_session_fatal(
	struct obs_session *session, enum ob_err code, const char *format, ...)
{
	struct timespec until;
	char text[OBP_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (atomic_exchange(&session->ending, true))
		for (;;)
			pause(); /* another thread is already ending the process */
	ob_warn("session %016llx: %s", (unsigned long long)session->id, text);
	snprintf(session->end_reason, sizeof session->end_reason, "%.190s", text);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	/*
	 * A thread that is blocked sending a reply holds the lock. In that case no message can be
	 * sent.
	 */
	if (pthread_mutex_timedlock(&session->replies.lock, &until) == 0 &&
		session->replies.stream.fd >= 0) {
		obs_message_send(&session->replies.stream, OBP_MSG_FATAL, code, text);
		obs_session_linger(session->replies.stream.fd);
	}
	obs_session_exit(session, 1);
}
