/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/connect.h"

/*
 * long enough for a burst of connections: one that is dropped is retried only a second later. The
 * kernel's own limit applies too
 */
#define BACKLOG 4096

#define RETRIES  20
#define RETRY_US 50000

static int complain(const char *url, const char *what)
{
	fprintf(stderr, "outboard-server: cannot listen on %s: %s\n", url, what);
	return -1;
}

/* True if other machines can connect to it. */
static bool reachable(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return true;
	if (address.ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 != 127;
	if (address.ss_family == AF_INET6)
		return !IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address)->sin6_addr);
	return false;
}

/*
 * NULL: this address may be listened on with these options. Who can open a session can run code
 * here.
 */
static const char *exposed(const struct obs_options *options, int fd, bool secure)
{
	if (options->insecure || !reachable(fd))
		return NULL;
	if (!secure)
		return "other machines can reach it and it has no TLS. Use tls:// with --tls-cert "
		       "and --tls-key ('outboard cert' makes them), or an "
		       "address of this machine only (tcp://127.0.0.1, unix:), or say --insecure";
	if (!options->tokens && !options->tls_client_ca)
		return "other machines can reach it and there is no authentication. Use --tokens "
		       "('outboard token create') or --tls-client-ca, or say --insecure";
	return NULL;
}

int obs_listener_open(struct obs_super *super, const char *text)
{
	struct obs_listener *listener = &super->listeners[super->n_listeners];
	const char *why = "";
	struct obt_url url;
	struct stat st;

	*listener = (struct obs_listener){ .fd = -1 };
	if (obt_url_parse(text, &url, &why) != OB_ERR_NONE)
		return complain(text, why);
	listener->secure = url.scheme == OBT_TLS;
	if (listener->secure && !super->options->tls_cert)
		return complain(text,
			"TLS needs a certificate: --tls-cert and --tls-key ('outboard cert' makes "
			"them)");
	listener->fd = obt_listen(&url, BACKLOG, listener->url, sizeof listener->url);
	/* Processes of a killed server end a moment after it, and hold its sockets until then. */
	for (int i = 0; i < RETRIES && listener->fd < 0 && errno == EADDRINUSE; i++) {
		usleep(RETRY_US);
		listener->fd = obt_listen(&url, BACKLOG, listener->url, sizeof listener->url);
	}
	if (listener->fd < 0)
		return complain(text,
			errno == EADDRINUSE ? "it is in use; another server listens there"
					    : strerror(errno));
	why = exposed(super->options, listener->fd, listener->secure);
	if (why) {
		close(listener->fd);
		return complain(text, why);
	}
	if (url.scheme == OBT_UNIX && lstat(url.path, &st) == 0) {
		snprintf(listener->unix_path, sizeof listener->unix_path, "%s", url.path);
		listener->unix_inode = st.st_ino;
	}
	listener->open = true;
	super->n_listeners++;
	return 0;
}

void obs_listener_close_all(struct obs_super *super)
{
	struct stat st;

	for (size_t i = 0; i < super->n_listeners; i++) {
		struct obs_listener *listener = &super->listeners[i];

		if (!listener->open)
			continue;
		listener->open = false;
		/* Not if another server has put its own file there since. */
		if (listener->unix_path[0] && lstat(listener->unix_path, &st) == 0 &&
			st.st_ino == listener->unix_inode)
			unlink(listener->unix_path);
		close(listener->fd);
		listener->fd = -1;
	}
}
