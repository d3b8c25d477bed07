/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A supervisor whose admission process and workers are controlled by an attacker: messages of any
 * length, with valid and invalid fields, with no, too many or wrong descriptors, and stats pages
 * with any content. The supervisor must count its sessions correctly, keep no descriptor and pass
 * on only checked data. Its reports on the wire and in the audit log must be clean text.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "server/supervisor/admit.h"
#include "server/supervisor/audit.h"
#include "server/supervisor/pool.h"
#include "server/supervisor/status.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_super.h"

#define STEPS_MAX  48u
#define OTHERS_MAX (STEPS_MAX * FUZZ_SENT_FDS)

static int others[OTHERS_MAX]; /* the other ends of sockets that were sent */
static unsigned n_others;
static int audit = -1;

/* ---- messages of a child ---- */

static uint64_t a_route(void)
{
	unsigned i = fuzz_take(2 * FUZZ_WORKERS);

	return i < FUZZ_WORKERS ? fuzz_worker[i]->route : fuzz_number();
}

static uint64_t shared_id[2]; /* the last that a worker was told */

/* A request for shared objects, nearly well-formed. */
static void share_fill(struct obs_handoff *m)
{
	struct obs_ipc ipc = { .op = fuzz_take(5) };

	ipc.kind = fuzz_take(6);
	ipc.size = fuzz_number();
	memcpy(ipc.id, shared_id, sizeof ipc.id);
	m->size = sizeof ipc;
	memcpy(m->body, &ipc, sizeof ipc);
}

/* A ticket as admission hands it over: checked there, so its numbers may still be anything. */
static void ticket_fill(struct obs_handoff *m)
{
	struct obp_ticket *ticket = &m->ticket;

	m->ticketed = true;
	m->ahead_s = (int64_t)fuzz_number();
	ticket->reservation[0] = (uint8_t)fuzz_take(4);
	ticket->fence = fuzz_take(2);
	ticket->expires = fuzz_take(8) == 7 ? fuzz_number() : (uint64_t)time(NULL) + 30;
	ticket->linger_s = fuzz_take(2) ? 0 : (uint32_t)fuzz_number();
	ticket->memory = fuzz_take(2) ? 0 : fuzz_number();
	ticket->exclusive = fuzz_take(4) == 3;
	ticket->n_devices = fuzz_take(8) == 7 ? (uint32_t)fuzz_number() : 1 + fuzz_take(2);
	for (uint32_t i = 0; i < 2; i++)
		memcpy(ticket->devices[i], fuzz_super.devices[fuzz_take(2)].uuid, 16);
}

static void message_fill(struct obs_handoff *m)
{
	struct obs_identity *who = &m->identity;

	memset(m, 0, sizeof *m);
	m->type = fuzz_take(8) == 7 ? (uint32_t)fuzz_number() : 1 + fuzz_take(OBS_HANDOFF_IPC);
	m->secure = fuzz_take(2);
	m->count = (uint32_t)fuzz_number();
	m->size = fuzz_take(2) ? fuzz_take(256) : 0;
	m->route = a_route();
	m->pid = fuzz_number();
	fuzz_text(who->who, sizeof who->who);
	fuzz_text(who->from, sizeof who->from);
	fuzz_text(who->address, sizeof who->address);
	fuzz_take_bytes(&who->proved, sizeof who->proved);
	fuzz_take_bytes(&who->local, sizeof who->local);
	who->allow.value[OBT_ALLOW_SESSIONS] = fuzz_take(2) ? fuzz_number() : 0;
	fuzz_text(m->program, sizeof m->program);
	fuzz_text(m->text, sizeof m->text);
	fuzz_take_bytes(m->body, ob_min(m->size, 32u));
	if (m->type == OBS_HANDOFF_IPC && fuzz_take(4))
		share_fill(m);
	if (m->type == OBS_HANDOFF_NEW && fuzz_take(2))
		ticket_fill(m);
}

static void child_sends(int end)
{
	static struct obs_handoff m;
	unsigned kind = fuzz_take(8),
		 n = kind == 0 ? fuzz_take(FUZZ_SENT_FDS + 1)
		: kind < 5     ? 1
			       : 0;
	int fds[FUZZ_SENT_FDS], other;
	size_t size;

	message_fill(&m);
	size = offsetof(struct obs_handoff, body) + m.size;
	if (fuzz_take(8) == 7)
		fuzz_spoil(&m, sizeof m);
	if (fuzz_take(8) == 7)
		size = (size_t)fuzz_number() % (sizeof m + 1);
	for (unsigned i = 0; i < n; i++) {
		fds[i] = fuzz_descriptor(&other);
		if (other >= 0)
			others[n_others++] = other;
	}
	fuzz_send(end, &m, size, fds, n, fuzz_take(8) == 7);
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* ---- the supervisor's actions ---- */

static void received_check(const struct obs_handoff *m, const int fds[OBS_HANDOFF_FDS])
{
	if (m->size > sizeof m->body || (fds[0] < 0 && fds[1] >= 0))
		abort();
	fuzz_text_check(m->text, sizeof m->text);
	fuzz_text_check(m->program, sizeof m->program);
	fuzz_text_check(m->identity.who, sizeof m->identity.who);
	fuzz_text_check(m->identity.from, sizeof m->identity.from);
	fuzz_text_check(m->identity.address, sizeof m->identity.address);
}

static void admission_read(void)
{
	static struct obs_handoff m;
	int fds[OBS_HANDOFF_FDS];

	if (obs_handoff_recv(fuzz_super.admit.fd, &m, fds) <= 0)
		return; /* the process would be killed: its successor takes the next step */
	received_check(&m, fds);
	obs_admit_take(&fuzz_super, &m, fds);
}

static void worker_read(struct obs_proc *proc)
{
	static struct obs_handoff m;
	int fds[OBS_HANDOFF_FDS], got = obs_handoff_recv(proc->fd, &m, fds);

	if (got <= 0)
		return;
	received_check(&m, fds);
	obs_pool_take(proc, &m, fds);
}

static void answer_check(const struct obs_handoff *m, const int fds[OBS_HANDOFF_FDS])
{
	struct obs_ipc ipc;

	memcpy(&ipc, m->body, sizeof ipc);
	if (m->size != sizeof ipc || fds[1] >= 0 || (fds[0] >= 0 && ipc.status != OBS_IPC_OK))
		abort();
	if (ipc.status == OBS_IPC_OK)
		memcpy(shared_id, ipc.id, sizeof shared_id);
}

/*
 * Messages from the supervisor to a worker: one session, then joins of that session and answers to
 * requests for shared objects.
 */
static void worker_takes(unsigned i)
{
	static struct obs_handoff m;
	int fds[OBS_HANDOFF_FDS];

	while (obs_handoff_recv(fuzz_worker_end[i], &m, fds) > 0) {
		if (m.type == OBS_HANDOFF_IPC)
			answer_check(&m, fds);
		else if (fuzz_worker[i]->state != OBS_PROC_BUSY ||
			m.route != fuzz_worker[i]->route || fds[0] < 0 ||
			(m.type != OBS_HANDOFF_NEW && m.type != OBS_HANDOFF_JOIN))
			abort();
		obs_handoff_close(fds);
	}
}

/* ---- reports ---- */

static void load_check(bool sessions)
{
	static struct obp_load load;

	obs_status_fill(&fuzz_super, sessions ? OBP_LOAD_WANT_SESSIONS : 0, NULL, &load);
	for (uint32_t i = 0; i < load.n_devices; i++)
		fuzz_text_check(load.devices[i].name, sizeof load.devices[i].name);
	for (uint32_t i = 0; i < load.n_sessions; i++) {
		fuzz_text_check(load.listed[i].program, sizeof load.listed[i].program);
		fuzz_text_check(load.listed[i].client, sizeof load.listed[i].client);
		if (load.listed[i].throttle >= OBP_THROTTLE_COUNT || load.listed[i].priority > 2)
			abort();
	}
	obp_load_fini(&load);
}

static void load_ask(void)
{
	static uint8_t bytes[2 * OBP_CONTROL_MAX];
	static struct obp_load load;
	struct obp_frame frame;
	int ends[2];
	ssize_t n;

	fuzz_pair(SOCK_STREAM, ends);
	if (obs_status_answer(&fuzz_super, ends[0], fuzz_take(2))) {
		n = recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT);
		memcpy(&frame, bytes, sizeof frame);
		if (n < (ssize_t)sizeof frame ||
			obp_load_decode(bytes + sizeof frame, frame.raw_size, &load) != OB_ERR_NONE)
			abort();
		obp_load_fini(&load);
	}
	close(ends[0]);
	close(ends[1]);
}

/* Each entry must be one line, without characters that are special to JSON or a terminal. */
static void audit_check(void)
{
	static char text[1u << 20];
	ssize_t n = pread(audit, text, sizeof text - 1, 0);

	for (char *line = text, *end; n > 0 && line < text + n; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + n - line));
		if (!end || line[0] != '{' || end[-1] != '}' || end - line > 4095)
			abort();
		*end = '\0';
		fuzz_text_check(line, (size_t)(end - line) + 1);
	}
}

/* The ledger counts the sessions that hold a reservation, and never promises too much. */
static void reservations_check(void)
{
	const struct obs_reservations *table = &fuzz_super.membership.reservations;
	uint64_t sums[OBP_DEVICE_MAX] = { 0 };

	for (const struct obs_reservation *r = table->first; r; r = r->next) {
		uint32_t sessions = 0;

		for (const struct obs_proc *p = fuzz_super.procs; p; p = p->next)
			sessions += p->reservation == r;
		for (const struct obs_pending *p = fuzz_super.pending; p; p = p->next)
			sessions += p->reservation == r;
		if (sessions != r->sessions || r->n_devices > OBP_DEVICE_MAX)
			abort();
		for (uint32_t i = 0; r->state == OBP_POOL_CLAIMED && i < r->n_devices; i++)
			if (ob_add_overflows(sums[r->devices[i]], r->memory, &sums[r->devices[i]]))
				abort();
	}
}

static void counts_check(void)
{
	size_t starting = 0, idle = 0, busy = 0, waiting = 0;

	for (const struct obs_proc *p = fuzz_super.procs; p; p = p->next) {
		starting += p->state == OBS_PROC_STARTING;
		idle += p->state == OBS_PROC_IDLE;
		busy += p->state == OBS_PROC_BUSY;
	}
	for (const struct obs_pending *p = fuzz_super.pending; p; p = p->next)
		waiting += p->state == OBS_PENDING_WAITING;
	if (starting != fuzz_super.n_starting || idle != fuzz_super.n_idle ||
		busy != fuzz_super.n_busy || waiting != fuzz_super.n_waiting)
		abort();
	if (busy + waiting > fuzz_super.options->max_sessions)
		abort();
	reservations_check();
}

static void step(void)
{
	unsigned what = fuzz_take(8), worker = fuzz_take(FUZZ_WORKERS);

	if (what < 3) {
		child_sends(fuzz_admission);
		admission_read();
	} else if (what < 6) {
		child_sends(fuzz_worker_end[worker]);
		worker_read(fuzz_worker[worker]);
	} else if (what == 6) {
		fuzz_stats_page_spoil(worker);
	} else if (n_others) {
		close(others[--n_others]);
	}
	if (fuzz_take(4) == 3)
		fuzz_drain(fuzz_admission);
	if (fuzz_take(4) == 3)
		load_ask();
	fuzz_super_turn();
	for (unsigned i = 0; i < FUZZ_WORKERS; i++)
		worker_takes(i);
	counts_check();
}

static void start(void)
{
	static char path[64];

	fuzz_super_start();
	audit = memfd_create("audit", MFD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", audit);
	/* The audit log is one file, which is never renamed. */
	if (audit < 0 || obs_audit_open(path, 64u << 20, 1, NULL))
		exit(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before;

	if (audit < 0)
		start();
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	before = fuzz_descriptors();
	if (ftruncate(audit, 0) != 0)
		exit(1);
	fuzz_super_begin();
	for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++)
		step();
	load_check(true);
	audit_check();
	while (n_others)
		close(others[--n_others]);
	fuzz_super_end();
	if (fuzz_descriptors() != before)
		abort();
	return 0;
}
