/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "protocol/format.h"

static enum ob_err parse_tcp(const char *rest, struct obt_url *url, struct ob_cause *ret_cause)
{
	const char *host = rest, *port = NULL;
	size_t n;
	uint64_t number;

	if (rest[0] == '[') {
		const char *close = strchr(rest, ']');

		if (!close)
			return ob_cause_set(ret_cause, OB_ERR_URL,
				"a '[' without its ']'; write tcp://[::1]:14800");
		host = rest + 1;
		n = (size_t)(close - host);
		if (close[1] == ':')
			port = close + 2;
		else if (close[1])
			return ob_cause_set(ret_cause, OB_ERR_URL,
				"unexpected text after ']'; write tcp://[::1]:14800");
	} else {
		const char *colon = strrchr(rest, ':');

		n = colon ? (size_t)(colon - rest) : strlen(rest);
		port = colon ? colon + 1 : NULL;
	}
	if (n == 0 || n >= sizeof url->host)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"the host is missing or too long; write tls://host:14800 or "
			"tcp://host:14800");
	memcpy(url->host, host, n);
	url->host[n] = 0;
	if (!port) {
		snprintf(url->port, sizeof url->port, "%u", OBP_PORT);
		return OB_ERR_NONE;
	}
	if (!ob_text_parse_number(port, 0, 65535, &number))
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"the port is not a number from 0 to 65535; write tls://host:14800 or "
			"tcp://host:14800");
	snprintf(url->port, sizeof url->port, "%u", (unsigned)number);
	return OB_ERR_NONE;
}

static enum ob_err parse_path(const char *path, struct obt_url *url, struct ob_cause *ret_cause)
{
	if (strncmp(path, "//", 2) == 0)
		path += 2;
	url->scheme = OBT_UNIX;
	if (!*path || strlen(path) >= sizeof url->path)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"the path is missing or longer than 107 bytes; write "
			"unix:/run/outboard.sock");
	strcpy(url->path, path);
	return OB_ERR_NONE;
}

static enum ob_err parse(const char *text, struct obt_url *url, struct ob_cause *ret_cause)
{
	if (!text || !*text || strlen(text) > OBT_URL_MAX)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"the address is empty or too long; write tls://host:14800, "
			"tcp://127.0.0.1:14800 or unix:/path");
	if (strncmp(text, "tcp://", 6) == 0) {
		url->scheme = OBT_TCP;
		return parse_tcp(text + 6, url, ret_cause);
	}
	if (strncmp(text, "tls://", 6) == 0) {
		url->scheme = OBT_TLS;
		return parse_tcp(text + 6, url, ret_cause);
	}
	if (strncmp(text, "unix:", 5) == 0)
		return parse_path(text + 5, url, ret_cause);
	if (strncmp(text, "shm:", 4) == 0) {
		url->shm = true;
		return parse_path(text + 4, url, ret_cause);
	}
	return ob_cause_set(ret_cause, OB_ERR_URL,
		"it must start with tls://, tcp://, unix: or shm:; write tls://host:14800, "
		"tcp://127.0.0.1:14800 or unix:/path");
}

enum ob_err obt_url_parse(const char *text, struct obt_url *ret, struct ob_cause *ret_cause)
{
	struct obt_url url = { .scheme = OBT_TCP };
	enum ob_err err = parse(text, &url, ret_cause);

	if (!err)
		*ret = url;
	return err;
}

bool obt_url_loopback(const struct obt_url *url)
{
	static const char name[] = "localhost";
	struct in6_addr six;
	struct in_addr four;

	if (url->scheme == OBT_UNIX || strcasecmp(url->host, name) == 0)
		return true;
	if (inet_pton(AF_INET, url->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, url->host, &six) == 1 &&
		(IN6_IS_ADDR_LOOPBACK(&six) ||
			(IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127));
}
