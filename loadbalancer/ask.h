/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Several servers, first step: a list of addresses ("tcp://a:1,tcp://b:2,unix:/c"), each asked for
 * its load at the same time, and one chosen. A server that does not answer is skipped within a
 * short time; the others are not held up by it. Blocks, bounded by the time-out given; each address
 * is asked by a short-lived thread that blocks all signals. Safe in a program that is not ours. Any
 * thread.
 */
#ifndef OBL_ASK_H
#define OBL_ASK_H

#include "base/err.h"
#include "loadbalancer/place.h"
#include "protocol/load.h"
#include "transport/stream.h"
#include "transport/url.h"

#define OBL_LIST_MAX 64u           /* addresses in one list */
#define OBL_ASK_NS   1000000000ull /* how long a server may take to tell its load */
#define OBL_LATE_NS  250000000ull  /* once one has answered, the others get so much longer */

struct obl_answer {
	char url[OBT_URL_MAX + 1];
	/* OB_ERR_NONE: load is valid; OB_ERR_TIMEOUT also while no answer has come */
	enum ob_err err;
	int saved_errno;
	uint64_t took_ns;     /* connecting and the answer */
	struct obp_load load; /* without sessions unless asked for */
};

/*
 * One server; want: enum obp_load_want. On success obp_load_fini(ret). An older server closes:
 * OB_ERR_CLOSED or _REFUSED. kept: the caller's connection to this server, fd -1 for none yet; it
 * is used while it lives and is left open for the next question. NULL: none is kept.
 */
enum ob_err obl_ask(const struct obt_url *url, unsigned want, uint64_t deadline,
	struct obt_stream *kept, struct obp_load *ret);
/*
 * Cuts the list and checks each address. OB_ERR_URL with *ret_why. ret has room for OBL_LIST_MAX;
 * the urls are filled in.
 */
enum ob_err obl_list_parse(
	const char *text, struct obl_answer *ret, uint32_t *ret_n, const char **ret_why);
/* Takes an address out of a list, which may be empty then. */
void obl_list_drop(char *list, const char *url);
/* Asks all of them at once; fills err, took_ns, load. */
void obl_ask_all(struct obl_answer *answers, uint32_t n, uint64_t timeout_ns);
/* What placement sees of an answer. */
void obl_server_from(const struct obl_answer *answer, struct obl_server *ret);

/*
 * The whole of it: parse, ask, place. ret_url takes the address chosen. OB_ERR_URL; OB_ERR_CONNECT
 * when none answers; OB_ERR_REFUSED when none fits; ret_why then says which and what to do. A list
 * of one address is not asked.
 */
enum ob_err obl_pick(const char *list, const struct obl_request *request, enum obl_policy policy,
	uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1], char *ret_why, size_t why_size);

#endif
