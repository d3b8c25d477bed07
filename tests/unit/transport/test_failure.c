/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Texts of failed connections: each cause has a different one, which says what to do. */
#include <errno.h>

#include "tests/test.h"
#include "transport/failure.h"

static char text[OBT_FAILURE_TEXT];

static const char *say(
	enum ob_err err, int saved_errno, const char *address, bool connected, const char *why)
{
	struct obt_url url;
	struct ob_cause cause = { .code = err, .system = saved_errno };
	const struct obt_failure failure = { .cause = &cause,
		.connected = connected,
		.timeout_s = 5,
		.url = &url,
		.text = address };

	snprintf(cause.text, sizeof cause.text, "%s", why ? why : "");
	CHECK_INT(obt_url_parse(address, &url, NULL), OB_ERR_NONE);
	memset(text, '?', sizeof text);
	obt_failure_print(&failure, text, sizeof text);
	CHECK(memchr(text, '\0', sizeof text) && !strchr(text, '\n'));
	return text;
}

TEST(each_cause_has_its_words)
{
	static const char far[] = "tcp://gpu1:14800", near[] = "unix:/run/gpu";

	CHECK_STR(say(OB_ERR_RESOLVE, ENOENT, far, false, NULL),
		"cannot reach tcp://gpu1:14800: the name 'gpu1' could not be resolved: no such "
		"host is "
		"known. Check its "
		"spelling ('getent hosts gpu1' asks the same sources), or give the server's "
		"numeric address");
	CHECK_STR(say(OB_ERR_RESOLVE, EAGAIN, far, false, NULL),
		"cannot reach tcp://gpu1:14800: the name 'gpu1' could not be resolved: no name "
		"server "
		"answered. Check "
		"this machine's network and /etc/resolv.conf, or give the server's numeric "
		"address");
	CHECK_STR(say(OB_ERR_CONNECT, ECONNREFUSED, far, false, NULL),
		"cannot reach tcp://gpu1:14800: Connection refused: nothing listens there. Start a "
		"server there "
		"with 'outboard-server --listen tcp://gpu1:14800', or name another server with "
		"--server or OUTBOARD_SERVER");
	CHECK(strstr(say(OB_ERR_CONNECT, ECONNREFUSED, "tls://gpu1:14800", false, NULL),
		"'outboard-server --listen tls://gpu1:14800 --tls-cert FILE --tls-key FILE "
		"--tokens FILE', or"));
	CHECK_STR(say(OB_ERR_CONNECT, ENOENT, near, false, NULL),
		"cannot reach unix:/run/gpu: No such file or directory: there is no such socket on "
		"this "
		"machine. Start "
		"a server there with 'outboard-server --listen unix:/run/gpu', or name another "
		"server with --server or OUTBOARD_SERVER");
	CHECK_STR(say(OB_ERR_CONNECT, EACCES, near, false, NULL),
		"cannot reach unix:/run/gpu: Permission denied. Connecting takes the right to "
		"write to "
		"the socket file "
		"and to enter its folders");
	CHECK_STR(say(OB_ERR_CONNECT, EHOSTUNREACH, far, false, NULL),
		"cannot reach tcp://gpu1:14800: No route to host: the machine is off or not in "
		"this "
		"network, or a "
		"firewall turns connections away. Check the address and this machine's network "
		"(VPN, routes), or name another server with --server or "
		"OUTBOARD_SERVER");
	CHECK(strstr(say(OB_ERR_CONNECT, ENETUNREACH, far, false, NULL),
		"Network is unreachable: the machine is off"));
	CHECK(strstr(
		say(OB_ERR_CONNECT, ETIMEDOUT, far, false, NULL), "a firewall drops the packets"));
	CHECK_STR(say(OB_ERR_TIMEOUT, 0, far, false, NULL),
		"cannot reach tcp://gpu1:14800: it did not answer within 5 s: the machine is off, "
		"or a "
		"firewall drops the "
		"packets. Check host and port; OUTBOARD_TIMEOUT sets the seconds");
	CHECK_STR(say(OB_ERR_TIMEOUT, 0, far, true, NULL),
		"tcp://gpu1:14800 accepted the connection and did not answer within 5 s: another "
		"program "
		"listens there, or "
		"the server hangs. Check host and port, and the server's log; OUTBOARD_TIMEOUT "
		"sets the seconds");
	CHECK(strstr(say(OB_ERR_CERTIFICATE, 0, "tls://gpu1:14800", true, "the pin is another"),
		"tls://gpu1:14800: the pin is another. If it is the right "
		"server, set "
		"OUTBOARD_TLS_PIN"));
	CHECK(strstr(say(OB_ERR_TLS, 0, "tls://gpu1:14800", true, NULL), ob_err_text(OB_ERR_TLS)));
	CHECK_STR(say(OB_ERR_REFUSED, 0, far, true, "the server is full"),
		"tcp://gpu1:14800 refused the session: the server is full");
	CHECK(strstr(say(OB_ERR_UNSUPPORTED, 0, "shm:/run/gpu", true, "no memfd"),
		"Name it as unix:/run/gpu instead"));
}

TEST(every_error_has_words)
{
	static const enum ob_err all[] = {
#define X(value, name, cuda, words) OB_ERR_##name,
		OB_ERR_LIST(X)
#undef X
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		CHECK(strstr(say(all[i], EIO, "tcp://gpu1:14800", true, NULL), "tcp://gpu1:14800"));
}

TEST(the_longest_fits)
{
	char address[OBT_URL_MAX + 1];

	memset(address, 'a', sizeof address);
	memcpy(address, "tcp://", 6);
	memcpy(address + 255, ":14800", 7);
	say(OB_ERR_CONNECT, ECONNREFUSED, address, false, NULL);
	CHECK(strlen(text) < sizeof text - 1 && strstr(text, "OUTBOARD_SERVER"));
	say(OB_ERR_RESOLVE, ENOENT, address, false, NULL);
	CHECK(strlen(text) < sizeof text - 1 && strstr(text, "numeric address"));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
