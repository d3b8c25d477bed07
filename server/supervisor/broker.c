/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/broker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

struct obs_broker_object {
	struct obs_broker_object *next; /* in the bucket */
	uint64_t session;
	char who[OBS_WHO_MAX];
	bool proved;
	int fd;
	uint32_t list; /* bytes of a RANGE's list, in whole pages */
	struct obs_ipc ipc;
};

#define LIST_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define LIST_PAGE  4096u

static struct obs_broker_object **bucket_of(struct obs_broker *broker, const uint64_t id[2])
{
	return &broker->buckets[id[0] % OBS_BROKER_BUCKETS];
}

/* The link to the object with this id, or to the end of its bucket. */
static struct obs_broker_object **find(struct obs_broker *broker, const uint64_t id[2])
{
	struct obs_broker_object **link = bucket_of(broker, id);

	while (*link && ((*link)->ipc.id[0] != id[0] || (*link)->ipc.id[1] != id[1]))
		link = &(*link)->next;
	return link;
}

static void drop(struct obs_broker *broker, struct obs_broker_object **link)
{
	struct obs_broker_object *object = *link;

	*link = object->next;
	if (object->fd >= 0)
		close(object->fd);
	free(object);
	broker->n--;
}

static bool same_tenant(const struct obs_broker_object *object, const struct obs_identity *who)
{
	return object->proved == who->proved && strcmp(object->who, who->who) == 0;
}

static bool is_full(const struct obs_broker *broker, uint64_t session,
	const struct obs_identity *who, uint32_t list)
{
	uint64_t session_lists = list, tenant_lists = list;
	uint32_t of_session = 0, of_tenant = 0;

	if (broker->n >= (broker->most ? broker->most : OBS_BROKER_MAX))
		return true;
	for (unsigned i = 0; i < OBS_BROKER_BUCKETS; i++)
		for (const struct obs_broker_object *o = broker->buckets[i]; o; o = o->next) {
			of_session += o->session == session;
			of_tenant += same_tenant(o, who);
			session_lists += o->session == session ? o->list : 0;
			tenant_lists += same_tenant(o, who) ? o->list : 0;
		}
	return of_session >= OBS_BROKER_SESSION || of_tenant >= OBS_BROKER_TENANT ||
		session_lists > OBS_BROKER_LISTS_SESSION || tenant_lists > OBS_BROKER_LISTS_TENANT;
}

/*
 * Whether a worker may leave this descriptor here. Closing one must not block: a socket may linger.
 * Memory files are regular; NVIDIA's driver exports character devices or nameless files.
 */
static bool fd_harmless(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) != 0)
		return false;
	return S_ISREG(stat.st_mode) || S_ISCHR(stat.st_mode) || (stat.st_mode & S_IFMT) == 0;
}

/* Bytes of a list, in whole pages, which its worker can no longer change. 0: it is none. */
static uint32_t list_bytes(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || (seals & LIST_SEALS) != LIST_SEALS || fstat(fd, &stat) != 0 ||
		stat.st_size <= 0 ||
		(uint64_t)stat.st_size > OBS_IPC_PARTS_MAX * sizeof(struct obs_ipc_part) ||
		(uint64_t)stat.st_blocks * 512 > ob_round_up((uint64_t)stat.st_size, LIST_PAGE))
		return 0;
	return (uint32_t)ob_round_up((uint64_t)stat.st_size, LIST_PAGE);
}

/* Which kinds have a descriptor. */
static bool form_valid(const struct obs_ipc *ipc, int fd)
{
	if (fd >= 0 && !fd_harmless(fd))
		return false;
	switch (ipc->kind) {
	case OBS_IPC_MEMORY:
		return fd >= 0 && ipc->size > 0;
	case OBS_IPC_RANGE:
		return fd >= 0 && ipc->size > 0 && list_bytes(fd) > 0;
	case OBS_IPC_EVENT:
		return true;
	case OBS_IPC_POOL:
		return fd < 0;
	default:
		return false;
	}
}

static enum obs_ipc_status put(struct obs_broker *broker, uint64_t session,
	const struct obs_identity *who, struct obs_ipc *ipc, int *fd)
{
	struct obs_broker_object *object, **link;
	uint32_t list;

	if (!form_valid(ipc, *fd))
		return OBS_IPC_REFUSED;
	list = ipc->kind == OBS_IPC_RANGE ? list_bytes(*fd) : 0;
	if (is_full(broker, session, who, list) || !(object = calloc(1, sizeof *object)))
		return OBS_IPC_LIMIT;
	if (getrandom(ipc->id, sizeof ipc->id, 0) != sizeof ipc->id ||
		*(link = find(broker, ipc->id))) {
		free(object);
		return OBS_IPC_LIMIT;
	}
	object->session = session;
	memcpy(object->who, who->who, sizeof object->who);
	object->proved = who->proved;
	object->ipc = *ipc;
	object->fd = *fd;
	object->list = list;
	*fd = -1;
	*link = object;
	broker->n++;
	return OBS_IPC_OK;
}

/* The answer is the same whether there is no such object or it is another tenant's. */
static enum obs_ipc_status get(struct obs_broker *broker, uint64_t session,
	const struct obs_identity *who, struct obs_ipc *ipc, int *ret_fd)
{
	const struct obs_broker_object *object = *find(broker, ipc->id);

	if (!object || !same_tenant(object, who) || object->ipc.kind != ipc->kind)
		return OBS_IPC_NONE;
	*ipc = object->ipc;
	ipc->own = object->session == session;
	/* The session that has exported an event cannot open it. */
	*ret_fd = ipc->own && ipc->kind == OBS_IPC_EVENT ? -1 : object->fd;
	return OBS_IPC_OK;
}

bool obs_broker_request(struct obs_broker *broker, uint64_t session, const struct obs_identity *who,
	struct obs_ipc *ipc, int *fd, int *ret_fd)
{
	struct obs_broker_object **link;

	*ret_fd = -1;
	switch (ipc->op) {
	case OBS_IPC_PUT:
		ipc->status = put(broker, session, who, ipc, fd);
		return true;
	case OBS_IPC_GET:
		ipc->status = get(broker, session, who, ipc, ret_fd);
		return true;
	case OBS_IPC_DROP:
		link = find(broker, ipc->id);
		if (*link && (*link)->session == session)
			drop(broker, link);
		return false;
	default:
		ipc->status = OBS_IPC_REFUSED;
		return true;
	}
}

void obs_broker_forget(struct obs_broker *broker, uint64_t session)
{
	for (unsigned i = 0; i < OBS_BROKER_BUCKETS; i++)
		for (struct obs_broker_object **link = &broker->buckets[i]; *link;)
			if ((*link)->session == session)
				drop(broker, link);
			else
				link = &(*link)->next;
}
