/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obl_together: a value of OUTBOARD_SERVER as the servers that a program uses together. A `+`
 * directly before a scheme separates them; each of them is one address or a list with commas, of
 * which one is chosen (loadbalancer/ask.h): "tcp://a,tcp://b+unix:/c" is one of a and b, and c. No
 * state; any thread.
 */
#ifndef OBL_TOGETHER_H
#define OBL_TOGETHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "loadbalancer/ask.h"

#define OBL_TOGETHER_MAX 8u /* servers used together */

struct obl_together {
	char *text; /* owned: the lists, each ended by '\0' */
	const char *list[OBL_TOGETHER_MAX];
	uint32_t n; /* at least 1 */
};

/*
 * Splits `text` and checks every address. OB_ERR_URL: an address is wrong, there are too many
 * servers, or one list is there twice; *ret_cause says so. OB_ERR_NO_MEMORY. On success call
 * obl_together_fini.
 */
enum ob_err obl_together_parse(
	const char *text, struct obl_together *ret, struct ob_cause *ret_cause);
/* Whether `text` names more than one. A wrong list names one: other functions say what is wrong. */
bool obl_together_several(const char *text);
/*
 * Every address of every list. ret has room for OBL_LIST_MAX; the urls are filled in. OB_ERR_URL,
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obl_together_addresses(
	const char *text, struct obl_answer *ret, uint32_t *ret_n, struct ob_cause *ret_cause);
/*
 * Devices of servers used together have distinct PCI addresses: the domain of a device of server
 * `server`, counted from 0. And distinct UUIDs: of a device whose UUID one of an earlier server has.
 */
static inline uint32_t obl_together_domain(uint32_t domain, uint32_t server)
{
	return server ? (domain & 0xfff) | server << 12 : domain;
}

static inline void obl_together_uuid(uint8_t uuid[16], uint32_t server)
{
	uuid[0] ^= (uint8_t)server;
}
void obl_together_fini(struct obl_together *together);

#endif
