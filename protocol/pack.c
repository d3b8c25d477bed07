/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/pages.h"

unsigned obp_codecs_own(void)
{
	return ob_opt_on(OB_OPT_COMPRESS) ? OBZ_ALL_CODECS : 0;
}

unsigned obp_codec_request_read(unsigned *ret_codecs)
{
	const char *text = getenv("OUTBOARD_CODEC");
	enum obz_codec codec;

	if (!text || !*text)
		return OBP_CODEC_CHOOSE;
	if (strcmp(text, "auto") == 0)
		return OBP_CODEC_MEASURE;
	if (!obz_codec_find(text, &codec)) {
		ob_warn("OUTBOARD_CODEC: '%.40s' is not one of auto, none, lz4, zstd, planes; "
			"choosing by measurement",
			text);
		return OBP_CODEC_CHOOSE;
	}
	if (codec == OBZ_NONE)
		*ret_codecs = 0;
	return codec;
}

/* ---- sending ---- */

void obp_packer_init(struct obp_packer *packer, unsigned codecs, unsigned request, bool local,
	double (*rate)(void *user), void *user)
{
	bool forced = request > OBZ_NONE && request < OBZ_CODEC_COUNT && codecs & 1u << request;

	*packer = (struct obp_packer){ .rate = rate, .user = user };
	obz_chooser_init(&packer->chooser, codecs, forced ? (enum obz_codec)request : OBZ_NONE);
	packer->on = codecs &&
		(forced || request == OBP_CODEC_MEASURE || (request == OBP_CODEC_CHOOSE && !local));
}

void obp_packer_expect(struct obp_packer *packer, double rate)
{
	if (packer->on && !packer->chooser.forced)
		obz_chooser_rate(&packer->chooser, rate);
}

void obp_packer_fini(struct obp_packer *packer)
{
	obz_work_fini(&packer->work);
	free(packer->scratch);
	*packer = (struct obp_packer){ 0 };
}

void obp_packer_release(struct obp_packer *packer)
{
	obz_work_fini(&packer->work);
	if (packer->scratch)
		ob_pages_discard(packer->scratch, packer->scratch_size);
}

bool obp_packer_cuts(const struct obp_packer *packer)
{
	const struct obz_chooser *chooser = &packer->chooser;

	return packer->on && (chooser->now != OBZ_NONE || chooser->rate < OBZ_FAST_RATE);
}

static bool scratch_room(struct obp_packer *packer, size_t size)
{
	uint8_t *p;

	if (packer->scratch_size >= size)
		return true;
	size = ob_max(size, (size_t)OBP_PACK_CHUNK + OBP_PACK_PLAIN_MAX);
	p = realloc(packer->scratch, size);
	if (!p)
		return false;
	packer->scratch = p;
	packer->scratch_size = size;
	return true;
}

/*
 * Builds the packed payload in scratch: head, the pieces before `big` unpacked, the piece itself
 * packed. Returns its size; 0: packing does not save enough.
 */
static size_t payload_pack(
	struct obp_packer *packer, enum obz_codec codec, const struct iovec *iov, int big)
{
	struct obp_packed head = { .raw = (uint32_t)iov[big].iov_len };
	size_t at = sizeof head, limit = (size_t)((double)iov[big].iov_len * OBZ_GAIN), packed;

	for (int i = 1; i < big; i++) {
		memcpy(packer->scratch + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	head.plain = (uint32_t)(at - sizeof head);
	packed = obz_compress(&packer->work, codec, iov[big].iov_base, iov[big].iov_len,
		packer->scratch + at, limit);
	if (!packed)
		return 0;
	head.packed = (uint32_t)packed;
	memcpy(packer->scratch, &head, sizeof head);
	at += packed;
	memset(packer->scratch + at, 0, ob_round_up(at, 8) - at);
	return ob_round_up(at, 8);
}

/*
 * Returns the index of the largest piece, if it is large enough to be packed, the pieces before it
 * are small, and those behind it are only padding; otherwise 0.
 */
static int big_find(const struct iovec *iov, int n, size_t *ret_plain)
{
	size_t plain = 0, behind = 0;
	int big = 1;

	for (int i = 2; i < n; i++)
		if (iov[i].iov_len > iov[big].iov_len)
			big = i;
	for (int i = 1; i < n; i++)
		*(i < big ? &plain : &behind) += i == big ? 0 : iov[i].iov_len;
	*ret_plain = plain;
	return iov[big].iov_len >= OBP_PACK_MIN && plain <= OBP_PACK_PLAIN_MAX && behind < 8 ? big
											     : 0;
}

int obp_packer_frame(struct obp_packer *packer, struct obp_frame *frame, struct iovec *iov, int n)
{
	struct obz_chooser *chooser = &packer->chooser;
	enum obz_codec codec;
	size_t plain, size = 0;
	uint64_t begin;
	int big = packer->on ? big_find(iov, n, &plain) : 0;

	if (!big || !scratch_room(packer, sizeof(struct obp_packed) + plain + iov[big].iov_len + 8))
		return n;
	if (!chooser->forced && chooser->rate <= 0)
		obz_chooser_rate(chooser, packer->rate(packer->user));
	begin = ob_clock_ns();
	if (obz_chooser_due(chooser, begin)) {
		obz_chooser_sample(chooser, &packer->work, iov[big].iov_base, iov[big].iov_len,
			packer->scratch);
		packer->stats.ns += ob_clock_ns() - begin;
	}
	codec = obz_chooser_pick(chooser, iov[big].iov_len);
	if (codec != OBZ_NONE) {
		begin = ob_clock_ns();
		size = payload_pack(packer, codec, iov, big);
		obz_chooser_learn(chooser, codec, iov[big].iov_len, size, ob_clock_ns() - begin);
		packer->stats.ns += ob_clock_ns() - begin;
	}
	/*
	 * Measure right before the frame is sent: bytes of the last frame that are still unsent
	 * show that the link is saturated.
	 */
	if (!chooser->forced)
		obz_chooser_rate(chooser, packer->rate(packer->user));
	codec = size ? codec : OBZ_NONE;
	packer->stats.chunks[codec]++;
	packer->stats.raw[codec] += frame->size;
	packer->stats.wire[codec] += size ? size : frame->size;
	if (!size)
		return n;
	frame->raw_size = frame->size;
	frame->size = (uint32_t)size;
	frame->flags = (uint16_t)codec;
	iov[1] = (struct iovec){ packer->scratch, size };
	return 2;
}

/* ---- receiving ---- */

static bool grow(uint8_t **p, size_t *room, size_t size)
{
	uint8_t *larger;

	if (*room >= size)
		return true;
	/*
	 * The old contents are not needed. Aligned to cache lines, because record bodies must be at
	 * multiples of 8.
	 */
	larger = aligned_alloc(64, ob_round_up(size, 4096));
	if (!larger)
		return false;
	free(*p);
	*p = larger;
	*room = ob_round_up(size, 4096);
	return true;
}

enum ob_err obp_unpacker_begin(struct obp_unpacker *unpacker, const struct obp_frame *frame)
{
	if (!grow(&unpacker->packed, &unpacker->packed_room, frame->size) ||
		!grow(&unpacker->plain, &unpacker->plain_room, frame->raw_size))
		return OB_ERR_NO_MEMORY;
	unpacker->size = frame->size;
	unpacker->have = 0;
	unpacker->raw_size = frame->raw_size;
	unpacker->codec = (enum obz_codec)frame->flags;
	return OB_ERR_NONE;
}

enum ob_err obp_unpacker_finish(struct obp_unpacker *unpacker)
{
	const uint8_t *p = unpacker->packed;
	uint64_t begin = ob_clock_ns();
	struct obp_packed head;
	size_t pad;
	enum ob_err err;

	/* in bounds: frame_check requires a payload of at least this size */
	memcpy(&head, p, sizeof head);
	/* Each term is below 4 GiB, so the sums do not overflow 64 bits. */
	if (head.reserved || (uint64_t)head.plain + head.raw > unpacker->raw_size ||
		unpacker->raw_size - head.plain - head.raw >= 8 ||
		sizeof head + (uint64_t)head.plain + head.packed > unpacker->size ||
		unpacker->size - sizeof head - head.plain - head.packed >= 8)
		return OB_ERR_COMPRESSED;
	if (unpacker->raw_size == 0)
		/* an empty payload is never packed, and plain may be NULL */
		return OB_ERR_COMPRESSED;
	memcpy(unpacker->plain, p + sizeof head, head.plain);
	err = obz_decompress_with(&unpacker->work, unpacker->codec, p + sizeof head + head.plain,
		head.packed, unpacker->plain + head.plain, head.raw);
	if (err)
		return err;
	pad = unpacker->raw_size - head.plain - head.raw;
	memset(unpacker->plain + unpacker->raw_size - pad, 0, pad);
	unpacker->stats.chunks[unpacker->codec]++;
	unpacker->stats.raw[unpacker->codec] += unpacker->raw_size;
	unpacker->stats.wire[unpacker->codec] += unpacker->size;
	unpacker->stats.ns += ob_clock_ns() - begin;
	unpacker->size = unpacker->have = 0;
	return OB_ERR_NONE;
}

void obp_unpacker_fini(struct obp_unpacker *unpacker)
{
	obz_work_fini(&unpacker->work);
	free(unpacker->packed);
	free(unpacker->plain);
	*unpacker = (struct obp_unpacker){ 0 };
}

void obp_unpacker_release(struct obp_unpacker *unpacker)
{
	obz_work_fini(&unpacker->work);
	if (unpacker->packed)
		ob_pages_discard(unpacker->packed, unpacker->packed_room);
	if (unpacker->plain)
		ob_pages_discard(unpacker->plain, unpacker->plain_room);
}
