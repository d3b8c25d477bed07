/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a session has been charged for, by name (an address or a handle), so that the charge can be
 * taken back when the thing is freed, whatever the client claims about it. A hash table with open
 * addressing. The caller locks.
 */
#ifndef OBS_LEDGER_H
#define OBS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define OBS_LEDGER_MAX (1u << 24) /* entries */

enum obs_charge {
	OBS_CHARGE_NONE,
	OBS_CHARGE_ADDRESS,
	OBS_CHARGE_HANDLE,
	OBS_CHARGE_HOST,
	OBS_CHARGE_MAPPING, /* charges nothing: keeps the charge of its handle alive */
};

struct obs_entry {
	uint64_t name, bytes;
	uint64_t handle; /* of a mapping */
	uint32_t device;
	uint32_t mappings;    /* of a handle */
	uint32_t further;     /* of a handle: how often it must be released before the last time */
	bool imported;        /* another session's memory (imports.h) */
	bool released;        /* a handle that its mappings outlive */
	enum obs_charge kind; /* NONE: the entry is free */
};

struct obs_ledger {
	struct obs_entry *entries;
	uint32_t capacity, count; /* capacity: a power of two, or 0 */
};

/*
 * False: no memory, or too many entries. An entry with the same name (the driver reused it) is
 * replaced; *ret_old takes the old one.
 */
bool obs_ledger_put(
	struct obs_ledger *ledger, const struct obs_entry *entry, struct obs_entry *ret_old);
bool obs_ledger_take(
	struct obs_ledger *ledger, enum obs_charge kind, uint64_t name, struct obs_entry *ret);
/* NULL: no such entry. Good until the next put or take. */
struct obs_entry *obs_ledger_find(struct obs_ledger *ledger, enum obs_charge kind, uint64_t name);
void obs_ledger_fini(struct obs_ledger *ledger);

#endif
