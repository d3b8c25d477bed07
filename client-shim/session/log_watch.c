/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What a log does beyond sending while it is traced or a timeline is recorded. */
#include <stdio.h>
#include <unistd.h>

#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"
#include "client-shim/session/timeline.h"

static void (*_Atomic watched_hook)(uint64_t number, bool waited);

void obc_log_on_watched(void (*fn)(uint64_t number, bool waited))
{
	atomic_store(&watched_hook, fn);
}

/* OUTBOARD_TRACE: writes one line for each record that enters the log. */
static void trace(const struct obc_slot *slot)
{
	char line[1024], server[32] = "";
	size_t n;
	OBC_WAITS();

	if (obc_servers_count() > 1)
		snprintf(server, sizeof server, "server %u ", obc_server_number() + 1);
	n = (size_t)snprintf(line, sizeof line, "%llu.%09llu #%llu %slane %u ",
		(unsigned long long)(ob_clock_ns() / OB_SECOND),
		(unsigned long long)(ob_clock_ns() % OB_SECOND), (unsigned long long)slot->number,
		server, slot->lane & ~OBC_LANE_BYREF);

	if (slot->lane & OBC_LANE_BYREF)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s(%u bytes by reference)",
			obp_call_info(slot->opcode)->name, slot->size);
	else
		n += obp_print_call(line + n, sizeof line - n - 1, slot->opcode,
			(const struct obp_record *)slot->record + 1,
			slot->size - (uint32_t)sizeof(struct obp_record));
	line[n++] = '\n';
	/* A line that cannot be written is dropped, so that the program is not affected. */
	if (!ob_fd_is(obc_log_state.trace_fd, &obc_log_state.trace_file) ||
		write(obc_log_state.trace_fd, line, n) < 0)
		return;
}

static void watched_call(uint64_t number, bool waited)
{
	void (*fn)(uint64_t, bool) = atomic_load_explicit(&watched_hook, memory_order_relaxed);

	if (fn)
		fn(number, waited);
}

void log_publish_watched(struct obc_slot *slot, bool waits)
{
	if (obc_log_state.trace_fd)
		trace(slot);
	if (obc_timeline_on)
		obc_timeline_call(slot->lane & (OBP_LANE_MAX - 1), slot->opcode, slot->number,
			slot->size, waits);
	obc_ring_commit(slot->record, slot->opcode, slot->lane, slot->size);
	/* A thread that ends makes no further calls. */
	if (!waits && slot->opcode != OBP_OP_LANE_END)
		watched_call(slot->number, false);
}

void log_waited(const struct obc_slot *slot, uint64_t ended)
{
	if (obc_timeline_on)
		obc_timeline_waited(slot->lane & (OBP_LANE_MAX - 1), ended);
	watched_call(slot->number, true);
}

void log_watch_room(unsigned lane, uint64_t began)
{
	if (!obc_timeline_on)
		return;
	obc_timeline_add(lane,
		&(struct obc_timeline_event){
			.at = began, .took = ob_clock_ns() - began, .kind = OBC_EVENT_ROOM });
}

void log_watch_frame(const struct obp_frame *frame, uint64_t began, bool by_sender)
{
	const struct obc_timeline_event event = { .at = began,
		.took = ob_clock_ns() - began,
		.number = frame->sequence,
		.size = (uint32_t)sizeof *frame + frame->size,
		.more = frame->count,
		.kind = OBC_EVENT_FRAME,
		.codec = (uint8_t)frame->flags,
		.by_sender = by_sender };

	if (!obc_timeline_on)
		return;
	obc_timeline_add(OBC_TRACK_OUT, &event);
	if (by_sender)
		obc_timeline_add(OBC_TRACK_SENDER, &event);
}

void log_watch_sleep(uint64_t began)
{
	if (!obc_timeline_on)
		return;
	obc_timeline_add(OBC_TRACK_SENDER,
		&(struct obc_timeline_event){
			.at = began, .took = ob_clock_ns() - began, .kind = OBC_EVENT_SLEEP });
}

void log_watch_reply(const struct obp_item *item, uint64_t began)
{
	const struct obp_conn *conn = &obc_log_state.conn;
	uint64_t now = ob_clock_ns();

	if (!obc_timeline_on)
		return;
	obc_timeline_add(OBC_TRACK_IN,
		&(struct obc_timeline_event){ .at = began ? began : now,
			.took = began ? now - began : 0,
			.number = item->reply.call,
			.size = item->reply.size,
			.kind = OBC_EVENT_REPLY,
			.codec = conn->view == conn->buffer ? OBZ_NONE
							    : (uint8_t)conn->unpacker.codec });
}
