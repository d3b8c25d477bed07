/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * outboard.h: multi-scalar products, number-theoretic transforms and KZG over BLS12-381, and
 * recurrence quantification, on every CPU and GPU at hand.
 *
 *     struct outboard *ob;
 *     struct outboard_bases *bases;
 *     struct outboard_error error;
 *     outboard_open(NULL, &ob, &error);                                       // every GPU there is, and the CPU
 *     struct outboard_points p = { .points = points, .count = n, .format = OUTBOARD_POINT_COMPRESSED };
 *     outboard_bases_new(ob, &p, &bases, &error);                             // checked and uploaded once
 *     struct outboard_msm m = { .scalars = scalars, .count = n, .result = sum, .result_format = OUTBOARD_POINT_COMPRESSED };
 *     if (outboard_msm_run(bases, &m, NULL, &error))
 *             fprintf(stderr, "%s\n", error.text);
 *
 * Conventions
 * - A function returns OUTBOARD_OK (0) or another enum outboard_status; then error (may be NULL)
 *   says which item is at fault and what to do.
 *   Results are written only on success.
 * - Structs of arguments are zeroed before their fields are set; a field that is 0 has its default.
 *   `reserved` stays zero.
 * - Every function may be called from any thread, and any number of calls run at once. A handle may
 *   be freed while calls use it: it goes when they are done.
 * - Results do not depend on the device, on the number of devices, nor on threads: the same bytes
 *   always.
 * - A call blocks unless its struct outboard_call asks for a ticket. With a ticket everything it
 *   points to stays until the ticket is done.
 * - Callbacks come from the library's threads, never two at once for one call. They may start
 *   further calls with tickets, but wait for none.
 * - After fork a child opens a context of its own. Times are seconds, sizes bytes.
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

/* Named maxima; one more is refused with OUTBOARD_LIMIT. */
#define OUTBOARD_MAX_DEVICES  64       /* of a context */
#define OUTBOARD_MAX_POINTS   67108864 /* 2^26 points of one handle */
#define OUTBOARD_MAX_BATCH    65536    /* products of one call; blobs or cells of one call */
/* a transform, and all of a batch together, has at most 2^26 elements */
#define OUTBOARD_MAX_LOG_N    26
#define OUTBOARD_MAX_CALLS    4096 /* calls that are not finished, of a context */
#define OUTBOARD_MAX_ATTEMPTS 16   /* errors kept of a call */

enum outboard_status {
	OUTBOARD_OK = 0,
	/* an argument or an item of the data is wrong; error.item tells which */
	OUTBOARD_ARGUMENT = 1,
	OUTBOARD_LIMIT = 2, /* a named maximum is exceeded */
	OUTBOARD_NO_MEMORY = 3,
	OUTBOARD_DEVICE = 4,    /* a device failed and no other could do the work */
	OUTBOARD_NO_DEVICE = 5, /* there is no such device */
	OUTBOARD_TIMEOUT = 6,   /* not done in time */
	OUTBOARD_CANCELLED = 7,
	OUTBOARD_UNSUPPORTED = 8, /* this combination is not available */
	OUTBOARD_IO = 9,          /* a file cannot be read or written */
	OUTBOARD_INTERNAL = 10    /* a mistake of the library: please report it */
};

#define OUTBOARD_NO_ITEM    UINT64_MAX
#define OUTBOARD_ANY_DEVICE UINT32_MAX

/* What went wrong. The caller owns it; written only when a call does not return OUTBOARD_OK. */
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

/* "argument"; "?" for a number that is none. */
OUTBOARD_API const char *outboard_status_name(int status);
/* "0.1.0" */
OUTBOARD_API const char *outboard_version(void);

/* ---- a context: the devices that work together ---- */

struct outboard;

enum outboard_strategy {
	/* the device that will be done first; large work is shared out where that is faster */
	OUTBOARD_AUTO = 0,
	OUTBOARD_SINGLE = 1,       /* the device that will be done first */
	OUTBOARD_EQUAL = 2,        /* equal parts for all devices, the remainder to the first */
	OUTBOARD_PROPORTIONAL = 3, /* parts in proportion to the devices' speeds */
	/* the same, times the share of each device that is free just now */
	OUTBOARD_DYNAMIC = 4
};

struct outboard_options {
	/*
	 * NULL or "auto": every GPU there is, and the CPU. "cpu", "gpu": one kind only. Or a list:
	 * "gpu:0,gpu:2,cpu:8", the numbers being the GPU's ordinal and the CPU device's threads; a
	 * CPU may be listed several times, each entry being a device with threads of its own. A GPU
	 * is whatever libcuda.so.1 shows: a card of this machine, or of a server where the program
	 * runs under `outboard run`.
	 */
	const char *devices;
	/*
	 * of a CPU device without a number of its own; 0: one for each processor this process may
	 * use
	 */
	uint32_t threads;
	uint32_t strategy;      /* enum outboard_strategy */
	uint32_t share_at_most; /* work is shared among the best so many devices; 0: all */
	/* What becomes of a device that fails. */
	/* further attempts of a piece of work on its device; 0: 2; UINT32_MAX: none */
	uint32_t retries;
	/* seconds before the first of them, doubled each time up to backoff_most; 0: 0.02 */
	double backoff;
	double backoff_most; /* 0: 1 */
	/* failures in a row after which a device gets no more work; 0: 3 */
	uint32_t breaker_failures;
	double breaker_pause; /* seconds until it is tried again with one piece; 0: 5 */
	/* 1: where the list names no CPU, the CPU does not step in for GPUs that fail */
	uint32_t no_fallback;
	/*
	 * seconds of queued work that count as a load of 1; 0: 1. Above 0.8 a device hands work to
	 * those below 0.5
	 */
	double balance_horizon;
	/*
	 * file of measured speeds; NULL: the one outboard_calibrate wrote for this machine, if
	 * there is one; "": none
	 */
	const char *profile;
	const char *driver;  /* the CUDA driver library; NULL: libcuda.so.1 */
	uint64_t gpu_memory; /* bytes the library may keep on one GPU; 0: what is free */
	uint64_t reserved[8];
};

/*
 * Opens devices. options NULL: all defaults. OUTBOARD_NO_DEVICE: a listed device is not there (its
 * text says why); OUTBOARD_ARGUMENT, OUTBOARD_LIMIT, OUTBOARD_NO_MEMORY. Elsewhere a NULL context
 * means the process's own, opened with all defaults at its first use.
 */
OUTBOARD_API int outboard_open(const struct outboard_options *options,
	struct outboard **ret_context, struct outboard_error *error);
/*
 * Cancels what has not begun, waits for what has, closes the devices. Tickets and handles must be
 * freed before. NULL is allowed.
 */
OUTBOARD_API void outboard_close(struct outboard *context);
/* For the calls from now on. OUTBOARD_ARGUMENT. */
OUTBOARD_API int outboard_set_strategy(struct outboard *context, uint32_t strategy);

enum outboard_kind { OUTBOARD_CPU = 0, OUTBOARD_GPU = 1 };
enum outboard_breaker { OUTBOARD_CLOSED = 0, OUTBOARD_OPEN = 1, OUTBOARD_HALF_OPEN = 2 };

struct outboard_device {
	char name[64];  /* "cpu:2" or "gpu:0", as in the list of devices */
	char what[128]; /* the processor's or card's name */
	uint32_t kind;  /* enum outboard_kind */
	uint32_t units; /* threads, or multiprocessors */
	uint64_t memory;
	double clock; /* GHz, 0 if unknown */
	double link;  /* seconds of one call to the device */
	/*
	 * speed relative to one thread of a CPU: measured if there is a profile, else from the
	 * fields above
	 */
	double score;
	uint32_t fallback_only; /* 1: works only when others fail */
	uint32_t breaker;       /* enum outboard_breaker; open: gets no work */
	double load;            /* 0..1: queued and running work, in balance_horizon */
	/*
	 * Statistics since the context was opened. A piece is the part of a call that one device
	 * does at once.
	 */
	/* done; an item is a point, an element, a blob or a cell of a recurrence matrix */
	uint64_t pieces, items;
	/* failed attempts; of these repeated here; times the breaker opened */
	uint64_t failures, retries, opened;
	/* queued pieces taken over from, and given to, other devices */
	uint64_t moved_in, moved_out;
	uint64_t queued; /* pieces waiting now */
	double busy;     /* seconds at work */
	/*
	 * The pool of device memory: in use and kept for the next call, the most that was in use,
	 * requests, and those met from what was kept.
	 */
	uint64_t pool_used, pool_kept, pool_peak, pool_requests, pool_reused;
	uint64_t reserved[8];
};

/* The number of devices; the context's order is the list's. */
OUTBOARD_API uint32_t outboard_device_count(struct outboard *context);
/* OUTBOARD_ARGUMENT: no such index. */
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
 * Measures every device for at most `seconds` (0: 10) in all, uses the result from now on and,
 * unless the context was opened with profile "", stores it: in options.profile, else in
 * $XDG_CACHE_HOME/outboard (~/.cache/outboard), in a file of its own for each set of devices.
 * OUTBOARD_IO: measured but not stored. An eighth of the time goes to what GPUs choose their ways
 * of doing products by (outboard_msm_plan); that has a file there for each kind of GPU, which every
 * context reads when it opens one.
 */
OUTBOARD_API int outboard_calibrate(
	struct outboard *context, double seconds, struct outboard_error *error);
/*
 * The smallest size (points; elements of a transform; blobs; embedded vectors), a power of two,
 * from which device `index` is expected to be faster than the context's first CPU device;
 * UINT64_MAX: never. 1 for CPUs.
 */
OUTBOARD_API uint64_t outboard_threshold(
	struct outboard *context, uint32_t index, uint32_t operation);

/* ---- how a call is made ---- */

struct outboard_ticket;

/* NULL in place of it: wait for the result, no callbacks. */
struct outboard_call {
	struct outboard_ticket **ticket; /* not NULL: return at once; the ticket must be freed */
	/*
	 * seconds; then what has not begun is dropped and the call ends with OUTBOARD_TIMEOUT. 0:
	 * none
	 */
	double timeout;
	/*
	 * done rises from 0 to 1; at most ten calls a second, and one at the end. Not 0 cancels the
	 * call.
	 */
	int (*progress)(void *arg, double done);
	/*
	 * The call is over, its results are written; the last callback of the call. error is NULL
	 * when status is OUTBOARD_OK.
	 */
	void (*finished)(void *arg, int status, const struct outboard_error *error);
	void *arg;
	/* enum outboard_strategy + 1, for this call; 0: the context's */
	uint32_t strategy;
	/* a CUevent after which memory on a device is ready; NULL: it is */
	void *after;
	uint64_t reserved[4];
};

/*
 * The call's status; OUTBOARD_TIMEOUT after `timeout` seconds without an end (the call goes on); 0
 * asks without waiting, negative waits for the end.
 */
OUTBOARD_API int outboard_wait(
	struct outboard_ticket *ticket, double timeout, struct outboard_error *error);
/* 1 when the call is over, else 0. *ret_progress (may be NULL): 0..1. */
OUTBOARD_API int outboard_poll(struct outboard_ticket *ticket, double *ret_progress);
/*
 * What has not begun is dropped; on a CPU products and transforms stop within some tens of
 * milliseconds, sweeps at their next row; what a GPU does at that moment ends first. KZG:
 * commitments, proofs and cells of lists stop after the blob at hand (64 on a GPU), verification
 * and recovery end first; of a list results may be written in part. The call then ends with
 * OUTBOARD_CANCELLED, unless it was over before. The same goes for time-outs.
 */
OUTBOARD_API void outboard_cancel(struct outboard_ticket *ticket);
/*
 * A descriptor that becomes readable when the call is over, for poll and epoll; the ticket's, do
 * not close or read it. -1: none to be had.
 */
OUTBOARD_API int outboard_ticket_fd(struct outboard_ticket *ticket);
/*
 * Attempt `index` that failed, of a call that is over, whether or not another attempt succeeded;
 * OUTBOARD_OK, or OUTBOARD_ARGUMENT when there were not so many.
 */
OUTBOARD_API int outboard_ticket_attempt(
	struct outboard_ticket *ticket, uint32_t index, struct outboard_error *ret_attempt);
/* The ticket of a call that is not over: the call is cancelled and waited for. NULL is allowed. */
OUTBOARD_API void outboard_ticket_free(struct outboard_ticket *ticket);

/*
 * Where data lies: in host memory, or on device `index` of the context, a GPU: the pointer then
 * holds a CUdeviceptr of its primary context, 16-byte aligned.
 */
#define OUTBOARD_HOST      0u
#define OUTBOARD_ON(index) (1u + (index))

/* ---- sums of products: sum of s_i P_i in G1 of BLS12-381 ---- */

enum outboard_point_format {
	/*
	 * 48 bytes, as ZCash and the IETF write them: x with the highest byte first, flags in byte
	 * 0
	 */
	OUTBOARD_POINT_COMPRESSED = 0,
	/* 96 bytes: x, y, the highest byte first; 0x40 in byte 0 and else zero is infinity */
	OUTBOARD_POINT_UNCOMPRESSED = 1,
	OUTBOARD_POINT_MONTGOMERY =
		2 /* 96 bytes: x, y in Montgomery form (R = 2^384), six 64-bit limbs each, the lowest first: the layout of blst,
					    arkworks, gnark and sppark; (0, 0) is infinity */
};

enum outboard_scalar_format {
	OUTBOARD_SCALAR_LE = 0, /* 32 bytes, the lowest first */
	OUTBOARD_SCALAR_BE = 1, /* 32 bytes, the highest first */
	/* four 64-bit limbs, the lowest first, times 2^256 mod r, below r */
	OUTBOARD_SCALAR_MONTGOMERY = 2
};

enum outboard_trust {
	OUTBOARD_CHECK = 0, /* every point is checked: on the curve, and in G1 */
	/* points are on the curve, perhaps outside G1: still right, a little slower */
	OUTBOARD_TRUST_CURVE = 1,
	OUTBOARD_TRUST_SUBGROUP = 2 /* points are in G1: your word */
};

struct outboard_points {
	const void *points; /* in host memory; copied */
	uint64_t count;     /* 0..OUTBOARD_MAX_POINTS */
	uint64_t stride;    /* bytes from one point to the next; 0: packed */
	uint32_t format;    /* enum outboard_point_format */
	uint32_t trust;     /* enum outboard_trust */
	/*
	 * memory allowed for shifted copies, which make products with these points faster, on each
	 * device; 0: none
	 */
	uint64_t table_bytes;
	uint64_t reserved[4];
};

struct outboard_bases;

/*
 * Checks, copies and uploads points. Infinity is allowed and adds nothing. OUTBOARD_ARGUMENT:
 * error.item is the index of the first bad point; OUTBOARD_LIMIT, OUTBOARD_NO_MEMORY.
 */
OUTBOARD_API int outboard_bases_new(struct outboard *context, const struct outboard_points *points,
	struct outboard_bases **ret_bases, struct outboard_error *error);
OUTBOARD_API uint64_t outboard_bases_count(const struct outboard_bases *bases);
/* Bytes held, on all devices together. */
OUTBOARD_API uint64_t outboard_bases_bytes(const struct outboard_bases *bases);
OUTBOARD_API void outboard_bases_free(struct outboard_bases *bases);

struct outboard_msm {
	/* batch x count, one product after the other; any 256-bit numbers */
	const void *scalars;
	uint64_t offset, count; /* of the bases; count 0: the sum is infinity */
	uint64_t batch;         /* products; 0: one. At most OUTBOARD_MAX_BATCH */
	uint32_t scalar_format; /* enum outboard_scalar_format */
	uint32_t memory;        /* of the scalars: OUTBOARD_HOST or OUTBOARD_ON(index) */
	/* 1: scalars at or above r are refused; 0: they count as the integers they are */
	uint32_t canonical;
	uint32_t result_format; /* enum outboard_point_format */
	void *result;           /* batch points, in host memory */
	uint64_t reserved[4];
};

enum outboard_method {
	OUTBOARD_BUCKETS = 0, /* points are sorted by the digits of their scalars */
	/* the same with shifted copies of the points, so that fewer buckets are summed up */
	OUTBOARD_COPIES = 1,
	/* all multiples of the points that digits ask for are held, and nothing is sorted */
	OUTBOARD_MULTIPLES = 2
};

/* How a GPU would do `batch` products of the first `count` points of a handle. */
struct outboard_plan {
	uint32_t method; /* enum outboard_method */
	uint32_t window; /* bits of a digit */
	/*
	 * of the points that are held; with OUTBOARD_MULTIPLES the digits of a scalar, each with
	 * its table
	 */
	uint32_t copies;
	/*
	 * 1: by what was measured on such a device; 0: by a guess from its multiprocessors and
	 * clock
	 */
	uint32_t measured;
	uint64_t group; /* products that are worked on together; what fits the device's memory */
	/*
	 * of the device's memory for the handle; 0: the points are not there yet, and what follows
	 * is what would be made
	 */
	uint64_t bytes;
	double seconds; /* expected of all */
	uint64_t reserved[4];
};

/*
 * OUTBOARD_ARGUMENT: no such device of the handle's context, or no such points;
 * OUTBOARD_UNSUPPORTED: the device is no GPU.
 */
OUTBOARD_API int outboard_msm_plan(struct outboard_bases *bases, uint32_t device, uint64_t count,
	uint64_t batch, struct outboard_plan *ret_plan, struct outboard_error *error);
/*
 * OUTBOARD_ARGUMENT: bad range, or with `canonical` a scalar out of range: error.item is its index
 * among batch x count. Else as a call ends.
 */
OUTBOARD_API int outboard_msm_run(struct outboard_bases *bases, const struct outboard_msm *msm,
	const struct outboard_call *call, struct outboard_error *error);
/*
 * One call with points of its own, which are uploaded, used and dropped: no table is made of them,
 * whatever points.table_bytes allows. Blocks.
 */
OUTBOARD_API int outboard_msm_once(struct outboard *context, const struct outboard_points *points,
	const struct outboard_msm *msm, struct outboard_error *error);

/* ---- transforms over the scalar field of BLS12-381 ---- */

/* input, output: N natural, R bit-reversed */
enum outboard_order { OUTBOARD_NN = 0, OUTBOARD_NR = 1, OUTBOARD_RN = 2, OUTBOARD_RR = 3 };

struct outboard_ntt_shape {
	uint32_t log_n;   /* 2^log_n elements, 0..OUTBOARD_MAX_LOG_N */
	uint32_t inverse; /* 1: the inverse, 1/n included */
	uint32_t order;   /* enum outboard_order */
	/* enum outboard_scalar_format; elements must be below r. MONTGOMERY is the fastest */
	uint32_t format;
	/* a shift in the same format, not 0: x_j counts as x_j g^j; NULL: none. Copied */
	const void *coset;
	uint64_t reserved[4];
};

struct outboard_ntt;

/*
 * A plan: X_k = sum of x_j (g w^k)^j with w = 7^((r - 1) / n). OUTBOARD_ARGUMENT, OUTBOARD_LIMIT,
 * OUTBOARD_NO_MEMORY.
 */
OUTBOARD_API int outboard_ntt_new(struct outboard *context, const struct outboard_ntt_shape *shape,
	struct outboard_ntt **ret_ntt, struct outboard_error *error);
OUTBOARD_API void outboard_ntt_free(struct outboard_ntt *ntt);
/*
 * In place, `batch` transforms one after the other (0: nothing is done). memory: OUTBOARD_HOST or
 * OUTBOARD_ON(index); there elements are in Montgomery form and below r, and no other device can do
 * the work. After an error data is as it was, or partly transformed if error.status is
 * OUTBOARD_TIMEOUT, OUTBOARD_CANCELLED or OUTBOARD_DEVICE. OUTBOARD_ARGUMENT: error.item is the
 * first element at or above r.
 */
OUTBOARD_API int outboard_ntt_run(struct outboard_ntt *ntt, void *data, uint64_t batch,
	uint32_t memory, const struct outboard_call *call, struct outboard_error *error);
OUTBOARD_API int outboard_ntt_once(struct outboard *context, const struct outboard_ntt_shape *shape,
	void *data, uint64_t batch, struct outboard_error *error);

/* ---- KZG: EIP-4844 and EIP-7594 ---- */

/*
 * The same bytes and verdicts as c-kzg-4844, with two exceptions: loading a setup checks more
 * (outboard_kzg_load), and recovery refuses cells that belong to no single blob
 * (outboard_kzg_recover).
 */

#define OUTBOARD_ELEMENT_BYTES    32     /* the highest byte first, below r */
#define OUTBOARD_COMMITMENT_BYTES 48     /* commitments and proofs: compressed points */
#define OUTBOARD_BLOB_BYTES       131072 /* 4096 elements */
#define OUTBOARD_CELL_BYTES       2048   /* 64 elements */
#define OUTBOARD_CELLS            128    /* of a blob */

struct outboard_kzg_options {
	/*
	 * Bits of a window of the table behind cell proofs, 2..10: 8192 x 2^(cell_window - 1)
	 * points; 0: 4. On a GPU 4..8 of these bits, and ceil(255 / bits) times as many points of
	 * 96 bytes; 0: as many bits as a sixteenth of its memory allows, but 4 at least, which take
	 * 384 MiB.
	 */
	uint32_t cell_window;
	uint32_t unused;
	/*
	 * memory allowed, on each device, for tables that make commitments and proofs faster; 0:
	 * none
	 */
	uint64_t table_bytes;
	uint64_t reserved[4];
};

struct outboard_kzg;

/*
 * A trusted setup in c-kzg-4844's text. Every point is checked to be in its group, and the three
 * lists to be of one ceremony; error.item is the bad point. c-kzg-4844 checks less. options may be
 * NULL.
 */
OUTBOARD_API int outboard_kzg_load(struct outboard *context, const char *text, size_t length,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error);
/* The same from a file; OUTBOARD_IO. */
OUTBOARD_API int outboard_kzg_load_file(struct outboard *context, const char *path,
	const struct outboard_kzg_options *options, struct outboard_kzg **ret_kzg,
	struct outboard_error *error);
OUTBOARD_API void outboard_kzg_free(struct outboard_kzg *kzg);

/*
 * Lists are packed; n is at most OUTBOARD_MAX_BATCH; n = 0 does nothing, and is valid. A claim that
 * does not hold is no error: *ret_valid is 0. OUTBOARD_ARGUMENT: error.item is the index of the bad
 * element, counted through all blobs of the list, or of the bad blob, commitment, proof or cell in
 * its list, as the text says.
 */
/* n blobs -> n commitments. */
OUTBOARD_API int outboard_kzg_commit(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_commitments, const struct outboard_call *call, struct outboard_error *error);
/* The proof that the blob's polynomial has the value y at z. */
OUTBOARD_API int outboard_kzg_prove(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, const struct outboard_call *call,
	struct outboard_error *error);
/* n blobs and their commitments (not checked to be theirs) -> n proofs. */
OUTBOARD_API int outboard_kzg_prove_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, uint64_t n, uint8_t *ret_proofs,
	const struct outboard_call *call, struct outboard_error *error);
OUTBOARD_API int outboard_kzg_verify(struct outboard_kzg *kzg, const uint8_t *commitment,
	const uint8_t *z, const uint8_t *y, const uint8_t *proof, int *ret_valid,
	const struct outboard_call *call, struct outboard_error *error);
/* n blobs, commitments and proofs: valid if all are. */
OUTBOARD_API int outboard_kzg_verify_blobs(struct outboard_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, uint64_t n, int *ret_valid,
	const struct outboard_call *call, struct outboard_error *error);
/*
 * n blobs -> n x 128 cells and n x 128 proofs; either may be NULL. What is in cells is the CPUs'
 * work; proofs are GPUs' too.
 */
OUTBOARD_API int outboard_kzg_cells(struct outboard_kzg *kzg, const uint8_t *blobs, uint64_t n,
	uint8_t *ret_cells, uint8_t *ret_proofs, const struct outboard_call *call,
	struct outboard_error *error);
/*
 * All cells of a blob, and proofs if wanted, from n of them with rising indices, 64 <= n <= 128.
 *
 * n > 64 cells that belong to no single blob, for example because one is damaged:
 * OUTBOARD_ARGUMENT, and nothing is written. c-kzg-4844 does not check this. It reports success,
 * returns the given cells unchanged, computes the missing ones from the polynomial of degree below
 * 64 n through all given cells, and returns proofs that do not verify.
 *
 * Any 64 cells belong to some blob. With n = 64 a damaged cell is not noticed, here or by
 * c-kzg-4844: call outboard_kzg_verify_cells first.
 */
OUTBOARD_API int outboard_kzg_recover(struct outboard_kzg *kzg, const uint64_t *indices,
	const uint8_t *cells, uint64_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
	const struct outboard_call *call, struct outboard_error *error);
/* Cell i is cell indices[i] of the blob that commitments[i] commits to, proven by proofs[i]. */
OUTBOARD_API int outboard_kzg_verify_cells(struct outboard_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, uint64_t n,
	int *ret_valid, const struct outboard_call *call, struct outboard_error *error);

/* ---- recurrence quantification ---- */

/* Values of a sample lie side by side, sample after sample: data[length * channels]. Copied. */
struct outboard_series {
	const char *name; /* for messages; NULL: its number */
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
 * The conventions of a known tool ("gaze", "pyrqa", "julia" ...: compute/docs/RQA.md); NULL: "gaze".
 * OUTBOARD_ARGUMENT: the text lists the presets.
 */
OUTBOARD_API int outboard_rqa_options_new(const char *preset,
	struct outboard_rqa_options **ret_options, struct outboard_error *error);
OUTBOARD_API void outboard_rqa_options_free(struct outboard_rqa_options *options);
/*
 * One option by its name on `outboard rqa`'s command line, without the dashes: ("m", "3"), ("eps",
 * "0.1"), ("norm", "l2"), ("theiler", "1"). Beside these "want": any of
 * vertical,white,times,trend,network, separated by commas, or all, or none; what is not wanted is
 * NaN. OUTBOARD_ARGUMENT names what there is.
 */
OUTBOARD_API int outboard_rqa_options_set(struct outboard_rqa_options *options, const char *name,
	const char *value, struct outboard_error *error);

/*
 * Measures are numbered from 0. Their number; a name ("DET") or NULL; the number of a name (any
 * case) or -1.
 */
OUTBOARD_API uint32_t outboard_rqa_measure_count(void);
OUTBOARD_API const char *outboard_rqa_measure_name(uint32_t measure);
OUTBOARD_API int outboard_rqa_measure_find(const char *name);

/*
 * Measures of series x, or of x and y together for cross and joint recurrence (option "kind": auto,
 * cross, joint); y is OUTBOARD_NO_ITEM for auto. ret_values: outboard_rqa_measure_count() numbers;
 * a measure that is not defined is NaN.
 */
OUTBOARD_API int outboard_rqa_run(struct outboard_series_set *set, uint64_t x, uint64_t y,
	const struct outboard_rqa_options *options, double *ret_values,
	const struct outboard_call *call, struct outboard_error *error);

/*
 * One way of looking at each series: which channels, which norm ("l1", "l2", "max"; NULL: the
 * options').
 */
struct outboard_rqa_mode {
	const char *name;
	const char *norm;
	const uint32_t *channels;
	uint32_t channel_count; /* 0: all */
	uint32_t unused;
};

/* Every combination of the lists. All of it is copied when the call is made. */
struct outboard_rqa_grid {
	const uint32_t *m, *tau, *lmin;
	const double *eps;
	uint32_t m_count, tau_count, lmin_count, eps_count;
	const struct outboard_rqa_mode *modes; /* NULL: one, with all channels */
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
	/*
	 * outboard_rqa_measure_count() numbers; NULL unless OUTBOARD_OK: a failed row has no
	 * numbers
	 */
	const double *values;
};

/*
 * A grid over all series of the set. rows() gets the eps x lmin rows of one (series, mode, m, tau)
 * at once, each group exactly once, one call at a time, in no promised order of groups; memory is
 * valid during the call; not 0 cancels. A series that cannot be used fails alone: its rows say why,
 * and the call succeeds.
 */
OUTBOARD_API int outboard_rqa_sweep(struct outboard_series_set *set,
	const struct outboard_rqa_options *options, const struct outboard_rqa_grid *grid,
	int (*rows)(void *arg, const struct outboard_rqa_row *rows, uint32_t count), void *rows_arg,
	const struct outboard_call *call, struct outboard_error *error);

#ifdef __cplusplus
}
#endif

#endif
