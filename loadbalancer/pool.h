/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client of a pool's balancers (docs/adr/0046-pool.md): asks for a reservation. Questions
 * and commands are in loadbalancer/pool_query.h. `balancers` is one address or a list with commas; they are tried in random order, and
 * the next one when one fails. A request for a reservation keeps its id, so that asking another
 * balancer never reserves twice. Port OBP_POOL_PORT is meant where none is written.
 *
 * OUTBOARD_TOKEN authenticates; it goes to another machine through TLS only. The trusted
 * certificates are those of transport/tls.h. All texts that balancers send are cleaned of control
 * characters (base/terminal.h), except JSON. Everything blocks, with the time-outs that are said.
 * No state; any thread. Also linked into the client library.
 */
#ifndef OBL_POOL_H
#define OBL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/pool.h"

#define OBL_POOL_TIMEOUT_NS   5000000000ull              /* unless the caller says otherwise */
#define OBL_POOL_EXPLAIN_MAX  (OBP_POOL_TEXT_MAX + 256u) /* bytes of an explanation */
#define OBL_POOL_RETRY_MIN_NS 1000000000ull /* pause before all balancers are asked again */
#define OBL_POOL_RETRY_MAX_NS 30000000000ull

struct obl_pool {
	const char *balancers; /* the caller's */
	/* for connecting to one balancer, and for each of its answers that needs no queue */
	uint64_t timeout_ns;
	/*
	 * The next three may be NULL. `queued`: the request waits, or its position has changed.
	 * `lost`: the balancer was lost while the request waits; another one is asked.
	 * `cancelled`: true ends the wait.
	 */
	void (*queued)(void *context, const struct obp_pool_queued *queued);
	void (*lost)(void *context, const char *text);
	bool (*cancelled)(void *context);
	void *context;
};

/* The time-out for `timeout_ns`: OUTBOARD_TIMEOUT in seconds, else OBL_POOL_TIMEOUT_NS. */
uint64_t obl_pool_timeout_ns(void);
/* Checks a list of balancers. OB_ERR_URL: *ret_cause says what is wrong with which address. */
enum ob_err obl_pool_check(const char *balancers, struct ob_cause *ret_cause);
/*
 * Fills what identifies a request: a random id, pid, host, user; program may be NULL. Everything
 * else is 0 or empty; gpus is 1. OB_ERR_IO: no random bytes.
 */
enum ob_err obl_pool_ask_init(struct obp_pool_ask *ask, const char *program);

/*
 * Asks for a reservation and waits for ask->wait_s at most, also for a balancer that answers (and warns
 * of that once). OB_ERR_NONE: *ret_grant, whose parts
 * the caller frees; its tickets are of this reservation. OB_ERR_REFUSED: *ret_refused.
 * OB_ERR_CANCELLED: the balancer was told. Other errors: no balancer could be asked, *ret_cause.
 * ask->token and ask->wait_s are changed.
 */
enum ob_err obl_pool_ask(const struct obl_pool *pool, struct obp_pool_ask *ask,
	struct obp_pool_grant *ret_grant, struct obp_pool_refused *ret_refused,
	struct ob_cause *ret_cause);
/*
 * Writes what a refusal means and what to do, as one line. wait_s: how long the request could wait.
 */
void obl_pool_explain(const struct obp_pool_refused *refused, uint32_t wait_s,
	char ret_text[OBL_POOL_EXPLAIN_MAX]);

#endif
