/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Who asks for the load, and which sessions that may show. Questions carry no token and no TLS, so
 * only the address of the connection counts. Loop's thread only.
 */
#ifndef OBS_ASKER_H
#define OBS_ASKER_H

#include <stdbool.h>
#include <stddef.h>

#include "server/supervisor/super.h"

struct obs_asker {
	char who[OBP_LOAD_NAME_MAX]; /* "10.0.0.7:41234", "user 1000" */
	bool local;                  /* on this host */
};

/* Prints the peer of a connection as above. True: it is on this host. */
bool obs_asker_print(int fd, char *ret, size_t size);
void obs_asker_find(int fd, struct obs_asker *ret);
/*
 * Whether a session's program runs on the asker's machine, so that its process id means something
 * there. Sessions that a token or certificate has proved are not shown to other hosts: an address
 * may stand for several tenants.
 */
bool obs_asker_shares(const struct obs_asker *asker, const struct obs_proc *proc);

#endif
