/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Questions and commands to a pool's balancers (loadbalancer/pool.h): one that can be connected to
 * is enough. Blocks with the time-outs of struct obl_pool, of which the callbacks are not used. No
 * state; any thread.
 */
#ifndef OBL_POOL_QUERY_H
#define OBL_POOL_QUERY_H

#include "loadbalancer/pool.h"

#define OBL_POOL_DOCUMENT_MAX (16u << 20) /* bytes of the answer to a query */

/*
 * Gives a reservation back that no session has used, or, if it is over, that none will use again.
 * Errors as for a query; then its tickets expire after OBP_POOL_TICKET_S, and one that was used ends
 * after its linger time.
 */
enum ob_err obl_pool_cancel(const struct obl_pool *pool, const uint8_t id[OBP_RESERVATION_BYTES],
	bool over, struct ob_cause *ret_cause);

/*
 * Gets a document (enum names of obp_pool_query: "fleet", "queue", ...). *ret_json: NUL-terminated,
 * the caller's; it has not been parsed. OB_ERR_REFUSED: *ret_refused. OB_ERR_LIMIT: longer than
 * OBL_POOL_DOCUMENT_MAX. Other errors: *ret_cause.
 */
enum ob_err obl_pool_query(const struct obl_pool *pool, const char *what, const char *target,
	uint64_t since, char **ret_json, size_t *ret_size, struct obp_pool_refused *ret_refused,
	struct ob_cause *ret_cause);
/*
 * Gives an operator's command. OB_ERR_NONE: done, ret_done->text says what. OB_ERR_REFUSED:
 * *ret_done. OB_ERR_ARGUMENT: an argument is too long. Other errors: *ret_cause; the command may
 * have been executed if the balancer was lost afterwards.
 */
enum ob_err obl_pool_command(const struct obl_pool *pool, const char *verb, const char *target,
	const char *argument, struct obp_pool_refused *ret_done, struct ob_cause *ret_cause);

#endif
