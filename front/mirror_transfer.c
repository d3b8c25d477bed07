/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What goes to and from a mirror's memory on the device. Under the lock. */
#include <string.h>

#include "base/check.h"
#include "front/mirror_inside.h"
#include "front/private.h"

#define WORD      4u  /* bytes; the unit of uploads after a host function */
#define WORD_RUNS 64u /* uploads of that kind after one function; further ones are of pieces */

static uint8_t *host_of(const struct obf_mirror *mirror)
{
	return (uint8_t *)(uintptr_t)mirror->host; /* NOLINT(performance-no-int-to-ptr) */
}

CUresult obf_mirror_stream(const struct obf_mirror *mirror, struct obf_stream **ret)
{
	return obf_stream_get(mirror->transfers, mirror->ctx, ret);
}

static bool differs(const struct obf_mirror *mirror, uint64_t at, uint64_t size)
{
	return memcmp(host_of(mirror) + at, mirror->common + at, ob_min(size, mirror->size - at)) !=
		0;
}

bool obf_mirror_changed(
	const struct obf_mirror *mirror, uint32_t unit, uint64_t *at, uint64_t *ret_size)
{
	uint64_t from = *at, end;

	while (from < mirror->size && !differs(mirror, from, OBF_MIRROR_PIECE))
		from += OBF_MIRROR_PIECE;
	while (from < mirror->size && !differs(mirror, from, unit))
		from += unit;
	end = from;
	while (end < mirror->size && differs(mirror, end, unit))
		end += unit;
	*at = from;
	*ret_size = ob_min(end, mirror->size) - ob_min(from, mirror->size);
	return *ret_size > 0;
}

CUresult obf_mirror_run_upload(
	struct obf_mirror *mirror, struct obf_stream *stream, uint64_t at, uint64_t size)
{
	/* The bytes are taken once, because other threads may change them meanwhile. */
	memcpy(mirror->common + at, host_of(mirror) + at, size);
	return obf_process.backend->write(
		stream, mirror->device + at, mirror->common + at, size, false);
}

CUresult obf_mirror_download(struct obf_ctx *ctx, void *user)
{
	uint8_t *host = host_of(user);
	struct obf_mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = obf_mirror_stream(mirror, &stream);

	(void)ctx;
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->read(
			stream, mirror->got, mirror->device, mirror->size, true);
	if (result == CUDA_SUCCESS)
		mirror->pushed = false; /* the same stream */
	for (uint64_t at = 0; at < mirror->size && result == CUDA_SUCCESS; at += OBF_MIRROR_PIECE) {
		uint64_t end = ob_min(at + OBF_MIRROR_PIECE, mirror->size);

		if (memcmp(mirror->got + at, mirror->common + at, end - at) == 0)
			continue;
		for (uint64_t i = at; i < end; i++)
			if (mirror->got[i] != mirror->common[i])
				host[i] = mirror->common[i] = mirror->got[i];
	}
	return result;
}

CUresult obf_mirror_upload(struct obf_ctx *ctx, void *user)
{
	struct obf_mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = obf_mirror_stream(mirror, &stream);
	uint64_t at = 0, size;

	if (result == CUDA_SUCCESS && (mirror->launched || mirror->maybe))
		result = obf_mirror_download(ctx, mirror);
	for (; result == CUDA_SUCCESS && obf_mirror_changed(mirror, OBF_MIRROR_PIECE, &at, &size);
		at += size)
		result = obf_mirror_run_upload(mirror, stream, at, size);
	/* Kernels in all streams may use the bytes. */
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

CUresult obf_mirror_upload_words(struct obf_ctx *ctx, void *user)
{
	struct obf_mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = obf_mirror_stream(mirror, &stream);
	uint64_t at = 0, size;
	unsigned runs = 0;

	for (; result == CUDA_SUCCESS &&
		obf_mirror_changed(mirror, runs < WORD_RUNS ? WORD : OBF_MIRROR_PIECE, &at, &size);
		at += size) {
		if (runs++ == WORD_RUNS && (mirror->launched || mirror->maybe))
			result = obf_mirror_download(ctx, mirror);
		if (result == CUDA_SUCCESS)
			result = obf_mirror_run_upload(mirror, stream, at, size);
	}
	if (!runs && !mirror->pushed)
		return result;
	mirror->pushed = false;
	return result == CUDA_SUCCESS ? obf_process.backend->stream_wait(stream) : result;
}

CUresult obf_mirror_push_words(struct obf_ctx *ctx, void *user)
{
	struct obf_mirror *mirror = user;
	struct obf_stream *stream;
	CUresult result = obf_mirror_stream(mirror, &stream);
	uint64_t at = 0, size;

	(void)ctx;
	for (unsigned runs = 0; runs < WORD_RUNS && result == CUDA_SUCCESS &&
		obf_mirror_changed(mirror, WORD, &at, &size);
		runs++, at += size)
		result = obf_mirror_run_upload(mirror, stream, at, size);
	mirror->pushed = true;
	return result;
}
