/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What is asked for, by name: the options that `run`, `sweep`, `plot` and the page of `serve`
 * share. Names and values are collected first and applied at the end, on top of the preset, so
 * their order does not matter. Owned by one thread at a time.
 */
#ifndef OBX_RQA_SETUP_H
#define OBX_RQA_SETUP_H

#include <stdint.h>
#include <stdio.h>

#include "compute/command/rqa/error.h"
#include "compute/command/rqa/table.h"
#include "compute/rqa/rqa.h"

#define OBX_SETUP_GIVEN_MAX 64
#define OBX_SETUP_VALUE_MAX 1024
#define OBX_SETUP_MODES_MAX OBK_RQA_MAX_MODES

struct obx_setup {
	/* what was given */
	struct {
		const char *name;
		char value[OBX_SETUP_VALUE_MAX];
	} given[OBX_SETUP_GIVEN_MAX];
	unsigned given_count;
	const char *default_measures; /* when --measures is not given; NULL: RR,DET,L,Lmax,ENTR */
	/* what it comes to, after obx_setup_finish */
	struct obk_rqa_options options;
	enum obk_rqa_preset preset;
	bool norm_given, measures_given;
	struct obx_table_spec table;
	bool allow_constant;
	unsigned measures[OBK_RQA_MEASURE_COUNT], measure_count; /* in the order asked for */
	struct obk_rqa_mode modes[OBX_SETUP_MODES_MAX];          /* empty until obx_setup_modes */
	char mode_names[OBX_SETUP_MODES_MAX][OBX_TABLE_NAME_MAX];
	unsigned mode_count;
	uint32_t threads;
	int device, isa;
};

/*
 * Takes an option. false and *ret_known false: there is none of that name; false and *ret_known
 * true: the value is wrong and error says how. "m", "tau", "eps" and "lmin" are known too (a sweep
 * looks for its grid first).
 */
bool obx_setup_take(struct obx_setup *setup, const char *name, const char *value, bool *ret_known,
	struct obx_error *error);
/* Is there an option of this name? */
bool obx_setup_known(const char *name);
/* Applies everything. */
bool obx_setup_finish(struct obx_setup *setup, struct obx_error *error);
/*
 * The modes for series of so many channels: those of --modes, else one of all channels; the gaze
 * preset has 2D-xy and 1D-x when there are two. A mode is written "1D-x" or "2D-xy" (letters x, y,
 * z, w: the first four columns), or "name=1+3" (columns by number), with ":l1", ":l2" or ":max"
 * after it.
 */
bool obx_setup_modes(struct obx_setup *setup, uint32_t channels, struct obx_error *error);
/*
 * The columns of one mode as a series of their own. *ret_copy is NULL or memory that must be freed
 * after the series was used. false: the table lacks a column, does not change, or is too short for
 * m and tau of the options; *ret_status says which.
 */
bool obx_setup_series(const struct obx_setup *setup, const struct obk_rqa_mode *mode,
	const char *path, const struct obx_table *table, struct obk_rqa_series *ret_series,
	double **ret_copy, int *ret_status, struct obx_error *error);
/* "l1": of a mode, or of the options where the mode has none. */
const char *obx_setup_norm(const struct obx_setup *setup, const struct obk_rqa_mode *mode);
/* The options of --help, a line or two each. */
void obx_setup_usage(FILE *file);
/*
 * Everything that changes numbers, as "name=value;...": what a resumed sweep compares. Without the
 * grid's m, tau, eps, lmin when grid is set.
 */
void obx_setup_text(const struct obx_setup *setup, bool grid, char *ret_text, size_t size);
/* Markdown: a row of a table for each option. */
void obx_setup_markdown(FILE *file);
/* JSON: [{"name":...,"words":[...],"help":...}] of the options that the page shows. */
void obx_setup_json(FILE *file);

#endif
