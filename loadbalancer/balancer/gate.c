/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/gate.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "protocol/pool.h"
#include "transport/connect.h"

#define BACKLOG          1024
#define RETRIES          20
#define RETRY_US         50000
#define SWEEP_MS         100u
#define DESCRIPTORS_KEPT 64u /* for listening sockets, the registry, files */

/* ---- listening ---- */

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

/* NULL: this address may be listened on with these options. */
static const char *exposed(const struct obl_gate_options *options, int fd, bool secure)
{
	if (options->insecure || !reachable(fd))
		return NULL;
	if (!secure)
		return "other machines can reach it and it has no TLS. Use tls:// with --tls-cert "
		       "and --tls-key ('outboard cert' makes them), or an "
		       "address of this machine only (tcp://127.0.0.1, unix:), or say --insecure";
	if (!options->has_tokens)
		return "other machines can reach it and there is no authentication. Use --tokens "
		       "('outboard token create'), or say --insecure";
	return NULL;
}

/* Opens listener->fd. OB_ERR_ARGUMENT, _URL, _CONNECT. */
static enum ob_err listener_open(const struct obl_gate_options *options, const char *text,
	struct obl_listener *listener, struct ob_cause *ret_cause)
{
	const char *wrong;
	struct obt_url url;
	struct stat st;
	enum ob_err err = obt_url_parse(text, &url, ret_cause);

	if (err)
		return err;
	if (url.shm)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"a balancer has no data for shared memory: write unix: instead of shm:");
	listener->secure = url.scheme == OBT_TLS;
	if (listener->secure && !options->tls_cert)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"TLS needs a certificate: --tls-cert and --tls-key ('outboard cert' makes "
			"them)");
	for (int i = 0; i <= RETRIES; i++) {
		err = obt_listen(&url, BACKLOG, &listener->fd, listener->url, sizeof listener->url,
			ret_cause);
		if (!err || ret_cause->system != EADDRINUSE)
			break;
		usleep(RETRY_US);
	}
	if (err)
		return ob_cause_set(ret_cause, err, "%s",
			ret_cause->system == EADDRINUSE
				? "it is in use; another program listens there"
				: strerror(ret_cause->system));
	wrong = exposed(options, listener->fd, listener->secure);
	if (wrong) {
		close(listener->fd);
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", wrong);
	}
	if (url.scheme == OBT_UNIX && lstat(url.path, &st) == 0) {
		snprintf(listener->unix_path, sizeof listener->unix_path, "%s", url.path);
		listener->unix_inode = st.st_ino;
	}
	return OB_ERR_NONE;
}

/* ---- accepting ---- */

/* Who gives way to a new link, of this address or, with NULL, of all; NULL: nobody. */
static struct obl_link *least_needed(
	struct obl_links *links, const struct obl_address *address, const struct obl_link *newest)
{
	struct obl_link *silent = NULL, *follower = NULL; /* the list begins with the newest */

	for (struct obl_link *link = links->first; link; link = link->next) {
		if (link == newest || (address && link->address != address))
			continue;
		if (link->state == OBL_LINK_PREFACE)
			silent = link;
		else if (link->follows)
			follower = link;
	}
	return silent ? silent : follower;
}

/* False: no room for this connection. */
static bool room_for(struct obl_gate *gate, struct obl_link *link)
{
	const struct obl_gate_options *options = gate->options;
	struct obl_link *other;

	if (!link->address->local && link->address->connections > options->address_connections) {
		other = least_needed(&gate->links, link->address, link);
		if (!other)
			return false;
		obl_link_evict(other);
	}
	if (gate->links.n > options->connections) {
		other = least_needed(&gate->links, NULL, link);
		if (!other)
			return false;
		obl_link_evict(other);
	}
	return true;
}

static void accept_ready(uv_poll_t *poll, int status, int events)
{
	struct obl_listener *listener = poll->data;
	struct obl_gate *gate = listener->gate;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < OBL_GATE_ACCEPTS; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct obl_link *link;

		if (fd < 0 &&
			(errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM)) {
			/* The sockets stay readable: polling them now would use a whole processor. */
			for (size_t j = 0; j < gate->n_listeners; j++)
				uv_poll_stop(&gate->listeners[j].poll);
			gate->resting = true;
			return;
		}
		if (fd < 0)
			return;
		link = obl_link_new(&gate->links, fd, listener->secure);
		if (link && !room_for(gate, link)) {
			ob_info("balancer: connection limit reached: %s closed",
				link->address->text);
			obl_link_evict(link);
		}
	}
}

static void sweep(uv_timer_t *timer)
{
	struct obl_gate *gate = timer->data;

	obl_links_sweep(&gate->links, ob_clock_ns());
	if (!gate->resting)
		return;
	gate->resting = false;
	for (size_t i = 0; i < gate->n_listeners; i++)
		uv_poll_start(&gate->listeners[i].poll, UV_READABLE, accept_ready);
}

static void descriptors_raise(const struct obl_gate_options *options)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (limit.rlim_cur < options->connections + DESCRIPTORS_KEPT) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur < options->connections + DESCRIPTORS_KEPT)
		ob_warn("balancer: room for fewer than %u connections; raise the limit of "
			"descriptors (ulimit -n)",
			options->connections);
}

enum ob_err obl_gate_open(
	struct obl_gate *gate, const struct obl_gate_options *options, struct ob_cause *ret_cause)
{
	struct ob_cause cause;

	gate->options = options;
	uv_timer_init(gate->links.loop, &gate->sweep);
	gate->sweep.data = gate;
	if (options->tls_cert &&
		!(gate->links.tls = obt_tls_server_new(
			  options->tls_cert, options->tls_key, NULL, ret_cause)))
		return ret_cause->code;
	descriptors_raise(options);
	for (size_t i = 0; i < options->listen.n; i++) {
		struct obl_listener *listener = &gate->listeners[gate->n_listeners];
		enum ob_err err;

		*listener = (struct obl_listener){ .gate = gate, .fd = -1 };
		err = listener_open(options, options->listen.list[i], listener, &cause);
		if (err)
			return ob_cause_set(ret_cause, err, "cannot listen on %.200s: %s",
				options->listen.list[i], cause.text);
		gate->n_listeners++;
		uv_poll_init(gate->links.loop, &listener->poll, listener->fd);
		listener->poll.data = listener;
		uv_poll_start(&listener->poll, UV_READABLE, accept_ready);
		ob_info("listening on %s", listener->url);
	}
	uv_timer_start(&gate->sweep, sweep, SWEEP_MS, SWEEP_MS);
	return OB_ERR_NONE;
}

static void listener_closed(uv_handle_t *handle)
{
	struct obl_listener *listener = handle->data;

	close(listener->fd);
	listener->fd = -1;
}

void obl_gate_shut(struct obl_gate *gate)
{
	struct stat st;

	for (size_t i = 0; i < gate->n_listeners; i++) {
		struct obl_listener *listener = &gate->listeners[i];

		if (listener->fd < 0 || uv_is_closing((uv_handle_t *)&listener->poll))
			continue;
		/* Not if another program has put its own file there since. */
		if (listener->unix_path[0] && lstat(listener->unix_path, &st) == 0 &&
			st.st_ino == listener->unix_inode)
			unlink(listener->unix_path);
		uv_close((uv_handle_t *)&listener->poll, listener_closed);
	}
	gate->resting = false;
}

void obl_gate_fini(struct obl_gate *gate)
{
	uv_timer_stop(&gate->sweep);
	uv_close((uv_handle_t *)&gate->sweep, NULL);
	obl_addresses_sweep(&gate->links.addresses, OB_NEVER);
	obt_tls_server_free(gate->links.tls);
	gate->links.tls = NULL;
}
