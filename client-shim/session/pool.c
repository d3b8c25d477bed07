/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "client-shim/session/request.h"
#include "client-shim/session/server.h"
#include "loadbalancer/access.h"
#include "loadbalancer/pool.h"
#include "protocol/pool.h"
#include "transport/tls.h"

static struct {
	struct obl_access access; /* granted to this process; servers NULL: nothing yet */
	bool ended;               /* what the environment brings has ended */
} pool;

static const char *setting(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static void on_queued(void *unused, const struct obp_pool_queued *queued)
{
	(void)unused;
	ob_info("waiting for GPUs of the pool: position %u of %u%s%s", queued->position,
		queued->length, queued->reason[0] ? ": " : "", queued->reason);
}

static void on_lost(void *unused, const char *why)
{
	(void)unused;
	ob_info("a balancer was lost, asking another one: %s", why);
}

/* Takes over what a grant gives. */
static enum ob_err granted(const struct obp_pool_grant *grant)
{
	struct obl_access access;
	struct ob_cause cause;
	enum ob_err err = obl_access_make(grant, &access, &cause);

	if (!err && access.pins[0])
		err = obt_tls_pins_add(access.pins, &cause);
	if (err) {
		ob_error("OUTBOARD_POOL: %s", cause.text);
		return err;
	}
	obl_access_fini(&pool.access);
	pool.access = access;
	ob_info("the pool has granted %u GPU%s on %s", access.n_devices,
		access.n_devices == 1 ? "" : "s", access.servers);
	return OB_ERR_NONE;
}

static enum ob_err ask(const char *balancers)
{
	const struct obl_pool terms = { .balancers = balancers,
		.timeout_ns = obl_pool_timeout_ns(),
		.queued = on_queued,
		.lost = on_lost };
	char text[OBL_POOL_EXPLAIN_MAX];
	struct obp_pool_refused refused;
	struct obp_pool_grant grant;
	struct obp_pool_ask wishes;
	struct ob_cause cause;
	uint32_t wait_s;
	enum ob_err err = obl_pool_ask_init(&wishes, program_invocation_name);

	if (err) {
		ob_error("OUTBOARD_POOL: the system gives no random bytes");
		return err;
	}
	obc_request_ask(&wishes);
	/* the library is set up for one server: a second request can be for no more than that */
	if (pool.ended && obc_servers_count() == 1)
		wishes.one_server = 1;
	wait_s = wishes.wait_s;
	err = obl_pool_ask(&terms, &wishes, &grant, &refused, &cause);
	if (err == OB_ERR_REFUSED) {
		obl_pool_explain(&refused, wait_s, text);
		ob_error("%s", text);
	} else if (err) {
		ob_error("the pool of OUTBOARD_POOL cannot be asked: %s", cause.text);
	} else {
		err = granted(&grant);
		free(grant.parts);
	}
	return err;
}

enum ob_err obc_pool_servers(const char *otherwise, const char **ret_servers)
{
	const char *balancers = setting("OUTBOARD_POOL"), *servers = setting("OUTBOARD_SERVER");
	enum ob_err err;

	if (!pool.access.servers && balancers && (pool.ended || !setting("OUTBOARD_TICKET"))) {
		err = ask(balancers);
		if (err)
			return err;
	}
	if (pool.access.servers)
		*ret_servers = pool.access.servers;
	else
		*ret_servers = servers ? servers : otherwise;
	return OB_ERR_NONE;
}

const char *obc_pool_tickets(void)
{
	return pool.access.servers ? pool.access.tickets : setting("OUTBOARD_TICKET");
}

bool obc_pool_again(const char *words)
{
	/* of several servers the first ones have sessions already */
	if (!setting("OUTBOARD_POOL") || !strstr(words, OBP_POOL_ASK_AGAIN) || pool.ended ||
		obc_server_number())
		return false;
	obl_access_fini(&pool.access);
	pool.ended = true;
	ob_warn("asking the pool for another reservation%s",
		setting("OUTBOARD_RESTARTABLE")
			? "; the program is not moved any more, because nobody would start it again"
			: "");
	return true;
}

bool obc_pool_wanted(void)
{
	return pool.ended && !pool.access.servers;
}
