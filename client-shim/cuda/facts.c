/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/facts.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/server.h"

struct fact {
	struct obc_facts_name name;
	uint32_t known; /* bit mask of values */
	int32_t values[OBC_FACTS_ATTRS];
	bool runs;
};

static OBC_PER_SERVER pthread_mutex_t lock_first = PTHREAD_MUTEX_INITIALIZER;
#define lock OBC_HERE(lock_first)
/* a circular buffer; under the lock, like the next two */
static OBC_PER_SERVER struct fact facts_first[OBC_FACTS_MAX];
#define facts OBC_HERE(facts_first)
static OBC_PER_SERVER unsigned n_facts_first, next_fact_first;
#define n_facts   OBC_HERE(n_facts_first)
#define next_fact OBC_HERE(next_fact_first)

/* Under the lock. NULL: nothing is known. */
static struct fact *find(const struct obc_facts_name *name)
{
	for (unsigned i = 0; i < n_facts; i++) {
		const struct obc_facts_name *other = &facts[i].name;

		if (other->index == name->index && other->device == name->device &&
			memcmp(other->sha256, name->sha256, sizeof name->sha256) == 0)
			return &facts[i];
	}
	return NULL;
}

/* Under the lock. */
static struct fact *find_or_make(const struct obc_facts_name *name)
{
	struct fact *fact = find(name);

	if (fact)
		return fact;
	fact = &facts[next_fact];
	*fact = (struct fact){ .name = *name };
	next_fact = (next_fact + 1) % OBC_FACTS_MAX;
	n_facts = ob_min(n_facts + 1, OBC_FACTS_MAX);
	return fact;
}

bool obc_facts_attrs(
	const struct obc_facts_name *name, uint32_t wanted, int32_t ret[OBC_FACTS_ATTRS])
{
	const struct fact *fact;
	bool found;

	if (!ob_opt_on(OB_OPT_LOCAL))
		return false;
	pthread_mutex_lock(&lock);
	fact = find(name);
	found = fact && !(wanted & ~fact->known);
	if (found)
		memcpy(ret, fact->values, sizeof fact->values);
	pthread_mutex_unlock(&lock);
	return found;
}

void obc_facts_put_attrs(
	const struct obc_facts_name *name, uint32_t known, const int32_t values[OBC_FACTS_ATTRS])
{
	struct fact *fact;

	pthread_mutex_lock(&lock);
	fact = find_or_make(name);
	for (unsigned i = 0; i < OBC_FACTS_ATTRS; i++)
		if (known & 1u << i)
			fact->values[i] = values[i];
	fact->known |= known;
	pthread_mutex_unlock(&lock);
}

bool obc_facts_runs(const struct obc_facts_name *name)
{
	const struct fact *fact;
	bool runs;

	if (!ob_opt_on(OB_OPT_LOCAL))
		return false;
	pthread_mutex_lock(&lock);
	fact = find(name);
	runs = fact && fact->runs;
	pthread_mutex_unlock(&lock);
	return runs;
}

void obc_facts_put_runs(const struct obc_facts_name *name)
{
	pthread_mutex_lock(&lock);
	find_or_make(name)->runs = true;
	pthread_mutex_unlock(&lock);
}
