/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_broker: memory, events and pools that sessions have exported to one another. Holds the
 * objects' descriptors, so an import does not depend on the exporting worker. An object is found by
 * its random id, and only by sessions of the same tenant: those with the same proved identity. It
 * ends with its session. Every byte of a request may come from a client that has taken over its
 * worker. One thread; no libuv, so that tests can use it alone.
 */
#ifndef OBS_BROKER_H
#define OBS_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/common/identity.h"
#include "server/common/ipc.h"

#define OBS_BROKER_MAX     16384u /* objects of all sessions */
#define OBS_BROKER_TENANT  8192u  /* of one tenant */
#define OBS_BROKER_SESSION 2048u  /* of one session */
#define OBS_BROKER_BUCKETS 1024u

/*
 * Bytes of lists, in whole pages, which the supervisor keeps alive: enough for a page for each object
 * of a session and of a tenant. A page lists an allocation of 10 GiB.
 */
#define OBS_BROKER_LISTS_SESSION (OBS_BROKER_SESSION * 4096u)
#define OBS_BROKER_LISTS_TENANT  (OBS_BROKER_TENANT * 4096u)

struct obs_broker_object;

struct obs_broker {
	struct obs_broker_object *buckets[OBS_BROKER_BUCKETS]; /* by id */
	uint32_t n;
	uint32_t most; /* 0: OBS_BROKER_MAX; less where the process may have few descriptors */
};

/*
 * Executes a request of a session: *ipc becomes the answer. *fd is the descriptor that came with
 * it, or -1; it becomes -1 if the broker keeps it, else the caller closes it. *ret_fd: a descriptor
 * to send with the answer, which stays the broker's; -1. False: there is no answer.
 */
bool obs_broker_request(struct obs_broker *broker, uint64_t session, const struct obs_identity *who,
	struct obs_ipc *ipc, int *fd, int *ret_fd);
/* The session has ended: drops its objects. */
void obs_broker_forget(struct obs_broker *broker, uint64_t session);

#endif
