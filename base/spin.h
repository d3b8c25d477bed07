/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * ob_spin: the policy of all threads that wait for something short: whether a thread polls before
 * it sleeps, and for how long. Sleeping costs a system call on each side and the time until the
 * scheduler runs the thread, together 5 to 10 us. Polling saves that if the event comes soon, and
 * takes a core from other threads if not.
 *
 * A thread polls only if
 *   - OUTBOARD_OPT=-spin is not set,
 *   - this process may use more than one core (affinity mask and cgroup quota), since the thread
 *     that produces the event needs one, and
 *   - its waits were short lately: each wait that ended within ob_spin_limit adds to a credit, each
 *     longer one takes twice as much from it. Waits that slept count as well. When both sides
 *     sleep, waking them alone may take longer than a short wait; so one wait in OB_SPIN_PROBE
 *     polls whatever the credit is.
 * It polls for ob_spin_limit at most. It does not yield instead: sched_yield can give the core to
 * another program for a whole time slice.
 *
 * The places that wait, and what each adds to the policy:
 *   client, caller      waits for a reply and reads the socket itself. Sleeps as soon as it has
 *                       completed a call of another thread, which wants a core
 *                                                                      (client-shim log_recv.c)
 *   client, sender      waits for records. Does not poll while a caller waits for a reply or after
 *                       callers have sent the records themselves       (client-shim log_send.c)
 *   server, executor    waits for bytes                                (server/worker/exec.c)
 *   server, completion  waits for the device                     (server/worker/completion.c)
 * The supervisor, the loop of a worker and the control threads never poll.
 */
#ifndef OB_SPIN_H
#define OB_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define OB_SPIN_NS    50000u     /* the longest short wait, if nothing large was sent before it */
#define OB_SPIN_BYTES (4u << 20) /* what a connection holds of a sender's bytes */
#define OB_SPIN_RATE  8u         /* bytes in a ns: those of a fast connection */
#define OB_SPIN_PROBE 32u        /* waits */

/* One for each place that waits. One owner at a time. */
struct ob_spin {
	int credit;       /* above 0: polling pays */
	unsigned skipped; /* waits since the credit was above 0 */
};

/*
 * The longest wait, in ns, that counts as short. `bytes`: what the thread has sent just before; the
 * other side must receive it before it can answer.
 */
static inline uint64_t ob_spin_limit(uint64_t bytes)
{
	return OB_SPIN_NS + (bytes < OB_SPIN_BYTES ? bytes : OB_SPIN_BYTES) / OB_SPIN_RATE;
}

/*
 * The cores that this process may use: at least 1. Reads the affinity mask and the cgroup's quota
 * at the first call; ob_spin_refresh reads the mask again. Any thread.
 */
unsigned ob_spin_cores(void);
void ob_spin_refresh(void);
/* For tests: 0 restores the machine's value. */
void ob_spin_set_cores(unsigned cores);

/* How long to poll now, in ns; 0: sleep at once. `bytes`: see ob_spin_limit. */
uint64_t ob_spin_budget(const struct ob_spin *spin, uint64_t bytes);
/*
 * Records a wait that has ended. waited_ns: polling and sleeping together. `bytes`: see
 * ob_spin_limit.
 */
void ob_spin_learn(struct ob_spin *spin, uint64_t waited_ns, uint64_t bytes);

#endif
