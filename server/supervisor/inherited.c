/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/inherited.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
	struct sockaddr_storage room;
};

static bool address_of(int fd, union address *ret)
{
	socklen_t length = sizeof *ret;

	memset(ret, 0, sizeof *ret);
	return getsockname(fd, &ret->any, &length) == 0;
}

static void close_all(struct obs_inherited *inherited)
{
	for (size_t i = 0; i < inherited->n; i++)
		close(inherited->fds[i]);
	inherited->n = 0;
}

/* What a descriptor is, if it cannot be served; NULL: it can. */
static const char *unfit(int fd)
{
	int listening = 0, type = 0, flags = fcntl(fd, F_GETFL);
	socklen_t length = sizeof(int);
	union address address;

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
		return "not a socket";
	length = sizeof(int);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || !listening ||
		type != SOCK_STREAM)
		return "not a listening stream socket (the unit needs ListenStream= and Accept=no)";
	if (!address_of(fd, &address) ||
		(address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6 &&
			address.any.sa_family != AF_UNIX))
		return "neither of TCP nor of Unix";
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return "not usable";
	return NULL;
}

/* How many descriptors the environment gives to this process; false: a wrong number. */
static bool count_of(uint64_t *ret_count)
{
	const char *pid_text = getenv("LISTEN_PID"), *count_text = getenv("LISTEN_FDS");
	uint64_t pid = 0;

	*ret_count = 0;
	if (!pid_text || !count_text)
		return true;
	if (!ob_text_parse_number(pid_text, 1, INT32_MAX, &pid) || pid != (uint64_t)getpid())
		return true;
	return ob_text_parse_number(count_text, 0, OBS_INHERITED_MAX, ret_count);
}

enum ob_err obs_inherited_take(struct obs_inherited *ret, struct ob_cause *ret_cause)
{
	uint64_t count;
	bool counted = count_of(&count);

	ret->n = 0;
	if (!counted)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"LISTEN_FDS is '%.40s'; the service manager may pass %u sockets at most",
			getenv("LISTEN_FDS"), OBS_INHERITED_MAX);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (size_t i = 0; i < count; i++)
		ret->fds[ret->n++] = FIRST_FD + (int)i;
	for (size_t i = 0; i < ret->n; i++) {
		const char *what = unfit(ret->fds[i]);
		int fd = ret->fds[i];

		if (!what)
			continue;
		close_all(ret);
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"descriptor %d, which the service manager passes, is %s", fd, what);
	}
	return OB_ERR_NONE;
}

static bool same(const union address *a, const struct sockaddr *b)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)b;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)b;

	if (a->any.sa_family != b->sa_family)
		return false;
	if (b->sa_family == AF_INET)
		return a->v4.sin_port == v4->sin_port &&
			a->v4.sin_addr.s_addr == v4->sin_addr.s_addr;
	return b->sa_family == AF_INET6 && a->v6.sin6_port == v6->sin6_port &&
		IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &v6->sin6_addr);
}

static bool listens_on(int fd, const struct obt_url *url, const struct addrinfo *list)
{
	union address address;

	if (!address_of(fd, &address))
		return false;
	if (url->scheme == OBT_UNIX)
		return address.any.sa_family == AF_UNIX &&
			strncmp(address.local.sun_path, url->path, sizeof address.local.sun_path) ==
			0;
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		if (same(&address, a->ai_addr))
			return true;
	return false;
}

bool obs_inherited_find(struct obs_inherited *inherited, const struct obt_url *url, int *ret_fd)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE },
			*list = NULL;
	bool found = false;

	if (inherited->n == 0)
		return false;
	if (url->scheme != OBT_UNIX && getaddrinfo(url->host, url->port, &hints, &list) != 0)
		return false;
	for (size_t i = 0; i < inherited->n && !found; i++) {
		found = listens_on(inherited->fds[i], url, list);
		if (!found)
			continue;
		*ret_fd = inherited->fds[i];
		inherited->fds[i] = inherited->fds[--inherited->n];
	}
	if (list)
		freeaddrinfo(list);
	return found;
}

static void address_print(const union address *address, char *ret_text, size_t size)
{
	char host[256], port[8];

	if (address->any.sa_family == AF_UNIX)
		snprintf(ret_text, size, "unix:%.*s", (int)sizeof address->local.sun_path,
			address->local.sun_path);
	else if (getnameinfo(&address->any, sizeof *address, host, sizeof host, port, sizeof port,
			 NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(ret_text, size,
			address->any.sa_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s", host,
			port);
	else
		snprintf(ret_text, size, "an unknown address");
}

enum ob_err obs_inherited_end(struct obs_inherited *inherited, struct ob_cause *ret_cause)
{
	union address address;
	char text[OBT_URL_MAX];

	if (inherited->n == 0)
		return OB_ERR_NONE;
	memset(&address, 0, sizeof address);
	address_of(inherited->fds[0], &address);
	address_print(&address, text, sizeof text);
	close_all(inherited);
	return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
		"the service manager passes a socket for %s, which no --listen names: add it to "
		"the settings (tls:// or shm: if that is meant), or remove it from the socket unit",
		text);
}
