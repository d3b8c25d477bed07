/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/buf.h"
#include "loadbalancer/registry/alloc.h"

#define IDLE_MAX         32u   /* easy handles that are kept */
#define SILENT_LINK_MS   5000u /* a peer that acknowledges nothing for so long is gone */
#define KEEPALIVE_IDLE_S 5L
#define CONNECT_MS       800u /* of a stream */

struct obl_http_request {
	TAILQ_ENTRY(obl_http_request) all, ready;
	struct obl_http *http;
	struct obl_http_call call;
	CURL *easy; /* NULL: finished */
	struct curl_slist *headers;
	char *body;
	size_t sent;          /* bytes of the body that libcurl has taken */
	struct ob_buf answer; /* of a stream: what has not been delivered */
	bool is_ready, too_large;
	CURLcode code;
	long status;
	char error[CURL_ERROR_SIZE];
};

TAILQ_HEAD(request_list, obl_http_request);

struct obl_http {
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t timer;
	unsigned n_handles; /* of libuv, not yet closed */
	char *ca, *cert, *key;
	CURL *idle[IDLE_MAX];
	unsigned n_idle;
	struct request_list all, ready;
	bool closing;
	void (*closed)(void *user);
	void *closed_user;
};

struct watched {
	uv_poll_t poll;
	struct obl_http *http;
	curl_socket_t fd;
};

/* ---- delivery, outside libcurl ---- */

static void make_ready(struct obl_http_request *request)
{
	if (!request->is_ready)
		TAILQ_INSERT_TAIL(&request->http->ready, request, ready);
	request->is_ready = true;
}

/* Takes the request from libcurl; its easy handle is kept for another. */
static void detach(struct obl_http_request *request)
{
	struct obl_http *http = request->http;

	if (!request->easy)
		return;
	curl_multi_remove_handle(http->multi, request->easy);
	if (http->n_idle < IDLE_MAX) {
		curl_easy_reset(request->easy);
		http->idle[http->n_idle++] = request->easy;
	} else {
		curl_easy_cleanup(request->easy);
	}
	request->easy = NULL;
	curl_slist_free_all(request->headers);
	request->headers = NULL;
}

void obl_http_cancel(struct obl_http_request *request)
{
	struct obl_http *http = request->http;

	detach(request);
	if (request->is_ready)
		TAILQ_REMOVE(&http->ready, request, ready);
	TAILQ_REMOVE(&http->all, request, all);
	ob_buf_fini(&request->answer);
	free(request->body);
	free(request);
}

static bool is_tls(CURLcode code)
{
	return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
		code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
		code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

static enum ob_err error_of(const struct obl_http_request *request)
{
	if (request->too_large)
		return OB_ERR_LIMIT;
	if (request->code == CURLE_OK)
		return OB_ERR_NONE;
	if (is_tls(request->code) && !request->sent)
		return OB_ERR_TLS;
	if (!request->sent)
		return OB_ERR_CONNECT;
	return request->code == CURLE_OPERATION_TIMEDOUT ? OB_ERR_TIMEOUT : OB_ERR_CLOSED;
}

static void finish(struct obl_http_request *request)
{
	struct obl_http_answer answer = { .err = error_of(request), .status = request->status };
	void (*done)(void *user, const struct obl_http_answer *answer) = request->call.done;
	void *user = request->call.user;
	struct ob_buf body = request->answer;
	char error[CURL_ERROR_SIZE];

	memcpy(error, request->error, sizeof error);
	if (!error[0])
		snprintf(error, sizeof error, "%s", curl_easy_strerror(request->code));
	answer.why = request->too_large ? "the answer is too large" : error;
	ob_buf_init(&request->answer, 0);
	obl_http_cancel(request);
	answer.size = body.size;
	obl_alloc_check(ob_buf_append(&body, "", 1) ? body.data : NULL);
	answer.body = (const char *)body.data;
	done(user, &answer);
	ob_buf_fini(&body);
}

/* The callback may cancel the request. */
static void deliver_data(struct obl_http_request *request)
{
	struct ob_buf part = request->answer;

	ob_buf_init(&request->answer, part.max);
	request->call.data(request->call.user, (const char *)part.data, part.size);
	ob_buf_fini(&part);
}

static void take_messages(struct obl_http *http)
{
	struct obl_http_request *request;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
		request->code = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &request->status);
		detach(request);
		make_ready(request);
	}
}

static void drain(struct obl_http *http)
{
	struct obl_http_request *request;

	take_messages(http);
	while (!http->closing && (request = TAILQ_FIRST(&http->ready))) {
		if (request->call.data && request->answer.size) {
			if (request->easy) {
				TAILQ_REMOVE(&http->ready, request, ready);
				request->is_ready = false;
			}
			deliver_data(request);
		} else {
			finish(request);
		}
	}
}

/* ---- libcurl's callbacks ---- */

static size_t on_write(char *bytes, size_t size, size_t n, void *user)
{
	struct obl_http_request *request = user;

	if (size * n > request->call.answer_max - request->answer.size ||
		!ob_buf_append(&request->answer, bytes, size * n)) {
		request->too_large = true;
		return 0;
	}
	if (request->call.data)
		make_ready(request);
	return size * n;
}

static size_t on_read(char *to, size_t size, size_t n, void *user)
{
	struct obl_http_request *request = user;
	size_t room = size * n, left = request->call.size - request->sent;

	if (left > room)
		left = room;
	memcpy(to, request->body + request->sent, left);
	request->sent += left;
	return left;
}

/*
 * libcurl sends a request again when a kept connection ends before any byte of the answer, and asks
 * here before. A transaction may have been executed by then.
 */
static int on_seek(void *user, curl_off_t offset, int origin)
{
	struct obl_http_request *request = user;

	if (request->call.once && request->sent)
		return CURL_SEEKFUNC_FAIL;
	if (origin != SEEK_SET || offset != 0)
		return CURL_SEEKFUNC_CANTSEEK;
	request->sent = 0;
	return CURL_SEEKFUNC_OK;
}

/* A stream has no time-out; the kernel ends its connection if the peer vanishes. */
static int on_socket_options(void *user, curl_socket_t fd, curlsocktype purpose)
{
	unsigned ms = SILENT_LINK_MS;
	int probes = 3;

	(void)user;
	(void)purpose;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
	return CURL_SOCKOPT_OK;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct watched *watched = poll->data;
	struct obl_http *http = watched->http;
	int flags = status < 0 ? CURL_CSELECT_ERR : 0, running;

	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	curl_multi_socket_action(http->multi, watched->fd, flags, &running);
	drain(http);
}

static void on_timer(uv_timer_t *timer)
{
	struct obl_http *http = timer->data;
	int running;

	curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	drain(http);
}

static int set_timer(CURLM *multi, long ms, void *user)
{
	struct obl_http *http = user;

	(void)multi;
	if (ms < 0)
		uv_timer_stop(&http->timer);
	else if (!http->closing)
		uv_timer_start(&http->timer, on_timer, (uint64_t)ms, 0);
	return 0;
}

static void handle_closed(struct obl_http *http)
{
	void (*closed)(void *user) = http->closed;
	void *user = http->closed_user;

	if (--http->n_handles > 0)
		return;
	free(http->ca);
	free(http->cert);
	free(http->key);
	free(http);
	closed(user);
}

static void poll_closed(uv_handle_t *handle)
{
	struct watched *watched = handle->data;
	struct obl_http *http = watched->http;

	free(watched);
	handle_closed(http);
}

static void timer_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

static struct watched *watch_socket(struct obl_http *http, curl_socket_t fd)
{
	struct watched *watched = obl_alloc(1, sizeof *watched);

	watched->http = http;
	watched->fd = fd;
	watched->poll.data = watched;
	if (uv_poll_init_socket(http->loop, &watched->poll, fd) != 0) {
		free(watched);
		return NULL;
	}
	http->n_handles++;
	curl_multi_assign(http->multi, fd, watched);
	return watched;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct obl_http *http = user;
	struct watched *watched = socket_user;
	int events =
		(what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watched) {
			uv_poll_stop(&watched->poll);
			uv_close((uv_handle_t *)&watched->poll, poll_closed);
			curl_multi_assign(http->multi, fd, NULL);
		}
		return 0;
	}
	if (!watched)
		watched = watch_socket(http, fd);
	return watched && uv_poll_start(&watched->poll, events, on_ready) == 0 ? 0 : -1;
}

/* ---- requests ---- */

static void set_headers(struct obl_http_request *request)
{
	static const char *const fixed[] = { "Content-Type: application/json",
		"Expect:", "Grpc-Metadata-hasleader: true" };
	char token[1024];

	for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++)
		request->headers = obl_alloc_check(curl_slist_append(request->headers, fixed[i]));
	if (!request->call.token)
		return;
	snprintf(token, sizeof token, "Authorization: %s", request->call.token);
	request->headers = obl_alloc_check(curl_slist_append(request->headers, token));
	request->call.token = NULL; /* it is the caller's */
}

static void set_connection(struct obl_http_request *request)
{
	const struct obl_http *http = request->http;
	CURL *easy = request->easy;

	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_options);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 1L);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (http->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca);
	if (http->cert)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, http->cert);
	if (http->key)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, http->key);
	if (request->call.data)
		curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->call.timeout_ms);
	else
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->call.timeout_ms);
}

static void set_transfer(struct obl_http_request *request)
{
	CURL *easy = request->easy;

	curl_easy_setopt(easy, CURLOPT_URL, request->call.url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->call.size);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(easy, CURLOPT_READDATA, request);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
}

struct obl_http_request *obl_http_start(struct obl_http *http, const struct obl_http_call *call)
{
	struct obl_http_request *request = obl_alloc(1, sizeof *request);

	request->http = http;
	request->call = *call;
	request->body = obl_alloc(call->size, 1);
	memcpy(request->body, call->body, call->size);
	/* One byte more, for the NUL. */
	ob_buf_init(&request->answer, call->answer_max + 1);
	request->easy = http->n_idle ? http->idle[--http->n_idle] : curl_easy_init();
	obl_alloc_check(request->easy);
	set_headers(request);
	set_connection(request);
	set_transfer(request);
	request->call.url = NULL; /* it is the caller's */
	request->call.body = NULL;
	TAILQ_INSERT_TAIL(&http->all, request, all);
	if (curl_multi_add_handle(http->multi, request->easy) != CURLM_OK) {
		request->code = CURLE_OUT_OF_MEMORY;
		detach(request);
		make_ready(request);
		uv_timer_start(&http->timer, on_timer, 0, 0);
	}
	return request;
}

/* ---- the client ---- */

static enum ob_err check_file(const char *path, const char *what, struct ob_cause *ret_cause)
{
	if (path && access(path, R_OK) != 0)
		return ob_cause_set_system(ret_cause, OB_ERR_TLS, errno,
			"cannot read %s for the connection to etcd, %s", what, path);
	return OB_ERR_NONE;
}

static char *copy_or_null(const char *text)
{
	return text ? obl_copy_text(text) : NULL;
}

enum ob_err obl_http_new(uv_loop_t *loop, const char *ca, const char *cert, const char *key,
	struct obl_http **ret, struct ob_cause *ret_cause)
{
	struct obl_http *http;

	if (check_file(ca, "the certificate authority", ret_cause) ||
		check_file(cert, "the certificate", ret_cause) ||
		check_file(key, "the private key", ret_cause))
		return OB_ERR_TLS;
	if (!cert != !key)
		return ob_cause_set(ret_cause, OB_ERR_TLS,
			"the connection to etcd needs a certificate and its private key, or "
			"neither");
	http = obl_alloc(1, sizeof *http);
	http->loop = loop;
	http->ca = copy_or_null(ca);
	http->cert = copy_or_null(cert);
	http->key = copy_or_null(key);
	TAILQ_INIT(&http->all);
	TAILQ_INIT(&http->ready);
	http->timer.data = http;
	uv_timer_init(loop, &http->timer);
	http->n_handles = 1;
	obl_alloc_check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? http : NULL);
	http->multi = obl_alloc_check(curl_multi_init());
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	curl_multi_setopt(
		http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)OBL_HTTP_CONNECTIONS_MAX);
	curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, 2L * OBL_HTTP_CONNECTIONS_MAX);
	*ret = http;
	return OB_ERR_NONE;
}

void obl_http_close(struct obl_http *http, void (*closed)(void *user), void *user)
{
	struct obl_http_request *request;

	http->closing = true;
	http->closed = closed;
	http->closed_user = user;
	while ((request = TAILQ_FIRST(&http->all)))
		obl_http_cancel(request);
	while (http->n_idle)
		curl_easy_cleanup(http->idle[--http->n_idle]);
	curl_multi_cleanup(http->multi);
	uv_timer_stop(&http->timer);
	uv_close((uv_handle_t *)&http->timer, timer_closed);
}
