/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Recurrence quantification. Series go in, measures come out; no recurrence matrix is ever stored.
 * Everything counted is an integer (run lengths of recurrent cells along diagonals, columns and
 * gaps), identical on every instruction set and device; measures are derived from these integers on
 * the host.
 *
 * Tools disagree about almost every detail. Here each detail is one option, and a preset fills the
 * options the way one known tool has them. Start from a preset, then change single options:
 *
 *     struct obk_rqa_options o;
 *     struct obk_rqa_error error;
 *     double v[OBK_RQA_MEASURE_COUNT];
 *     obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
 *     o.m = 3; o.tau = 6; o.radius = 1.2;
 *     struct obk_rqa_series x = { .name = "pendulum", .data = samples, .length = 5000, .channels = 1, .step = 1 };
 *     if (obk_rqa_measure(&x, NULL, &o, NULL, v, &error) != OBK_RQA_OK)
 *             fprintf(stderr, "%s\n", error.text);
 *
 * All functions may be called from any thread; none keeps a pointer into the caller's memory after
 * it returned. Calls block until they are finished, cancelled or failed. Times are seconds, lengths
 * are samples or cells.
 */
#ifndef OBK_RQA_H
#define OBK_RQA_H

#include <stddef.h>
#include <stdint.h>

/* A flag that one thread sets while others look: a plain int in memory, in C and in C++. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<int> obk_rqa_flag;
extern "C" {
#else
#include <stdatomic.h>
typedef _Atomic int obk_rqa_flag;
#endif

/* Named maxima; one more is refused with OBK_RQA_LIMIT. */
#define OBK_RQA_MAX_LENGTH   100000000u /* samples in a series */
#define OBK_RQA_MAX_CHANNELS 64u
#define OBK_RQA_MAX_M        1000u
#define OBK_RQA_MAX_TAU      1000000u
#define OBK_RQA_MAX_VALUES   10000u /* entries in one list of a grid */
#define OBK_RQA_MAX_MODES    16u
#define OBK_RQA_MAX_SERIES   1000000u
#define OBK_RQA_MAX_ROWS     1000000000u /* rows of one sweep */
#define OBK_RQA_MAX_THREADS  256u
/* vectors up to which network measures are computed: they need n*n/8 bytes */
#define OBK_RQA_MAX_NETWORK  65536u
#define OBK_RQA_MAX_IMAGE    16384u /* pixels on one side */

enum obk_rqa_status {
	OBK_RQA_OK = 0,
	OBK_RQA_ARGUMENT = 1,  /* an option or a pointer is out of range */
	OBK_RQA_LIMIT = 2,     /* a named maximum is exceeded */
	OBK_RQA_TOO_SHORT = 3, /* no embedded vector, or only one: length - (m - 1) * tau < 2 */
	/*
	 * NaN or infinity in the series, and options.missing is off; or a sample is too large for
	 * the precision
	 */
	OBK_RQA_NOT_FINITE = 4,
	OBK_RQA_CONSTANT = 5, /* the option asks for a division by a spread that is zero */
	OBK_RQA_NO_MEMORY = 6,
	OBK_RQA_CANCELLED = 7,
	OBK_RQA_UNSUPPORTED = 8, /* the device or combination of options is not available here */
	OBK_RQA_STATE = 9,       /* the file to resume from is damaged or belongs to other data */
	OBK_RQA_IO = 10,         /* the file to resume from cannot be written */
	OBK_RQA_SKIPPED = 11,    /* sweep rows only: want() said no */
	/* the GPU or the way to it failed: another attempt, or the CPU, may succeed */
	OBK_RQA_DEVICE = 12,
	OBK_RQA_STATUS_COUNT
};

/*
 * What went wrong, filled whenever a function does not return OBK_RQA_OK (NULL is allowed). text is
 * one sentence naming item, place and remedy.
 */
struct obk_rqa_error {
	int status;     /* enum obk_rqa_status */
	uint64_t item;  /* index of the series in the call, 0 for the first */
	uint64_t where; /* sample index for NOT_FINITE, else 0 */
	char text[352];
};

/*
 * channels values per sample: value c of sample t is data[t * step + c * channel_step]. step 0
 * means channels (interleaved, one row per sample); channel_step 0 means 1. Two columns x[], y[] of
 * one block: step 1, channel_step n. The caller keeps the memory.
 */
struct obk_rqa_series {
	const char *name; /* for messages; may be NULL */
	const double *data;
	uint64_t length;
	uint32_t channels;
	uint64_t step;
	uint64_t channel_step;
};

/* ---- options ---- */

enum obk_rqa_kind { OBK_RQA_AUTO = 0, OBK_RQA_CROSS = 1, OBK_RQA_JOINT = 2 };
/* GAZE: L1 for one channel, L2 for more */
enum obk_rqa_norm {
	OBK_RQA_NORM_L1 = 0,
	OBK_RQA_NORM_L2 = 1,
	OBK_RQA_NORM_MAX = 2,
	OBK_RQA_NORM_GAZE = 3
};
/* recurrent when distance <= radius, or < radius */
enum obk_rqa_test { OBK_RQA_TEST_LE = 0, OBK_RQA_TEST_LT = 1 };
enum obk_rqa_precision {
	OBK_RQA_PRECISION_AUTO = 0, /* F64 up to OBK_RQA_EXACT_LENGTH samples, F32 above */
	/*
	 * exact ties: the same cells as sqrt and compare in IEEE double, coordinates summed in
	 * index order
	 */
	OBK_RQA_PRECISION_F64 = 1,
	OBK_RQA_PRECISION_F32 = 2 /* samples and radius rounded to float first */
};
#define OBK_RQA_EXACT_LENGTH 20000u
enum obk_rqa_radius {
	OBK_RQA_RADIUS_ABSOLUTE = 0,
	/* times the standard deviation (n - 1) of all values of the series */
	OBK_RQA_RADIUS_SD = 1,
	OBK_RQA_RADIUS_MAX_DISTANCE = 2, /* times the largest distance between embedded vectors */
	/* times the mean distance between embedded vectors (LOI included) */
	OBK_RQA_RADIUS_MEAN_DISTANCE = 3,
	/*
	 * the smallest radius whose share of recurrent cells, all cells counted, reaches this value
	 * (0..1)
	 */
	OBK_RQA_RADIUS_RATE = 4
};
/* each channel; UNIT maps min..max to 0..1 */
enum obk_rqa_scale { OBK_RQA_SCALE_NONE = 0, OBK_RQA_SCALE_ZSCORE = 1, OBK_RQA_SCALE_UNIT = 2 };
enum obk_rqa_triangle { OBK_RQA_BOTH = 0, OBK_RQA_UPPER = 1, OBK_RQA_LOWER = 2 };
/* all cells; cells outside the window theiler_rr */
enum obk_rqa_rr_denominator { OBK_RQA_RR_FULL = 0, OBK_RQA_RR_VALID = 1 };
enum obk_rqa_line_denominator {
	/* DET, LAM: points in lines of any length, counted as the lines are */
	OBK_RQA_PER_LINES = 0,
	OBK_RQA_PER_POINTS = 1 /* the recurrent points counted for RR */
};
enum obk_rqa_log { OBK_RQA_LN = 0, OBK_RQA_LOG2 = 1 };
enum obk_rqa_entropy_norm {
	OBK_RQA_ENTROPY_PLAIN = 0,
	OBK_RQA_ENTROPY_PER_LOG_N = 1,
	OBK_RQA_ENTROPY_PER_LOG_BINS = 2
};
/* white runs at the matrix border count, or only gaps between recurrent cells */
enum obk_rqa_white { OBK_RQA_WHITE_ALL = 0, OBK_RQA_WHITE_INNER = 1 };
enum obk_rqa_border {
	OBK_RQA_BORDER_NONE = 0,
	OBK_RQA_BORDER_DIBO = 1,
	OBK_RQA_BORDER_CENSI = 2,
	OBK_RQA_BORDER_KELO = 3
};
enum obk_rqa_times { OBK_RQA_TIMES_WHITE = 0, OBK_RQA_TIMES_START = 1, OBK_RQA_TIMES_MIDPOINT = 2 };
enum obk_rqa_trend {
	/*
	 * least squares slope of RR_k over k, from k = theiler_diag to n - 1 - trend_margin, times
	 * 1000
	 */
	OBK_RQA_TREND_FIT = 0,
	/*
	 * the same diagonals with the weights of RecurrenceAnalysis.jl: k + 1 - (n - trend_margin +
	 * theiler_diag) / 2
	 */
	OBK_RQA_TREND_WEIGHTED = 1
};

enum obk_rqa_transitivity {
	OBK_RQA_TRIPLES = 0, /* closed over all triples i-j-k of different nodes */
	OBK_RQA_PATHS = 1    /* trace(A^3) / sum(A^2): there and back again counts as a path */
};

/*
 * What to count; what is not counted leaves NaN in the measures. RR, DET, L, Lmax, DIV, ENTR and
 * RATIO are always there.
 */
#define OBK_RQA_WANT_VERTICAL 1u  /* LAM, TT, Vmax, Ventr */
#define OBK_RQA_WANT_WHITE    2u  /* W, Wmax, Wdiv, Wentr */
#define OBK_RQA_WANT_TIMES    4u  /* T1, T2, MRT, RTE, NMPRT */
#define OBK_RQA_WANT_TREND    8u  /* TREND, CORM, and the recurrence rate of every diagonal */
#define OBK_RQA_WANT_NETWORK  16u /* transitivity, clustering; up to OBK_RQA_MAX_NETWORK vectors */
#define OBK_RQA_WANT_ALL      31u

/* Old behaviour of a tool, for comparing with its stored results. */
/* pyunicorn <= 0.5: the line still open at the end of the last column is dropped */
#define OBK_RQA_QUIRK_LAST_COLUMN 1u
/* its sparse mode: RR is formed from the vertical lines counted; needs WANT_VERTICAL */
#define OBK_RQA_QUIRK_RR_VERTICAL 2u

struct obk_rqa_options {
	uint32_t size; /* sizeof(struct obk_rqa_options), set by obk_rqa_options_preset */
	/* the recurrence matrix */
	int kind;     /* enum obk_rqa_kind */
	uint32_t m;   /* embedding dimension, >= 1 */
	uint32_t tau; /* delay in samples, >= 1 */
	int norm;
	int test;
	int precision;
	int radius_kind;
	double radius;   /* in the units of radius_kind */
	double radius_y; /* joint: the radius of the second series; NaN: the same as radius */
	int norm_y;      /* joint: the norm of the second series; -1: the same as norm */
	int scale;
	/*
	 * 1: values are codes, recurrent when all m codes are equal; norm, test and radius are
	 * ignored
	 */
	int categorical;
	/* 1: NaN and infinite samples are gaps, never recurrent; 0: they are an error */
	int missing;
	/* what is counted */
	uint32_t want; /* OBK_RQA_WANT_... */
	/*
	 * cells with |i - j| < this do not count for RR; 0: the line of identity counts, 1: it does
	 * not
	 */
	uint32_t theiler_rr;
	uint32_t theiler_diag; /* the same for diagonal lines */
	/*
	 * the same for vertical lines, recurrence times and the network: such cells count as not
	 * recurrent and split lines
	 */
	uint32_t theiler_vert;
	uint32_t theiler_white; /* the same for white vertical lines */
	/*
	 * which half of the plot is counted for RR and diagonal lines: j > i is UPPER; verticals
	 * are counted everywhere
	 */
	int triangle;
	uint32_t lmin, vmin, wmin; /* shortest line that counts, >= 1 */
	/* how measures are formed */
	int rr_denominator;
	int det_denominator;
	int lam_denominator;
	int lmax_excludes_loi; /* 1: the LOI counts as a line but not for Lmax and DIV */
	int log_base;
	int entropy_norm;
	int entropy_all; /* 1: entropies over all lengths >= 1, whatever lmin says */
	int white;
	/* enum obk_rqa_border: what becomes of diagonal lines at the border of the matrix */
	int border;
	/*
	 * which are border lines: 0: those that fill their diagonal, 1: also those that touch one
	 * end of it
	 */
	int border_semi;
	int times; /* which estimator MRT, RTE and NMPRT use */
	int trend;
	uint32_t trend_margin; /* diagonals at the corner left out of TREND */
	double percent;        /* RR, DET, LAM are multiplied by this: 1 or 100 */
	int transitivity;      /* enum obk_rqa_transitivity */
	uint32_t quirks;       /* OBK_RQA_QUIRK_... */
	uint32_t reserved[8];  /* must be 0 */
};

/* X(NAME, text, what it stands for) */
#define OBK_RQA_PRESET_LIST(X)                                                                    \
	X(GAZE, "gaze",                                                                           \
		"eye-tracking pipelines: LOI counted, <=, log2 entropy, L1 norm (L2 for several " \
		"channels)")                                                                      \
	X(PYRQA, "pyrqa",                                                                         \
		"PyRQA 8: Euclidean, <, Theiler 1 for diagonals only, RR and verticals with the " \
		"LOI")                                                                            \
	X(PYUNICORN, "pyunicorn",                                                                 \
		"pyunicorn 0.6: maximum norm, <, diagonals without, verticals with the LOI")      \
	X(PYUNICORN_05, "pyunicorn-0.5",                                                          \
		"pyunicorn 0.5: as 0.6, the last column's final line dropped")                    \
	X(JULIA, "julia", "RecurrenceAnalysis.jl >= 1.0: Euclidean, <=, LOI counted nowhere")     \
	X(JULIA_03, "julia-0.3", "RecurrenceAnalysis.jl 0.3: as julia, RR per all cells")         \
	X(ACCRQA, "accrqa", "AccRQA 1.0: Euclidean, <=, LOI counted, but not for Lmax")           \
	X(CRP, "crp", "CRP toolbox 5 (MATLAB): maximum norm, <=, LOI counted nowhere")            \
	X(CRQA, "crqa",                                                                           \
		"crqa (R): Euclidean, <=, per cent, LOI counted nowhere, RR per all cells")       \
	X(RP, "rp",                                                                               \
		"pucicu/rp rqa.m, Theiler window 1 or more: entropy over all lengths per log n, " \
		"inner white lines; its T2 is W here")                                            \
	X(NONLINEARTSERIES, "nonlineartseries",                                                   \
		"nonlinearTseries (R): maximum norm, LOI counted everywhere")                     \
	X(FIXATIONS, "fixations",                                                                 \
		"fixation sequences after Anderson 2013: upper triangle, per cent, CORM")

enum obk_rqa_preset {
#define X(name, text, what) OBK_RQA_PRESET_##name,
	OBK_RQA_PRESET_LIST(X)
#undef X
		OBK_RQA_PRESET_COUNT
};

/*
 * Fills every field: m 1, tau 1, radius 0.1, lmin vmin wmin 2, and the conventions of the preset.
 */
int obk_rqa_options_preset(enum obk_rqa_preset preset, struct obk_rqa_options *ret_options);
/* "gaze" -> the preset; -1 when there is none of that name. */
int obk_rqa_preset_find(const char *name);
const char *obk_rqa_preset_name(enum obk_rqa_preset preset);
const char *obk_rqa_preset_what(enum obk_rqa_preset preset);
/* OBK_RQA_OK, or what is wrong with the options, in words. */
int obk_rqa_options_check(const struct obk_rqa_options *options, struct obk_rqa_error *ret_error);

/* ---- measures ---- */

/*
 * X(NAME, text, what) The order is stable, new ones come last. A measure that is undefined (no
 * lines, nothing counted) is NaN, except where said.
 */
#define OBK_RQA_MEASURE_LIST(X)                                                                    \
	X(RR, "RR", "recurrence rate")                                                             \
	X(DET, "DET",                                                                              \
		"share of points in diagonal lines of at least lmin; 0 when there are points but " \
		"no such line")                                                                    \
	X(L, "L", "mean length of diagonal lines")                                                 \
	X(LMAX, "Lmax", "longest diagonal line; 0 when there is none")                             \
	X(DIV, "DIV", "1 / Lmax")                                                                  \
	X(ENTR, "ENTR", "entropy of diagonal line lengths; 0 when there are none")                 \
	X(RATIO, "RATIO", "DET / RR")                                                              \
	X(TREND, "TREND", "slope of the recurrence rate over the distance from the LOI")           \
	X(LAM, "LAM",                                                                              \
		"share of points in vertical lines of at least vmin; 0 when there are points but " \
		"no such line")                                                                    \
	X(TT, "TT", "trapping time, mean length of vertical lines")                                \
	X(VMAX, "Vmax", "longest vertical line; 0 when there is none")                             \
	X(VENTR, "Ventr", "entropy of vertical line lengths")                                      \
	X(W, "W", "mean length of white vertical lines of at least wmin")                          \
	X(WMAX, "Wmax", "longest white vertical line")                                             \
	X(WDIV, "Wdiv", "1 / Wmax")                                                                \
	X(WENTR, "Wentr", "entropy of white vertical line lengths")                                \
	X(T1, "T1",                                                                                \
		"recurrence time of the first type: mean distance of successive recurrent cells "  \
		"of a column")                                                                     \
	X(T2, "T2",                                                                                \
		"recurrence time of the second type: mean distance of the starts of successive "   \
		"lines of a column")                                                               \
	X(MRT, "MRT", "mean recurrence time by the estimator options.times")                       \
	X(RTE, "RTE", "entropy of recurrence times")                                               \
	X(NMPRT, "NMPRT", "number of the most probable recurrence time")                           \
	X(TRANSITIVITY, "T", "transitivity of the recurrence network")                             \
	X(CLUSTERING, "C", "mean local clustering of the recurrence network")                      \
	X(CORM, "CORM", "centre of recurrence mass, per cent, upper triangle")                     \
	X(RENTR, "rENTR", "ENTR divided by the logarithm of the number of distinct lengths")       \
	X(RADIUS, "radius", "the absolute radius used")                                            \
	X(VECTORS, "n", "embedded vectors of the first series")                                    \
	X(POINTS, "points", "recurrent cells counted for RR")

enum obk_rqa_measure_id {
#define X(name, text, what) OBK_RQA_##name,
	OBK_RQA_MEASURE_LIST(X)
#undef X
		OBK_RQA_MEASURE_COUNT
};

/* "DET"; NULL for an id out of range. */
const char *obk_rqa_measure_name(unsigned id);
const char *obk_rqa_measure_what(unsigned id);
/* -1 when there is none of that name (case is ignored). */
int obk_rqa_measure_find(const char *name);
/* One word for a status, "too-short"; and a sentence. */
const char *obk_rqa_status_name(int status);
const char *obk_rqa_status_what(int status);

/* ---- control of a running call ---- */

/*
 * AUTO: a GPU where there is one and the work is worth it, the CPU otherwise and when the GPU
 * fails.
 */
enum obk_rqa_device { OBK_RQA_DEVICE_AUTO = 0, OBK_RQA_DEVICE_CPU = 1, OBK_RQA_DEVICE_CUDA = 2 };
enum obk_rqa_isa {
	OBK_RQA_ISA_AUTO = 0,
	OBK_RQA_ISA_C = 1,
	OBK_RQA_ISA_AVX2 = 2,
	OBK_RQA_ISA_AVX512 = 3
};

struct obk_rqa_progress {
	/* cells, the unit of work; total is exact from the first report on */
	uint64_t done, total;
	/* sweeps: result rows delivered, failed and skipped ones included; else 0 */
	uint64_t rows_done, rows_total;
	uint64_t failed, skipped; /* of rows_done */
	double elapsed, eta;      /* seconds; eta is NaN until it can be told */
};

struct obk_gpu;

/* All zero is a good default; the caller keeps it alive during the call. */
struct obk_rqa_control {
	uint32_t threads; /* 0: one per core this process may use */
	int device;
	/* AUTO: the best of this CPU; asking for one it lacks is OBK_RQA_UNSUPPORTED */
	int isa;
	void *arg; /* passed to the callbacks */
	/*
	 * Called at most ten times a second and once at the end, one call at a time, from any of
	 * the call's threads. Not 0: cancel.
	 */
	int (*progress)(void *arg, const struct obk_rqa_progress *progress);
	/*
	 * Any thread may set *cancel to a value that is not 0; looked at many times a second. May
	 * be NULL.
	 */
	const obk_rqa_flag *cancel;
	/*
	 * Single runs only: a file that a stopped or killed run is resumed from. Written every
	 * state_period seconds (0: 30), replaced atomically, removed when the run is complete. It
	 * names the series and options by a hash; another run's file is refused with OBK_RQA_STATE.
	 * May be NULL.
	 */
	const char *state_path;
	double state_period;
	/*
	 * The GPU to use, opened with compute/gpu/gpu.h and kept open during the call; NULL: device
	 * 0 of the process's libcuda.so.1.
	 */
	struct obk_gpu *gpu;
	/*
	 * bytes of cells, or of pieces of lines, on a GPU at once; 0: 64 or 128 MiB, more for very
	 * long series
	 */
	uint64_t gpu_band;
};

/* ---- one series, or one pair ---- */

/*
 * Measures of one recurrence matrix. y is NULL for kind AUTO; the second series of CROSS (any
 * length, same channels) and JOINT (the longer one is cut). ret_values has OBK_RQA_MEASURE_COUNT
 * entries, written only on success.
 */
int obk_rqa_measure(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_values, struct obk_rqa_error *ret_error);

/*
 * The same, keeping the integer counts: measures for other lmin, vmin, wmin, logarithms,
 * denominators and border corrections then cost nothing.
 */
struct obk_rqa_result;
int obk_rqa_run(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	struct obk_rqa_result **ret_result, struct obk_rqa_error *ret_error);
void obk_rqa_result_free(struct obk_rqa_result *result);
/*
 * options: NULL for those of the run, or others that differ only in lmin, vmin, wmin and in the
 * fields under "how measures are formed"; anything else is OBK_RQA_ARGUMENT.
 */
int obk_rqa_result_measures(const struct obk_rqa_result *result,
	const struct obk_rqa_options *options, double *ret_values, struct obk_rqa_error *ret_error);

enum obk_rqa_histogram {
	/* diagonal lines by length, LOI included when theiler_diag is 0 */
	OBK_RQA_HIST_DIAGONAL = 0,
	/* of these, lines that touch one or both ends of their diagonal (the LOI is among them) */
	OBK_RQA_HIST_DIAGONAL_BORDER = 1,
	OBK_RQA_HIST_VERTICAL = 2,
	OBK_RQA_HIST_WHITE = 3,        /* white vertical lines, those at the border included */
	OBK_RQA_HIST_WHITE_BORDER = 4, /* of these, those that touch the border of the matrix */
	OBK_RQA_HIST_TIMES_START = 5,  /* distances of the starts of successive vertical lines */
	/* distances of their midpoints, rounded as RecurrenceAnalysis.jl does */
	OBK_RQA_HIST_TIMES_MIDPOINT = 6,
	/*
	 * recurrent cells of diagonal k = 0..n-1 (auto, joint: of one triangle); cross: index k +
	 * n1 - 1, k = j - i
	 */
	OBK_RQA_HIST_PROFILE = 7,
	OBK_RQA_HIST_COUNT
};
/*
 * Entry l counts lines of length l (entry 0 is 0). Lives as long as the result; *ret_length may be
 * 0 when that histogram was not asked for.
 */
const uint64_t *obk_rqa_result_histogram(
	const struct obk_rqa_result *result, int histogram, uint64_t *ret_length);
/*
 * The device and instruction set that ran: "cpu avx2", "cuda NVIDIA H200". Lives as long as the
 * result.
 */
const char *obk_rqa_result_device(const struct obk_rqa_result *result);
/*
 * Of a run whose radius is a recurrence rate: the rate asked for, and the shares of all cells,
 * whatever the Theiler windows, that are recurrent with the radius found and with the next one on
 * the other side of the asked rate. Where many cells have the same distance, no radius gives a rate
 * between the two. series: 0, for joint recurrence also 1. NULL: the radius was not a rate, or there
 * is no such series. Lives as long as the result.
 */
struct obk_rqa_rate {
	double asked, reached, other;
};
const struct obk_rqa_rate *obk_rqa_result_rate(
	const struct obk_rqa_result *result, unsigned series);

/*
 * Windowed: windows of `window` samples starting at 0, step, 2*step ... as far as they fit, each
 * one a run of its own; on_window is called in order. values is NULL and error set when that window
 * failed; the others go on. Not 0 from on_window: stop, OBK_RQA_CANCELLED.
 */
typedef int obk_rqa_window_fn(void *arg, uint64_t index, uint64_t first_sample,
	const double *values, const struct obk_rqa_error *error);
int obk_rqa_windows(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint64_t window, uint64_t step,
	const struct obk_rqa_control *control, obk_rqa_window_fn *on_window, void *arg,
	struct obk_rqa_error *ret_error);

/* The absolute radius that options (radius_kind) mean for this series. */
int obk_rqa_radius(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_radius, struct obk_rqa_error *ret_error);

/*
 * The plot, reduced to width * height grey values, row 0 at the top being the LAST vectors of y
 * (origin bottom left, as plots are printed), column 0 the first of x. A pixel covers a block of
 * cells: mean 0: 0 if any cell is recurrent, else 255; mean 1: 255 less the share of recurrent
 * cells. width and height must not exceed the number of vectors, which obk_rqa_plot_size tells.
 * ret_pixels has width * height bytes.
 */
int obk_rqa_plot(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint32_t width, uint32_t height, int mean,
	const struct obk_rqa_control *control, uint8_t *ret_pixels,
	struct obk_rqa_error *ret_error);
int obk_rqa_plot_size(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint64_t *ret_columns, uint64_t *ret_rows,
	struct obk_rqa_error *ret_error);

/* ---- sweeps ---- */

/*
 * One way of looking at each series: which channels, which norm. "1D-x": channel 0, L1; "2D-xy":
 * channels 0 and 1, L2.
 */
struct obk_rqa_mode {
	const char *name;
	uint32_t channel_count; /* 0: all channels */
	uint32_t channels[OBK_RQA_MAX_CHANNELS];
	int norm; /* -1: options.norm */
};

/*
 * Every combination of the lists; each list non-empty, values in the order in which rows are
 * wanted; duplicates are allowed and counted.
 */
struct obk_rqa_grid {
	const uint32_t *m, *tau, *lmin;
	/* in the units of options.radius_kind, which must be ABSOLUTE or SD */
	const double *radius;
	uint32_t m_count, tau_count, radius_count, lmin_count;
	const struct obk_rqa_mode *modes; /* NULL: one mode, all channels, options.norm */
	uint32_t mode_count;
};

struct obk_rqa_row {
	uint64_t series; /* index in the call */
	uint32_t mode;   /* index in grid.modes */
	uint32_t m, tau, lmin;
	uint32_t m_index, tau_index, radius_index, lmin_index; /* places in the grid's lists */
	double radius;                                         /* as the grid has it */
	int status;         /* OBK_RQA_OK, OBK_RQA_SKIPPED, or why this row failed */
	const char *reason; /* NULL when OK; a sentence */
	/* OBK_RQA_MEASURE_COUNT entries; NULL unless OK: a failed row never has numbers */
	const double *values;
};

struct obk_rqa_sweep {
	const struct obk_rqa_series *series;
	uint64_t series_count;
	/* m, tau, radius and lmin come from the grid; kind must be AUTO */
	const struct obk_rqa_options *options;
	const struct obk_rqa_grid *grid;
	/*
	 * rows() gets all radius * lmin rows of one (series, mode, m, tau) at once, radius-major,
	 * one call at a time, from any thread; the memory is valid during the call. Groups are
	 * started in order of tau, series, mode, m and arrive roughly so. Not 0: cancel the sweep.
	 */
	int (*rows)(void *arg, const struct obk_rqa_row *rows, uint32_t count);
	/*
	 * May be NULL. 0: leave this group out; its rows arrive with OBK_RQA_SKIPPED. Called from
	 * any thread, possibly several at once.
	 */
	int (*want)(void *arg, uint64_t series, uint32_t mode, uint32_t m, uint32_t tau);
};

/*
 * Runs the grid over all series. A series that is too short, not finite or otherwise unusable fails
 * alone: its rows carry status and reason. OBK_RQA_OK even if rows failed (progress.failed counts
 * them); not OK when the grid or the options are wrong, or on cancellation.
 */
int obk_rqa_sweep(const struct obk_rqa_sweep *sweep, const struct obk_rqa_control *control,
	struct obk_rqa_error *ret_error);

/*
 * start + i * step, rounded to `decimals` decimals as people write them, up to and including stop;
 * the count, or 0 when it exceeds max or step is wrong.
 */
uint32_t obk_rqa_range(double start, double stop, double step, unsigned decimals,
	double *ret_values, uint32_t max);

#ifdef __cplusplus
}
#endif

#endif
