/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/ledger.h"

#include <stdlib.h>

#define FIRST_CAPACITY 256u

static uint32_t home(const struct obs_ledger *ledger, enum obs_charge kind, uint64_t name)
{
	uint64_t hash = (name ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> 32) & (ledger->capacity - 1);
}

/* Index of the entry, or of the free place where it belongs. */
static uint32_t place(const struct obs_ledger *ledger, enum obs_charge kind, uint64_t name)
{
	uint32_t at = home(ledger, kind, name);

	while (ledger->entries[at].kind != OBS_CHARGE_NONE &&
		(ledger->entries[at].kind != kind || ledger->entries[at].name != name))
		at = (at + 1) & (ledger->capacity - 1);
	return at;
}

static bool grow(struct obs_ledger *ledger)
{
	struct obs_ledger more = { .capacity = ledger->capacity ? ledger->capacity * 2
								: FIRST_CAPACITY };

	if (more.capacity > OBS_LEDGER_MAX ||
		!(more.entries = calloc(more.capacity, sizeof *more.entries)))
		return false;
	for (uint32_t i = 0; i < ledger->capacity; i++) {
		const struct obs_entry *entry = &ledger->entries[i];

		if (entry->kind != OBS_CHARGE_NONE)
			more.entries[place(&more, entry->kind, entry->name)] = *entry;
	}
	more.count = ledger->count;
	free(ledger->entries);
	*ledger = more;
	return true;
}

bool obs_ledger_put(
	struct obs_ledger *ledger, const struct obs_entry *entry, struct obs_entry *ret_old)
{
	uint32_t at;

	if (ledger->count >= ledger->capacity / 4 * 3 && !grow(ledger))
		return false;
	at = place(ledger, entry->kind, entry->name);
	*ret_old = ledger->entries[at];
	ledger->count += ret_old->kind == OBS_CHARGE_NONE;
	ledger->entries[at] = *entry;
	return true;
}

bool obs_ledger_take(
	struct obs_ledger *ledger, enum obs_charge kind, uint64_t name, struct obs_entry *ret)
{
	uint32_t at, next;

	if (!ledger->capacity)
		return false;
	at = place(ledger, kind, name);
	if (ledger->entries[at].kind == OBS_CHARGE_NONE)
		return false;
	*ret = ledger->entries[at];
	/* Close the gap: move up entries that are behind it because this place was taken. */
	for (next = (at + 1) & (ledger->capacity - 1);
		ledger->entries[next].kind != OBS_CHARGE_NONE;
		next = (next + 1) & (ledger->capacity - 1)) {
		uint32_t wanted =
			home(ledger, ledger->entries[next].kind, ledger->entries[next].name);

		if (((next - wanted) & (ledger->capacity - 1)) >=
			((next - at) & (ledger->capacity - 1))) {
			ledger->entries[at] = ledger->entries[next];
			at = next;
		}
	}
	ledger->entries[at].kind = OBS_CHARGE_NONE;
	ledger->count--;
	return true;
}

struct obs_entry *obs_ledger_find(struct obs_ledger *ledger, enum obs_charge kind, uint64_t name)
{
	struct obs_entry *entry;

	if (!ledger->capacity)
		return NULL;
	entry = &ledger->entries[place(ledger, kind, name)];
	return entry->kind == OBS_CHARGE_NONE ? NULL : entry;
}

void obs_ledger_fini(struct obs_ledger *ledger)
{
	free(ledger->entries);
	*ledger = (struct obs_ledger){ .count = 0 };
}
