/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/facts.h"

#define ONE(name, fact_key, largest) [OBP_FACT_##name] = { fact_key, largest },

static const struct {
	const char *key;
	uint64_t max;
} table[OBP_FACT_COUNT] = { OBP_FACTS(ONE) };

void obp_facts_merge(struct obp_facts *to, const struct obp_facts *from)
{
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
		if (from->known >> i & 1)
			obp_fact_set(to, i, from->value[i]);
}

void obp_facts_check(struct obp_facts *facts)
{
	facts->known &= (UINT64_C(1) << (OBP_FACT_COUNT - 1) << 1) - 1;
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
		if (facts->value[i] > table[i].max)
			facts->known &= ~(UINT64_C(1) << i);
}

const char *obp_fact_name(enum obp_fact fact)
{
	return table[fact].key;
}

uint64_t obp_fact_max(enum obp_fact fact)
{
	return table[fact].max;
}
