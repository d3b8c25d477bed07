/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Errors in the answers of etcd's JSON gateway. No state; any thread. */
#ifndef OBL_ETCD_ERROR_H
#define OBL_ETCD_ERROR_H

#include <jansson.h>
#include <stdbool.h>

/* Codes of gRPC. */
enum {
	OBL_GRPC_ARGUMENT = 3,
	OBL_GRPC_NOT_FOUND = 5,
	OBL_GRPC_DENIED = 7,
	OBL_GRPC_EXHAUSTED = 8,
	OBL_GRPC_PRECONDITION = 9,
	OBL_GRPC_OUT_OF_RANGE = 11,
	OBL_GRPC_UNIMPLEMENTED = 12,
	OBL_GRPC_UNAVAILABLE = 14,
	OBL_GRPC_UNAUTHENTICATED = 16,
};

/*
 * Reads {"error": ..., "code": ...} in the forms of etcd 3.4 and newer, also of a stream; -1: no valid
 * code. The text belongs to the root. False: not an error.
 */
bool obl_etcd_error(const json_t *root, int *ret_code, const char **ret_text);
/* Whether an error means that the call was certainly not executed. */
bool obl_etcd_not_executed(int code, const char *text);

#endif
