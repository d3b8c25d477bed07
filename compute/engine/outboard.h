/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard.h: multi-scalar multiplication (MSM), number-theoretic transforms (NTT) and KZG over
 * BLS12-381, and recurrence quantification (RQA), on all CPUs and GPUs of the machine.
 *
 *     struct outboard *ob;
 *     struct outboard_bases *bases;
 *     struct outboard_error error;
 *     // all GPUs and the CPU
 *     outboard_open(NULL, &ob, &error);
 *     struct outboard_points p = {
 *             .points = points, .count = n, .format = OUTBOARD_POINT_COMPRESSED };
 *     // the points are checked and uploaded once
 *     outboard_bases_new(ob, &p, &bases, &error);
 *     struct outboard_msm m = { .scalars = scalars, .count = n, .result = sum,
 *             .result_format = OUTBOARD_POINT_COMPRESSED };
 *     if (outboard_msm_run(bases, &m, NULL, &error))
 *             fprintf(stderr, "%s\n", error.text);
 *
 * Conventions
 * - A function returns OUTBOARD_OK (0) or another enum outboard_status. In the second case `error`
 *   (may be NULL) names the item at fault and says what to do. Results are written only on success.
 * - The caller zeroes a struct of arguments before it sets fields. A field that is 0 means the
 *   default. `reserved` stays zero.
 * - Every function may be called from any thread, and any number of calls may run at once. A handle
 *   may be freed while calls use it: it is released when they are done.
 * - Results do not depend on the kind of device, the number of devices or the number of threads:
 *   they are the same byte for byte.
 * - A call blocks unless its struct outboard_call asks for a ticket. With a ticket, all memory that
 *   the arguments point to must stay valid until the call is over.
 * - Callbacks are called from the library's threads, one at a time for each call. They may start
 *   further calls with tickets but must not wait for any.
 * - After fork() the child must open a context of its own. Times are in seconds, sizes in bytes.
 */
#ifndef OUTBOARD_H
#define OUTBOARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OUTBOARD_API __attribute__((visibility("default")))
#else
#define OUTBOARD_API
#endif

#define OUTBOARD_VERSION_MAJOR 0
#define OUTBOARD_VERSION_MINOR 1

/* Limits. A value above the limit is refused with OUTBOARD_LIMIT. */
#define OUTBOARD_MAX_DEVICES  64       /* in one context */
#define OUTBOARD_MAX_POINTS   67108864 /* 2^26 points in one handle */
#define OUTBOARD_MAX_BATCH    65536    /* products, blobs or cells in one call */
/* log2 of the most elements in one transform, and in all transforms of one batch together */
#define OUTBOARD_MAX_LOG_N    26
#define OUTBOARD_MAX_CALLS    4096 /* unfinished calls in one context */
#define OUTBOARD_MAX_ATTEMPTS 16   /* errors kept for one call */

enum outboard_status {
	OUTBOARD_OK = 0,
	/* an argument or an item of the data is wrong; error.item is its index */
	OUTBOARD_ARGUMENT = 1,
	OUTBOARD_LIMIT = 2, /* a limit (OUTBOARD_MAX_...) is exceeded */
	OUTBOARD_NO_MEMORY = 3,
	OUTBOARD_DEVICE = 4,    /* a device failed and no other could do the work */
	OUTBOARD_NO_DEVICE = 5, /* there is no such device */
	OUTBOARD_TIMEOUT = 6,   /* the call did not finish in time */
	OUTBOARD_CANCELLED = 7,
	OUTBOARD_UNSUPPORTED = 8, /* this combination is not available */
	OUTBOARD_IO = 9,          /* a file cannot be read or written */
	OUTBOARD_INTERNAL = 10    /* a bug in the library: please report it */
};

#define OUTBOARD_NO_ITEM    UINT64_MAX
#define OUTBOARD_ANY_DEVICE UINT32_MAX

/*
 * Description of a failure. The caller owns it. It is written only when a call does not return
 * OUTBOARD_OK.
 */
struct outboard_error {
	int32_t status;  /* enum outboard_status */
	uint32_t device; /* index of the device, or OUTBOARD_ANY_DEVICE */
	/*
	 * index of the first item at fault (point, scalar, element, series ...), or
	 * OUTBOARD_NO_ITEM
	 */
	uint64_t item;
	char text[496]; /* one sentence: the item, what is wrong with it, what to do */
};

/* For example "argument"; "?" for an unknown number. */
OUTBOARD_API const char *outboard_status_name(int status);
/* For example "0.1.0". */
OUTBOARD_API const char *outboard_version(void);

/* ---- context: a set of devices that work together ---- */

struct outboard;

enum outboard_strategy {
	/*
	 * the device expected to finish first; large calls are divided among devices where that is
	 * faster
	 */
	OUTBOARD_AUTO = 0,
	OUTBOARD_SINGLE = 1,       /* the one device expected to finish first */
	OUTBOARD_EQUAL = 2,        /* equal parts for all devices, the remainder to the first */
	OUTBOARD_PROPORTIONAL = 3, /* parts in proportion to the devices' speeds */
	/* as PROPORTIONAL, with each speed multiplied by the part of the device that is idle now */
	OUTBOARD_DYNAMIC = 4
};

struct outboard_options {
	/*
	 * NULL or "auto": all GPUs and the CPU. "cpu" or "gpu": one kind only. Or a list such as
	 * "gpu:0,gpu:2,cpu:8", where a number is the ordinal of a GPU or the number of threads of a
	 * CPU device. A CPU may be listed several times; each entry is a device with its own
	 * threads. A GPU is any device that libcuda.so.1 reports: a card in this machine or, where
	 * the program runs under `outboard run`, a card of a server.
	 */
	const char *devices;
	/*
	 * threads of a CPU device that is listed without a number; 0: one for each processor that
	 * this process may use
	 */
	uint32_t threads;
	uint32_t strategy; /* enum outboard_strategy */
	/* divide work among at most this many of the best devices; 0: all */
	uint32_t share_at_most;
	/* ---- a device that fails ---- */
	/* how often a device repeats a piece of work that failed; 0: 2; UINT32_MAX: never */
	uint32_t retries;
	/* seconds before the first repetition, doubled each time up to backoff_most; 0: 0.02 */
	double backoff;
	double backoff_most; /* seconds; 0: 1 */
	/* consecutive failures after which a device gets no more work; 0: 3 */
	uint32_t breaker_failures;
	double breaker_pause; /* seconds until such a device is tried again with one piece; 0: 5 */
	/* 1: if the list names no CPU, do not use the CPU when the GPUs fail */
	uint32_t no_fallback;
	/*
	 * seconds of queued work that count as a load of 1; 0: 1. A device above 0.8 hands work to
	 * devices below 0.5
	 */
	double balance_horizon;
	/*
	 * file of measured speeds; NULL: the file that outboard_calibrate wrote for this machine,
	 * if any; "": none
	 */
	const char *profile;
	const char *driver; /* path of the CUDA driver library; NULL: libcuda.so.1 */
	/* most bytes the library may keep on one GPU; 0: all free memory */
	uint64_t gpu_memory;
	uint64_t reserved[8];
};

/*
 * Opens the devices. options NULL: all defaults. OUTBOARD_NO_DEVICE: a listed device does not exist
 * (the error text says why); OUTBOARD_ARGUMENT, OUTBOARD_LIMIT, OUTBOARD_NO_MEMORY. In all other
 * functions a NULL context means the process's default context, which is opened with all defaults
 * at its first use.
 */
OUTBOARD_API int outboard_open(const struct outboard_options *options,
	struct outboard **ret_context, struct outboard_error *error);
/*
 * Cancels work that has not started, waits for work that has, and closes the devices. The caller
 * must free tickets and handles first. NULL is allowed.
 */
OUTBOARD_API void outboard_close(struct outboard *context);
/* Sets the strategy for later calls. OUTBOARD_ARGUMENT. */
OUTBOARD_API int outboard_set_strategy(struct outboard *context, uint32_t strategy);

enum outboard_kind { OUTBOARD_CPU = 0, OUTBOARD_GPU = 1 };
enum outboard_breaker { OUTBOARD_CLOSED = 0, OUTBOARD_OPEN = 1, OUTBOARD_HALF_OPEN = 2 };

struct outboard_device {
	char name[64];  /* "cpu:2" or "gpu:0", as in the list of devices */
	char what[128]; /* model name of the processor or card */
	uint32_t kind;  /* enum outboard_kind */
	uint32_t units; /* threads, or multiprocessors */
	uint64_t memory;
	double clock; /* GHz, 0 if unknown */
	double link;  /* overhead of one call to the device, in seconds */
	/*
	 * speed relative to one CPU thread: measured if there is a profile, else estimated from the
	 * fields above
	 */
	double score;
	uint32_t fallback_only; /* 1: used only when other devices fail */
	uint32_t breaker;       /* enum outboard_breaker; an open breaker: no work is sent */
	double load;            /* queued and running work relative to balance_horizon, 0..1 */
	/* ---- statistics since the context was opened ---- */
	/* A piece is the part of a call that one device executes at once. */
	/* completed; an item is a point, an element, a blob or a cell of a recurrence matrix */
	uint64_t pieces, items;
	/* failed attempts; those that were repeated on this device; how often the breaker opened */
	uint64_t failures, retries, opened;
	/* queued pieces taken from other devices, and given to them */
	uint64_t moved_in, moved_out;
	uint64_t queued; /* pieces in the queue now */
	double busy;     /* seconds spent executing */
	/*
	 * The pool of device memory, in bytes: in use; kept for later calls; peak use. Then the
	 * number of requests, and of those that were served from kept memory.
	 */
	uint64_t pool_used, pool_kept, pool_peak, pool_requests, pool_reused;
	uint64_t reserved[8];
};

/* The number of devices. They are numbered in the order of the list. */
OUTBOARD_API uint32_t outboard_device_count(struct outboard *context);
/* OUTBOARD_ARGUMENT: there is no device with this index. */
OUTBOARD_API int outboard_device_get(
	struct outboard *context, uint32_t index, struct outboard_device *ret_device);

enum outboard_operation {
	OUTBOARD_OP_MSM = 0,
	OUTBOARD_OP_NTT = 1,
	OUTBOARD_OP_KZG = 2,
	OUTBOARD_OP_RQA = 3,
	OUTBOARD_OP_COUNT = 4
};

/*
 * Measures all devices for at most `seconds` (0: 10) in total and uses the result from then on.
 * Unless the context was opened with profile "", the result is also stored: in options.profile,
 * else in $XDG_CACHE_HOME/outboard (~/.cache/outboard), one file for each set of devices.
 * OUTBOARD_IO: measured but not stored. An eighth of the time is used to measure what a GPU's
 * choice of MSM method depends on (outboard_msm_plan). These results are stored in the same folder,
 * one file for each kind of GPU, and every context reads them when it opens such a GPU.
 */
OUTBOARD_API int outboard_calibrate(
	struct outboard *context, double seconds, struct outboard_error *error);
/*
 * The smallest size, a power of two, from which device `index` is expected to be faster than the
 * first CPU device of the context; UINT64_MAX: never; 1 for CPUs. Sizes are points, elements of a
 * transform, blobs or embedded vectors.
 */
OUTBOARD_API uint64_t outboard_threshold(
	struct outboard *context, uint32_t index, uint32_t operation);

/* ---- calls ---- */

struct outboard_ticket;

/* Options of a call. NULL: wait for the result, no callbacks. */
struct outboard_call {
	/* not NULL: return at once with a ticket, which the caller must free */
	struct outboard_ticket **ticket;
	/*
	 * seconds, 0: none. After this time work that has not started is dropped and the call ends
	 * with OUTBOARD_TIMEOUT
	 */
	double timeout;
	/*
	 * `done` rises from 0 to 1. Called at most ten times a second, and once at the end. A
	 * non-zero return value cancels the call.
	 */
	int (*progress)(void *arg, double done);
	/*
	 * Called last, when the call is over and its results are written. error is NULL when status
	 * is OUTBOARD_OK.
	 */
	void (*finished)(void *arg, int status, const struct outboard_error *error);
	void *arg;
	/* enum outboard_strategy + 1, for this call; 0: that of the context */
	uint32_t strategy;
	/*
	 * a CUevent: device memory must not be read before it completes; NULL: the memory is ready
	 */
	void *after;
	uint64_t reserved[4];
};

/*
 * Waits for the end of the call and returns its status. OUTBOARD_TIMEOUT: the call has not ended
 * after `timeout` seconds; it continues. 0: do not wait. Negative: wait without a limit.
 */
OUTBOARD_API int outboard_wait(
	struct outboard_ticket *ticket, double timeout, struct outboard_error *error);
/* 1 if the call is over, else 0. *ret_progress (may be NULL): 0..1. */
OUTBOARD_API int outboard_poll(struct outboard_ticket *ticket, double *ret_progress);
/*
 * Drops all work of the call that has not started. Work that has started ends as follows. On a CPU,
 * MSMs and transforms stop within some tens of milliseconds and sweeps at the next row. A GPU
 * completes what it is executing. KZG commitments, proofs and cells of lists stop after the current
 * blob (on a GPU, the current 64 blobs); part of the results may have been written. KZG
 * verification and recovery run to their end. The call then ends with OUTBOARD_CANCELLED, unless it
 * was already over. A timeout has the same effect.
 */
OUTBOARD_API void outboard_cancel(struct outboard_ticket *ticket);
/*
 * A descriptor that becomes readable when the call is over, for poll and epoll. The ticket owns it:
 * do not close or read it. -1: none could be created.
 */
OUTBOARD_API int outboard_ticket_fd(struct outboard_ticket *ticket);
/*
 * The failed attempt number `index` of a call that is over, whether or not a later attempt
 * succeeded. OUTBOARD_OK, or OUTBOARD_ARGUMENT when there were fewer attempts.
 */
OUTBOARD_API int outboard_ticket_attempt(
	struct outboard_ticket *ticket, uint32_t index, struct outboard_error *ret_attempt);
/* If the call is not over, it is cancelled and waited for. NULL is allowed. */
OUTBOARD_API void outboard_ticket_free(struct outboard_ticket *ticket);

/*
 * Location of data: host memory, or the memory of device `index` of the context, which must be a
 * GPU. In the second case the pointer holds a CUdeviceptr of its primary context, aligned to 16
 * bytes.
 */
#define OUTBOARD_HOST      0u
#define OUTBOARD_ON(index) (1u + (index))

/* ---- MSM: the sum of s_i P_i in G1 of BLS12-381 ---- */

enum outboard_point_format {
	/* 48 bytes, the format of ZCash and the IETF: x in big-endian order, flags in byte 0 */
	OUTBOARD_POINT_COMPRESSED = 0,
	/* 96 bytes: x, y in big-endian order; infinity is 0x40 in byte 0 and zeros */
	OUTBOARD_POINT_UNCOMPRESSED = 1,
	OUTBOARD_POINT_MONTGOMERY =
		/*
		 * 96 bytes: x, y in Montgomery form (R = 2^384), each as six 64-bit limbs in
		 * little-endian order: the layout of blst, arkworks, gnark and sppark; infinity is
		 * (0, 0)
		 */
	2
};

enum outboard_scalar_format {
	OUTBOARD_SCALAR_LE = 0, /* 32 bytes in little-endian order */
	OUTBOARD_SCALAR_BE = 1, /* 32 bytes in big-endian order */
	/* four 64-bit limbs in little-endian order: the scalar times 2^256 mod r, below r */
	OUTBOARD_SCALAR_MONTGOMERY = 2
};

enum outboard_trust {
	OUTBOARD_CHECK = 0, /* check that each point is on the curve and in G1 */
	/*
	 * the caller guarantees points on the curve, perhaps outside G1: correct, a little slower
	 */
	OUTBOARD_TRUST_CURVE = 1,
	OUTBOARD_TRUST_SUBGROUP = 2 /* the caller guarantees points in G1 */
};

struct outboard_points {
	const void *points; /* in host memory; the library makes a copy */
	uint64_t count;     /* 0..OUTBOARD_MAX_POINTS */
	uint64_t stride;    /* bytes from one point to the next; 0: packed */
	uint32_t format;    /* enum outboard_point_format */
	uint32_t trust;     /* enum outboard_trust */
	/*
	 * memory, on each device, that may be used for shifted copies of the points, which make
	 * MSMs with them faster; 0: none
	 */
	uint64_t table_bytes;
	uint64_t reserved[4];
};

struct outboard_bases;

/*
 * Checks, copies and uploads points. Infinity is allowed; it adds nothing to a sum.
 * OUTBOARD_ARGUMENT: error.item is the index of the first bad point; OUTBOARD_LIMIT,
 * OUTBOARD_NO_MEMORY.
 */
OUTBOARD_API int outboard_bases_new(struct outboard *context, const struct outboard_points *points,
	struct outboard_bases **ret_bases, struct outboard_error *error);
OUTBOARD_API uint64_t outboard_bases_count(const struct outboard_bases *bases);
/* Bytes held on all devices together. */
OUTBOARD_API uint64_t outboard_bases_bytes(const struct outboard_bases *bases);
OUTBOARD_API void outboard_bases_free(struct outboard_bases *bases);

struct outboard_msm {
	/* batch x count scalars, one product after the other; any 256-bit numbers */
	const void *scalars;
	uint64_t offset, count; /* range of the bases; count 0: the sum is infinity */
	uint64_t batch;         /* number of products, at most OUTBOARD_MAX_BATCH; 0: one */
	uint32_t scalar_format; /* enum outboard_scalar_format */
	uint32_t memory;        /* location of the scalars: OUTBOARD_HOST or OUTBOARD_ON(index) */
	/* 1: scalars at or above r are refused; 0: they are used as integers, unreduced */
	uint32_t canonical;
	uint32_t result_format; /* enum outboard_point_format */
	void *result;           /* batch points, in host memory */
	uint64_t reserved[4];
};

enum outboard_method {
	OUTBOARD_BUCKETS = 0, /* points are sorted by the digits of their scalars */
	/* as BUCKETS, with shifted copies of the points, so that there are fewer buckets to sum */
	OUTBOARD_COPIES = 1,
	/* all multiples of each point that a digit can select are precomputed; nothing is sorted */
	OUTBOARD_MULTIPLES = 2
};

/* How a GPU would compute `batch` products of the first `count` points of a handle. */
struct outboard_plan {
	uint32_t method; /* enum outboard_method */
	uint32_t window; /* bits in a digit */
	/*
	 * copies of the points; for OUTBOARD_MULTIPLES the number of digits in a scalar, each of
	 * which has a table
	 */
	uint32_t copies;
	/* 1: from measurements of such a device; 0: estimated from its multiprocessors and clock */
	uint32_t measured;
	uint64_t group; /* products computed together, as many as fit into the device's memory */
	/*
	 * device memory that the handle holds; 0: the points are not uploaded yet, and the other
	 * fields describe the tables that would be made
	 */
	uint64_t bytes;
	double seconds; /* expected for all products */
	uint64_t reserved[4];
};

/*
 * OUTBOARD_ARGUMENT: there is no such device in the handle's context, or not that many points;
 * OUTBOARD_UNSUPPORTED: the device is not a GPU.
 */
OUTBOARD_API int outboard_msm_plan(struct outboard_bases *bases, uint32_t device, uint64_t count,
	uint64_t batch, struct outboard_plan *ret_plan, struct outboard_error *error);
/*
 * OUTBOARD_ARGUMENT: bad range or, with `canonical`, a scalar at or above r; error.item is its
 * index among batch x count. Other errors: as described for all calls.
 */
OUTBOARD_API int outboard_msm_run(struct outboard_bases *bases, const struct outboard_msm *msm,
	const struct outboard_call *call, struct outboard_error *error);
/*
 * One call that uploads its points, uses them and frees them. It makes no tables, whatever
 * points.table_bytes allows. Blocks.
 */
OUTBOARD_API int outboard_msm_once(struct outboard *context, const struct outboard_points *points,
	const struct outboard_msm *msm, struct outboard_error *error);

/* ---- NTT: transforms over the scalar field of BLS12-381 ---- */

/* order of input and output: N natural, R bit-reversed */
enum outboard_order { OUTBOARD_NN = 0, OUTBOARD_NR = 1, OUTBOARD_RN = 2, OUTBOARD_RR = 3 };

struct outboard_ntt_shape {
	uint32_t log_n;   /* 2^log_n elements, 0..OUTBOARD_MAX_LOG_N */
	uint32_t inverse; /* 1: the inverse transform, with the factor 1/n */
	uint32_t order;   /* enum outboard_order */
	/* enum outboard_scalar_format; elements must be below r. MONTGOMERY is the fastest */
	uint32_t format;
	/*
	 * shift g of the coset, in the same format, not 0: x_j is multiplied by g^j; NULL: none.
	 * Copied
	 */
	const void *coset;
	uint64_t reserved[4];
};

struct outboard_ntt;

/*
 * Makes a plan for X_k = sum of x_j (g w^k)^j with w = 7^((r - 1) / n). OUTBOARD_ARGUMENT,
 * OUTBOARD_LIMIT, OUTBOARD_NO_MEMORY.
 */
OUTBOARD_API int outboard_ntt_new(struct outboard *context, const struct outboard_ntt_shape *shape,
	struct outboard_ntt **ret_ntt, struct outboard_error *error);
OUTBOARD_API void outboard_ntt_free(struct outboard_ntt *ntt);
/*
 * Performs `batch` transforms in place, which lie one after the other in memory (0: does nothing).
 * memory: OUTBOARD_HOST or OUTBOARD_ON(index). Elements in device memory are in Montgomery form and
 * below r, and only that device can transform them. After an error the data is unchanged, unless
 * error.status is OUTBOARD_TIMEOUT, OUTBOARD_CANCELLED or OUTBOARD_DEVICE: then it may be partly
 * transformed. OUTBOARD_ARGUMENT: error.item is the first element at or above r.
 */
OUTBOARD_API int outboard_ntt_run(struct outboard_ntt *ntt, void *data, uint64_t batch,
	uint32_t memory, const struct outboard_call *call, struct outboard_error *error);
OUTBOARD_API int outboard_ntt_once(struct outboard *context, const struct outboard_ntt_shape *shape,
	void *data, uint64_t batch, struct outboard_error *error);

/* ---- KZG: EIP-4844 and EIP-7594 ---- */

/*
 * Results are the same bytes and verdicts as those of c-kzg-4844, with two exceptions: loading a
 * setup checks more (outboard_kzg_load), and recovery refuses cells that belong to no single blob
 * (outboard_kzg_recover).
 */

#define OUTBOARD_ELEMENT_BYTES    32     /* big-endian, below r */
#define OUTBOARD_COMMITMENT_BYTES 48     /* commitments and proofs: compressed points */
#define OUTBOARD_BLOB_BYTES       131072 /* 4096 elements */
#define OUTBOARD_CELL_BYTES       2048   /* 64 elements */
#define OUTBOARD_CELLS            128    /* in a blob */

struct outboard_kzg_options {
	/*
	 * Window of the table for cell proofs in bits, 2..10; 0: 4. The table of a CPU has 8192 x
	 * 2^(cell_window - 1) points. On a GPU windows have 4..8 bits, and the table has ceil(255 /
	 * bits) times as many points of 96 bytes; 0: as many bits as fit into a sixteenth of the
	 * device memory, but at least 4, for which the table takes 384 MiB.
	 */
	uint32_t cell_window;
	uint32_t unused;
	/*
	 * memory, on each device, that may be used for tables that make commitments and proofs
	 * faster; 0: none
	 */
	uint64_t table_bytes;
	uint64_t reserved[4];
};

struct outboard_kzg;

/*
 * Loads a trusted setup in the text format of c-kzg-4844. Checks that every point is in its group
 * and that the three lists come from one ceremony; c-kzg-4844 checks less. error.item is the index
 * of the bad point. options may be NULL.
 */
OUTBOARD_API int outboard_kzg_load(struct outboard *context, const char *text, size_t length,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error);
/* As outboard_kzg_load, from a file; OUTBOARD_IO. */
OUTBOARD_API int outboard_kzg_load_file(struct outboard *context, const char *path,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error);
OUTBOARD_API void outboard_kzg_free(struct outboard_kzg *kzg);

/* ---- KZG: the calls ---- */

/*
 * In the functions below lists are packed, and n is at most OUTBOARD_MAX_BATCH. n = 0 is valid and
 * does nothing. A proof that does not hold is not an error: *ret_valid is 0. OUTBOARD_ARGUMENT:
 * error.item is the index of the bad element, counted over all blobs of the list, or the index of
 * the bad blob, commitment, proof or cell in its list; the error text says which.
 */

/* n blobs -> n commitments. */
OUTBOARD_API int outboard_kzg_commit(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_commitments, const struct outboard_call *call, struct outboard_error *error);
/* Proves that the blob's polynomial has the value y at z. */
OUTBOARD_API int outboard_kzg_prove(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, const struct outboard_call *call,
	struct outboard_error *error);
/* n blobs and their commitments -> n proofs. The commitments are not checked against the blobs. */
OUTBOARD_API int outboard_kzg_prove_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, uint64_t n, uint8_t *ret_proofs,
	const struct outboard_call *call, struct outboard_error *error);
OUTBOARD_API int outboard_kzg_verify(struct outboard_kzg *kzg, const uint8_t *commitment,
	const uint8_t *z, const uint8_t *y, const uint8_t *proof, int *ret_valid,
	const struct outboard_call *call, struct outboard_error *error);
/* n blobs, commitments and proofs: valid if all are valid. */
OUTBOARD_API int outboard_kzg_verify_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, uint64_t n, int *ret_valid,
	const struct outboard_call *call, struct outboard_error *error);
/*
 * n blobs -> n x 128 cells and n x 128 proofs; either may be NULL. Cells are computed on CPUs,
 * proofs on CPUs or GPUs.
 */
OUTBOARD_API int outboard_kzg_cells(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_cells, uint8_t *ret_proofs, const struct outboard_call *call,
	struct outboard_error *error);
/*
 * Computes all cells of a blob, and proofs unless ret_proofs is NULL, from n cells with rising
 * indices, 64 <= n <= 128.
 *
 * n > 64 cells that belong to no single blob, for example because one is damaged:
 * OUTBOARD_ARGUMENT, and nothing is written. c-kzg-4844 does not check this. It reports success,
 * returns the given cells unchanged, computes the missing ones from the polynomial of degree below
 * 64 n through all given cells, and returns proofs that do not verify.
 *
 * Any 64 cells belong to some blob. With n = 64 a damaged cell is detected neither here nor by
 * c-kzg-4844: call outboard_kzg_verify_cells first.
 */
OUTBOARD_API int outboard_kzg_recover(struct outboard_kzg *kzg, const uint64_t *indices,
	const uint8_t *cells, uint64_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
	const struct outboard_call *call, struct outboard_error *error);
/*
 * Cell i is cell number indices[i] of the blob with commitment commitments[i]; proofs[i] is its
 * proof.
 */
OUTBOARD_API int outboard_kzg_verify_cells(struct outboard_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, uint64_t n,
	int *ret_valid, const struct outboard_call *call, struct outboard_error *error);

/* ---- recurrence quantification ---- */

/*
 * data[length * channels]: the values of one sample lie side by side, sample after sample. Copied.
 */
struct outboard_series {
	const char *name; /* used in messages; NULL: the index of the series */
	const double *data;
	uint64_t length;
	uint32_t channels;
	uint32_t unused;
	uint64_t reserved[2];
};

struct outboard_series_set;
struct outboard_rqa_options;

OUTBOARD_API int outboard_series_new(struct outboard *context, const struct outboard_series *series,
	uint64_t count, struct outboard_series_set **ret_set, struct outboard_error *error);
OUTBOARD_API void outboard_series_free(struct outboard_series_set *set);

/*
 * preset: the tool whose conventions to use ("gaze", "pyrqa", "julia" ...: see
 * compute/docs/RQA.md); NULL: "gaze". OUTBOARD_ARGUMENT: the error text lists the presets.
 */
OUTBOARD_API int outboard_rqa_options_new(const char *preset,
	struct outboard_rqa_options **ret_options, struct outboard_error *error);
OUTBOARD_API void outboard_rqa_options_free(struct outboard_rqa_options *options);
/*
 * Sets one option. name is that of an option of the `outboard rqa` command without the dashes:
 * ("m", "3"), ("eps", "0.1"), ("norm", "l2"), ("theiler", "1"). There is also "want": any of
 * vertical, white, times, trend, network, separated by commas, or all, or none; measures of groups
 * that are not wanted are NaN. OUTBOARD_ARGUMENT: the error text lists the valid names.
 */
OUTBOARD_API int outboard_rqa_options_set(struct outboard_rqa_options *options, const char *name,
	const char *value, struct outboard_error *error);

/*
 * Measures are numbered from 0. These return the number of measures; the name of a measure ("DET")
 * or NULL; the number of a name (case is ignored) or -1.
 */
OUTBOARD_API uint32_t outboard_rqa_measure_count(void);
OUTBOARD_API const char *outboard_rqa_measure_name(uint32_t measure);
OUTBOARD_API int outboard_rqa_measure_find(const char *name);

/*
 * Computes the measures of series x or, for cross and joint recurrence (option "kind": auto, cross,
 * joint), of x and y. For auto, y is OUTBOARD_NO_ITEM. ret_values has outboard_rqa_measure_count()
 * entries; an undefined measure is NaN.
 */
OUTBOARD_API int outboard_rqa_run(struct outboard_series_set *set, uint64_t x, uint64_t y,
	const struct outboard_rqa_options *options, double *ret_values,
	const struct outboard_call *call, struct outboard_error *error);

/*
 * A selection of channels and a norm ("l1", "l2", "max"; NULL: that of the options), applied to
 * each series.
 */
struct outboard_rqa_mode {
	const char *name;
	const char *norm;
	const uint32_t *channels;
	uint32_t channel_count; /* 0: all channels */
	uint32_t unused;
};

/* All combinations of the lists are computed. Everything is copied by the call. */
struct outboard_rqa_grid {
	const uint32_t *m, *tau, *lmin;
	const double *eps;
	uint32_t m_count, tau_count, lmin_count, eps_count;
	const struct outboard_rqa_mode *modes; /* NULL: one mode with all channels */
	uint32_t mode_count;
	uint32_t unused;
	uint64_t reserved[4];
};

struct outboard_rqa_row {
	uint64_t series;             /* index in the set */
	uint32_t mode, m, tau, lmin; /* mode: index in the grid */
	double eps;
	int32_t status; /* enum outboard_status */
	uint32_t unused;
	const char *reason; /* NULL when status is OUTBOARD_OK, else a sentence */
	/* outboard_rqa_measure_count() entries; NULL unless status is OUTBOARD_OK */
	const double *values;
};

/*
 * Computes a grid for all series of the set. Each call of rows() delivers all eps x lmin rows of
 * one (series, mode, m, tau), each such group exactly once, in no particular order of groups, one
 * call at a time. The rows are valid only during the call. A non-zero return value cancels the
 * sweep. A series that cannot be used does not make the sweep fail: its rows have a status and a
 * reason.
 */
OUTBOARD_API int outboard_rqa_sweep(struct outboard_series_set *set,
	const struct outboard_rqa_options *options, const struct outboard_rqa_grid *grid,
	int (*rows)(void *arg, const struct outboard_rqa_row *rows, uint32_t count), void *rows_arg,
	const struct outboard_call *call, struct outboard_error *error);

#ifdef __cplusplus
}
#endif

#endif
