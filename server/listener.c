/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "server/supervisor.h"

#define BACKLOG 512
#define ACCEPTS_PER_TURN 64

static void accept_ready(uv_poll_t *poll, int status, int events)
{
	struct obs_listener *listener = poll->data;
	int one = 1;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				ob_warn("no descriptors left for a new connection; raise the limit (ulimit -n)");
			return;
		}
		if (!listener->unix_path[0]) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
		}
		obs_guest_admit(listener->super, fd);
	}
}

static int complain(const char *url, const char *what)
{
	fprintf(stderr, "outboard-server: cannot listen on %s: %s\n", url, what);
	return -1;
}

/* A socket file that nobody answers at is left over from a server that was killed. */
static bool unix_in_use(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool used = fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN;

	if (fd >= 0)
		close(fd);
	return used;
}

static int unix_socket(struct obs_listener *listener, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	if (path[0] != '/' || strlen(path) >= sizeof address.sun_path)
		return complain(listener->url, "the path must begin with / and have less than 108 characters");
	memcpy(address.sun_path, path, strlen(path));
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return complain(listener->url, "there is a file of this name that is not a socket");
		if (unix_in_use(&address))
			return complain(listener->url, "another server listens there");
		unlink(path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0) {
		complain(listener->url, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	memcpy(listener->unix_path, path, strlen(path) + 1);
	if (lstat(path, &st) == 0)
		listener->unix_inode = st.st_ino;
	return fd;
}

static int tcp_bind(const struct addrinfo *info)
{
	int one = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

/* "host:port", "[v6]:port", "host" -> its two parts. */
static bool tcp_split(const char *text, char host[OBS_URL_MAX], char port[8])
{
	const char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
	size_t n = strlen(text);

	snprintf(port, 8, "%d", OBP_PORT);
	if (colon && (!bracket || colon > bracket)) {
		if (strlen(colon + 1) == 0 || strlen(colon + 1) > 5)
			return false;
		snprintf(port, 8, "%s", colon + 1);
		n = (size_t)(colon - text);
	}
	if (n >= OBS_URL_MAX)
		return false;
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	memcpy(host, text, n);
	host[n] = '\0';
	return n > 0;
}

static int tcp_socket(struct obs_listener *listener, const char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *list;
	struct sockaddr_storage bound;
	socklen_t size = sizeof bound;
	char host[OBS_URL_MAX], port[8], shown[NI_MAXHOST], shown_port[8];
	int fd = -1, err;

	if (!tcp_split(text, host, port))
		return complain(listener->url, "write tcp://host:port");
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return complain(listener->url, gai_strerror(err));
	for (struct addrinfo *info = list; info && fd < 0; info = info->ai_next)
		fd = tcp_bind(info);
	err = errno;
	freeaddrinfo(list);
	if (fd < 0)
		return complain(listener->url, strerror(err));
	if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0 &&
	    getnameinfo((struct sockaddr *)&bound, size, shown, sizeof shown, shown_port, sizeof shown_port,
		    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(listener->url, sizeof listener->url, strchr(shown, ':') ? "tcp://[%.200s]:%s" : "tcp://%.200s:%s",
			shown, shown_port);
	return fd;
}

int obs_listener_open(struct obs_super *super, const char *url)
{
	struct obs_listener *listener = &super->listeners[super->n_listeners];
	int fd;

	*listener = (struct obs_listener){ .super = super, .fd = -1 };
	if (strlen(url) >= sizeof listener->url)
		return complain(url, "the URL is too long");
	snprintf(listener->url, sizeof listener->url, "%s", url);
	if (strncmp(url, "unix:", 5) == 0)
		fd = unix_socket(listener, url + 5);
	else if (strncmp(url, "tcp://", 6) == 0)
		fd = tcp_socket(listener, url + 6);
	else
		return complain(url, "a URL begins with tcp:// or unix:");
	if (fd < 0)
		return -1;
	listener->fd = fd;
	listener->open = true;
	listener->poll.data = listener;
	super->n_listeners++;
	uv_poll_init(&super->loop, &listener->poll, fd);
	uv_poll_start(&listener->poll, UV_READABLE, accept_ready);
	return 0;
}

static void listener_closed(uv_handle_t *handle)
{
	struct obs_listener *listener = handle->data;

	close(listener->fd);
	listener->fd = -1;
}

void obs_listener_close_all(struct obs_super *super)
{
	struct stat st;

	for (size_t i = 0; i < super->n_listeners; i++) {
		struct obs_listener *listener = &super->listeners[i];

		if (!listener->open)
			continue;
		listener->open = false;
		/* Not when another server has put its own file there since. */
		if (listener->unix_path[0] && lstat(listener->unix_path, &st) == 0 && st.st_ino == listener->unix_inode)
			unlink(listener->unix_path);
		uv_close((uv_handle_t *)&listener->poll, listener_closed);
	}
}
