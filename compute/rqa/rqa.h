/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Recurrence quantification: computes measures from time series. No recurrence matrix is ever
 * stored. All counts are integers (run lengths of recurrent cells along diagonals, columns and
 * gaps) and identical on every instruction set and device. The host derives the measures from these
 * integers.
 *
 * Tools differ in almost every detail of the definitions. Here each detail is an option, and a
 * preset sets the options to the conventions of one known tool. Start from a preset and then change
 * single options:
 *
 *     struct obk_rqa_options o;
 *     struct obk_rqa_error error;
 *     double v[OBK_RQA_MEASURE_COUNT];
 *     obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
 *     o.m = 3; o.tau = 6; o.radius = 1.2;
 *     struct obk_rqa_series x = {
 *             .name = "pendulum", .data = samples, .length = 5000, .channels = 1, .step = 1 };
 *     if (obk_rqa_measure(&x, NULL, &o, NULL, v, &error) != OBK_RQA_OK)
 *             fprintf(stderr, "%s\n", error.text);
 *
 * All functions may be called from any thread. None keeps a pointer into the caller's memory after
 * it has returned. Calls block until they are finished, cancelled or failed. Times are in seconds,
 * lengths in samples or cells.
 */
#ifndef OBK_RQA_H
#define OBK_RQA_H

#include <stddef.h>
#include <stdint.h>

/* A flag that one thread sets and others read. It has the layout of a plain int in C and in C++. */
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<int> obk_rqa_flag;
extern "C" {
#else
#include <stdatomic.h>
typedef _Atomic int obk_rqa_flag;
#endif

/* Limits. A value above the limit is refused with OBK_RQA_LIMIT. */
#define OBK_RQA_MAX_LENGTH   100000000u /* samples in a series */
#define OBK_RQA_MAX_CHANNELS 64u
#define OBK_RQA_MAX_M        1000u
#define OBK_RQA_MAX_TAU      1000000u
#define OBK_RQA_MAX_VALUES   10000u /* entries in one list of a grid */
#define OBK_RQA_MAX_MODES    16u
#define OBK_RQA_MAX_SERIES   1000000u
#define OBK_RQA_MAX_ROWS     1000000000u /* rows of one sweep */
#define OBK_RQA_MAX_THREADS  256u
/* most vectors for network measures, which need n*n/8 bytes */
#define OBK_RQA_MAX_NETWORK  65536u
#define OBK_RQA_MAX_IMAGE    16384u /* width and height in pixels */

enum obk_rqa_status {
	OBK_RQA_OK = 0,
	OBK_RQA_ARGUMENT = 1,  /* an option or a pointer is out of range */
	OBK_RQA_LIMIT = 2,     /* a limit (OBK_RQA_MAX_...) is exceeded */
	OBK_RQA_TOO_SHORT = 3, /* fewer than two embedded vectors: length - (m - 1) * tau < 2 */
	/*
	 * NaN or infinity in the series while options.missing is 0, or a sample too large for the
	 * precision
	 */
	OBK_RQA_NOT_FINITE = 4,
	/* the options require a division by the spread of the series, which is zero */
	OBK_RQA_CONSTANT = 5,
	OBK_RQA_NO_MEMORY = 6,
	OBK_RQA_CANCELLED = 7,
	OBK_RQA_UNSUPPORTED = 8, /* the device or combination of options is not available here */
	OBK_RQA_STATE = 9,       /* the file to resume from is damaged or belongs to other data */
	OBK_RQA_IO = 10,         /* the file to resume from cannot be written */
	OBK_RQA_SKIPPED = 11,    /* only for rows of a sweep: want() returned 0 */
	/* the GPU or the connection to it failed: another attempt, or the CPU, may succeed */
	OBK_RQA_DEVICE = 12,
	OBK_RQA_STATUS_COUNT
};

/*
 * Description of a failure, written whenever a function does not return OBK_RQA_OK. A NULL pointer
 * is allowed. text is one sentence with the item, the place and what to do.
 */
struct obk_rqa_error {
	int status;     /* enum obk_rqa_status */
	uint64_t item;  /* index of the series in the call, 0 for the first */
	uint64_t where; /* sample index for NOT_FINITE, else 0 */
	char text[352];
};

/*
 * A series has `channels` values per sample. Value c of sample t is data[t * step + c *
 * channel_step]. step 0 means `channels` (interleaved, one row per sample); channel_step 0 means 1.
 * For two columns x[], y[] of n samples in one block: step 1, channel_step n. The caller owns the
 * memory.
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
/* GAZE: L1 for one channel, L2 for several */
enum obk_rqa_norm {
	OBK_RQA_NORM_L1 = 0,
	OBK_RQA_NORM_L2 = 1,
	OBK_RQA_NORM_MAX = 2,
	OBK_RQA_NORM_GAZE = 3
};
/* a cell is recurrent if distance <= radius, or if distance < radius */
enum obk_rqa_test { OBK_RQA_TEST_LE = 0, OBK_RQA_TEST_LT = 1 };
enum obk_rqa_precision {
	OBK_RQA_PRECISION_AUTO = 0, /* F64 up to OBK_RQA_EXACT_LENGTH samples, F32 above */
	/*
	 * exact at ties: the same cells as sqrt and compare in IEEE double, with coordinates summed
	 * in index order
	 */
	OBK_RQA_PRECISION_F64 = 1,
	OBK_RQA_PRECISION_F32 = 2 /* samples and radius are first rounded to float */
};
#define OBK_RQA_EXACT_LENGTH 20000u
enum obk_rqa_radius {
	OBK_RQA_RADIUS_ABSOLUTE = 0,
	/* in units of the standard deviation (n - 1) of all values of the series */
	OBK_RQA_RADIUS_SD = 1,
	/* in units of the largest distance between embedded vectors */
	OBK_RQA_RADIUS_MAX_DISTANCE = 2,
	/* in units of the mean distance between embedded vectors (LOI included) */
	OBK_RQA_RADIUS_MEAN_DISTANCE = 3,
	/*
	 * a share (0..1): the smallest radius at which at least this share of all cells is
	 * recurrent
	 */
	OBK_RQA_RADIUS_RATE = 4
};
/* scaling of each channel; UNIT maps min..max to 0..1 */
enum obk_rqa_scale { OBK_RQA_SCALE_NONE = 0, OBK_RQA_SCALE_ZSCORE = 1, OBK_RQA_SCALE_UNIT = 2 };
enum obk_rqa_triangle { OBK_RQA_BOTH = 0, OBK_RQA_UPPER = 1, OBK_RQA_LOWER = 2 };
/* the number of all cells, or of cells outside the window theiler_rr */
enum obk_rqa_rr_denominator { OBK_RQA_RR_FULL = 0, OBK_RQA_RR_VALID = 1 };
enum obk_rqa_line_denominator {
	/*
	 * denominator of DET, LAM: the points in lines of any length, with the windows of the lines
	 */
	OBK_RQA_PER_LINES = 0,
	OBK_RQA_PER_POINTS = 1 /* denominator: the recurrent points counted for RR */
};
enum obk_rqa_log { OBK_RQA_LN = 0, OBK_RQA_LOG2 = 1 };
enum obk_rqa_entropy_norm {
	OBK_RQA_ENTROPY_PLAIN = 0,
	OBK_RQA_ENTROPY_PER_LOG_N = 1,
	OBK_RQA_ENTROPY_PER_LOG_BINS = 2
};
/* count white runs at the matrix border, or only gaps between recurrent cells */
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
	 * slope of the least-squares fit of RR_k over k, for k = theiler_diag to n - 1 -
	 * trend_margin, times 1000
	 */
	OBK_RQA_TREND_FIT = 0,
	/*
	 * the same diagonals with the weights of RecurrenceAnalysis.jl: k + 1 - (n - trend_margin +
	 * theiler_diag) / 2
	 */
	OBK_RQA_TREND_WEIGHTED = 1
};

enum obk_rqa_transitivity {
	/* share of closed triples among all triples i-j-k of different nodes */
	OBK_RQA_TRIPLES = 0,
	OBK_RQA_PATHS = 1 /* trace(A^3) / sum(A^2): a path i-j-i counts as well */
};

/*
 * What to count. Measures of groups that are not counted are NaN. RR, DET, L, Lmax, DIV, ENTR and
 * RATIO are always computed.
 */
#define OBK_RQA_WANT_VERTICAL 1u  /* LAM, TT, Vmax, Ventr */
#define OBK_RQA_WANT_WHITE    2u  /* W, Wmax, Wdiv, Wentr */
#define OBK_RQA_WANT_TIMES    4u  /* T1, T2, MRT, RTE, NMPRT */
#define OBK_RQA_WANT_TREND    8u  /* TREND, CORM, and the recurrence rate of every diagonal */
#define OBK_RQA_WANT_NETWORK  16u /* transitivity, clustering; up to OBK_RQA_MAX_NETWORK vectors */
#define OBK_RQA_WANT_ALL      31u

/* ---- old behaviour of a tool, needed to compare with its stored results ---- */
/* pyunicorn <= 0.5: a line that is open at the end of the last column is dropped */
#define OBK_RQA_QUIRK_LAST_COLUMN 1u
/* sparse mode of pyunicorn: RR is computed from the counted vertical lines; needs WANT_VERTICAL */
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
	double radius; /* in the units of radius_kind */
	/* joint recurrence: radius of the second series; NaN: the same as radius */
	double radius_y;
	int norm_y; /* joint recurrence: norm of the second series; -1: the same as norm */
	int scale;
	/*
	 * 1: values are codes; a cell is recurrent if all m codes are equal; norm, test and radius
	 * are ignored
	 */
	int categorical;
	/* 1: NaN and infinite samples are gaps and never recurrent; 0: they are an error */
	int missing;
	/* what is counted */
	uint32_t want; /* OBK_RQA_WANT_... */
	/*
	 * cells with |i - j| < theiler_rr do not count for RR; 0: the line of identity counts, 1:
	 * it does not
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
	 * the half of the plot in which RR and diagonal lines are counted; UPPER is j > i. Vertical
	 * lines are counted in the whole plot
	 */
	int triangle;
	uint32_t lmin, vmin, wmin; /* shortest line that counts, >= 1 */
	/* how measures are computed from the counts */
	int rr_denominator;
	int det_denominator;
	int lam_denominator;
	int lmax_excludes_loi; /* 1: the LOI counts as a line but not for Lmax and DIV */
	int log_base;
	int entropy_norm;
	int entropy_all; /* 1: entropies over all lengths >= 1, independent of lmin */
	int white;
	/* enum obk_rqa_border: how diagonal lines at the border of the matrix are corrected */
	int border;
	/*
	 * 0: a border line fills its whole diagonal; 1: it touches at least one end of its diagonal
	 */
	int border_semi;
	int times; /* enum obk_rqa_times: the estimator for MRT, RTE and NMPRT */
	int trend;
	uint32_t trend_margin; /* number of diagonals at the corner that TREND leaves out */
	double percent;        /* factor for RR, DET and LAM: 1 or 100 */
	int transitivity;      /* enum obk_rqa_transitivity */
	uint32_t quirks;       /* OBK_RQA_QUIRK_... */
	uint32_t reserved[8];  /* must be 0 */
};

/* X(NAME, text, the tool that it stands for) */
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
 * Sets every field: m 1, tau 1, radius 0.1, lmin, vmin and wmin 2, and the conventions of the
 * preset.
 */
int obk_rqa_options_preset(enum obk_rqa_preset preset, struct obk_rqa_options *ret_options);
/* Returns the preset with this name ("gaze"), or -1. */
int obk_rqa_preset_find(const char *name);
const char *obk_rqa_preset_name(enum obk_rqa_preset preset);
const char *obk_rqa_preset_what(enum obk_rqa_preset preset);
/* OBK_RQA_OK, or an error whose text says what is wrong with the options. */
int obk_rqa_options_check(const struct obk_rqa_options *options, struct obk_rqa_error *ret_error);

/* ---- measures ---- */

/*
 * X(NAME, text, what). The order is stable; new measures are added at the end. An undefined measure
 * (no lines, nothing counted) is NaN unless stated otherwise.
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

/* For example "DET"; NULL for an id out of range. */
const char *obk_rqa_measure_name(unsigned id);
const char *obk_rqa_measure_what(unsigned id);
/* Case is ignored. -1: there is no measure of that name. */
int obk_rqa_measure_find(const char *name);
/* A status as one word, for example "too-short", and as a sentence. */
const char *obk_rqa_status_name(int status);
const char *obk_rqa_status_what(int status);

/* ---- control of a running call ---- */

/*
 * AUTO: a GPU if there is one and the work is large enough, else the CPU. If the GPU fails, the
 * CPU.
 */
enum obk_rqa_device { OBK_RQA_DEVICE_AUTO = 0, OBK_RQA_DEVICE_CPU = 1, OBK_RQA_DEVICE_CUDA = 2 };
enum obk_rqa_isa {
	OBK_RQA_ISA_AUTO = 0,
	OBK_RQA_ISA_C = 1,
	OBK_RQA_ISA_AVX2 = 2,
	OBK_RQA_ISA_AVX512 = 3
};

struct obk_rqa_progress {
	/* cells processed, and all cells; total is exact from the first report on */
	uint64_t done, total;
	/* sweeps: rows delivered, with failed and skipped ones, and all rows; otherwise 0 */
	uint64_t rows_done, rows_total;
	uint64_t failed, skipped; /* contained in rows_done */
	double elapsed, eta;      /* seconds; eta is NaN until it is known */
};

struct obk_gpu;

/* All fields may be zero. The caller keeps the struct valid during the call. */
struct obk_rqa_control {
	uint32_t threads; /* 0: one for each core that this process may use */
	int device;
	/*
	 * AUTO: the best instruction set of this CPU. One that the CPU lacks is OBK_RQA_UNSUPPORTED
	 */
	int isa;
	void *arg; /* passed to the callbacks */
	/*
	 * Called at most ten times a second and once at the end, one call at a time, from any of
	 * the call's threads. A non-zero return value cancels the call.
	 */
	int (*progress)(void *arg, const struct obk_rqa_progress *progress);
	/*
	 * Any thread may set *cancel to a non-zero value to cancel the call. It is read many times
	 * a second. May be NULL.
	 */
	const obk_rqa_flag *cancel;
	/*
	 * For single runs only, may be NULL: a file from which a stopped or killed run resumes. It
	 * is written every state_period seconds (0: 30), replaced atomically, and removed when the
	 * run is complete. It contains a hash of the series and options; the file of another run is
	 * refused with OBK_RQA_STATE.
	 */
	const char *state_path;
	double state_period;
	/*
	 * The GPU to use, opened with compute/gpu/gpu.h, which must stay open during the call.
	 * NULL: device 0 of the libcuda.so.1 of the process.
	 */
	struct obk_gpu *gpu;
	/*
	 * bytes of cells, or of pieces of lines, that are on a GPU at the same time; 0: 64 or 128
	 * MiB, more for very long series
	 */
	uint64_t gpu_band;
};

/* ---- one series, or one pair ---- */

/*
 * Computes the measures of one recurrence matrix. y is NULL for kind AUTO. For CROSS it is the
 * second series (any length, same number of channels), for JOINT too (the longer series is cut).
 * ret_values has OBK_RQA_MEASURE_COUNT entries, written only on success.
 */
int obk_rqa_measure(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_values, struct obk_rqa_error *ret_error);

/*
 * As obk_rqa_measure, but keeps the integer counts. Measures for other lmin, vmin, wmin,
 * logarithms, denominators and border corrections are then computed without counting again.
 */
struct obk_rqa_result;
int obk_rqa_run(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	struct obk_rqa_result **ret_result, struct obk_rqa_error *ret_error);
void obk_rqa_result_free(struct obk_rqa_result *result);
/*
 * options: NULL for those of the run, or options that differ from them only in lmin, vmin, wmin and
 * in the fields under "how measures are computed from the counts"; other differences are
 * OBK_RQA_ARGUMENT.
 */
int obk_rqa_result_measures(const struct obk_rqa_result *result,
	const struct obk_rqa_options *options, double *ret_values, struct obk_rqa_error *ret_error);

enum obk_rqa_histogram {
	/* diagonal lines by length; the LOI is included if theiler_diag is 0 */
	OBK_RQA_HIST_DIAGONAL = 0,
	/* the part of these that touches one or both ends of its diagonal (includes the LOI) */
	OBK_RQA_HIST_DIAGONAL_BORDER = 1,
	OBK_RQA_HIST_VERTICAL = 2,
	OBK_RQA_HIST_WHITE = 3,        /* white vertical lines, including those at the border */
	OBK_RQA_HIST_WHITE_BORDER = 4, /* the part of these that touches the border of the matrix */
	/* distances between the starts of successive vertical lines */
	OBK_RQA_HIST_TIMES_START = 5,
	/* distances between their midpoints, rounded as in RecurrenceAnalysis.jl */
	OBK_RQA_HIST_TIMES_MIDPOINT = 6,
	/*
	 * recurrent cells of diagonal k = 0..n-1 (auto, joint: in one triangle); cross: at index k
	 * + n1 - 1, k = j - i
	 */
	OBK_RQA_HIST_PROFILE = 7,
	OBK_RQA_HIST_COUNT
};
/*
 * Entry l is the number of lines of length l (entry 0 is 0). Valid as long as the result.
 * *ret_length may be 0 if the histogram was not requested.
 */
const uint64_t *obk_rqa_result_histogram(
	const struct obk_rqa_result *result, int histogram, uint64_t *ret_length);
/*
 * The device and instruction set that were used: "cpu avx2", "cuda NVIDIA H200". Valid as long as
 * the result.
 */
const char *obk_rqa_result_device(const struct obk_rqa_result *result);
/*
 * For a run whose radius was given as a recurrence rate: the requested rate, and the share of all
 * cells (independent of the Theiler windows) that is recurrent with the radius found and with the
 * next radius on the other side of the requested rate. If many cells have the same distance, no
 * radius gives a rate between the two. series: 0, for joint recurrence also 1. NULL: the radius was
 * not a rate, or there is no such series. Valid as long as the result.
 */
struct obk_rqa_rate {
	double asked, reached, other;
};
const struct obk_rqa_rate *obk_rqa_result_rate(
	const struct obk_rqa_result *result, unsigned series);

/*
 * Processes windows of `window` samples that start at 0, step, 2*step ... as far as they fit, each
 * as a separate run. on_window is called in order. If a window fails, values is NULL and error is
 * set; the other windows are still processed. A non-zero return value of on_window stops the call
 * with OBK_RQA_CANCELLED.
 */
typedef int obk_rqa_window_fn(void *arg, uint64_t index, uint64_t first_sample,
	const double *values, const struct obk_rqa_error *error);
int obk_rqa_windows(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint64_t window, uint64_t step,
	const struct obk_rqa_control *control, obk_rqa_window_fn *on_window, void *arg,
	struct obk_rqa_error *ret_error);

/* The absolute radius that the options (radius_kind) give for this series. */
int obk_rqa_radius(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_radius, struct obk_rqa_error *ret_error);

/*
 * The recurrence plot reduced to width * height grey values. Row 0, at the top, holds the LAST
 * vectors of y (origin bottom left, as plots are printed), column 0 the first of x. A pixel covers
 * a block of cells. mean 0: 0 if any cell is recurrent, else 255. mean 1: 255 minus 255 times the
 * share of recurrent cells. width and height must not exceed the numbers of vectors
 * (obk_rqa_plot_size). ret_pixels has width * height bytes.
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
 * A selection of channels and a norm, applied to each series. "1D-x": channel 0, L1; "2D-xy":
 * channels 0 and 1, L2.
 */
struct obk_rqa_mode {
	const char *name;
	uint32_t channel_count; /* 0: all channels */
	uint32_t channels[OBK_RQA_MAX_CHANNELS];
	int norm; /* -1: options.norm */
};

/*
 * All combinations of the lists are computed. No list may be empty. Rows come in the order of the
 * values; duplicate values are allowed and counted.
 */
struct obk_rqa_grid {
	const uint32_t *m, *tau, *lmin;
	/* in units of options.radius_kind, which must be ABSOLUTE or SD */
	const double *radius;
	uint32_t m_count, tau_count, radius_count, lmin_count;
	const struct obk_rqa_mode *modes; /* NULL: one mode, all channels, options.norm */
	uint32_t mode_count;
};

struct obk_rqa_row {
	uint64_t series; /* index in the call */
	uint32_t mode;   /* index in grid.modes */
	uint32_t m, tau, lmin;
	uint32_t m_index, tau_index, radius_index, lmin_index; /* indices into the grid's lists */
	double radius;                                         /* as in the grid */
	int status;         /* OBK_RQA_OK, OBK_RQA_SKIPPED, or why this row failed */
	const char *reason; /* a sentence; NULL when status is OBK_RQA_OK */
	/* OBK_RQA_MEASURE_COUNT entries; NULL unless status is OBK_RQA_OK */
	const double *values;
};

struct obk_rqa_sweep {
	const struct obk_rqa_series *series;
	uint64_t series_count;
	/* m, tau, radius and lmin are ignored (the grid sets them); kind must be AUTO */
	const struct obk_rqa_options *options;
	const struct obk_rqa_grid *grid;
	/*
	 * Called with all radius * lmin rows of one (series, mode, m, tau), radius-major, one call
	 * at a time, from any thread. The rows are valid only during the call. Groups are started
	 * in the order of tau, series, mode, m and delivered in roughly that order. A non-zero
	 * return value cancels the sweep.
	 */
	int (*rows)(void *arg, const struct obk_rqa_row *rows, uint32_t count);
	/*
	 * May be NULL. A return value of 0 leaves this group out: its rows are delivered with
	 * OBK_RQA_SKIPPED. Called from any thread, possibly from several at once.
	 */
	int (*want)(void *arg, uint64_t series, uint32_t mode, uint32_t m, uint32_t tau);
};

/*
 * Computes the grid for all series. A series that is too short, not finite or otherwise unusable
 * does not make the sweep fail: its rows have a status and a reason, progress.failed counts them,
 * and the sweep returns OBK_RQA_OK. Other values: the grid or the options are wrong, or the sweep
 * was cancelled.
 */
int obk_rqa_sweep(const struct obk_rqa_sweep *sweep, const struct obk_rqa_control *control,
	struct obk_rqa_error *ret_error);

/*
 * Fills a list with start + i * step up to and including stop, each rounded to `decimals` decimals.
 * Returns the number of values, or 0 when it exceeds max or step is invalid.
 */
uint32_t obk_rqa_range(double start, double stop, double step, unsigned decimals,
	double *ret_values, uint32_t max);

#ifdef __cplusplus
}
#endif

#endif
