/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/special.h"

#include <string.h>

#include "softdevice/core/ptx/token.h"

static const struct {
	const char *name;
	uint8_t sreg;
	uint8_t wide;
} sregs[] = {
	{ "%laneid", OBD_SREG_LANEID, 0 },
	{ "%warpid", OBD_SREG_WARPID, 0 },
	{ "%nwarpid", OBD_SREG_NWARPID, 0 },
	{ "%smid", OBD_SREG_SMID, 0 },
	{ "%nsmid", OBD_SREG_NSMID, 0 },
	{ "%gridid", OBD_SREG_GRIDID, 1 },
	{ "%lanemask_eq", OBD_SREG_LM_EQ, 0 },
	{ "%lanemask_le", OBD_SREG_LM_LE, 0 },
	{ "%lanemask_lt", OBD_SREG_LM_LT, 0 },
	{ "%lanemask_ge", OBD_SREG_LM_GE, 0 },
	{ "%lanemask_gt", OBD_SREG_LM_GT, 0 },
	{ "%clock", OBD_SREG_CLOCK, 0 },
	{ "%clock_hi", OBD_SREG_CLOCK_HI, 0 },
	{ "%clock64", OBD_SREG_CLOCK64, 1 },
	{ "%globaltimer", OBD_SREG_GLOBALTIMER, 1 },
	{ "%globaltimer_lo", OBD_SREG_GLOBALTIMER_LO, 0 },
	{ "%globaltimer_hi", OBD_SREG_GLOBALTIMER_HI, 0 },
	{ "%envreg1", OBD_SREG_ENVREG1, 0 },
	{ "%envreg2", OBD_SREG_ENVREG2, 0 },
	{ "%dynamic_smem_size", OBD_SREG_DYN_SMEM, 0 },
	{ "%total_smem_size", OBD_SREG_TOTAL_SMEM, 0 },
	{ "%aggr_smem_size", OBD_SREG_TOTAL_SMEM, 0 },
	{ "%is_explicit_cluster", OBD_SREG_EXPLICIT_CLUSTER, 0 },
	{ "%cluster_ctarank", OBD_SREG_CLUSTER_CTARANK, 0 },
	{ "%cluster_nctarank", OBD_SREG_CLUSTER_NCTARANK, 0 },
	{ "%reserved_smem_offset_begin", OBD_SREG_RESERVED_BEGIN, 0 },
	{ "%reserved_smem_offset_end", OBD_SREG_RESERVED_END, 0 },
	{ "%reserved_smem_offset_cap", OBD_SREG_RESERVED_CAP, 0 },
	{ "%reserved_smem_offset_0", OBD_SREG_RESERVED_0, 0 },
	{ "%reserved_smem_offset_1", OBD_SREG_RESERVED_1, 0 },
};

static const struct {
	const char *name;
	uint8_t first; /* number for x; y and z follow */
} vector_sregs[] = {
	{ "%tid", OBD_SREG_TID_X },
	{ "%ntid", OBD_SREG_NTID_X },
	{ "%ctaid", OBD_SREG_CTAID_X },
	{ "%nctaid", OBD_SREG_NCTAID_X },
	{ "%clusterid", OBD_SREG_CLUSTERID_X },
	{ "%nclusterid", OBD_SREG_NCLUSTERID_X },
	{ "%cluster_ctaid", OBD_SREG_CLUSTER_CTAID_X },
	{ "%cluster_nctaid", OBD_SREG_CLUSTER_NCTAID_X },
};

bool obd_special_parse(struct obd_loader *ld, const struct obd_token *name, uint64_t *ret_number,
	enum obd_type *ret_type)
{
	for (size_t i = 0; i < sizeof(vector_sregs) / sizeof(vector_sregs[0]); i++) {
		if (!obd_tok_text_is(name, vector_sregs[i].name))
			continue;
		if (obd_tok(ld)->kind != OBD_TOK_DOT || obd_tok(ld)->size != 1 ||
			obd_tok(ld)->text[0] < 'w' || obd_tok(ld)->text[0] > 'z')
			obd_tok_unexpected(ld, ".x, .y or .z");
		uint32_t axis = (uint32_t)(obd_tok(ld)->text[0] - 'x');

		*ret_type = OBD_T_U32;
		*ret_number =
			obd_tok(ld)->text[0] == 'w' ? OBD_SREG_ZERO : vector_sregs[i].first + axis;
		obd_tok_next(ld);
		return true;
	}
	for (size_t i = 0; i < sizeof(sregs) / sizeof(sregs[0]); i++) {
		if (!obd_tok_text_is(name, sregs[i].name))
			continue;
		*ret_type = sregs[i].wide ? OBD_T_U64 : OBD_T_U32;
		*ret_number = sregs[i].sreg;
		return true;
	}
	if ((name->size > 7 && memcmp(name->text, "%envreg", 7) == 0) ||
		(name->size > 3 && memcmp(name->text, "%pm", 3) == 0)) {
		*ret_type = OBD_T_U32;
		*ret_number = OBD_SREG_ZERO;
		return true;
	}
	return false;
}
