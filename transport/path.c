/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/path.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
			((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool obt_path_local(const struct obt_stream *stream)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC }, peer = own;
	socklen_t own_length = sizeof own, peer_length = sizeof peer;

	if (getsockname(stream->fd, (struct sockaddr *)&own, &own_length) != 0 ||
		getpeername(stream->fd, (struct sockaddr *)&peer, &peer_length) != 0)
		return true;
	if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6)
		return true;
	if (peer.ss_family == AF_INET &&
		ntohl(((const struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == 127)
		return true;
	return same_address(&own, &peer);
}

/* time beyond twice the shortest round trip that means a queue */
#define QUEUED_US         2000u
#define INTERVAL_BYTES    (64u << 10) /* acknowledged bytes that suffice for a rate */
/* limit of the unsent bytes while a fast rate of an earlier session has not been confirmed */
#define UNCONFIRMED_BYTES (256 << 10)

static double meter_now(const struct obt_meter *meter)
{
	return meter->bytes / meter->seconds;
}

static void meter_add(struct obt_meter *meter, double bytes, double rate)
{
	double window = ob_max(
		       (double)OBT_METER_WINDOW_BYTES, meter_now(meter) * OBT_METER_WINDOW_S),
	       keep = window / (window + bytes);

	meter->bytes = meter->bytes * keep + bytes;
	meter->seconds = meter->seconds * keep + bytes / rate;
	meter->recalled_bytes *= keep;
	meter->recalled_seconds *= keep;
	meter->measured += bytes;
	if (meter->measured >= OBT_METER_WINDOW_BYTES && meter->recalled_bytes > 0) {
		meter->bytes -= meter->recalled_bytes;
		meter->seconds -= meter->recalled_seconds;
		meter->recalled_bytes = meter->recalled_seconds = 0;
	}
}

static void meter_begin(struct obt_meter *meter, double rate)
{
	meter->bytes = OBT_METER_PRIOR_BYTES;
	meter->seconds = OBT_METER_PRIOR_BYTES / rate;
	meter->spare = OBT_METER_WINDOW_BYTES;
}

double obt_meter_recall(struct obt_meter *meter, uint64_t rate)
{
	if (rate < OBT_RATE_MIN || rate > OBT_RATE_MAX)
		return 0;
	meter_begin(meter, (double)rate);
	meter->spare = 0;
	meter->known = true;
	meter->recalled_bytes = meter->bytes;
	meter->recalled_seconds = meter->seconds;
	return (double)rate;
}

uint64_t obt_meter_learned(const struct obt_meter *meter)
{
	return meter->measured >= OBT_METER_KNOWN_BYTES ? (uint64_t)meter_now(meter) : 0;
}

double obt_meter_look(
	struct obt_meter *meter, const struct tcp_info *info, uint64_t now, bool trust_reader)
{
	/* the latter means a new connection */
	bool fresh = meter->from_ns == 0 || info->tcpi_bytes_acked < meter->acked;
	double bytes = (double)(info->tcpi_bytes_acked - meter->acked),
	       seconds = (double)(now - meter->from_ns) / 1e9, rate;
	/*
	 * A queue in the network takes much data before any stays unsent here; round trips show it.
	 */
	bool queued = info->tcpi_unacked > 0 && info->tcpi_min_rtt > 0 &&
		info->tcpi_rtt > 2 * (uint64_t)info->tcpi_min_rtt + QUEUED_US;
	bool busy = info->tcpi_notsent_bytes > 0 || queued, held;

	if (meter->seconds <= 0)
		meter_begin(meter, OBT_METER_PRIOR_RATE);
	if (!fresh && busy && bytes < INTERVAL_BYTES)
		return meter_now(meter); /* the interval continues */
	if (!fresh && bytes > 0) {
		held = !trust_reader &&
			(double)(info->tcpi_rwnd_limited - meter->rwnd_us) * 1e-6 > seconds / 2;
		rate = busy && seconds > 0 ? bytes / seconds : (double)info->tcpi_delivery_rate;
		if (!busy && meter->known)
			rate = ob_min(rate, OBT_METER_KNOWN_STEP * meter_now(meter));
		held = held || !busy;
		meter->spare =
			busy ? 0 : ob_min(meter->spare + bytes, (double)OBT_METER_WINDOW_BYTES);
		if (rate > 0 && (!held || rate > meter_now(meter)))
			meter_add(meter,
				busy ? bytes : bytes * meter->spare / OBT_METER_WINDOW_BYTES, rate);
	}
	meter->from_ns = now;
	meter->acked = info->tcpi_bytes_acked;
	meter->rwnd_us = info->tcpi_rwnd_limited;
	return meter_now(meter);
}

/*
 * The kernel takes megabytes before a sender has to wait, so a link that became slow would show
 * this only after all of them. As long as the rate of an earlier session counts, and more than the
 * assumed rate, the kernel takes little.
 */
static void queue_limit(struct obt_meter *meter, const struct obt_stream *stream)
{
	bool wanted = meter->recalled_bytes > OBT_METER_PRIOR_RATE * meter->recalled_seconds;
	int bytes = wanted ? UNCONFIRMED_BYTES : 0; /* 0: the system's limit */

	if (wanted == meter->limited)
		return;
	setsockopt(stream->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
	meter->limited = wanted;
}

double obt_meter_rate(struct obt_meter *meter, const struct obt_stream *stream, bool trust_reader)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof info;
	double rate;

	if (getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
		length < offsetof(struct tcp_info, tcpi_sndbuf_limited) +
				sizeof info.tcpi_sndbuf_limited)
		return 0;
	rate = obt_meter_look(meter, &info, ob_clock_ns(), trust_reader);
	queue_limit(meter, stream);
	return rate;
}
