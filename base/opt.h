/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Switches: every optimisation has a name and can be turned off with OUTBOARD_OPT=-spin,-batch;
 * -all turns off all of them. The environment is read once. An unknown name causes a warning. Any
 * thread.
 */
#ifndef OB_OPT_H
#define OB_OPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* X(NAME, text, what it does) */
#define OB_OPT_LIST(X)                                                                             \
	X(ASYNC, "async", "calls without a result return before the server ran them")              \
	X(BATCH, "batch", "calls wait for others and travel in one frame")                         \
	X(SPIN, "spin", "a waiting thread polls for a while before it sleeps")                     \
	X(DOZE, "doze", "the sender sleeps while waiting callers send the records themselves")     \
	X(CHANGES, "changes",                                                                      \
		"large parameters are sent as changes of those of the launch before")              \
	X(BYREF, "byref", "large copies leave from the caller's memory, not from the ring")        \
	X(COMPRESS, "compress", "copies are compressed where the link is slower than that")        \
	X(STRIPE, "stripe", "large copies travel over several connections where that is faster")   \
	X(BACKGROUND, "background",                                                                \
		"asynchronous copies of pinned memory go on after their call has returned")        \
	X(LOCAL, "local",                                                                          \
		"the client answers for done events, idle streams, unchanged memory, known code")  \
	X(WATCH, "watch",                                                                          \
		"the server says when polled work is complete, without being asked again")         \
	X(GRANT, "grant", "memory the server has promised is allocated without asking")            \
	X(WARM, "warm", "workers are started before sessions ask for them")                        \
	X(CACHE, "cache", "what was uploaded before is not sent again on a slow link")             \
	X(LINKMEMORY, "linkmemory", "what was measured of a link is kept for the next session")    \
	X(RELEASE, "release", "an idle client gives back memory that earlier calls used")          \
	X(RESUME, "resume", "a broken connection is made again and the session goes on")           \
	X(TRUST, "trust", "code that every driver takes is loaded without waiting for the result") \
	X(SHM, "shm", "an shm: address moves the data through shared memory")                      \
	X(HELP, "help", "a thread that waits for the software device runs its work meanwhile")     \
	X(GRAPHS, "graphs", "the server has the parts of graphs that need only the device")        \
	X(SIMD, "simd", "the software device and the kernels use AVX2 or AVX-512")                 \
	X(JIT, "jit", "the software device makes machine code of kernels")                         \
	X(FULLMASK, "fullmask", "the software device skips masking when all lanes run")            \
	X(INVARIANT, "invariant",                                                                  \
		"the software device computes once what all threads of a launch share")            \
	X(FUSE, "fuse", "the software device has one operation for base and index of an access")   \
	X(LEVELS, "levels", "a recurrence sweep counts all radii in one pass")                     \
	X(BANDS, "bands", "vertical lines are counted in the walk of the diagonals")               \
	X(SIEVE, "sieve", "recurrent cells are told in shorter numbers where these suffice")       \
	X(ADX, "adx", "field products use mulx and two carry chains")                              \
	X(GPUCELLS, "gpucells", "cell proofs go to GPUs")                                          \
	X(LANES, "lanes", "points are added eight at a time with AVX-512")                         \
	X(GLV, "glv", "scalars are split in halves by the endomorphism of G1")                     \
	X(TUNE, "tune", "products go by what 'outboard msm tune' and 'calibrate' measured")        \
	X(NTT, "ntt", "transforms take eight columns at a time with AVX-512")                      \
	X(CELLS, "cells", "cell proofs go by a table of multiples of the setup")                   \
	X(STAGE, "stage", "a GPU begins with the first scalars while the rest travel")             \
	X(TAILS, "tails", "a GPU's last sums, few and dependent, take four lanes a point")         \
	X(AHEAD, "ahead", "a GPU goes on while this machine makes what comes next or came before")

enum ob_opt {
#define X(name, text, what) OB_OPT_##name,
	OB_OPT_LIST(X)
#undef X
		OB_OPT_COUNT
};

_Static_assert(OB_OPT_COUNT < 63, "a bit for each switch and one for OB_OPT_UNREAD");

/* Private: one bit for each switch; OB_OPT_UNREAD until the environment has been read. */
#define OB_OPT_UNREAD (UINT64_C(1) << 63)
extern _Atomic uint64_t ob_opt_bits;
uint64_t ob_opt_read(void);

static inline bool ob_opt_on(enum ob_opt opt)
{
	uint64_t bits = atomic_load_explicit(&ob_opt_bits, memory_order_relaxed);

	if (__builtin_expect(bits & OB_OPT_UNREAD, 0))
		bits = ob_opt_read();
	return bits >> opt & 1;
}

const char *ob_opt_name(enum ob_opt opt);
const char *ob_opt_what(enum ob_opt opt);
/* For tests and benchmarks. */
void ob_opt_set(enum ob_opt opt, bool on);

#endif
