/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between a worker and the broker of shared objects in the supervisor
 * (server/supervisor/broker.h), in the body of a struct obs_handoff of type OBS_HANDOFF_IPC. The
 * worker numbers its requests in handoff.id, and the answer repeats the number. The object's
 * descriptor, if it has one, comes with PUT and with the answer to GET.
 */
#ifndef OBS_IPC_H
#define OBS_IPC_H

#include <stdint.h>

#define OBS_IPC_DATA      64u    /* bytes: those of a CUipcEventHandle */
#define OBS_IPC_PARTS_MAX 16384u /* mappings of a RANGE */

enum obs_ipc_op {
	OBS_IPC_PUT = 1, /* registers an object; answered with its id */
	OBS_IPC_GET,     /* asks for an object of the same tenant */
	OBS_IPC_DROP,    /* takes an object of this session back; not answered */
};

enum obs_ipc_kind {
	OBS_IPC_MEMORY = 1, /* descriptor: memory of the driver; size */
	OBS_IPC_RANGE,      /* descriptor: a sealed list of MEMORY (struct obs_ipc_part); size */
	OBS_IPC_EVENT,      /* data: the driver's handle; the software device: a descriptor too */
	OBS_IPC_POOL,       /* neither */
	OBS_IPC_KINDS
};

enum obs_ipc_status {
	OBS_IPC_OK,
	OBS_IPC_NONE,    /* no such object, or one of another tenant */
	OBS_IPC_LIMIT,   /* too many objects */
	OBS_IPC_REFUSED, /* malformed request */
	OBS_IPC_TIMEOUT, /* worker only: the supervisor did not answer */
};

struct obs_ipc {
	uint32_t op, kind, status;
	uint32_t device;
	uint32_t own; /* answer to GET: the asking session has exported it */
	uint32_t pad;
	uint64_t id[2];
	uint64_t size; /* bytes */
	uint8_t data[OBS_IPC_DATA];
};

/* One mapping of a RANGE. They follow one another without gaps. */
struct obs_ipc_part {
	uint64_t id[2]; /* of the MEMORY, which is mapped as a whole */
	uint64_t size;
};

#endif
