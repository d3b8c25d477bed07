/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/nvml/narrow.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "client-shim/session/pass.h"
#include "protocol/ticket.h"
#include "transport/sign.h"

/* A set of devices, one bit each, in the numbers of those that are kept. */
static uint64_t renumber(uint64_t set, uint32_t kept)
{
	uint64_t made = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < OBP_DEVICE_MAX; i++)
		if (kept >> i & 1)
			made |= (set >> i & 1) << n++;
	return made;
}

void obc_nvml_keep(uint32_t kept, struct obp_load *load)
{
	static const enum obp_fact sets[] = { OBP_FACT_PEERS, OBP_FACT_PEER_ATOMICS };
	uint32_t n = 0;

	for (uint32_t i = 0; i < load->n_devices; i++) {
		uint64_t set;

		if (!(kept >> i & 1))
			continue;
		load->devices[n] = load->devices[i];
		for (size_t f = 0; f < ob_count(sets); f++)
			if (obp_fact_get(&load->devices[n].facts, sets[f], &set))
				obp_fact_set(&load->devices[n].facts, sets[f], renumber(set, kept));
		for (uint32_t s = 0; s < load->n_sessions; s++)
			load->listed[s].used[n] = load->listed[s].used[i];
		n++;
	}
	for (uint32_t s = 0; s < load->n_sessions; s++)
		for (uint32_t i = n; i < OBP_DEVICE_MAX; i++)
			load->listed[s].used[i] = 0;
	load->n_devices = n;
}

void obc_nvml_narrow(const char *url, struct obp_load *load)
{
	uint8_t sealed[OBP_HELLO_TICKET];
	struct obp_ticket ticket;
	struct ob_cause cause;
	uint32_t size = 0, kept = 0;

	/* The server checks the signature; here only the list is read. */
	if (obc_pass_find(getenv("OUTBOARD_TICKET"), url, sealed, &size, &cause) ||
		size < OBT_SIGN_OVERHEAD ||
		obp_ticket_decode(sealed + OBT_SIGN_OVERHEAD, size - OBT_SIGN_OVERHEAD, &ticket))
		return;
	for (uint32_t i = 0; i < load->n_devices; i++)
		for (uint32_t d = 0; d < ticket.n_devices; d++)
			if (memcmp(load->devices[i].uuid, ticket.devices[d], 16) == 0)
				kept |= 1u << i;
	obc_nvml_keep(kept, load);
}
