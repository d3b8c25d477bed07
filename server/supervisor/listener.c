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

/* True if other machines can connect to it. */
static bool reachable(int fd)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
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
static const char *exposed(const struct obs_options *options, const struct obs_listener *listener)
{
	if (options->insecure || !listener->reachable)
		return NULL;
	if (!listener->secure)
		return "other machines can reach it and it has no TLS. Use tls:// with --tls-cert "
		       "and --tls-key ('outboard cert' makes them), or an "
		       "address of this machine only (tcp://127.0.0.1, unix:), or say --insecure";
	if (options->pool && !options->pool_direct)
		return NULL; /* tickets authenticate */
	if (!options->tokens && !options->tls_client_ca)
		return "other machines can reach it and there is no authentication. Use --tokens "
		       "('outboard token create') or --tls-client-ca, or say --insecure";
	return NULL;
}

static enum ob_err own_open(
	const struct obt_url *url, struct obs_listener *listener, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	/* Processes of a killed server end a moment after it, and hold its sockets until then. */
	for (int i = 0; i <= RETRIES; i++) {
		err = obt_listen(url, BACKLOG, &listener->fd, listener->url, sizeof listener->url,
			ret_cause);
		if (!err || ret_cause->system != EADDRINUSE)
			break;
		usleep(RETRY_US);
	}
	if (!err)
		return OB_ERR_NONE;
	return ob_cause_set(ret_cause, err, "%s",
		ret_cause->system == EADDRINUSE ? "it is in use; another server listens there"
						: strerror(ret_cause->system));
}

/* Opens listener->fd, or takes it from `inherited`. OB_ERR_ARGUMENT, _URL, _CONNECT. */
static enum ob_err listener_open(const struct obs_options *options, const char *text,
	struct obs_inherited *inherited, struct obs_listener *listener, struct ob_cause *ret_cause)
{
	const char *wrong;
	struct obt_url url;
	struct stat st;
	bool taken;
	enum ob_err err = obt_url_parse(text, &url, ret_cause);

	if (err)
		return err;
	listener->secure = url.scheme == OBT_TLS;
	if (listener->secure && !options->tls_cert)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"TLS needs a certificate: --tls-cert and --tls-key ('outboard cert' makes "
			"them)");
	taken = obs_inherited_find(inherited, &url, &listener->fd);
	if (taken)
		snprintf(listener->url, sizeof listener->url, "%s", text);
	else
		err = own_open(&url, listener, ret_cause);
	if (err)
		return err;
	listener->reachable = reachable(listener->fd);
	wrong = exposed(options, listener);
	if (wrong) {
		close(listener->fd);
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", wrong);
	}
	/* The service manager removes the file of its own socket. */
	if (!taken && url.scheme == OBT_UNIX && lstat(url.path, &st) == 0) {
		snprintf(listener->unix_path, sizeof listener->unix_path, "%s", url.path);
		listener->unix_inode = st.st_ino;
	}
	return OB_ERR_NONE;
}

enum ob_err obs_listener_open(struct obs_super *super, struct obs_inherited *inherited,
	const char *text, struct ob_cause *ret_cause)
{
	struct obs_listener *listener = &super->listeners[super->n_listeners];
	struct ob_cause cause;
	enum ob_err err;

	*listener = (struct obs_listener){ .fd = -1 };
	err = listener_open(super->options, text, inherited, listener, &cause);
	if (err)
		return ob_cause_set(
			ret_cause, err, "cannot listen on %.200s: %s", text, cause.text);
	listener->open = true;
	super->n_listeners++;
	return OB_ERR_NONE;
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
