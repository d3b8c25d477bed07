/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"
#include "client-shim/session/timeline.h"
#include "transport/path.h"
#include "transport/shm.h"

/*
 * For how long after a successful check a descriptor is assumed to belong to the library. The
 * kernel assigns the lowest free number, and the library's numbers start at OB_FD_HIGH. A program
 * that has closed all descriptors must open about a thousand files before it gets such a number,
 * which takes longer than this. A thread that loses the processor between a check and the use of
 * the number is not protected.
 */
#define CHECK_NS 50000

void log_lock_wait(_Atomic uint32_t *lock)
{
	unsigned spins = 0;

	do {
		while (atomic_load_explicit(lock, memory_order_relaxed)) {
			ob_clock_relax();
			if (++spins > 200) {
				sched_yield(); /* the holder may have been preempted */
				spins = 0;
			}
		}
	} while (atomic_exchange_explicit(lock, 1, memory_order_acquire));
}

static bool (*control_check)(void);

void obc_log_on_control_check(bool (*fn)(void))
{
	control_check = fn;
}

bool obc_log_descriptors_ours(void)
{
	return obt_stream_ours(&obc_log_state.stream) && (!control_check || control_check());
}

/*
 * The number of the library's descriptor is free or names another file. Nothing may be written to
 * it, and no operation on it can reach the library's file.
 */
void obc_log_descriptor_gone(void)
{
	static const char *const what = "the program closed the descriptor of the connection to "
					"the server (closefrom, or a loop over all descriptors)";
	char why[192];

	if (obc_log_state.resumable) {
		ob_info("%s; reconnecting", what);
		log_link_broken(OB_ERR_CLOSED);
	} else {
		snprintf(
			why, sizeof why, "%s, and reconnecting is disabled (OUTBOARD_GRACE)", what);
		log_fail_because(OB_ERR_CLOSED, why);
	}
}

bool obc_log_waiting(void)
{
	return atomic_load(&obc_log_state.n_waits) != 0;
}

void log_fail_because(enum ob_err err, const char *why)
{
	const char *server = obc_server_name();
	struct log *log = &obc_log_state;
	int none = OB_ERR_NONE;

	if (!atomic_compare_exchange_strong(&log->error, &none, (int)err))
		return;
	/*
	 * After the goodbye was sent, the server may close the connection before its reply is read.
	 */
	if (obc_log_ending())
		ob_debug("the session ended before the goodbye was answered: %s", why);
	else
		ob_error("the session%s%s is lost: %s", *server ? " with " : "", server, why);
	if (!log_down()) /* else no thread reads, and the resuming thread owns the descriptor */
		/* wakes a reader that is blocked on the socket */
		obt_stream_shutdown(&log->stream);
	log_lock(&log->wait_lock);
	for (struct log_wait *wait = log->waits; wait; wait = wait->next)
		if (atomic_exchange(&wait->word, WAIT_WOKEN) == WAIT_ASLEEP)
			obc_futex_wake(&wait->word, 1);
	log_unlock(&log->wait_lock);
	obc_futex_wake(&log->down, INT32_MAX);
}

void obc_log_fail(enum ob_err err)
{
	log_fail_because(err, ob_err_text(err));
}

void log_io_failed(int error, const char *doing)
{
	bool of_link = obt_error_of_link(error);
	char why[240];

	if (of_link ? !obc_log_descriptors_ours() : !obt_stream_ours(&obc_log_state.stream)) {
		obc_log_descriptor_gone();
	} else if (of_link) {
		log_link_broken(error == EPIPE || error == ECONNRESET ? OB_ERR_CLOSED : OB_ERR_IO);
	} else {
		snprintf(why, sizeof why,
			"%s failed: %s (errno %d). Neither the network nor the server can cause "
			"this error: check the system's limits and the program's use of "
			"descriptors",
			doing, strerror(error), error);
		log_fail_because(OB_ERR_IO, why);
	}
}

bool log_stream_ours(void)
{
	struct log *log = &obc_log_state;
	uint64_t now = ob_clock_ns();

	/*
	 * A number below OB_FD_HIGH (the descriptor limit is low) can be reused at once, so it is
	 * always checked.
	 */
	if (ob_likely(log->stream.fd >= OB_FD_HIGH &&
		    now - atomic_load_explicit(&log->checked_at, memory_order_relaxed) < CHECK_NS))
		return true;
	if (ob_unlikely(!obt_stream_ours(&log->stream))) {
		obc_log_descriptor_gone();
		return false;
	}
	/* After the check, else another thread could rely on a check that then fails. */
	atomic_store_explicit(&log->checked_at, now, memory_order_relaxed);
	return true;
}

bool obc_log_ending(void)
{
	return atomic_load(&obc_log_state.deadline) != 0;
}

void obc_log_set_deadline(uint64_t deadline)
{
	atomic_store(&obc_log_state.deadline, deadline);
}

void obc_log_note_trip(uint64_t ns)
{
	atomic_fetch_add(&obc_log_state.trips, 1);
	atomic_fetch_add(&obc_log_state.wait_ns, ns);
}

uint64_t obc_log_trip_least(void)
{
	return atomic_load_explicit(&obc_log_state.trip_least, memory_order_relaxed);
}

void obc_log_stats(struct obc_log_stats *ret)
{
	struct log *log = &obc_log_state;

	*ret = (struct obc_log_stats){
		.records = log->ring.last_number,
		.round_trips = log->trips,
		.frames_out = log->frames_out,
		.frames_in = log->conn.frames,
		.bytes_out = log->bytes_out,
		.bytes_in = log->conn.bytes,
		.wait_ns = log->wait_ns,
		.run_ns = ob_clock_ns() - log->opened_ns,
	};
	for (unsigned i = 0; i < OBP_OPCODE_END; i++)
		ret->records_by_group[i >> 8] += obc_log_counts[i];
}

uint64_t obc_log_trips(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_trip_counts[opcode] : 0;
}

uint64_t obc_log_count(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_counts[opcode] : 0;
}

uint64_t obc_log_others(const uint16_t *opcodes, size_t n)
{
	uint64_t others;

	log_lock(&obc_log_state.ring.lock); /* a reservation counts its record under it */
	others = obc_log_state.ring.last_number;
	for (size_t i = 0; i < n; i++)
		others -= obc_log_counts[opcodes[i]];
	log_unlock(&obc_log_state.ring.lock);
	return others;
}

uint64_t obc_log_trip_ns(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_trip_time[opcode] : 0;
}

static void trace_open(void)
{
	const char *path = getenv("OUTBOARD_TRACE");
	int fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (path && *path && fd < 0)
		ob_warn("OUTBOARD_TRACE: cannot open %s: %s; no trace is written", path,
			strerror(errno));
	if (fd < 0)
		return;
	obc_log_state.trace_fd = ob_fd_raise(fd);
	obc_log_state.trace_file = ob_fd_file(obc_log_state.trace_fd);
}

static double path_rate(void *unused)
{
	struct log *log = &obc_log_state;
	double rate = obt_meter_rate(&log->meter, &log->stream, log->trust_reader);

	(void)unused;
	atomic_store_explicit(
		&log->rate_learned, obt_meter_learned(&log->meter), memory_order_relaxed);
	return rate;
}

uint64_t obc_log_rate_learned(void)
{
	return atomic_load_explicit(&obc_log_state.rate_learned, memory_order_relaxed);
}

bool obc_log_path_local(void)
{
	return obt_path_local(&obc_log_state.stream);
}

void obc_log_pack_stats(struct obp_pack_stats *ret_out, struct obp_pack_stats *ret_in)
{
	*ret_out = obc_log_state.packer.stats;
	*ret_in = obc_log_state.conn.unpacker.stats;
}

enum ob_err obc_log_open(const struct obt_stream *stream, unsigned codecs, unsigned codec_request,
	bool resumable, uint64_t ring_size, uint64_t rate)
{
	struct log *log = &obc_log_state;
	enum ob_err err = obp_conn_init(&log->conn, OBP_ACCEPT_REPLIES | OBP_ACCEPT_CONTROL);

	if (err)
		return err;
	err = obc_ring_init(&log->ring, ring_size);
	if (err)
		return err;
	log->body_max = log->ring.record_max - (uint32_t)sizeof(struct obp_record);
	trace_open();
	log->watched = log->trace_fd || obc_timeline_on;
	log->opened_ns = ob_clock_ns();
	log->stream = *stream;
	log->byref_min = !ob_opt_on(OB_OPT_BYREF) ? SIZE_MAX
		: obt_shm_on(stream)              ? OBC_BYREF_SHARED_MIN
						  : OBC_BYREF_MIN;
	log->conn.codecs = codecs;
	log->trust_reader = codec_request == OBP_CODEC_MEASURE;
	obp_packer_init(
		&log->packer, codecs, codec_request, obt_path_local(stream), path_rate, NULL);
	obp_packer_expect(&log->packer, obt_meter_recall(&log->meter, rate));
	log->resumable = resumable;
	obt_stream_set_recv_timeout(&log->stream, RECV_TIMEOUT_MS);
	log->membarrier =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
	log->open = true;
	return log_sender_start();
}

void obc_log_close(void)
{
	if (!obc_log_state.open)
		return;
	log_sender_stop();
	obc_log_state.open = false;
	/* Not closed: a thread of the program may be in a call, and use it. The process ends. */
	obt_stream_shutdown(&obc_log_state.stream);
}

void obc_log_forget(void)
{
	struct log *log = &obc_log_state;

	obt_stream_forget(&log->stream);
	obc_ring_fini(&log->ring);
	memset((void *)log, 0, sizeof *log);
	log_lanes_forget();
	log_later_forget();
}
