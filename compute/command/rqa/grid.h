/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The grid of a sweep as users write it: "m=1..10 tau=1..10 eps=0.05..0.10:0.001 lmin=2,3". A list
 * consists of values and ranges, `from..to` with step one or `from..to:step`. Both ends belong to
 * the range. 0.05..0.10:0.001 are the 51 numbers 0.05, 0.051 ... 0.1 as written, not sums of a
 * rounded step. Owned by one thread at a time.
 */
#ifndef OBX_RQA_GRID_H
#define OBX_RQA_GRID_H

#include <stdint.h>

#include "base/json.h"
#include "compute/command/rqa/error.h"
#include "compute/rqa/rqa.h"

#define OBX_GRID_USAGE    "m=1..10 tau=1..10 eps=0.05..0.10:0.001 lmin=2,3"
#define OBX_SIGNATURE_MAX 96

struct obx_grid {
	uint32_t *m, *tau, *lmin;
	double *eps;
	uint32_t m_count, tau_count, eps_count, lmin_count;
};

/* name: "m", "tau", "eps" (or "radius") or "lmin". Replaces the previous contents of that list. */
bool obx_grid_set(
	struct obx_grid *grid, const char *name, const char *list, struct obx_error *error);
/* Parses several lists, separated by blanks. Lists that are not named do not change. */
bool obx_grid_parse(struct obx_grid *grid, const char *text, struct obx_error *error);
/* Checks that no list is empty and that a sweep may have this many rows. */
bool obx_grid_check(const struct obx_grid *grid, struct obx_error *error);
uint64_t obx_grid_combinations(const struct obx_grid *grid);
/* For example "m2_tau1_eps0.05_lmin2". */
void obx_signature_print(
	uint32_t m, uint32_t tau, double eps, uint32_t lmin, char ret_text[OBX_SIGNATURE_MAX]);
void obx_grid_fini(struct obx_grid *grid);
/* Writes the lists as members of the current object. digits: of eps, as for ob_json_double. */
void obx_grid_json(const struct obx_grid *grid, int digits, struct ob_json *json);

#endif
