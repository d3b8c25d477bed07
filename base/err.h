/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The project's own errors, ordered by the smallest unit that is broken: the call, the lane, the
 * session, the server. A CUresult from the driver is never stored in an ob_err. Only ob_err_to_cuda
 * converts an ob_err to a CUresult.
 */
#ifndef OB_ERR_H
#define OB_ERR_H

#include "base/cuda_types.h"

/* X(value, NAME, CUresult, text) */
#define OB_ERR_LIST(X)                                                                          \
	X(0, NONE, CUDA_SUCCESS, "no error")                                                    \
	/* the call */                                                                          \
	X(1, ARGUMENT, CUDA_ERROR_INVALID_VALUE, "an argument is out of range")                 \
	X(2, NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                              \
	X(3, LIMIT, CUDA_ERROR_INVALID_VALUE, "a named limit is exceeded")                      \
	X(4, NOT_FOUND, CUDA_ERROR_NOT_FOUND, "no such name")                                   \
	X(5, UNSUPPORTED, CUDA_ERROR_NOT_SUPPORTED, "not supported")                            \
	X(6, IMAGE_UNKNOWN, CUDA_ERROR_INVALID_IMAGE,                                           \
		"the image is neither a fatbin, a cubin nor PTX")                               \
	X(7, IMAGE_DAMAGED, CUDA_ERROR_INVALID_IMAGE, "the image is damaged")                   \
	X(8, IMAGE_NO_ENTRY, CUDA_ERROR_NO_BINARY_FOR_GPU,                                      \
		"the image holds no code for this device")                                      \
	X(9, COMPRESSED, CUDA_ERROR_INVALID_IMAGE, "compressed bytes are damaged")              \
	X(10, HANDLE, CUDA_ERROR_INVALID_HANDLE, "the handle is unknown or was destroyed")      \
	X(11, CANCELLED, CUDA_ERROR_NOT_READY, "it was told to stop")                           \
	X(12, IMAGE_TILE_IR, CUDA_ERROR_INVALID_IMAGE,                                          \
		"the image is bytecode of CUDA Tile IR; only machine code and PTX can be used") \
	/* the lane */                                                                          \
	X(20, LANES, CUDA_ERROR_OUT_OF_MEMORY, "too many threads use CUDA at once")             \
	/* the session */                                                                       \
	X(40, CLOSED, CUDA_ERROR_DEVICE_UNAVAILABLE,                                            \
		"the connection was closed by the other side")                                  \
	X(41, TIMEOUT, CUDA_ERROR_DEVICE_UNAVAILABLE, "the other side did not answer in time")  \
	X(42, PROTOCOL, CUDA_ERROR_DEVICE_UNAVAILABLE, "the other side broke the protocol")     \
	X(43, VERSION, CUDA_ERROR_DEVICE_UNAVAILABLE,                                           \
		"the other side speaks another protocol version")                               \
	X(44, REFUSED, CUDA_ERROR_DEVICE_UNAVAILABLE, "the other side refused the session")     \
	X(45, MAGIC, CUDA_ERROR_DEVICE_UNAVAILABLE, "the other side is not an Outboard server") \
	X(46, IO, CUDA_ERROR_DEVICE_UNAVAILABLE, "an input or output operation failed")         \
	X(47, ADDRESS_SPACE, CUDA_ERROR_OUT_OF_MEMORY,                                          \
		"no common range of addresses could be reserved")                               \
	X(50, TLS, CUDA_ERROR_DEVICE_UNAVAILABLE, "no TLS connection could be made")            \
	X(51, CERTIFICATE, CUDA_ERROR_DEVICE_UNAVAILABLE,                                       \
		"the server's certificate is not trusted")                                      \
	X(52, DENIED, CUDA_ERROR_DEVICE_UNAVAILABLE, "the server does not let this client in")  \
	/* the server */                                                                        \
	X(60, CONNECT, CUDA_ERROR_NO_DEVICE, "the server cannot be reached")                    \
	X(61, URL, CUDA_ERROR_NO_DEVICE, "the address is not a URL this program knows")         \
	X(62, DRIVER, CUDA_ERROR_NO_DEVICE, "the driver library cannot be used")                \
	X(63, RESOLVE, CUDA_ERROR_NO_DEVICE, "the server's name cannot be resolved")

enum ob_err {
#define X(value, name, cuda, text) OB_ERR_##name = value,
	OB_ERR_LIST(X)
#undef X
};

/* "TIMEOUT"; "?" for a value that is not in the list. */
const char *ob_err_name(enum ob_err err);
/* One sentence without a full stop. */
const char *ob_err_text(enum ob_err err);
CUresult ob_err_to_cuda(enum ob_err err);

#endif
