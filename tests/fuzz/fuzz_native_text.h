/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The text that fuzz_native.c makes kernels from. */
#ifndef OB_FUZZ_NATIVE_TEXT_H
#define OB_FUZZ_NATIVE_TEXT_H

#define STRAIGHT 80u /* the first statements have no branch */

/*
 * Templates of statements. R, D, F, G, P: a register of 32 or 64 bits, float, double, predicate;
 * I: a number; K: a multiple of 4 below 64; N: 0 or 8; C: a comparison; L: a later label; B: an
 * earlier one; T: a table of this statement. %i is the number of the thread, %n a count that bounds
 * the loops; %e and %h are scratch.
 */
static const char *const statements[] = {
	"add.u32 R, R, R",
	"sub.s32 R, R, I",
	"add.u32 R, R, %i",
	"mul.lo.u32 R, R, R",
	"mul.lo.u32 R, %i, I",
	"mul.hi.s32 R, R, R",
	"mad.lo.s32 R, R, R, R",
	"mad.lo.s32 R, %i, I, R",
	"mul.wide.u32 D, R, R",
	"mul.wide.s32 D, R, I",
	"mul.wide.s32 D, %i, I",
	"mad.wide.s32 D, R, I, D",
	"mad.wide.u32 D, %i, 4, D",
	"div.u32 R, R, R",
	"and.b32 R, R, I",
	"or.b32 R, R, R",
	"xor.b64 D, D, D",
	"not.b32 R, R",
	"neg.s32 R, R",
	"abs.s32 R, R",
	"shl.b32 R, R, R",
	"shl.b32 R, R, N",
	"shl.b64 D, D, R",
	"shr.u32 R, R, R",
	"shr.s32 R, R, N",
	"shr.s64 D, D, R",
	"shr.u64 D, D, N",
	"min.u32 R, R, R",
	"max.s32 R, R, R",
	"min.s64 D, D, D",
	"lop3.b32 R, R, R, R, 150",
	"shf.l.wrap.b32 R, R, R, R",
	"shf.r.wrap.b32 R, R, R, R",
	"prmt.b32 R, R, R, R",
	"mov.u32 R, I",
	"mov.u64 D, I",
	"mov.u32 R, R",
	"mov.u32 R, %tid.x",
	"mov.u32 R, %tid.y",
	"mov.u32 R, %laneid",
	"mov.u32 R, %ntid.x",
	"mov.u32 R, %warpid",
	"mov.b64 D, {R, R}",
	"mov.b64 {R, R}, D",
	"add.u64 D, D, D",
	"sub.u64 D, D, D",
	"mul.lo.u64 D, D, D",
	"mad.lo.u64 D, D, D, D",
	"add.u64 D, D, I",
	"cvt.u64.u32 D, R",
	"cvt.s64.s32 D, R",
	"cvt.u32.u64 R, D",
	"cvt.u32.u16 R, R",
	"cvt.s32.s8 R, R",
	"cvt.rn.f32.s32 F, R",
	"cvt.rn.f32.u32 F, R",
	"cvt.rn.f64.s32 G, R",
	"cvt.rzi.s32.f32 R, F",
	"cvt.f64.f32 G, F",
	"cvt.rn.f32.f64 F, G",
	"add.f32 F, F, F",
	"sub.ftz.f32 F, F, F",
	"mul.f32 F, F, F",
	"fma.rn.f32 F, F, F, F",
	"fma.rn.f32 F, F, F, 0f40490fdb",
	"div.rn.f32 F, F, F",
	"sqrt.rn.f32 F, F",
	"rcp.rn.f32 F, F",
	"ex2.approx.f32 F, F",
	"rsqrt.approx.f32 F, F",
	"min.f32 F, F, F",
	"max.f32 F, F, F",
	"abs.f32 F, F",
	"neg.f32 F, F",
	"cvt.rmi.f32.f32 F, F",
	"mov.b32 F, R",
	"mov.b32 R, F",
	"add.f64 G, G, G",
	"mul.f64 G, G, G",
	"fma.rn.f64 G, G, G, G",
	"div.rn.f64 G, G, G",
	"neg.f64 G, G",
	"fma.rn.f16x2 R, R, R, R",
	"setp.C.u32 P, R, R",
	"setp.C.s32 P, R, I",
	"setp.C.s32 P, %i, I",
	"setp.C.s64 P, D, D",
	"setp.C.u64 P, D, I",
	"setp.C.f32 P, F, F",
	"setp.C.f64 P, G, G",
	"selp.b32 R, R, R, P",
	"selp.b64 D, D, D, P",
	"selp.f32 F, F, I.0, P",
	"and.pred P, P, P",
	"or.pred P, P, P",
	"xor.pred P, P, P",
	"not.pred P, P",
	"@P add.u32 R, R, R",
	"@!P mov.u32 R, I",
	"@P mul.wide.u32 D, R, R",
	"@!P fma.rn.f32 F, F, F, F",
	"@P ld.global.u32 R, [%a+K]",
	"add.cc.u32 R, R, R; addc.u32 R, R, R",
	"add.cc.u32 R, R, R; mov.u32 R, %i; addc.cc.u32 R, R, %i; addc.u32 R, R, R",
	"sub.cc.u32 R, R, I; subc.cc.u32 R, R, R; subc.u32 R, R, R",
	"mad.lo.cc.u32 R, R, R, R; madc.lo.cc.u32 R, R, %i, R; addc.u32 R, R, 0",
	"mad.hi.cc.u32 R, R, R, R; madc.hi.cc.u32 R, R, I, R; addc.u32 R, R, 0",
	"mad.hi.cc.s32 R, R, R, R; madc.hi.u32 R, R, R, R; mul.hi.u32 R, R, %i; addc.u32 R, %i, R",
	"add.cc.u64 D, D, D; addc.cc.u64 D, D, %u; addc.u64 D, D, D",
	"mad.lo.cc.u64 D, D, D, D; madc.hi.cc.u64 D, D, %u, D; madc.lo.u64 D, D, D, D",
	"ld.global.u32 R, [%a+K]",
	"ld.global.f64 G, [%a+N]",
	"ld.global.u8 R, [%a+K]",
	"ld.global.u32 R, [%c+K]",
	"ld.global.f32 F, [%c+K]",
	"ld.global.u32 R, [%w+K]",
	"ld.global.v4.u32 {R, R, R, R}, [%v]",
	"ld.global.u64 D, [%x+N]",
	"ld.global.u16 R, [%y+K]",
	"and.b32 %h, R, 252; cvt.u64.u32 %e, %h; add.u64 %e, %e, %a; ld.global.u32 R, [%e+K]",
	"mul.wide.u32 %e, %i, N; add.u64 %e, %e, %a; ld.global.u32 R, [%e+K]",
	"ld.shared.u32 R, [%s]",
	"st.shared.u32 [%s], R",
	"st.shared.f32 [%s], F; ld.shared.u32 R, [%s]",
	"st.local.u32 [lo+K], R",
	"ld.local.u32 R, [lo+K]",
	"ld.param.u64 D, [p0]",
	"st.global.u32 [%o], R; ld.global.u32 R, [%o]",
	"st.global.u64 [%q], D",
	"st.global.u8 [%o], R",
	"atom.global.add.u32 R, [%o], R",
	"@P bra L",
	"@!P bra L",
	"bra L",
	"add.u32 %n, %n, 1; setp.lt.u32 %z, %n, 40; @%z bra B",
	"add.u32 %n, %n, 1; setp.lt.and.u32 %z, %n, 40, P; @%z bra B",
	"call (R), half, (R)",
	"call (R), again, (R)",
	("{ .param .b64 xo; .param .b64 xi; .param .b32 xj; st.param.b64 [xi], D; st.param.b32 "
	 "[xj], R; "
	 "call (xo), wide, (xi, xj); ld.param.b64 D, [xo]; }"),
	"testp.finite.f32 P, F",
	"@P setp.C.u32 P, R, R",
	"@!P setp.C.s64 P, D, I",
	"setp.C.u32 P, %n, I",
	"setp.C.or.s32 P, %n, I, P",
	"setp.C.and.u32 P, %n, 3, P",
	"setp.C.u32 P|P, R, R",
	"selp.b32 R, %n, I, P",
	"selp.b64 D, I, I, P",
	"slct.b32.s32 R, R, %n, R",
	"slct.u64.s32 D, D, D, R",
	"slct.f32.s32 F, F, F, %n",
	"mov.u32 R, %n",
	"mul.lo.u32 R, %n, R",
	"add.f32 F, F, F; setp.C.f32 P, F, F; @P mov.f32 F, F",
	"cvt.rn.f32.u32 F, %n",
	"cvt.rn.f64.u32 G, %n",
	"mad.lo.u32 R, %i, %n, R",
	"sub.u32 R, I, %i",
	"neg.s32 R, %i; mul.wide.s32 D, R, N",
	"add.u32 R, %i, 2147483632; cvt.s64.s32 D, R; cvt.u64.u32 D, R",
	"add.u32 R, %i, 4294967280; mul.wide.u32 D, R, 12",
	"mad.lo.u32 R, %t0, 134217728, R; mad.wide.s32 D, R, 4, D",
	"mul.wide.u32 D, %i, -4",
	"shl.b64 D, D, %n",
	"shr.s64 D, D, %t1",
	"shr.u64 D, D, %n",
	"shl.b64 D, %u, N",
	"shl.b32 R, %t0, 23",
	"shr.s32 R, R, 40",
	"bfe.u32 R, R, 4, 9",
	"bfi.b32 R, R, R, 3, N",
	"max.u64 D, D, I",
	"min.s32 R, %n, I",
	"popc.b32 R, R; clz.b32 R, R",
	"mul.hi.u64 D, D, D",
	"mov.b128 %x0, {D, D}; mov.b128 {D, D}, %x0",
	"mov.b128 %x1, {D, %u}; @P mov.b128 %x0, %x1; mov.b128 {D, D}, %x0",
	("mad.lo.u32 %h, %n, 4, %i; mul.wide.u32 %e, %h, 4; add.u64 %e, %e, %a; ld.global.u32 R, "
	 "[%e+K]"),
	"sub.s32 %h, %i, %n; mul.wide.s32 %e, %h, 4; add.u64 %e, %e, %a; ld.global.f32 F, [%e+512]",
	("add.u32 %h, %n, 4294967280; cvt.s64.s32 %e, %h; add.u64 %e, %e, %a; ld.global.u8 R, "
	 "[%e+64]"),
	("mad.lo.u32 %h, %t1, 5, %n; mul.wide.u32 %e, %h, 8; add.u64 %e, %e, %a; ld.global.u64 D, "
	 "[%e+N]"),
	"mul.wide.u32 %e, %n, 8; add.u64 %e, %e, %x; ld.global.v2.f64 {G, G}, [%e]",
	"cvt.u64.u32 %e, %s; cvta.shared.u64 %e, %e; ld.u32 R, [%e]; isspacep.shared P, %e",
	("cvt.u64.u32 %e, %s; cvta.shared.u64 %e, %e; st.u32 [%e], R; cvta.to.shared.u64 %e, %e; "
	 "cvt.u32.u64 R, %e"),
	"mov.u64 %e, lo; cvta.local.u64 %e, %e; st.u32 [%e+K], R; ld.u32 R, [%e+K]",
	"add.rz.f32 F, F, F",
	"@P add.rm.f32 F, F, F",
	"@!P fma.rp.f64 G, G, G, G",
	"@P cvt.rzi.s32.f32 R, F",
	"@P selp.b32 R, R, R, P",
	"@P mov.b64 D, {R, R}",
	"@!P cvt.u64.u32 D, %i",
	"@P mov.u32 R, %tid.x",
	"@P ld.param.u64 D, [p0]",
	"@!P xor.pred P, P, P",
	"@P mov.u32 %n, %n",
	"@P min.f32 F, F, F",
	"@!P shl.b64 D, D, R",
	"@P mad.wide.s32 D, R, I, D",
	"set.lt.u32.s32 R, R, R",
	"mov.u32 R, %lanemask_lt",
	"mov.u32 R, %tid.z",
	"mov.u32 R, %nctaid.x; mul.lo.u32 R, R, %i",
	"dp4a.u32.u32 R, R, R, R",
	"abs.f64 G, G; sqrt.rn.f64 G, G",
	"cvt.rn.f32.f64 F, G; cvt.f64.f32 G, F",
	"cvt.rn.f64.u32 G, R",
	"min.u64 D, D, D; max.s64 D, D, D",
	"ld.global.s8 R, [%b1+K]",
	"ld.global.u8 R, [%b1]",
	"@P ld.global.s16 R, [%y+K]",
	"ld.global.v2.u32 {R, R}, [%x+N]",
	"@!P ld.global.v4.f32 {F, F, F, F}, [%v]",
	"ld.global.u64 D, [%w+N]",
	"ld.global.u8 R, [%w+3]",
	"sub.u32 %h, 255, %i; mul.wide.u32 %e, %h, 4; add.u64 %e, %e, %a; ld.global.u32 R, [%e+K]",
	"sub.u32 %h, %i, 8; mul.wide.s32 %e, %h, 4; add.u64 %e, %e, %a; ld.global.u32 R, [%e+64]",
	("mad.lo.u32 %h, %t1, 48, %t0; mul.wide.u32 %e, %h, 4; and.b64 %e, %e, 4095; add.u64 %e, "
	 "%e, %a; "
	 "ld.global.f32 F, [%e]"),
	"mul.wide.u32 %e, %t1, 16; add.u64 %e, %e, %a; ld.global.v4.u32 {R, R, R, R}, [%e]",
	"@P st.global.u32 [%o], R",
	"@!P st.global.u64 [%q], D",
	"st.global.u8 [%b2], R; ld.global.u8 R, [%b2]",
	"st.global.u16 [%b3], R; ld.global.s16 R, [%b3]",
	"st.global.v2.u32 [%b4], {R, R}; ld.global.u64 D, [%b4]",
	"st.global.v4.u32 [%b5], {R, R, %i, %n}; ld.global.u32 R, [%b5+8]",
	"st.global.v2.f64 [%b5], {G, G}",
	"st.local.u64 [lo+64], D; ld.local.u8 R, [lo+67]",
	"st.shared.u8 [%s], R; ld.shared.s16 R, [%s]",
	"@P st.shared.u32 [%s], R",
	"ld.shared.u32 R, [sh+K]; mov.u32 R, %n",
	"red.global.add.u32 [%o], R",
	"atom.shared.add.u32 R, [%s], R",
	"atom.global.cas.b64 D, [%q], D, D",
	"atom.global.max.s32 R, [%o], R",
	"T: .branchtargets L, L, L, L; and.b32 %h, R, 3; brx.idx %h, T",
	"T: .branchtargets L, L; setp.lt.u32 %z, %n, 2; selp.u32 %h, 0, 1, %z; brx.idx %h, T",
	"bar.sync 0",
	"@P exit",
};

/* The same, where all threads of the block are together. %s and %k: shared cells of this thread, of another. */
static const char *const together[] = {
	"st.shared.u32 [%s], R; bar.sync 0; ld.shared.u32 R, [%k]; bar.sync 0",
	"st.shared.f32 [%k], F; bar.sync 0; ld.shared.f32 F, [%s]; bar.sync 0",
	"bar.sync 0; ld.shared.u32 R, [sh+K]; bar.sync 0",
	"activemask.b32 %h; shfl.sync.idx.b32 R, R, 0, 31, %h",
	"activemask.b32 %h; shfl.sync.idx.b32 R|P, R, 0, 31, %h",
	"activemask.b32 %h; vote.sync.ballot.b32 R, P, %h",
	"activemask.b32 %h; vote.sync.any.pred P, P, %h",
	"activemask.b32 %h; match.all.sync.b32 R|P, R, %h",
	"activemask.b32 %h; match.any.sync.b32 R, R, %h",
	"bar.red.popc.u32 R, 0, P",
	"bar.red.or.pred P, 0, P",
};

static const char head[] =
	".version 8.4\n.target sm_90\n.address_size 64\n"
	".func (.reg .b32 o) again(.reg .b32 i) { .reg .pred %z; .reg .b32 "
	"%t; mov.b32 o, i; setp.lt.u32 %z, i, 5; @%z ret; shr.u32 %t, i, 3; "
	"call (%t), again, (%t); mad.lo.u32 o, %t, 3, i; ret; }\n"
	".func (.param .b64 o) wide(.param .b64 i, .param .b32 j) { .reg .b64 %t, "
	"%i; .reg .b32 %j; .local .align 8 .b8 b[32]; ld.param.u64 %i, [i]; "
	"ld.param.u32 %j, [j]; st.local.u64 [b+8], %i; st.local.u32 [b+12], %j; "
	"ld.local.u64 %t, [b+8]; add.u64 %t, %t, %i; st.param.b64 [o], %t; ret; }\n"
	".func (.reg .b32 o) half(.reg .b32 i) { .reg .pred %z; shr.u32 o, i, "
	"1; setp.lt.u32 %z, i, 9; @%z ret; "
	"xor.b32 o, o, i; ret; }\n"
	".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{\n"
	".reg .b32 %r<60>, %i, %n, %h, %s, %k, %t<3>; .reg .b64 %d<6>, %a, %c, "
	"%w, %v, %x, %y, %o, %q, %e, %u, %b<6>; .reg .b128 %x<2>; "
	".reg .f32 %f<4>; .reg .f64 %g<4>; .reg .pred %p<80>, %z;\n"
	".shared .align 16 .b8 sh[1024]; .local .align 16 .b8 lo[128];\n"
	"ld.param.u64 %a, [p0]; ld.param.u64 %o, [p1]; ld.param.u64 %q, [p2];\n"
	"mov.u32 %t0, %tid.x; mov.u32 %t1, %tid.y; mov.u32 %t2, %ntid.x; "
	"mad.lo.u32 %i, %t1, %t2, %t0;\n"
	"cvt.u64.u32 %u, %i; add.u64 %b1, %a, %u; add.u64 %b2, %o, %u; add.u64 %b2, "
	"%b2, 30720; add.u64 %b3, %b2, %u; add.u64 %b3, %b3, 1024; mul.wide.u32 %u, "
	"%i, 8; add.u64 %b4, %o, %u; add.u64 %b4, %b4, 36864; mul.wide.u32 %u, %i, 16; "
	"add.u64 %b5, %o, %u; add.u64 %b5, %b5, 40960;\n"
	"mov.u32 %k, %ntid.y; mul.lo.u32 %k, %k, %t2; sub.u32 %k, %k, %i; mov.u32 %s, "
	"sh; mad.lo.u32 %k, %k, 4, %s; sub.u32 %k, %k, 4; "
	"mov.u32 %s, sh; mad.lo.u32 %s, %i, 4, %s; mul.wide.u32 %u, %i, 4; "
	"add.u64 %c, %a, %u; add.u64 %o, %o, %u;\n"
	"mul.wide.u32 %u, %i, 16; add.u64 %v, %a, %u; mul.wide.u32 %u, %i, 8; "
	"add.u64 %x, %a, %u; add.u64 %q, %q, %u;\n"
	"mul.wide.u32 %u, %i, 2; add.u64 %y, %a, %u; mul.wide.u32 %u, %t1, 64; "
	"add.u64 %w, %a, %u;\n"
	"mov.u32 %n, 0; mov.u32 %r0, 7; mov.u32 %r1, %tid.x; mov.u32 %r2, 1; "
	"mov.u32 %r3, -2; mov.u32 %r4, %i;\n"
	"ld.global.u32 %r5, [%c]; mov.u64 %d0, 5; mov.u64 %d1, %a; sub.u64 %d1, "
	"%d1, %a; cvt.u64.u32 %d2, %i; mov.u64 %d3, -8; "
	"ld.global.u64 %d4, [%x]; mov.u64 %d5, 0; mov.b128 %x0, {%d3, %d2};\n"
	"mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f7f800000; mov.f32 %f2, "
	"0fffffffff; ld.global.f32 %f3, [%c];\n"
	"mov.f64 %g0, 0d3ff8000000000000; mov.f64 %g1, %g0; ld.global.f64 %g2, "
	"[%x]; cvt.rn.f64.s32 %g3, %i;\n"
	"setp.eq.u32 %p0, %r1, 0; setp.ne.u32 %p1, %r0, 0; setp.lt.u32 %p2, %i, "
	"40; setp.gt.f32 %p3, %f3, 0f00000000;\n"
	"st.local.v4.u32 [lo], {%r0, %r1, %r2, %r5}; st.local.v4.u32 [lo+16], "
	"{%r4, %r4, %r4, %r4}; st.shared.u32 [%s], %r5;\n";

#endif
