/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/free_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obp_calls.h"

/* What is known of a device's memory. Times are in ns, 0: never. */
struct known {
	uint64_t bytes_free, total;
	uint64_t others;     /* records that may change memory, before the call */
	uint64_t number;     /* of the call's record */
	uint64_t true_since; /* the memory was read after this time; 0: nothing is known */
};

#define KNOWN_WORDS (sizeof(struct known) / sizeof(uint64_t))

/*
 * The program may ask millions of times a second, so a call takes no lock, which the control
 * thread then would hardly get. Each word is atomic, and `version` tells whether they belong
 * together.
 */
struct answer {
	_Atomic uint32_t version; /* odd while the words are written */
	_Atomic uint64_t words[KNOWN_WORDS];
	_Atomic uint64_t called; /* last call of the program */
	_Atomic uint64_t wanted; /* last call that an answer of the control thread can help */
	uint64_t asked;          /* last question and its value; control thread only */
};

struct memory_state {
	pthread_mutex_t lock; /* to write the words */
	/* 0: the server answers no questions. The control thread reads it from its start on */
	_Atomic uint32_t n_devices;
	struct answer answers[OBP_DEVICE_MAX];
};

static OBC_PER_SERVER struct memory_state memory_first = { .lock = PTHREAD_MUTEX_INITIALIZER };
#define memory OBC_HERE(memory_first)

/* False: the words are being written. Under the lock they are not. */
static bool known_read(struct answer *answer, struct known *ret)
{
	uint32_t version = atomic_load_explicit(&answer->version, memory_order_acquire);
	uint64_t words[KNOWN_WORDS];

	/* Acquire: the version is read again after the words. */
	for (size_t i = 0; i < KNOWN_WORDS; i++)
		words[i] = atomic_load_explicit(&answer->words[i], memory_order_acquire);
	memcpy(ret, words, sizeof *ret);
	return !(version & 1) &&
		atomic_load_explicit(&answer->version, memory_order_relaxed) == version;
}

/* Under the lock. */
static void known_write(struct answer *answer, const struct known *known)
{
	uint32_t version = atomic_load_explicit(&answer->version, memory_order_relaxed);
	uint64_t words[KNOWN_WORDS];

	memcpy(words, known, sizeof words);
	atomic_store_explicit(&answer->version, version + 1, memory_order_relaxed);
	/* Release: who reads a new word also reads an odd or a later version. */
	for (size_t i = 0; i < KNOWN_WORDS; i++)
		atomic_store_explicit(&answer->words[i], words[i], memory_order_release);
	atomic_store_explicit(&answer->version, version + 2, memory_order_release);
}

/*
 * Operations that change no device memory. A driver may take some when a kernel runs for the first
 * time; that is seen like a change by another process.
 */
static const uint16_t harmless[] = {
	OBP_OP_PING,
	OBP_OP_MEM_INFO,
	OBP_OP_MEMSET,
	OBP_OP_COPY_D2D,
	OBP_OP_WRITE,
	OBP_OP_WRITE_ROWS,
	OBP_OP_WRITE_STRIPED,
	OBP_OP_WRITE_CACHED,
	OBP_OP_WRITE_KEPT,
	OBP_OP_CACHE_ASK,
	OBP_OP_READ,
	OBP_OP_READ_ROWS,
	OBP_OP_READ_STRIPED,
	OBP_OP_ARRAY_PART,
	OBP_OP_ARRAY_COPY,
	OBP_OP_ARRAY_WRITE,
	OBP_OP_ARRAY_READ,
	OBP_OP_UPLOAD_BEGIN,
	OBP_OP_UPLOAD_PART,
	OBP_OP_READ_LATER,
	OBP_OP_HELD_BYTES,
	OBP_OP_LAUNCH,
	OBP_OP_LAUNCH_CHANGED,
	OBP_OP_CTX_SYNCHRONIZE,
	OBP_OP_STREAM_QUERY,
	OBP_OP_STREAM_SYNCHRONIZE,
	OBP_OP_STREAM_WAIT,
	OBP_OP_EVENT_RECORD,
	OBP_OP_EVENT_QUERY,
	OBP_OP_EVENT_SYNCHRONIZE,
	OBP_OP_EVENT_ELAPSED,
};

static uint64_t others_now(void)
{
	return obc_log_others(harmless, ob_count(harmless));
}

void obc_free_memory_offered(const struct obp_welcome *welcome)
{
	memory.n_devices = welcome->free_memory && ob_opt_on(OB_OPT_LOCAL) ? welcome->n_devices : 0;
}

bool obc_free_memory_get(uint32_t device, uint64_t *ret_free, uint64_t *ret_total,
	struct obc_free_memory_mark *ret_mark)
{
	uint64_t now = ob_clock_ns(), called;
	struct answer *answer;
	struct known known;
	bool same;

	*ret_mark = (struct obc_free_memory_mark){ .now = now };
	/* After the session was lost, the call returns the error. */
	if (device >= memory.n_devices || obc_log_alive() != CUDA_SUCCESS)
		return false;
	answer = &memory.answers[device];
	ret_mark->others = others_now();
	same = known_read(answer, &known) && known.true_since && known.others == ret_mark->others;
	called = atomic_load_explicit(&answer->called, memory_order_relaxed);
	atomic_store_explicit(&answer->called, now, memory_order_relaxed);
	if (same && called && now < called + OBC_FREE_MEMORY_LOOP_NS)
		atomic_store_explicit(&answer->wanted, now, memory_order_relaxed);
	if (!same || now >= known.true_since + OBC_FREE_MEMORY_NS)
		return false;
	*ret_free = known.bytes_free;
	*ret_total = known.total;
	return true;
}

void obc_free_memory_put(uint32_t device, const struct obc_free_memory_mark *mark,
	uint64_t bytes_free, uint64_t total, uint64_t number)
{
	const struct known known = { bytes_free, total, mark->others, number, mark->now };
	struct known before;

	if (device >= memory.n_devices)
		return;
	pthread_mutex_lock(&memory.lock);
	known_read(&memory.answers[device], &before);
	if (known.true_since > before.true_since) /* else another thread's call was later */
		known_write(&memory.answers[device], &known);
	pthread_mutex_unlock(&memory.lock);
}

bool obc_free_memory_due(
	uint64_t now, uint32_t *ret_device, uint64_t *ret_value, uint64_t *ret_wait)
{
	*ret_wait = OB_NEVER;
	for (uint32_t i = 0; i < memory.n_devices; i++) {
		struct answer *answer = &memory.answers[i];
		uint64_t next = answer->asked + OBC_FREE_MEMORY_ASK_NS,
			 wanted = atomic_load_explicit(&answer->wanted, memory_order_relaxed);

		if (!wanted || now >= wanted + OBC_FREE_MEMORY_LOOP_NS)
			continue;
		if (now >= next) {
			answer->asked = now;
			*ret_device = i;
			*ret_value = now;
			return true;
		}
		*ret_wait = ob_min(*ret_wait, next - now);
	}
	return false;
}

/*
 * The answer is taken if it includes everything that this process has changed: the server had
 * accepted the call before it read the memory, and nothing that changes memory followed the call.
 */
bool obc_free_memory_answer(const struct obp_message *message)
{
	struct answer *answer;
	struct known known;
	uint64_t others;

	if (message->code >= memory.n_devices)
		return false;
	answer = &memory.answers[message->code];
	if (message->value == 0 || message->value > answer->asked)
		return false;
	others = others_now();
	pthread_mutex_lock(&memory.lock);
	known_read(answer, &known);
	if (message->value > known.true_since && known.others == others &&
		message->received >= known.number) {
		known.bytes_free = message->free_bytes;
		known.total = message->total_bytes;
		known.true_since = message->value;
		known_write(answer, &known);
	}
	pthread_mutex_unlock(&memory.lock);
	return true;
}

void obc_free_memory_forget(void)
{
	memory = (struct memory_state){ .lock = PTHREAD_MUTEX_INITIALIZER };
}
