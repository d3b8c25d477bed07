/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/memory.h"

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/local.h"

struct memory {
	struct obl_hub hub; /* must be first */
	struct memory *next;
	char *name;
};

struct closing {
	struct memory *memory;
	void (*closed)(void *user);
	void *user;
};

/* The registries with a handle; the thread of their loop alone uses the list. */
static struct memory *memories;

static struct memory *memory_get(const char *name)
{
	struct memory *memory;

	for (memory = memories; memory; memory = memory->next)
		if (*name && strcmp(memory->name, name) == 0)
			return memory;
	memory = obl_alloc(1, sizeof *memory);
	obl_hub_init(&memory->hub, NULL);
	memory->name = obl_copy_text(name);
	memory->next = memories;
	memories = memory;
	return memory;
}

static void memory_free(struct memory *memory)
{
	struct memory **at = &memories;

	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next;
	obl_hub_fini(&memory->hub);
	free(memory->name);
	free(memory);
}

static void memory_closed(void *user)
{
	struct closing *closing = user;

	if (!closing->memory->hub.handles)
		memory_free(closing->memory);
	closing->closed(closing->user);
	free(closing);
}

static void memory_close(struct obl_registry *registry, void (*closed)(void *user), void *user)
{
	struct closing *closing = obl_alloc(1, sizeof *closing);

	closing->memory = (struct memory *)obl_local_hub((struct obl_local *)registry);
	closing->closed = closed;
	closing->user = user;
	obl_local_close(registry, memory_closed, closing);
}

static const struct obl_registry_ops memory_ops = {
	.name = "memory",
	.txn = obl_local_txn,
	.range = obl_local_range,
	.leads = obl_local_leads,
	.close = memory_close,
};

enum ob_err obl_memory_open(uv_loop_t *loop, const char *name, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause)
{
	(void)ret_cause;
	*ret = (struct obl_registry *)obl_local_new(
		loop, &memory_get(name)->hub, &memory_ops, watcher);
	return OB_ERR_NONE;
}

void obl_memory_set_usable(struct obl_registry *registry, bool usable, const struct ob_cause *why)
{
	obl_local_set_usable((struct obl_local *)registry, usable, why);
}

void obl_memory_lose_lease(struct obl_registry *registry)
{
	obl_local_lose_lease((struct obl_local *)registry);
}

void obl_memory_lose_answer(struct obl_registry *registry, bool made)
{
	obl_local_lose_answer((struct obl_local *)registry, made);
}
