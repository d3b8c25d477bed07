/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A fatbin as OBK_IMAGE_start .. OBK_IMAGE_end; nothing between the two without OBK_IMAGE_FILE. */
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
	.section .rodata
	.balign 64
	.globl JOIN(OBK_IMAGE, _start)
	.hidden JOIN(OBK_IMAGE, _start)
	.globl JOIN(OBK_IMAGE, _end)
	.hidden JOIN(OBK_IMAGE, _end)
JOIN(OBK_IMAGE, _start):
#ifdef OBK_IMAGE_FILE
	.incbin OBK_IMAGE_FILE
#endif
JOIN(OBK_IMAGE, _end):
	.byte 0
	.section .note.GNU-stack, "", %progbits
