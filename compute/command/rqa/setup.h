/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The options that `run`, `sweep`, `plot` and the page of `serve` share, by name. Names and values
 * are collected first and applied at the end, on top of the preset, so their order does not matter.
 * Owned by one thread at a time.
 */
#ifndef OBX_RQA_SETUP_H
#define OBX_RQA_SETUP_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/options.h"
#include "compute/command/rqa/error.h"
#include "compute/command/rqa/table.h"
#include "compute/rqa/rqa.h"

#define OBX_SETUP_GIVEN_MAX 64
#define OBX_SETUP_VALUE_MAX 1024
#define OBX_SETUP_MODES_MAX OBK_RQA_MAX_MODES

struct obx_setup {
	/* options as given */
	struct {
		const char *name;
		char value[OBX_SETUP_VALUE_MAX];
	} given[OBX_SETUP_GIVEN_MAX];
	unsigned given_count;
	const char *default_measures; /* when --measures is not given; NULL: RR,DET,L,Lmax,ENTR */
	/* the resulting options, after obx_setup_finish */
	struct obk_rqa_options options;
	enum obk_rqa_preset preset;
	bool norm_given, measures_given;
	struct obx_table_spec table;
	bool allow_constant;
	unsigned measures[OBK_RQA_MEASURE_COUNT], measure_count; /* in the order given */
	struct obk_rqa_mode modes[OBX_SETUP_MODES_MAX];          /* empty until obx_setup_modes */
	char mode_names[OBX_SETUP_MODES_MAX][OBX_TABLE_NAME_MAX];
	unsigned mode_count;
	uint32_t threads;
	int device, isa;
};

/*
 * Takes an option. false and *ret_known false: there is no option of that name. false and
 * *ret_known true: the value is wrong, and error says why. "m", "tau", "eps" and "lmin" are known
 * too (a sweep first checks the names of its grid).
 */
bool obx_setup_take(struct obx_setup *setup, const char *name, const char *value, bool *ret_known,
	struct obx_error *error);
/* The same for the parser of command lines; target: a struct obx_setup. */
enum ob_err obx_setup_take_option(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause);
/* Applies all options. */
bool obx_setup_finish(struct obx_setup *setup, struct obx_error *error);
/*
 * Sets the modes for series with this many channels: those of --modes, else one with all channels;
 * the gaze preset has 2D-xy and 1D-x if there are two channels. A mode is written "1D-x" or "2D-xy"
 * (letters x, y, z, w: the first four columns), or "name=1+3" (columns by number), optionally
 * followed by ":l1", ":l2" or ":max".
 */
bool obx_setup_modes(struct obx_setup *setup, uint32_t channels, struct obx_error *error);
/*
 * The columns of one mode as a separate series. *ret_copy is NULL or memory that the caller frees
 * after using the series. false: the table lacks a column, is constant, or is too short for m and
 * tau of the options; *ret_status says which.
 */
bool obx_setup_series(const struct obx_setup *setup, const struct obk_rqa_mode *mode,
	const char *path, const struct obx_table *table, struct obk_rqa_series *ret_series,
	double **ret_copy, int *ret_status, struct obx_error *error);
/* The norm of a mode, or that of the options if the mode has none: "l1". */
const char *obx_setup_norm(const struct obx_setup *setup, const struct obk_rqa_mode *mode);
/*
 * Everything that affects results, as "name=value;...", which is compared when a sweep is resumed.
 * With `grid`, without m, tau, eps and lmin.
 */
void obx_setup_text(const struct obx_setup *setup, bool grid, char *ret_text, size_t size);
/* Prints the options as rows of a Markdown table. */
void obx_setup_markdown(FILE *file);
/* Writes the options that the page shows as elements: {"name": ..., "help": ..., "words": ...}. */
void obx_setup_json(struct ob_json *json);
/* Writes the member "measures": the names. */
void obx_setup_measures_json(const struct obx_setup *setup, struct ob_json *json);

#endif
