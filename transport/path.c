/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/path.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool obt_path_local(const struct obt_stream *stream)
{
	struct sockaddr_storage own, peer;
	socklen_t own_length = sizeof own, peer_length = sizeof peer;

	if (getsockname(stream->fd, (struct sockaddr *)&own, &own_length) != 0 || getpeername(stream->fd, (struct sockaddr *)&peer, &peer_length) != 0)
		return true;
	if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6)
		return true;
	if (peer.ss_family == AF_INET && ntohl(((const struct sockaddr_in *)&peer)->sin_addr.s_addr) >> 24 == 127)
		return true;
	return same_address(&own, &peer);
}

double obt_path_rate(const struct obt_stream *stream, bool trust_reader)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof info;

	if (getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
	    length < offsetof(struct tcp_info, tcpi_sndbuf_limited) + sizeof info.tcpi_sndbuf_limited)
		return 0;
	/* A rate that was measured while the program had nothing to send says nothing of the way. */
	if (info.tcpi_delivery_rate_app_limited)
		return 0;
	if (!trust_reader && info.tcpi_rwnd_limited > info.tcpi_busy_time / 2)
		return 0;
	return (double)info.tcpi_delivery_rate;
}
