/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/stripe_choice.h"

#include "base/check.h"

#define FIRST_LOG     2u /* copies over the log before the stripes are tried */
#define FIRST_STRIPES 3u /* a new TCP connection needs time to reach its full rate */
/* copies between two trials of the other way if it is at least three quarters as fast */
#define RETRY_NEAR    64u
#define RETRY_FAR     512u
#define SMOOTH        4 /* weight of a new sample: 1/4, or 1/2 if it is faster */

static enum obc_way better(const struct obc_choice *choice)
{
	return choice->rate[OBC_STRIPES] > OBC_CHOICE_GAIN * choice->rate[OBC_LOG] ? OBC_STRIPES
										   : OBC_LOG;
}

void obc_choice_recall(struct obc_choice *choice, double log, double stripes)
{
	if (log <= 0 || stripes <= 0)
		return;
	*choice = (struct obc_choice){ .rate = { [OBC_LOG] = log, [OBC_STRIPES] = stripes },
		.samples = { [OBC_LOG] = FIRST_LOG, [OBC_STRIPES] = FIRST_STRIPES },
		.check = OBC_CHOICE_CHECK };
	choice->best = better(choice);
}

enum obc_way obc_choice_next(const struct obc_choice *choice, bool ready)
{
	const double log = choice->rate[OBC_LOG], stripes = choice->rate[OBC_STRIPES];
	enum obc_way other = choice->best == OBC_LOG ? OBC_STRIPES : OBC_LOG;
	bool near;

	if (!ready || choice->samples[OBC_LOG] < FIRST_LOG)
		return OBC_LOG;
	if (choice->samples[OBC_STRIPES] < FIRST_STRIPES && (stripes == 0 || stripes > 0.8 * log))
		return OBC_STRIPES;
	near = choice->rate[other] > 0.75 * choice->rate[choice->best];
	return choice->since >= (choice->check         ? choice->check
						: near ? RETRY_NEAR
						       : RETRY_FAR)
		? other
		: choice->best;
}

void obc_choice_learn(struct obc_choice *choice, enum obc_way way, size_t bytes, uint64_t ns)
{
	double rate = (double)bytes * 1e9 / (double)ob_max(ns, (uint64_t)1),
	       *known = &choice->rate[way];

	if (*known == 0)
		*known = rate;
	else
		*known += (rate - *known) / (rate > *known ? SMOOTH / 2 : SMOOTH);
	if (choice->samples[way] < UINT32_MAX)
		choice->samples[way]++;
	choice->since = way == choice->best ? choice->since + 1 : 0;
	if (way != choice->best)
		choice->check = 0;
	choice->best = better(choice);
}
