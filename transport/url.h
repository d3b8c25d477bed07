/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Addresses of servers: tcp://host:port, tcp://[v6]:port, tls://host:port, unix:/path, shm:/path.
 * No state; any thread.
 */
#ifndef OBT_URL_H
#define OBT_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"

#define OBT_URL_MAX  512u
#define OBT_PATH_MAX 108u /* sockaddr_un */

enum obt_scheme { OBT_TCP, OBT_UNIX, OBT_TLS };

struct obt_url {
	enum obt_scheme scheme;
	char host[256]; /* tcp, tls: name or address, without brackets */
	char port[8];   /* tcp, tls: decimal, 0..65535 */
	char path[OBT_PATH_MAX];
	bool shm; /* unix: use shared memory for the data */
};

/*
 * Parses an address. OB_ERR_URL: *ret_cause says what is wrong and how to write it. A missing port
 * means OBP_PORT.
 */
enum ob_err obt_url_parse(const char *text, struct obt_url *ret, struct ob_cause *ret_cause);
/*
 * Whether the address is this machine's for every machine that uses it: a Unix socket, localhost, a
 * loopback address. Names are not looked up.
 */
bool obt_url_loopback(const struct obt_url *url);

#endif
