/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Ends the definitions that the lists of operations were included with: ops_elt.h, ops_carry.h,
 * ops_vector.h, ops_other.h. No guard: each user of a list includes it.
 */
#undef ELT1
#undef ELT2
#undef ELT3
#undef ELT4
#undef SEL
#undef CARRY
#undef CARRYV
#undef OPX
#undef HALF
#undef HALFU
#undef VEC
#undef QUOT
