/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/conn.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/pages.h"

enum ob_err obp_conn_init(struct obp_conn *conn, unsigned accept)
{
	*conn = (struct obp_conn){ .accept = accept, .expect = 1, .arriving = 1 };
	conn->buffer = aligned_alloc(64, OBP_CONN_BUFFER);
	conn->view = conn->buffer;
	return conn->buffer ? OB_ERR_NONE : OB_ERR_NO_MEMORY;
}

void obp_conn_fini(struct obp_conn *conn)
{
	free(conn->buffer);
	obp_unpacker_fini(&conn->unpacker);
	conn->buffer = conn->view = NULL;
	conn->begin = conn->end = 0;
}

void obp_conn_release(struct obp_conn *conn)
{
	if (conn->view != conn->buffer || obp_conn_gathers(conn) || conn->begin != conn->end)
		return;
	ob_pages_discard(conn->buffer, OBP_CONN_BUFFER);
	obp_unpacker_release(&conn->unpacker);
}

void obp_conn_restart(struct obp_conn *conn)
{
	if (conn->big_left)
		conn->expect--;
	conn->view = conn->buffer;
	conn->unpacker.size = conn->unpacker.have = 0;
	conn->begin = conn->end = conn->used = 0;
	conn->frame_left = conn->big_left = conn->skip_left = 0;
	conn->records_left = 0;
	conn->arriving = conn->expect;
	conn->restarted = true;
}

static enum obp_event broken(struct obp_conn *conn, enum ob_err error, const char *wrong)
{
	if (!conn->cause.code)
		ob_cause_set(&conn->cause, error, "%s", wrong);
	return OBP_BROKEN;
}

static size_t buffered(const struct obp_conn *conn)
{
	return conn->end - conn->begin;
}

static bool type_accepted(const struct obp_conn *conn, uint8_t type)
{
	switch (type) {
	case OBP_FRAME_CALLS:
		return conn->accept & OBP_ACCEPT_CALLS;
	case OBP_FRAME_REPLIES:
		return conn->accept & OBP_ACCEPT_REPLIES;
	case OBP_FRAME_CONTROL:
		return conn->accept & OBP_ACCEPT_CONTROL;
	case OBP_FRAME_ACK:
		return true;
	default:
		return false;
	}
}

/* Checks the consistency of a header; reports the first violation. */
static enum obp_event frame_check(struct obp_conn *conn, const struct obp_frame *f)
{
	bool counted = f->type == OBP_FRAME_CALLS || f->type == OBP_FRAME_REPLIES;

	if (f->magic != OBP_MAGIC)
		return broken(conn, OB_ERR_MAGIC, "a frame does not start with the magic number");
	if (f->version != OBP_FRAME_VERSION)
		return broken(conn, OB_ERR_VERSION, "a frame of another protocol version");
	if (!type_accepted(conn, f->type))
		return broken(conn, OB_ERR_PROTOCOL,
			"unexpected frame type: client and server versions may differ");
	if (f->flags &&
		(!counted || f->flags >= OBZ_CODEC_COUNT || !(conn->codecs & 1u << f->flags)))
		return broken(
			conn, OB_ERR_PROTOCOL, "a frame packed in a way that was not agreed on");
	if (f->flags &&
		(f->raw_size % 8 || f->raw_size > OBP_FRAME_PAYLOAD_MAX ||
			f->size < sizeof(struct obp_packed)))
		return broken(conn, OB_ERR_PROTOCOL,
			"a packed frame whose sizes are odd or above the maximum");
	if (f->reserved != 0 ||
		(!f->flags && (f->raw_size > f->size || f->size - f->raw_size >= 8)))
		return broken(
			conn, OB_ERR_PROTOCOL, "a frame with unknown flags or sizes that disagree");
	if (f->size % 8 || f->size > OBP_FRAME_PAYLOAD_MAX)
		return broken(
			conn, OB_ERR_PROTOCOL, "a frame whose size is odd or above the maximum");
	if (f->type == OBP_FRAME_CONTROL && (f->size == 0 || f->size > OBP_CONTROL_MAX))
		return broken(
			conn, OB_ERR_PROTOCOL, "a control map that is empty or above the maximum");
	if (f->type == OBP_FRAME_ACK && f->size)
		return broken(conn, OB_ERR_PROTOCOL, "an acknowledgement with a payload");
	if (counted &&
		(f->count == 0 ||
			f->count > (f->flags ? f->raw_size : f->size) / sizeof(struct obp_record)))
		return broken(conn, OB_ERR_PROTOCOL, "a frame whose count does not fit its size");
	if (counted && conn->restarted && f->sequence && f->sequence <= conn->expect) {
		conn->restarted = false;
		conn->arriving = f->sequence;
	}
	if (counted && f->sequence != conn->arriving)
		return broken(conn, OB_ERR_PROTOCOL, "a frame out of sequence");
	return OBP_NEED;
}

/* ---- packed frames ---- */

/*
 * The packed payload is complete: unpacks it. Items are decoded from it until the frame is used up.
 */
static enum obp_event gather_finish(struct obp_conn *conn)
{
	enum ob_err err = obp_unpacker_finish(&conn->unpacker);

	if (err)
		return broken(conn, err == OB_ERR_COMPRESSED ? OB_ERR_PROTOCOL : err,
			"a packed frame that does not unpack to what it announces");
	conn->kept_begin = conn->begin;
	conn->kept_end = conn->end;
	conn->view = conn->unpacker.plain;
	conn->begin = 0;
	conn->end = conn->frame_left = conn->unpacker.raw_size;
	return OBP_NEED;
}

static enum obp_event gather_begin(struct obp_conn *conn, const struct obp_frame *frame)
{
	struct obp_unpacker *unpacker = &conn->unpacker;
	size_t n = ob_min(buffered(conn), (size_t)frame->size);

	if (obp_unpacker_begin(unpacker, frame))
		return broken(conn, OB_ERR_NO_MEMORY, "no memory for a packed frame");
	memcpy(unpacker->packed, conn->view + conn->begin, n);
	conn->begin += n;
	unpacker->have = n;
	return n == unpacker->size ? gather_finish(conn) : OBP_NEED;
}

static void view_restore(struct obp_conn *conn)
{
	conn->view = conn->buffer;
	conn->begin = conn->kept_begin;
	conn->end = conn->kept_end;
}

static enum obp_event frame_begin(struct obp_conn *conn, struct obp_item *item)
{
	struct obp_frame f;

	if (buffered(conn) < sizeof f)
		return OBP_NEED;
	memcpy(&f, conn->view + conn->begin, sizeof f);
	if (frame_check(conn, &f) == OBP_BROKEN)
		return OBP_BROKEN;
	if (f.type == OBP_FRAME_CONTROL && buffered(conn) < sizeof f + f.size)
		/* control maps are returned complete; one of OBP_CONTROL_MAX fits the buffer */
		return OBP_NEED;
	conn->begin += sizeof f;
	conn->frames++;
	conn->frame_time = f.time_ns;
	conn->frame_type = f.type;
	if (f.ack > conn->peer_ack)
		conn->peer_ack = f.ack;
	item->time_ns = f.time_ns;
	if (f.type == OBP_FRAME_ACK)
		return OBP_ACK;
	if (f.type == OBP_FRAME_CONTROL) {
		item->body = conn->view + conn->begin;
		item->size = item->have = f.raw_size;
		conn->used = f.size;
		return OBP_CONTROL;
	}
	conn->records_left = f.count;
	if (f.flags)
		return gather_begin(conn, &f);
	conn->frame_left = f.size;
	return OBP_NEED;
}

/* Skips an item that was returned before the connection broke. */
static enum obp_event item_skip(struct obp_conn *conn, size_t whole)
{
	size_t have = ob_min(buffered(conn), whole);

	conn->begin += have;
	conn->skip_left = whole - have;
	conn->arriving++;
	conn->frame_left -= whole;
	conn->records_left--;
	return OBP_NEED;
}

static enum obp_event item_show(
	struct obp_conn *conn, struct obp_item *item, size_t whole, size_t head, size_t size)
{
	size_t have = buffered(conn);

	if (ob_unlikely(conn->arriving < conn->expect))
		return item_skip(conn, whole);
	item->number = conn->expect;
	item->time_ns = conn->frame_time;
	item->size = size;
	item->body = conn->view + conn->begin + head;
	if (whole <= OBP_CONN_BIG) {
		if (have < whole)
			return OBP_NEED;
		item->have = size;
		conn->used = whole;
	} else {
		if (have < head + OBP_CONN_BIG_HEAD)
			return OBP_NEED;
		item->have = ob_min(have - head, size);
		conn->used = head;
		conn->big_left = whole - head;
	}
	conn->arriving = ++conn->expect;
	conn->frame_left -= whole;
	conn->records_left--;
	if (whole > OBP_CONN_BIG)
		return OBP_BIG;
	return item->is_reply ? OBP_REPLY : OBP_RECORD;
}

static enum obp_event record_next(struct obp_conn *conn, struct obp_item *item)
{
	size_t head = sizeof item->record;

	if (conn->frame_left < head)
		return broken(conn, OB_ERR_PROTOCOL, "a frame that ends inside a record");
	if (buffered(conn) < head)
		return OBP_NEED;
	memcpy(&item->record, conn->view + conn->begin, head);
	if (item->record.size < head || item->record.size % 8 ||
		item->record.size > conn->frame_left)
		return broken(conn, OB_ERR_PROTOCOL,
			"a record whose size is odd or larger than its frame");
	if (item->record.lane >= OBP_LANE_MAX)
		return broken(conn, OB_ERR_PROTOCOL, "a record of a lane above the maximum");
	item->is_reply = false;
	return item_show(conn, item, item->record.size, head, item->record.size - head);
}

static enum obp_event reply_next(struct obp_conn *conn, struct obp_item *item)
{
	size_t head = sizeof item->reply;

	if (conn->frame_left < head)
		return broken(conn, OB_ERR_PROTOCOL, "a frame that ends inside a reply");
	if (buffered(conn) < head)
		return OBP_NEED;
	memcpy(&item->reply, conn->view + conn->begin, head);
	if (item->reply.size < head || item->reply.size % 8 || item->reply.size > conn->frame_left)
		return broken(conn, OB_ERR_PROTOCOL,
			"a reply whose size is odd or larger than its frame");
	if (item->reply.body > item->reply.size - head ||
		item->reply.size - head - item->reply.body >= 8)
		return broken(conn, OB_ERR_PROTOCOL, "a reply whose body does not fit its size");
	item->is_reply = true;
	return item_show(conn, item, item->reply.size, head, item->reply.body);
}

static bool skip_rest(struct obp_conn *conn)
{
	size_t n = ob_min(buffered(conn), conn->skip_left);

	conn->begin += n;
	conn->skip_left -= n;
	return conn->skip_left == 0;
}

enum obp_event obp_conn_next(struct obp_conn *conn, struct obp_item *item)
{
	enum obp_event event;
	uint64_t skipped;

	if (ob_unlikely(conn->cause.code))
		return OBP_BROKEN;
	if (ob_unlikely(conn->big_left))
		return broken(conn, OB_ERR_PROTOCOL, "the body of a large record was not taken");
	conn->begin += conn->used;
	conn->used = 0;
	if (ob_unlikely(obp_conn_gathers(conn))) {
		if (conn->unpacker.have < conn->unpacker.size)
			return OBP_NEED;
		if (gather_finish(conn) == OBP_BROKEN)
			return OBP_BROKEN;
	}
	do {
		if (ob_unlikely(conn->skip_left) && !skip_rest(conn))
			return OBP_NEED;
		while (conn->records_left == 0) {
			if (ob_unlikely(conn->frame_left))
				return broken(conn, OB_ERR_PROTOCOL,
					"a frame with bytes after its last record");
			if (ob_unlikely(conn->view != conn->buffer))
				view_restore(conn);
			event = frame_begin(conn, item);
			if (event != OBP_NEED || conn->records_left == 0 || obp_conn_gathers(conn))
				return event;
		}
		skipped = conn->arriving;
		event = conn->frame_type == OBP_FRAME_CALLS ? record_next(conn, item)
							    : reply_next(conn, item);
	} while (event == OBP_NEED && conn->arriving != skipped);
	return event;
}

void obp_conn_space(struct obp_conn *conn, void **ret_data, size_t *ret_size)
{
	size_t left = buffered(conn);

	if (obp_conn_gathers(conn)) {
		*ret_data = conn->unpacker.packed + conn->unpacker.have;
		*ret_size = conn->unpacker.size - conn->unpacker.have;
		return;
	}
	if (left == 0) {
		conn->begin = conn->end = 0;
	} else if (conn->begin && OBP_CONN_BUFFER - conn->end < OBP_CONN_BUFFER / 2) {
		memmove(conn->buffer, conn->buffer + conn->begin, left);
		conn->begin = 0;
		conn->end = left;
	}
	*ret_data = conn->buffer + conn->end;
	*ret_size = OBP_CONN_BUFFER - conn->end;
}

void obp_conn_fed(struct obp_conn *conn, size_t size)
{
	if (obp_conn_gathers(conn))
		conn->unpacker.have += size;
	else
		conn->end += size;
	conn->bytes += size;
}

size_t obp_conn_body_buffered(struct obp_conn *conn, void *dst, size_t n)
{
	conn->begin += conn->used;
	conn->used = 0;
	n = ob_min(n, ob_min(conn->big_left, buffered(conn)));
	if (n && dst)
		memcpy(dst, conn->view + conn->begin, n);
	conn->begin += n;
	conn->big_left -= n;
	if (buffered(conn) == 0)
		conn->begin = conn->end = 0;
	return n;
}

void obp_conn_body_direct(struct obp_conn *conn, size_t n)
{
	conn->big_left -= ob_min(n, conn->big_left);
	conn->bytes += n;
}

size_t obp_conn_body_left(const struct obp_conn *conn)
{
	return conn->big_left;
}

void obp_frame_fill(struct obp_frame *ret, enum obp_frame_type type, uint32_t size, uint32_t count,
	uint64_t sequence, uint64_t ack)
{
	*ret = (struct obp_frame){
		.magic = OBP_MAGIC,
		.version = OBP_FRAME_VERSION,
		.type = (uint8_t)type,
		.size = size,
		.count = count,
		.sequence = sequence,
		.ack = ack,
		.time_ns = ob_clock_ns(),
		.raw_size = size,
	};
}

enum ob_err obp_preface_check(const struct obp_preface *preface)
{
	if (preface->magic != OBP_MAGIC)
		return OB_ERR_MAGIC;
	if (preface->version != OBP_VERSION)
		return OB_ERR_VERSION;
	if (preface->reserved ||
		(preface->intent != OBP_INTENT_NEW && preface->intent != OBP_INTENT_JOIN))
		return OB_ERR_PROTOCOL;
	if ((preface->intent == OBP_INTENT_NEW) != (preface->route == 0))
		return OB_ERR_PROTOCOL;
	return OB_ERR_NONE;
}
