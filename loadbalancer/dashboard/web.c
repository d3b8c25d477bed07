/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/dashboard/api.h"
#include "loadbalancer/dashboard/peers.h"
#include "loadbalancer/dashboard/reply.h"
#include "transport/connect.h"

#define LOOK_AGAIN_MS 50u /* while connections are open */
#define TICK_MS       250u
#define BACKLOG       512
#define PEM_MAX       (256u << 10)
#define HEADERS_MAX   16384u /* memory of one connection: request line and headers */

struct obl_web {
	struct obl_api api;
	struct MHD_Daemon *daemon;
	struct obl_peers peers;
	uv_poll_t poll;
	uv_timer_t timer, tick; /* the library's next time-out; streams, history */
	uint64_t look_ns;       /* when the history looks next */
	int fd;                 /* listening */
	unsigned handles;       /* that are not closed yet */
	bool open;              /* there were connections at the last look */
	char *cert, *key;
	void (*closed)(void *user);
	void *closed_user;
};

/* ---- connections ---- */

static void connection_changed(void *user, struct MHD_Connection *connection, void **state,
	enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct obl_web *web = user;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		obl_peer_leave(&web->peers, *state);
		*state = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*state = obl_peer_enter(&web->peers, info ? info->connect_fd : -1);
}

static enum MHD_Result accepted(void *user, const struct sockaddr *address, socklen_t length)
{
	struct obl_web *web = user;
	struct obl_peer_key key = obl_peer_key_from(address);

	(void)length;
	return obl_peers_take(&web->peers, &key, ob_clock_ns()) ? MHD_YES : MHD_NO;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	struct obl_web *web = user;
	unsigned streams = web->api.streams.n;
	const union MHD_ConnectionInfo *info;
	enum MHD_Result result =
		obl_api_answer(&web->api, connection, url, method, version, data, size, state);

	if (web->api.streams.n <= streams)
		return result;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	obl_peer_streams(&web->peers, info ? info->socket_context : NULL);
	return result;
}

/* ---- in the loop ---- */

static void work(struct obl_web *web);

static void timer_due(uv_timer_t *timer)
{
	work(timer->data);
}

static void work(struct obl_web *web)
{
	const union MHD_DaemonInfo *info;
	MHD_UNSIGNED_LONG_LONG ms = LOOK_AGAIN_MS;
	bool had = web->open;

	MHD_run(web->daemon);
	info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
	web->open = info && info->num_connections;
	/*
	 * Its descriptor shows neither time-outs nor room for the next connection: look again soon.
	 */
	if (!web->open && !had)
		return;
	if (MHD_get_timeout(web->daemon, &ms) != MHD_YES || ms > LOOK_AGAIN_MS)
		ms = LOOK_AGAIN_MS;
	uv_timer_start(&web->timer, timer_due, ms, 0);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	work(poll->data);
}

/* A command may end inside one of the library's callbacks, so the library runs from the timer. */
static void wake(void *user)
{
	struct obl_web *web = user;

	uv_timer_start(&web->timer, timer_due, 0, 0);
}

static void tick_due(uv_timer_t *timer)
{
	struct obl_web *web = timer->data;
	uint64_t now = ob_clock_ns();

	if (now >= web->look_ns) {
		obl_history_look(&web->api.history, web->api.source);
		web->look_ns =
			now + web->api.history.look_ms * OB_MS * 3 / 4; /* the tick is coarse */
	}
	if (obl_api_tick(&web->api, now))
		work(web);
}

/* ---- opening ---- */

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

static enum ob_err exposed(
	const struct obl_web_options *options, int fd, bool secure, struct ob_cause *ret_cause)
{
	if (options->insecure || !reachable(fd))
		return OB_ERR_NONE;
	if (!secure)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"cannot serve HTTP at %.200s: other machines can reach it and it has no "
			"TLS. Use tls:// with --tls-cert and --tls-key, or an address of this "
			"machine only (tcp://127.0.0.1, unix:), or say --insecure",
			options->url);
	if (!options->tokens)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"cannot serve HTTP at %.200s: other machines can reach it and there is no "
			"authentication. Use --tokens ('outboard token create'), or say --insecure",
			options->url);
	return OB_ERR_NONE;
}

static enum ob_err pem_read(
	const char *path, const char *what, char **ret, struct ob_cause *ret_cause)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char *text = calloc(1, PEM_MAX + 1);
	size_t n = file && text ? fread(text, 1, PEM_MAX, file) : 0;
	int error = errno;

	if (file)
		fclose(file);
	if (n && n < PEM_MAX) {
		*ret = text;
		return OB_ERR_NONE;
	}
	free(text);
	if (!path)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"HTTPS needs %s; 'outboard cert' makes a certificate and its key", what);
	return ob_cause_set_system(
		ret_cause, OB_ERR_TLS, error, "cannot read %s for HTTPS from %.200s", what, path);
}

static enum ob_err daemon_start(
	struct obl_web *web, bool secure, const char *text, struct ob_cause *ret_cause)
{
	const union MHD_DaemonInfo *info;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (secure ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, web->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, web->key }, { MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

	if (secure && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return ob_cause_set(ret_cause, OB_ERR_TLS,
			"cannot serve HTTPS: this libmicrohttpd was built without TLS");
	web->daemon = MHD_start_daemon(flags, 0, accepted, web, answer, web,
		MHD_OPTION_LISTEN_SOCKET, web->fd, MHD_OPTION_CONNECTION_LIMIT, OBL_WEB_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, OBL_WEB_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, web, MHD_OPTION_NOTIFY_COMPLETED,
		obl_api_completed, &web->api, MHD_OPTION_ARRAY, secure ? tls : none,
		MHD_OPTION_END);
	info = web->daemon ? MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return ob_cause_set(ret_cause, secure ? OB_ERR_TLS : OB_ERR_IO,
			"cannot serve HTTP at %.200s: libmicrohttpd does not start%s", text,
			secure ? "; certificate and key may not belong together" : "");
	web->poll.data = web->timer.data = web->tick.data = web;
	return OB_ERR_NONE;
}

/* http:// and https:// are what browsers call tcp:// and tls://. */
static enum ob_err url_read(const char *text, struct obt_url *ret, struct ob_cause *ret_cause)
{
	bool http = strncmp(text, "http://", 7) == 0, https = strncmp(text, "https://", 8) == 0;
	char other[OBT_URL_MAX];
	size_t n;

	if (!http && !https)
		return obt_url_parse(text, ret, ret_cause);
	n = (size_t)snprintf(other, sizeof other, "%s%s", https ? "tls" : "tcp", strchr(text, ':'));
	if (n < sizeof other && other[n - 1] == '/')
		other[n - 1] = '\0';
	return obt_url_parse(other, ret, ret_cause);
}

static enum ob_err listen_at(struct obl_web *web, const struct obl_web_options *options,
	bool *ret_secure, char *ret_url, size_t url_size, struct ob_cause *ret_cause)
{
	struct ob_cause cause = { 0 };
	char printed[OBT_URL_MAX];
	const char *rest;
	struct obt_url url;
	enum ob_err err = url_read(options->url, &url, &cause);

	if (!err && url.shm)
		err = ob_cause_set(&cause, OB_ERR_URL,
			"HTTP goes over tcp://, tls:// and unix: only; write "
			"tcp://127.0.0.1:%d",
			OBL_WEB_PORT);
	if (!err)
		err = obt_listen(&url, BACKLOG, &web->fd, printed, sizeof printed, &cause);
	if (err)
		return ob_cause_set(ret_cause, err, "cannot serve HTTP at %.200s: %.400s",
			options->url, cause.text);
	*ret_secure = url.scheme == OBT_TLS;
	rest = strchr(printed, ':');
	snprintf(ret_url, url_size, "%s%s%s",
		url.scheme == OBT_UNIX ? "http+unix"
			: *ret_secure  ? "https"
				       : "http",
		rest ? rest : "", url.scheme == OBT_UNIX ? "" : "/");
	return exposed(options, web->fd, *ret_secure, ret_cause);
}

static void web_free(struct obl_web *web)
{
	if (web->daemon)
		MHD_stop_daemon(web->daemon); /* closes the listening socket too */
	else if (web->fd >= 0)
		close(web->fd);
	obl_api_fini(&web->api);
	free(web->cert);
	if (web->key)
		explicit_bzero(web->key, strlen(web->key));
	free(web->key);
	free(web);
}

enum ob_err obl_web_open(uv_loop_t *loop, const struct obl_web_options *options,
	const struct obl_source *source, struct obl_web **ret, char *ret_url, size_t url_size,
	struct ob_cause *ret_cause)
{
	struct obl_web *web = calloc(1, sizeof *web);
	bool secure = false;
	uint32_t tick_ms;
	enum ob_err err;

	if (!web)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for the HTTP server");
	web->fd = -1;
	obl_peers_init(&web->peers);
	obl_api_init(&web->api, source, options->look_ms, wake, web);
	if (options->documents_bytes)
		web->api.documents.bytes_max = options->documents_bytes;
	if (options->reply_s)
		web->api.documents.readers.reply_s = options->reply_s;
	web->peers.limits_local = web->api.streams.limits_local = options->limits_local;
	err = listen_at(web, options, &secure, ret_url, url_size, ret_cause);
	if (!err && secure)
		err = pem_read(options->cert, "a certificate (--tls-cert)", &web->cert, ret_cause);
	if (!err && secure)
		err = pem_read(options->key, "a key (--tls-key)", &web->key, ret_cause);
	if (!err)
		err = daemon_start(web, secure, options->url, ret_cause);
	if (err) {
		web_free(web);
		return err;
	}
	uv_timer_init(loop, &web->timer);
	uv_timer_init(loop, &web->tick);
	uv_poll_init(loop, &web->poll,
		MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
	uv_poll_start(&web->poll, UV_READABLE, readable);
	tick_ms = ob_min(TICK_MS, web->api.history.look_ms);
	uv_timer_start(&web->tick, tick_due, tick_ms, tick_ms);
	*ret = web;
	return OB_ERR_NONE;
}

/* ---- closing ---- */

static void handle_closed(uv_handle_t *handle)
{
	struct obl_web *web = handle->data;
	void (*closed)(void *user) = web->closed;
	void *user = web->closed_user;

	if (--web->handles)
		return;
	web_free(web);
	if (closed)
		closed(user);
}

void obl_web_close(struct obl_web *web, void (*closed)(void *user), void *user)
{
	if (!web) {
		if (closed)
			closed(user);
		return;
	}
	web->closed = closed;
	web->closed_user = user;
	web->handles = 3;
	obl_api_close(&web->api);
	MHD_run(web->daemon); /* what was suspended ends */
	uv_close((uv_handle_t *)&web->timer, handle_closed);
	uv_close((uv_handle_t *)&web->tick, handle_closed);
	uv_close((uv_handle_t *)&web->poll, handle_closed);
}
