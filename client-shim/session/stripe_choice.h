/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_choice: chooses between the log and the stripes for large copies of one direction, by
 * measured rates. Two copies go over the log, then up to three over the stripes (fewer if they are
 * clearly slower), then the faster way is used. The other way is tried again at intervals, which
 * are longer if it is much slower. The object has one owner and uses no clock and no lock.
 */
#ifndef OBC_STRIPE_CHOICE_H
#define OBC_STRIPE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a copy: to the device, or from it. */
enum obc_direction { OBC_UPLOAD, OBC_DOWNLOAD };

enum obc_way { OBC_LOG, OBC_STRIPES, OBC_WAYS };

#define OBC_CHOICE_GAIN 1.1 /* the stripes are chosen only if they are faster by this factor */

#define OBC_CHOICE_CHECK 8u

struct obc_choice {
	double rate[OBC_WAYS]; /* bytes/s, smoothed; 0: never measured */
	uint32_t samples[OBC_WAYS];
	uint32_t since; /* copies since the other way was last used */
	/* copies after which the rates of an earlier session are checked; 0: they have been */
	uint32_t check;
	enum obc_way best;
};

/*
 * Begins with the rates of an earlier session, bytes/s; nothing happens unless both are known. The
 * better way is used from the first copy on, and the other one is tried again after
 * OBC_CHOICE_CHECK copies.
 */
void obc_choice_recall(struct obc_choice *choice, double log, double stripes);
/* Returns the way of the next copy. `ready` false: there are no stripes. */
enum obc_way obc_choice_next(const struct obc_choice *choice, bool ready);
/* Records that a copy of `bytes` took `ns`. */
void obc_choice_learn(struct obc_choice *choice, enum obc_way way, size_t bytes, uint64_t ns);

#endif
