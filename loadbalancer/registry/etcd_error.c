/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/etcd_error.h"

#include <string.h>

bool obl_etcd_error(const json_t *root, int *ret_code, const char **ret_text)
{
	const json_t *error = json_object_get(root, "error");
	const json_t *inner = json_is_object(error) ? error : root;
	const json_t *code = json_object_get(inner, "grpc_code"); /* a stream of etcd 3.4 */
	const json_t *text = json_object_get(inner, "message");
	json_int_t value;

	if (!error)
		return false;
	if (!code)
		code = json_object_get(inner, "code");
	if (!json_is_string(text))
		text = error;
	value = json_is_integer(code) ? json_integer_value(code) : -1;
	*ret_code = value >= 0 && value < 100 ? (int)value : -1;
	*ret_text = json_is_string(text) ? json_string_value(text) : "an error without a text";
	return true;
}

bool obl_etcd_not_executed(int code, const char *text)
{
	switch (code) {
	case OBL_GRPC_ARGUMENT:
	case OBL_GRPC_NOT_FOUND:
	case OBL_GRPC_DENIED:
	case OBL_GRPC_EXHAUSTED:
	case OBL_GRPC_PRECONDITION:
	case OBL_GRPC_OUT_OF_RANGE:
	case OBL_GRPC_UNIMPLEMENTED:
	case OBL_GRPC_UNAUTHENTICATED:
		return true;
	case OBL_GRPC_UNAVAILABLE:
		/* Checked before a call is executed. Time-outs have the same code. */
		return strcmp(text, "etcdserver: no leader") == 0;
	default:
		return false;
	}
}
