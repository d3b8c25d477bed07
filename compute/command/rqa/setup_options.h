/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The options that describe an analysis, once: setup.c makes its table for values, the page, the
 * state file and the manual from these lists, and each verb the entries of its option table
 * (OBX_SETUP_OPTIONS). Constants only.
 *
 *     WORDS(settings, field, name, type, target, words, help)
 *     NUMBER(settings, field, name, type, target, arg, min, max, help)
 *     TEXT(settings, field, name, arg, help)
 *
 * settings, field: where a verb's settings have the struct obx_setup (setup.h). type and target mean
 * something in setup.c only.
 */
#ifndef OBX_RQA_SETUP_OPTIONS_H
#define OBX_RQA_SETUP_OPTIONS_H

#include "base/options.h"

/* What a sweep has a grid of. */
#define OBX_SETUP_GRID(settings, field, WORDS, NUMBER)                                           \
	NUMBER(settings, field, "m", WHOLE, AT(m), "N", 1, OBK_RQA_MAX_M, "embedding dimension") \
	NUMBER(settings, field, "tau", WHOLE, AT(tau), "N", 1, OBK_RQA_MAX_TAU,                  \
		"delay in samples")                                                              \
	NUMBER(settings, field, "eps", REAL, AT(radius), "NUMBER", 0, 1e300,                     \
		"threshold (radius), in the units of --eps-unit")                                \
	NUMBER(settings, field, "lmin", WHOLE, AT(lmin), "N", 1, OBK_RQA_MAX_LENGTH,             \
		"shortest diagonal line that counts")

#define OBX_SETUP_RULES(settings, field, WORDS, NUMBER)                                          \
	NUMBER(settings, field, "vmin", WHOLE, AT(vmin), "N", 1, OBK_RQA_MAX_LENGTH,             \
		"shortest vertical line that counts")                                            \
	NUMBER(settings, field, "wmin", WHOLE, AT(wmin), "N", 1, OBK_RQA_MAX_LENGTH,             \
		"shortest white vertical line that counts")                                      \
	WORDS(settings, field, "eps-unit", WORD, AT(radius_kind), "absolute|sd|max|mean|rate",   \
		"eps is absolute, times the standard deviation, times the largest or the mean "  \
		"distance, or the recurrence rate to reach")                                     \
	WORDS(settings, field, "norm", WORD, AT(norm), "l1|l2|max",                              \
		"distance between embedded vectors")                                             \
	WORDS(settings, field, "test", WORD, AT(test), "le|lt",                                  \
		"recurrent when the distance is <= eps, or < eps")                               \
	WORDS(settings, field, "precision", WORD, AT(precision), "auto|f64|f32",                 \
		"f64 has exact ties; auto takes f64 up to 20,000 samples and f32 above")         \
	WORDS(settings, field, "scale", WORD, AT(scale), "none|zscore|unit",                     \
		"scales each column to mean 0 and deviation 1, or to 0..1, first")               \
	WORDS(settings, field, "categorical", WORD, AT(categorical), "no|yes",                   \
		"values are codes: recurrent when equal")                                        \
	NUMBER(settings, field, "theiler", THEILER, 0, "N", 0, OBK_RQA_MAX_LENGTH,               \
		"sets the three windows below at once")                                          \
	NUMBER(settings, field, "theiler-rr", WHOLE, AT(theiler_rr), "N", 0, OBK_RQA_MAX_LENGTH, \
		"cells nearer to the line of identity than this do not count for RR; 0 counts "  \
		"all")                                                                           \
	NUMBER(settings, field, "theiler-diag", WHOLE, AT(theiler_diag), "N", 0,                 \
		OBK_RQA_MAX_LENGTH, "the same for diagonal lines")                               \
	NUMBER(settings, field, "theiler-vert", WHOLE, AT(theiler_vert), "N", 0,                 \
		OBK_RQA_MAX_LENGTH, "the same for vertical lines, white lines and times")        \
	WORDS(settings, field, "triangle", WORD, AT(triangle), "both|upper|lower",               \
		"the part of the matrix that is counted")                                        \
	WORDS(settings, field, "rr-denominator", WORD, AT(rr_denominator), "full|valid",         \
		"RR per all cells, or per cells outside the Theiler window")                     \
	WORDS(settings, field, "det-denominator", WORD, AT(det_denominator), "lines|points",     \
		"DET per points of all diagonal lines, or per recurrent points")                 \
	WORDS(settings, field, "lam-denominator", WORD, AT(lam_denominator), "lines|points",     \
		"LAM per points of all vertical lines, or per recurrent points")                 \
	WORDS(settings, field, "lmax-excludes-loi", WORD, AT(lmax_excludes_loi), "no|yes",       \
		"Lmax and DIV leave the line of identity out")                                   \
	WORDS(settings, field, "log", WORD, AT(log_base), "ln|log2", "logarithm of entropies")   \
	WORDS(settings, field, "entropy-norm", WORD, AT(entropy_norm), "plain|log-n|log-bins",   \
		"entropies as they are, or divided by a logarithm")                              \
	WORDS(settings, field, "entropy-all", WORD, AT(entropy_all), "no|yes",                   \
		"entropies over lines of every length")                                          \
	WORDS(settings, field, "white", WORD, AT(white), "all|inner",                            \
		"white lines at the border count, or only gaps between recurrent cells")         \
	WORDS(settings, field, "border", WORD, AT(border), "none|dibo|censi|kelo",               \
		"correction for diagonal lines cut off by the border")                           \
	WORDS(settings, field, "times", WORD, AT(times), "white|start|midpoint",                 \
		"how recurrence times are counted")                                              \
	WORDS(settings, field, "trend", WORD, AT(trend), "fit|weighted", "how TREND is formed")  \
	NUMBER(settings, field, "trend-margin", WHOLE, AT(trend_margin), "N", 0,                 \
		OBK_RQA_MAX_LENGTH, "diagonals at the corner left out of TREND")                 \
	NUMBER(settings, field, "percent", REAL, AT(percent), "NUMBER", 1, 100,                  \
		"1: RR, DET and LAM are shares; 100: per cent")                                  \
	WORDS(settings, field, "quirk-last-column", QUIRK, AT(quirks), "no|yes",                 \
		"as pyunicorn 0.5: drops the final line of the last column")                     \
	WORDS(settings, field, "missing", OWN, MINE(table.missing), "error|drop|gap",            \
		"empty cells and NaN: refused, rows dropped, or kept as gaps that never recur")  \
	WORDS(settings, field, "constant", OWN, MINE(allow_constant), "refuse|allow",            \
		"a series that never changes: refused, or computed")                             \
	WORDS(settings, field, "device", OWN, MINE(device), "auto|cpu|gpu", "where it runs")     \
	WORDS(settings, field, "isa", OWN, MINE(isa), "auto|c|avx2|avx512",                      \
		"instructions of the CPU")                                                       \
	NUMBER(settings, field, "threads", OWN, MINE(threads), "N", 0, OBK_RQA_MAX_THREADS,      \
		"threads of the CPU; 0: one a core")

/* Stored as text and checked in obx_setup_finish. */
#define OBX_SETUP_TEXTS(settings, field, TEXT)                                                     \
	TEXT(settings, field, "preset", "NAME",                                                    \
		"conventions of a known tool (below); the other options change single rules")      \
	TEXT(settings, field, "columns", "A,B",                                                    \
		"columns of the file by name or number; default x,y, else "                        \
		"GazePointX_normalized,GazePointY_normalized")                                     \
	TEXT(settings, field, "modes", "A,B",                                                      \
		"1D-x, 2D-xy ... or NAME=1+2:l2: which columns make a series and with which norm") \
	TEXT(settings, field, "measures", "A,B", "measures to give, or 'all'")

#define OBX_SETUP_OPTION_WORDS(settings, field, option_name, type, target, option_words, text) \
	{ OB_OPTION(option_name, OB_PARSED, settings, field), .arg = (option_words),           \
		.words = (option_words), .take = obx_setup_take_option, .help = (text) },
#define OBX_SETUP_OPTION_NUMBER(                                                   \
	settings, field, option_name, type, target, value_name, least, most, text) \
	{ OB_OPTION(option_name, OB_PARSED, settings, field), .arg = (value_name), \
		.take = obx_setup_take_option, .help = (text) },
#define OBX_SETUP_OPTION_TEXT(settings, field, option_name, value_name, text)      \
	{ OB_OPTION(option_name, OB_PARSED, settings, field), .arg = (value_name), \
		.take = obx_setup_take_option, .help = (text) },

/* Entries of a verb's table, all but the grid's. */
#define OBX_SETUP_OPTIONS(settings, field)                                               \
	{ .name = "Analysis", .kind = OB_HEADING },                                      \
		OBX_SETUP_TEXTS(settings, field, OBX_SETUP_OPTION_TEXT) OBX_SETUP_RULES( \
			settings, field, OBX_SETUP_OPTION_WORDS, OBX_SETUP_OPTION_NUMBER)
/* The grid's, with one value each; "radius" is an older name of eps. */
#define OBX_SETUP_POINT(settings, field)                                                           \
	{ .name = "Parameters", .kind = OB_HEADING },                                              \
		OBX_SETUP_GRID(settings, field, OBX_SETUP_OPTION_WORDS,                            \
			OBX_SETUP_OPTION_NUMBER){ OB_OPTION("radius", OB_PARSED, settings, field), \
			.arg = "NUMBER", .take = obx_setup_take_option, .hidden = true },

/* enum obx_progress_mode */
#define OBX_PROGRESS_OPTION(settings, field)                                \
	{ OB_OPTION("progress", OB_CHOICE, settings, field), .arg = "WHEN", \
		.words = "auto|always|never", .fallback = "auto",           \
		.help = "show a bar: auto (on a terminal), always or never" },

#define OBX_SETUP_NOTES                                                                           \
	"Presets:\n\n"                                                                            \
	"  gaze             eye-tracking pipelines: LOI counted, <=, log2 entropy, L1 norm (L2 "  \
	"for several channels)\n"                                                                 \
	"  pyrqa            PyRQA 8: Euclidean, <, Theiler 1 for diagonals only, RR and "         \
	"verticals with the LOI\n"                                                                \
	"  pyunicorn        pyunicorn 0.6: maximum norm, <, diagonals without, verticals with "   \
	"the LOI\n"                                                                               \
	"  pyunicorn-0.5    pyunicorn 0.5: as 0.6, the last column's final line dropped\n"        \
	"  julia            RecurrenceAnalysis.jl >= 1.0: Euclidean, <=, LOI counted nowhere\n"   \
	"  julia-0.3        RecurrenceAnalysis.jl 0.3: as julia, RR per all cells\n"              \
	"  accrqa           AccRQA 1.0: Euclidean, <=, LOI counted, but not for Lmax\n"           \
	"  crp              CRP toolbox 5 (MATLAB): maximum norm, <=, LOI counted nowhere\n"      \
	"  crqa             crqa (R): Euclidean, <=, per cent, LOI counted nowhere, RR per all "  \
	"cells\n"                                                                                 \
	"  rp               pucicu/rp rqa.m, Theiler window 1 or more: entropy over all lengths " \
	"per log n, inner white lines; its T2 is W here\n"                                        \
	"  nonlineartseries nonlinearTseries (R): maximum norm, LOI counted everywhere\n"         \
	"  fixations        fixation sequences after Anderson 2013: upper triangle, per cent, "   \
	"CORM"

#endif
