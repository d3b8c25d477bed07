/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A connection to one balancer, for loadbalancer/pool.c: the list of balancers, connecting, and
 * messages in both directions. The caller owns everything; one thread at a time.
 */
#ifndef OBL_POOL_LINK_H
#define OBL_POOL_LINK_H

#include "base/cause.h"
#include "protocol/pool.h"
#include "transport/stream.h"
#include "transport/token.h"
#include "transport/url.h"

#define OBL_BALANCERS_MAX 8u           /* in one list */
#define OBL_POOL_LOOK_NS  100000000ull /* interval at which a wait asks `cancelled` */

struct obl_balancers {
	uint32_t n;
	struct obl_balancer {
		char text[OBT_URL_MAX + 1];
		struct obt_url url;
	} list[OBL_BALANCERS_MAX];
};

struct obl_pool_link {
	const struct obl_balancer *balancer;
	struct obt_stream stream;
	char token[OBT_TOKEN_TEXT]; /* what may be sent on this connection */
	uint8_t *map;               /* of the last message received, which may point into it */
	struct obp_pool_message message;
};

/* Splits and checks a list. OB_ERR_URL: *ret_cause. */
enum ob_err obl_balancers_parse(
	const char *text, struct obl_balancers *ret, struct ob_cause *ret_cause);
/* Puts them in random order. */
void obl_balancers_shuffle(struct obl_balancers *balancers);

/*
 * Connects, before the deadline. The errors of transport/connect.h; OB_ERR_DENIED: the token would
 * be sent in clear. *ret_cause begins with the balancer's address.
 */
enum ob_err obl_pool_link_open(struct obl_pool_link *link, const struct obl_balancer *balancer,
	uint64_t deadline, struct ob_cause *ret_cause);
void obl_pool_link_close(struct obl_pool_link *link);
enum ob_err obl_pool_link_send(struct obl_pool_link *link, const struct obp_pool_message *message,
	uint64_t deadline, struct ob_cause *ret_cause);
/*
 * Receives the next message into link->message, valid until the next call. OB_ERR_REFUSED: the
 * address is another kind of server, *ret_cause has its words.
 */
enum ob_err obl_pool_link_receive(
	struct obl_pool_link *link, uint64_t deadline, struct ob_cause *ret_cause);
/*
 * The same for a message that may come at any time; from its first byte on it has timeout_ns.
 * OB_ERR_CANCELLED: cancelled(context) was true, which is asked every OBL_POOL_LOOK_NS.
 */
enum ob_err obl_pool_link_await(struct obl_pool_link *link, uint64_t timeout_ns,
	bool (*cancelled)(void *context), void *context, struct ob_cause *ret_cause);

#endif
