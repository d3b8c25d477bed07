/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_choice: whether large copies of one direction go over the log or over the stripes, by what
 * either has been measured to do. Two copies over the log, then up to three over the stripes (fewer
 * when they are clearly slower), then the faster; the other is tried again now and then, the more
 * rarely the further behind it is. Plain numbers of one owner; no clock, no lock.
 */
#ifndef OBC_STRIPE_CHOICE_H
#define OBC_STRIPE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum obc_way { OBC_LOG, OBC_STRIPES, OBC_WAYS };

#define OBC_CHOICE_GAIN 1.1 /* the stripes must be faster by this to be chosen */

struct obc_choice {
	double rate[OBC_WAYS]; /* bytes/s, smoothed; 0: never measured */
	uint32_t samples[OBC_WAYS];
	uint32_t since; /* copies since the other way was last tried */
	enum obc_way best;
};

/* The way of the next copy; `ready` false: there are no stripes. */
enum obc_way obc_choice_next(const struct obc_choice *choice, bool ready);
/* A copy took ns. */
void obc_choice_learn(struct obc_choice *choice, enum obc_way way, size_t bytes, uint64_t ns);

#endif
