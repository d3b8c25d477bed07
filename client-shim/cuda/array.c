/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/copy.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"

_Static_assert(OBP_ARRAY_LEVELS_MAX == OB_ARRAY_LEVELS_MAX, "protocol/spec/array.api");

/* ---- objects ---- */

CUresult obc_array_create(struct obf_array *array)
{
	const CUDA_ARRAY3D_DESCRIPTOR *desc = &array->desc;

	return obc_call_op_array_create(array->handle, desc->Width, desc->Height, desc->Depth,
		(uint32_t)desc->Format, desc->NumChannels, desc->Flags, array->n_levels);
}

CUresult obc_array_destroy(struct obf_array *array, bool ctx_ended)
{
	/* The server ends the arrays of a context with the context. */
	return ctx_ended ? CUDA_SUCCESS : obc_call_op_array_destroy(array->handle);
}

CUresult obc_array_part(struct obf_array *array)
{
	return obc_call_op_array_part(array->handle, array->parent->handle, array->part);
}

/* ---- to the device ---- */

/*
 * A piece of a copy between host and array: a part of a row, whole rows of one slice, or whole
 * slices.
 */
struct piece {
	uint64_t pos[3]; /* in the array */
	uint8_t *host;
	size_t pitch, slice; /* bytes, in host memory */
	size_t width, rows, slices;
};

/* The piece that begins with this row, counted through all slices, and this byte of the row. */
static struct piece piece_at(const struct obf_array_copy *c, size_t row, size_t x, size_t most)
{
	const struct obf_copy *f = &c->flat;
	const size_t *pos = c->dst ? c->dst_at : c->src_at;
	size_t y = row % f->height, z = row / f->height;
	struct piece piece = {
		.pos = { pos[0] + x, pos[1] + y, pos[2] + z },
		.pitch = c->dst ? f->src_pitch : f->dst_pitch,
		.slice = c->dst ? f->src_slice : f->dst_slice,
		.width = ob_min(f->width - x, most),
		.rows = 1,
		.slices = 1,
	};

	piece.host = (uint8_t *)(uintptr_t)(c->dst ? f->src : f->dst) + z * piece.slice +
		y * piece.pitch + x;
	if (f->width <= most)
		piece.rows = ob_min(f->height - y, most / f->width);
	if (piece.rows == f->height)
		piece.slices = ob_min(f->depth - z, most / (f->width * f->height));
	return piece;
}

/* Copies between the piece's place in host memory and packed rows. */
static void piece_pack(const struct piece *piece, uint8_t *packed, bool to_host)
{
	for (size_t z = 0; z < piece->slices; z++)
		for (size_t y = 0; y < piece->rows; y++) {
			uint8_t *row = piece->host + z * piece->slice + y * piece->pitch;

			memcpy(to_host ? row : packed, to_host ? packed : row, piece->width);
			packed += piece->width;
		}
}

static CUresult piece_send(
	struct obc_stream *at, const struct obf_array_copy *c, const struct piece *piece)
{
	struct obp_array_write_req *req;
	struct obc_slot slot;
	void *data;

	req = obc_begin_op_array_write(&slot, piece->width, piece->rows, piece->slices, &data);
	if (!req)
		return obc_log_error();
	req->array = c->dst->handle;
	memcpy(req->pos, piece->pos, sizeof req->pos);
	req->stream = at->base.handle;
	piece_pack(piece, data, false);
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

static CUresult to_array(struct obc_stream *at, const struct obf_array_copy *c, bool blocking)
{
	uint64_t launches = obc_ctx_launches();
	size_t rows = c->flat.height * c->flat.depth, x = 0;
	CUresult result = obc_copy_before_host_read(at);

	for (size_t row = 0; row < rows && result == CUDA_SUCCESS;) {
		/* ROWS_MAX is a multiple of each element's size. */
		struct piece piece = piece_at(c, row, x, OBP_ROWS_MAX);

		result = piece_send(at, c, &piece);
		x += piece.width;
		if (x == c->flat.width) {
			x = 0;
			row += piece.rows * piece.slices;
		}
	}
	return blocking && result == CUDA_SUCCESS
		? obc_copy_uploaded(at, launches, c->flat.width * rows)
		: result;
}

/* ---- from the device ---- */

static CUresult piece_read(struct obc_stream *at, const struct obf_array_copy *c,
	const struct piece *piece, uint8_t *packed)
{
	uint64_t launches = obc_ctx_launches();
	CUresult result = obc_copy_arrived(at, launches,
		obc_call_op_array_read(c->src->handle, piece->pos, piece->width, piece->rows,
			piece->slices, at->base.handle, packed));

	if (result == CUDA_SUCCESS)
		piece_pack(piece, packed, true);
	return result;
}

static bool is_packed(const struct obf_copy *f)
{
	return (f->dst_pitch == f->width || f->height == 1) &&
		(f->dst_slice == f->width * f->height || f->depth == 1) &&
		(f->height == 1 || f->dst_pitch == f->width);
}

static CUresult from_array(struct obc_stream *at, const struct obf_array_copy *c)
{
	const struct obf_copy *f = &c->flat;
	const uint64_t pos[3] = { c->src_at[0], c->src_at[1], c->src_at[2] };
	uint64_t launches = obc_ctx_launches();
	OB_CLEANUP(ob_freep) uint8_t *packed = NULL;
	CUresult result = CUDA_SUCCESS;

	if (is_packed(f))
		return obc_copy_arrived(at, launches,
			obc_call_op_array_read(c->src->handle, pos, f->width, f->height, f->depth,
				at->base.handle, (void *)(uintptr_t)f->dst));
	packed = malloc(ob_min((size_t)OBC_SCATTER_BYTES, f->width * f->height * f->depth));
	if (!packed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* A row of an array is not wider than OBC_SCATTER_BYTES. */
	for (size_t row = 0; row < f->height * f->depth && result == CUDA_SUCCESS;) {
		struct piece piece = piece_at(c, row, 0, OBC_SCATTER_BYTES);

		result = piece_read(at, c, &piece, packed);
		row += piece.rows * piece.slices;
	}
	return result;
}

/* ---- within the device ---- */

static CUresult on_device(struct obc_stream *at, const struct obf_array_copy *c)
{
	const struct obf_copy *f = &c->flat;
	struct obp_array_copy_req *req;
	struct obc_slot slot;

	req = obc_log_begin(&slot, OBP_OP_ARRAY_COPY, sizeof *req);
	if (!req)
		return obc_log_error();
	*req = (struct obp_array_copy_req){
		.dst = c->dst ? c->dst->handle : 0,
		.dst_at = { c->dst_at[0], c->dst_at[1], c->dst_at[2] },
		.src = c->src ? c->src->handle : 0,
		.src_at = { c->src_at[0], c->src_at[1], c->src_at[2] },
		.addr = c->dst ? f->src : f->dst,
		.pitch = c->dst ? f->src_pitch : f->dst_pitch,
		.slice = c->dst ? f->src_slice : f->dst_slice,
		.width = f->width,
		.height = f->height,
		.depth = f->depth,
		.dst_ctx = obc_copy_peer(f->dst_ctx),
		.src_ctx = obc_copy_peer(f->src_ctx),
		.stream = at->base.handle,
	};
	obc_stream_mark(at, slot.number);
	return obc_log_commit(&slot);
}

/* The side that is memory of the device may be managed or mapped. */
static CUresult memory_shared(struct obc_stream *at, const struct obf_array_copy *c)
{
	const struct obf_copy *f = &c->flat;
	bool from = !c->src && f->src_device, to = !c->dst && f->dst_device;
	uint64_t pitch = from ? f->src_pitch : f->dst_pitch;
	uint64_t slice = from ? f->src_slice : f->dst_slice;
	uint64_t size = (f->height - 1) * pitch + (f->depth - 1) * slice + f->width;

	return from || to ? obc_shared_work(at, from ? f->src : f->dst, size, to) : CUDA_SUCCESS;
}

CUresult obc_array_copy(struct obf_stream *stream, const struct obf_array_copy *c, bool blocking)
{
	struct obc_stream *at = obc_stream_of(stream);
	CUresult result = obc_shared_exist() ? memory_shared(at, c) : CUDA_SUCCESS;

	if (result != CUDA_SUCCESS)
		return result;
	if ((c->src || c->flat.src_device) && (c->dst || c->flat.dst_device))
		return on_device(at, c);
	return c->dst ? to_array(at, c, blocking) : from_array(at, c);
}
