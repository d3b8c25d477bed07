/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The pools that the user has logged in to: ${XDG_CONFIG_HOME:-~/.config}/outboard/pool.ini, which
 * `outboard login` writes and only its owner may read, because it holds tokens:
 *
 *     default = lab
 *     [lab]
 *     balancer = tls://b1:14900
 *     pin = 64 hexadecimal digits, of the balancer before it
 *     token = obt_...
 *
 * Also the string that carries one pool from its operator to a user:
 *
 *     outboard+tls://b1:14900?pin=HEX,tls://b2:14900?pin=HEX#TOKEN
 *
 * Plain data, owned by the caller; obx_logins_wipe removes the secrets from memory. Main thread.
 */
#ifndef OBX_LOGIN_FILE_H
#define OBX_LOGIN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "loadbalancer/pool_link.h"

#define OBX_LOGINS_MAX     16u
#define OBX_LOGIN_NAME_MAX 33u /* bytes of a name, NUL included */
#define OBX_LOGIN_URL_MAX \
	180u /* bytes of a balancer's address, NUL included: libinih's lines are short */
#define OBX_LOGIN_LIST_MAX (OBL_BALANCERS_MAX * OBX_LOGIN_URL_MAX)
#define OBX_LOGIN_PINS_MAX (OBL_BALANCERS_MAX * (OBX_LOGIN_URL_MAX + 66u))
#define OBX_LOGIN_TEXT_MAX (16u + OBX_LOGIN_PINS_MAX + 8u * OBL_BALANCERS_MAX + OBP_TOKEN_MAX)
#define OBX_LOGIN_PREFIX   "outboard+"
#define OBX_LOGIN_PATH_MAX 4096u

struct obx_login {
	char name[OBX_LOGIN_NAME_MAX];
	uint32_t n;
	struct obx_login_balancer {
		char url[OBX_LOGIN_URL_MAX];
		char pin[65]; /* lower case; "": none */
	} balancers[OBL_BALANCERS_MAX];
	char token[OBP_TOKEN_MAX]; /* "": none */
};

struct obx_logins {
	char chosen[OBX_LOGIN_NAME_MAX]; /* the default one */
	uint32_t n;
	struct obx_login list[OBX_LOGINS_MAX];
};

/* Writes the file's path; false: neither XDG_CONFIG_HOME nor HOME is set. */
bool obx_logins_path(char ret_path[OBX_LOGIN_PATH_MAX]);
/*
 * Reads the file. OB_ERR_NOT_FOUND: there is none. OB_ERR_DENIED: others could read or change it;
 * OB_ERR_ARGUMENT: malformed; OB_ERR_IO. *ret_cause says what to do.
 */
enum ob_err obx_logins_read(struct obx_logins *ret, struct ob_cause *ret_cause);
/* Replaces the file, and makes its folder. OB_ERR_IO: *ret_cause. */
enum ob_err obx_logins_write(const struct obx_logins *logins, struct ob_cause *ret_cause);
void obx_logins_wipe(struct obx_logins *logins);
/* NULL: there is none of that name. name NULL: the default one. */
struct obx_login *obx_login_find(struct obx_logins *logins, const char *name);
/* True if the name may be one: letters, digits, '-', '_', '.'. */
bool obx_login_name_valid(const char *name);

/*
 * Adds a balancer. OB_ERR_URL, OB_ERR_LIMIT, OB_ERR_ARGUMENT (pin): *ret_cause. pin: "" or NULL:
 * none. An address without a port gets OBP_POOL_PORT.
 */
enum ob_err obx_login_add(
	struct obx_login *login, const char *url, const char *pin, struct ob_cause *ret_cause);
/*
 * Reads the string of `outboard token create --pool`, or a list of addresses, with "?pin=HEX" after
 * each and "#TOKEN" at the end where there is one. Errors as above. The name is not set.
 */
enum ob_err obx_login_parse(const char *text, struct obx_login *ret, struct ob_cause *ret_cause);
/* Writes that string. */
void obx_login_print(const struct obx_login *login, char ret_text[OBX_LOGIN_TEXT_MAX]);
/* Writes the balancers with commas between them. */
void obx_login_list(const struct obx_login *login, char ret_text[OBX_LOGIN_LIST_MAX]);
/* Writes the pins as transport/pin.h reads them; "": none. */
void obx_login_pins(const struct obx_login *login, char ret_text[OBX_LOGIN_PINS_MAX]);

#endif
