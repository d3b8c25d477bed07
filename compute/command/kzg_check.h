/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard kzg --verify`, which checks results with pairings, a computation that shares no code
 * with the MSMs that made them; and `outboard kzg bench`. Main thread only.
 */
#ifndef OBX_KZG_CHECK_H
#define OBX_KZG_CHECK_H

#include <stdbool.h>

#include "base/options.h"
#include "compute/engine/outboard.h"

/*
 * On failure these print on stderr what does not hold, and return false. A proof belongs either to
 * the blob's own challenge (with its commitment) or to a point z with the value y.
 */
bool obx_kzg_check_commitment(
	struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *commitment);
bool obx_kzg_check_proof(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *commitment,
	const uint8_t *z, const uint8_t *y, const uint8_t *proof);
bool obx_kzg_check_cells(struct outboard_kzg *kzg, const uint8_t *cells, const uint8_t *proofs);

extern const struct ob_command obx_kzg_bench_command;

#endif
