/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Choosing among several servers: asks every address of a list ("tcp://a:1,tcp://b:2,unix:/c") for
 * its load, all at the same time, and chooses one. A server that does not answer is skipped a short
 * time after the first answer. Blocks, at most for the given time-out. Each address is asked by a
 * short-lived thread that blocks all signals, so it is safe inside other programs. Any thread.
 */
#ifndef OBL_ASK_H
#define OBL_ASK_H

#include "base/cause.h"
#include "loadbalancer/place.h"
#include "protocol/load.h"
#include "transport/stream.h"
#include "transport/url.h"

#define OBL_LIST_MAX 64u /* addresses in one list */
/* time for the others once one has answered, and at least twice what that one took */
#define OBL_LATE_NS  250000000ull

struct obl_answer {
	char url[OBT_URL_MAX + 1];
	/* code OB_ERR_NONE: load is valid; OB_ERR_TIMEOUT also before any answer */
	struct ob_cause cause;
	uint64_t took_ns;     /* time for connecting and the answer */
	struct obp_load load; /* obp_load_fini frees its sessions */
};

/*
 * Asks one server; want: enum obp_load_want. On success call obp_load_fini(ret). OB_ERR_CLOSED or
 * _REFUSED: the server is too old for questions. kept: the caller's open connection to this server
 * (fd -1: none yet), reused and left open for the next question; NULL: none.
 */
enum ob_err obl_ask(const struct obt_url *url, unsigned want, uint64_t deadline,
	struct obt_stream *kept, struct obp_load *ret, struct ob_cause *ret_cause);
/*
 * Splits the list and checks each address. OB_ERR_URL: *ret_cause. ret has room for OBL_LIST_MAX;
 * the urls are filled in.
 */
enum ob_err obl_list_parse(
	const char *text, struct obl_answer *ret, uint32_t *ret_n, struct ob_cause *ret_cause);
/* Removes an address from a list, which may become empty. */
void obl_list_drop(char *list, const char *url);
/* Asks all of them at once; want as above; fills cause, took_ns, load. */
void obl_ask_all(struct obl_answer *answers, uint32_t n, unsigned want, uint64_t timeout_ns);
/* Converts an answer to what placement uses. Its names point into the answer. */
void obl_server_from(const struct obl_answer *answer, struct obl_server *ret);

/*
 * Does everything: parse, ask, place. ret_url: the chosen address. OB_ERR_URL; OB_ERR_CONNECT when
 * no server answers; OB_ERR_REFUSED when none fits; *ret_cause says what to do. A list of one address
 * is not asked.
 */
enum ob_err obl_pick(const char *list, const struct obl_request *request, enum obl_policy policy,
	uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1], struct ob_cause *ret_cause);

#endif
