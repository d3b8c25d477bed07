/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/pick.h"

/* Steele, Lea, Flood: SplitMix64. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint32_t obl_random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

static uint64_t second_of(const struct obl_search *s, struct obl_rank *rank)
{
	if (!rank->has_second)
		rank->second = obl_rank_second(s, &s->servers[rank->server], rank->device);
	rank->has_second = true;
	return rank->second;
}

static int rank_compare(struct obl_picker *p, struct obl_rank *a, struct obl_rank *b)
{
	uint64_t x = a->first, y = b->first;

	if (x == y && p->search->view != OBL_VIEW_CLAIM) {
		x = second_of(p->search, a);
		y = second_of(p->search, b);
	}
	return x == y ? 0 : x < y ? -1 : 1;
}

/*
 * The best; among equal ones a random one, so that clients with the same data do not all choose the
 * first.
 */
static void offer_best(struct obl_picker *p, struct obl_rank *rank)
{
	int order = p->seen == 1 ? -1 : rank_compare(p, rank, &p->best);

	if (order < 0)
		p->equal = 1;
	if (order < 0 || (order == 0 && obl_random_below(&p->state->random, ++p->equal) == 0))
		p->best = *rank;
}

/* Each with the probability of its weight, in one pass. */
static void offer_weighted(struct obl_picker *p, const struct obl_rank *rank)
{
	const struct obl_server *server = &p->search->servers[rank->server];
	float score = server->n_devices ? server->devices[rank->device].score : 1;
	double weight = server->weight ? server->weight : score > 0 ? (double)score : 1;

	p->weights += weight;
	if ((double)(random_next(&p->state->random) >> 11) / 9007199254740992.0 * p->weights <
			weight ||
		p->seen == 1)
		p->best = *rank;
}

/* Two servers, each pair with the same probability (reservoir sampling). */
static void offer_of_two(struct obl_picker *p, const struct obl_rank *rank)
{
	uint32_t slot = p->seen <= 2 ? p->seen - 1 : obl_random_below(&p->state->random, p->seen);

	if (slot == 0)
		p->best = *rank;
	else if (slot == 1)
		p->other = *rank;
}

void obl_offer(struct obl_picker *p, struct obl_rank *rank)
{
	p->seen++;
	if (p->search->view == OBL_VIEW_CLAIM) {
		offer_best(p, rank);
		return;
	}
	switch (p->search->policy) {
	case OBL_ROUND_ROBIN: /* the first at or after the turn, else the first of all */
		if (p->seen == 1 || (rank->server >= p->turn && p->best.server < p->turn))
			p->best = *rank;
		break;
	case OBL_WEIGHTED:
		offer_weighted(p, rank);
		break;
	case OBL_POWER_OF_TWO:
		offer_of_two(p, rank);
		break;
	default:
		offer_best(p, rank);
		break;
	}
}

bool obl_picked(struct obl_picker *p, struct obl_rank *ret)
{
	if (p->seen == 0)
		return false;
	*ret = p->best;
	if (p->search->view == OBL_VIEW_CLAIM)
		return true;
	if (p->search->policy == OBL_ROUND_ROBIN)
		p->state->turn = (uint64_t)p->best.server + 1;
	if (p->search->policy == OBL_POWER_OF_TWO && p->seen > 1) {
		int order = rank_compare(p, &p->other, &p->best);

		if (order < 0 || (order == 0 && obl_random_below(&p->state->random, 2)))
			*ret = p->other;
	}
	return true;
}
