/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/terminal.h"
#include "protocol/format.h"

#define ELSEWHERE "name another server with --server or OUTBOARD_SERVER"

static void print_resolve(const struct obt_failure *f, char *ret, size_t size)
{
	const char *host = f->url->host;

	if (f->cause->system == ENOENT)
		snprintf(ret, size,
			"cannot reach %s: the name '%s' could not be resolved: no such host is "
			"known. Check its spelling ('getent hosts %s' asks "
			"the same sources), or give the server's numeric address",
			f->text, host, host);
	else
		snprintf(ret, size,
			"cannot reach %s: the name '%s' could not be resolved: %s. Check this "
			"machine's network and /etc/resolv.conf, or give the "
			"server's numeric address",
			f->text, host,
			f->cause->system == EAGAIN ? "no name server answered"
						   : strerror(f->cause->system));
}

static void print_connect(const struct obt_failure *f, char *ret, size_t size)
{
	const char *says = strerror(f->cause->system);

	switch (f->cause->system) {
	case ECONNREFUSED:
		snprintf(ret, size,
			"cannot reach %s: %s: nothing listens there. Start a server there with "
			"'outboard-server --listen %s%s', or " ELSEWHERE,
			f->text, says, f->text,
			f->url->scheme == OBT_TLS ? " --tls-cert FILE --tls-key FILE --tokens FILE"
						  : "");
		break;
	case ENOENT:
		snprintf(ret, size,
			"cannot reach %s: %s: there is no such socket on this machine. Start a "
			"server there with 'outboard-server --listen %s', "
			"or " ELSEWHERE,
			f->text, says, f->text);
		break;
	case EACCES:
	case EPERM:
		snprintf(ret, size, "cannot reach %s: %s. %s", f->text, says,
			f->url->scheme == OBT_UNIX
				? "Connecting takes the right to write to the socket file and to "
				  "enter its folders"
				: "This machine's firewall forbids the connection");
		break;
	case EHOSTUNREACH:
	case ENETUNREACH:
		snprintf(ret, size,
			"cannot reach %s: %s: the machine is off or not in this network, or a "
			"firewall turns connections away. Check the "
			"address and this machine's network (VPN, routes), or " ELSEWHERE,
			f->text, says);
		break;
	case ETIMEDOUT:
		snprintf(ret, size,
			"cannot reach %s: %s: the machine is off, or a firewall drops the packets. "
			"Check host and port, or " ELSEWHERE,
			f->text, says);
		break;
	default:
		snprintf(ret, size, "cannot reach %s: %s. Check the address, or " ELSEWHERE,
			f->text, says);
		break;
	}
}

static void print_timeout(const struct obt_failure *f, char *ret, size_t size)
{
	char within[32] = "in time";

	if (f->timeout_s)
		snprintf(within, sizeof within, "within %u s", f->timeout_s);
	if (f->connected)
		snprintf(ret, size,
			"%s accepted the connection and did not answer %s: another program listens "
			"there, or the server hangs. Check host and "
			"port, and the server's log; OUTBOARD_TIMEOUT sets the seconds",
			f->text, within);
	else
		snprintf(ret, size,
			"cannot reach %s: it did not answer %s: the machine is off, or a firewall "
			"drops the packets. Check host and port; "
			"OUTBOARD_TIMEOUT sets the seconds",
			f->text, within);
}

static void print(const struct obt_failure *f, char *ret, size_t size)
{
	const char *why = f->cause->text[0] ? f->cause->text : ob_err_text(f->cause->code);

	switch (f->cause->code) {
	case OB_ERR_RESOLVE:
		print_resolve(f, ret, size);
		break;
	case OB_ERR_CONNECT:
		print_connect(f, ret, size);
		break;
	case OB_ERR_TIMEOUT:
		print_timeout(f, ret, size);
		break;
	case OB_ERR_MAGIC:
	case OB_ERR_CLOSED:
		snprintf(ret, size,
			"%s is not an Outboard server, or closed the connection: %s. Check host "
			"and port",
			f->text, why);
		break;
	case OB_ERR_VERSION:
		snprintf(ret, size,
			"%s speaks another protocol version than this client (%u). Install the "
			"same release on both sides",
			f->text, OBP_VERSION);
		break;
	case OB_ERR_TLS:
		snprintf(ret, size, "no TLS connection to %s: %s", f->text, why);
		break;
	case OB_ERR_CERTIFICATE:
		snprintf(ret, size,
			"no TLS connection to %s: %s. If it is the right server, set "
			"OUTBOARD_TLS_PIN to what 'outboard cert --cert FILE' "
			"prints there, or OUTBOARD_TLS_CA to its certificate or authority",
			f->text, why);
		break;
	case OB_ERR_UNSUPPORTED:
		snprintf(ret, size, "no shared memory for %s: %s. Name it as unix:%s instead",
			f->text, why, f->url->path);
		break;
	case OB_ERR_DENIED:
		if (f->cause->text[0])
			snprintf(ret, size, "no session with %s: %s", f->text, why);
		else
			snprintf(ret, size,
				"%s is another machine and not tls://: OUTBOARD_TOKEN is not sent "
				"there in "
				"clear",
				f->text);
		break;
	case OB_ERR_PROTOCOL:
		snprintf(ret, size,
			"%s broke the protocol: %s. Install the same release on both sides; if "
			"that is so, something between them changes the "
			"bytes",
			f->text,
			f->cause->text[0] ? f->cause->text
					  : "its answer to the hello cannot be read");
		break;
	case OB_ERR_REFUSED:
		snprintf(ret, size, "%s refused the session: %s", f->text, why);
		break;
	default:
		snprintf(ret, size, "no session with %s: %s", f->text, why);
		break;
	}
}

void obt_failure_print(const struct obt_failure *failure, char *ret_text, size_t size)
{
	print(failure, ret_text, size);
	/* a refusal's text comes from the peer */
	ret_text[ob_text_clean(ret_text, strlen(ret_text))] = '\0';
}

const char *obt_failure_brief(const struct ob_cause *cause)
{
	return cause->code == OB_ERR_CONNECT && cause->system ? strerror(cause->system)
							      : ob_err_text(cause->code);
}
