/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bit-reversal of the elements of many transforms, for ntt.c. The caller owns the data and the
 * pool.
 */
#ifndef OBK_NTT_REVERSE_H
#define OBK_NTT_REVERSE_H

#include "compute/field/fr.h"
#include "compute/pool/pool.h"

/* False: stop returned true, and some elements have not been moved. */
bool obk_ntt_reverse_batch(struct obk_fr *data, unsigned log_n, size_t batch, struct obk_pool *pool,
	const struct obk_stop *stop);

#endif
