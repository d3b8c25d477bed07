/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `check` and `info` for a list of servers: query the load of each, print a line or a paragraph for
 * each, and name the server that a program would get.
 */
#ifndef OBX_SERVERS_H
#define OBX_SERVERS_H

#include <stdbool.h>

#include "base/cause.h"

/*
 * Returns the exit code: 0 when a program would get a server, of servers that are used together each
 * of them. details: also prints the devices. Blocks for at most one second for each of these.
 */
int obx_servers_look(const char *verb, const char *list, bool details);
/* Checks that every address of a list can be parsed. False: *ret_cause is the reason. */
bool obx_servers_valid(const char *list, struct ob_cause *ret_cause);

#endif
