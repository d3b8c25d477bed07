/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/err.h"

const char *ob_err_name(enum ob_err err)
{
	switch (err) {
#define X(value, name, cuda, text) \
	case OB_ERR_##name:        \
		return #name;
		OB_ERR_LIST(X)
#undef X
	}
	return "?";
}

const char *ob_err_text(enum ob_err err)
{
	switch (err) {
#define X(value, name, cuda, text) \
	case OB_ERR_##name:        \
		return text;
		OB_ERR_LIST(X)
#undef X
	}
	return "unknown error";
}

CUresult ob_err_to_cuda(enum ob_err err)
{
	switch (err) {
#define X(value, name, cuda, text) \
	case OB_ERR_##name:        \
		return cuda;
		OB_ERR_LIST(X)
#undef X
	}
	return CUDA_ERROR_UNKNOWN;
}
