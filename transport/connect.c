/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/resolve.h"
#include "transport/tls.h"

/* ---- connecting ---- */

static enum ob_err cannot_connect(struct ob_cause *ret_cause, int system)
{
	return ob_cause_set_system(ret_cause, OB_ERR_CONNECT, system, "cannot connect");
}

/* Waits for a non-blocking connect. */
static enum ob_err connect_wait(int fd, uint64_t deadline, struct ob_cause *ret_cause)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int error = 0, n;

	do
		n = poll(&pfd, 1, ob_clock_poll_ms(deadline));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return ob_cause_set_system(ret_cause, OB_ERR_TIMEOUT, ETIMEDOUT, "cannot connect");
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		error = errno;
	return error ? cannot_connect(ret_cause, error) : OB_ERR_NONE;
}

static enum ob_err connect_one(const struct sockaddr *addr, socklen_t length, uint64_t deadline,
	int *ret_fd, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_closep)
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enum ob_err err;

	if (fd < 0)
		return cannot_connect(ret_cause, errno);
	if (connect(fd, addr, length) < 0) {
		/*
		 * If a unix socket's backlog is full connect() returns EAGAIN, and poll() cannot
		 * wait for it.
		 */
		if (errno != EINPROGRESS)
			return cannot_connect(ret_cause, errno);
		err = connect_wait(fd, deadline, ret_cause);
		if (err)
			return err;
	}
	fcntl(fd, F_SETFL, 0);
	*ret_fd = fd;
	fd = -1;
	return OB_ERR_NONE;
}

static enum ob_err connect_any(const struct obt_addresses *addresses, uint64_t deadline,
	int *ret_fd, struct ob_cause *ret_cause)
{
	enum ob_err err = cannot_connect(ret_cause, ENOENT);

	for (unsigned i = 0; i < addresses->n; i++) {
		err = connect_one((const struct sockaddr *)&addresses->list[i].address,
			addresses->list[i].length, deadline, ret_fd, ret_cause);
		if (err == OB_ERR_NONE || err == OB_ERR_TIMEOUT)
			break;
	}
	return err;
}

static enum ob_err connect_tcp(
	const struct obt_url *url, uint64_t deadline, int *ret_fd, struct ob_cause *ret_cause)
{
	struct obt_addresses addresses;
	enum ob_err err = OB_ERR_CONNECT;

	/* Remembered addresses may be out of date: then ask the resolver again. */
	for (int fresh = 0; fresh < 2 && err == OB_ERR_CONNECT; fresh++) {
		err = obt_resolve(url->host, url->port, fresh, &addresses, ret_cause);
		if (err)
			return err;
		err = connect_any(&addresses, deadline, ret_fd, ret_cause);
		if (!addresses.kept)
			break;
	}
	return err;
}

static socklen_t unix_address(const struct obt_url *url, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path, url->path, strlen(url->path) + 1);
	return sizeof *ret;
}

enum ob_err obt_stream_connect(const struct obt_url *url, uint64_t deadline, struct obt_stream *ret,
	struct ob_cause *ret_cause)
{
	struct obt_stream stream;
	enum ob_err err;
	int fd = -1;

	if (url->scheme == OBT_UNIX) {
		struct sockaddr_un addr;
		socklen_t length = unix_address(url, &addr);

		err = connect_one((const struct sockaddr *)&addr, length, deadline, &fd, ret_cause);
	} else {
		err = connect_tcp(url, deadline, &fd, ret_cause);
	}
	if (err)
		return err;
	obt_stream_adopt(&stream, fd);
	if (url->scheme == OBT_TLS)
		err = obt_tls_client(&stream, url, ret_cause);
	if (err)
		obt_stream_close(&stream);
	else
		*ret = stream;
	return err;
}

/* ---- listening ---- */

/* A socket, or -1 with errno. */
static int listen_unix(const struct obt_url *url, int backlog)
{
	OB_CLEANUP(ob_closep)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	socklen_t length = unix_address(url, &addr);
	struct stat st;
	int result;

	if (fd < 0)
		return -1;
	if (lstat(url->path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool dead = probe >= 0 &&
			connect(probe, (const struct sockaddr *)&addr, length) < 0 &&
			errno == ECONNREFUSED;

		if (probe >= 0)
			close(probe);
		if (dead)
			unlink(url->path);
	}
	if (bind(fd, (const struct sockaddr *)&addr, length) < 0 || listen(fd, backlog) < 0)
		return -1;
	result = fd;
	fd = -1;
	return result;
}

static void print_address(int fd, const struct obt_url *url, char *ret_url, size_t size)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof addr;
	const char *scheme = url->scheme == OBT_TLS ? "tls" : "tcp";
	char host[256], port[8];

	if (getsockname(fd, (struct sockaddr *)&addr, &length) == 0 &&
		getnameinfo((struct sockaddr *)&addr, length, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(ret_url, size, addr.ss_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s",
			scheme, host, port);
	else
		snprintf(ret_url, size, "%s://%s:%s", scheme, url->host, url->port);
}

/* A socket, or -1 with errno. */
static int listen_tcp(const struct obt_url *url, int backlog)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE },
			*list = NULL;
	int one = 1, fd = -1, saved;

	if (getaddrinfo(url->host, url->port, &hints, &list) != 0 || !list) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, backlog) < 0) {
			saved = errno;
			close(fd);
			errno = saved;
			fd = -1;
		}
	}
	saved = errno;
	freeaddrinfo(list);
	errno = saved;
	return fd;
}

enum ob_err obt_listen(const struct obt_url *url, int backlog, int *ret_fd, char *ret_url,
	size_t url_size, struct ob_cause *ret_cause)
{
	bool local = url->scheme == OBT_UNIX;
	int fd = local ? listen_unix(url, backlog) : listen_tcp(url, backlog);

	if (fd < 0)
		return ob_cause_set_system(ret_cause, OB_ERR_CONNECT, errno, "cannot listen");
	if (local)
		snprintf(ret_url, url_size, "%s:%s", url->shm ? "shm" : "unix", url->path);
	else
		print_address(fd, url, ret_url, url_size);
	*ret_fd = fd;
	return OB_ERR_NONE;
}
