#include "textflag.h"

// Products of four queries with the keys of pages, a dimension at a time. A load spreads a number over a vector for
// nothing.

// MIX adds two or four vectors of values, weighted by a query's weight of the token, to its sums.
#define MIX256(weights, x, a, b) \
	VBROADCASTSS (weights)(R12*1), x \
	VFMADD231PS  x, Y8, a            \
	VFMADD231PS  x, Y9, b

#define MIX512(weights, x, a, b, c, d) \
	VBROADCASTSS (weights)(R12*1), x \
	VFMADD231PS  x, Z16, a           \
	VFMADD231PS  x, Z17, b           \
	VFMADD231PS  x, Z18, c           \
	VFMADD231PS  x, Z19, d

// MIXARGUMENTS loads the arguments: dim and tokens in bytes of their floats.
#define MIXARGUMENTS \
	MOVQ dim+0(FP), CX      \
	MOVQ tokens+8(FP), DX   \
	SHLQ $2, CX             \
	SHLQ $2, DX             \
	MOVQ out+16(FP), DI     \
	MOVQ weights+24(FP), SI \
	MOVQ 0(SI), R8          \
	MOVQ 8(SI), R9          \
	MOVQ 16(SI), R10        \
	MOVQ 24(SI), R11        \
	MOVQ values+32(FP), BX  \
	MOVQ ahead+40(FP), SI   \
	XORQ AX, AX

// func scores256(dim int, queries, keys, out *float32, stride int, ahead *float32)
TEXT ·scores256(SB), NOSPLIT, $0-48
	MOVQ   dim+0(FP), CX
	MOVQ   queries+8(FP), AX
	MOVQ   keys+16(FP), BX
	MOVQ   out+24(FP), DI
	MOVQ   stride+32(FP), R8
	MOVQ   ahead+40(FP), SI
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

dimension:
	PREFETCHT0   (SI)
	VMOVUPS      (BX), Y8
	VMOVUPS      32(BX), Y9
	VBROADCASTSS (AX), Y10
	VFMADD231PS  Y10, Y8, Y0
	VFMADD231PS  Y10, Y9, Y1
	VBROADCASTSS 4(AX), Y11
	VFMADD231PS  Y11, Y8, Y2
	VFMADD231PS  Y11, Y9, Y3
	VBROADCASTSS 8(AX), Y12
	VFMADD231PS  Y12, Y8, Y4
	VFMADD231PS  Y12, Y9, Y5
	VBROADCASTSS 12(AX), Y13
	VFMADD231PS  Y13, Y8, Y6
	VFMADD231PS  Y13, Y9, Y7
	ADDQ         $16, AX
	ADDQ         $64, BX
	ADDQ         $64, SI
	DECQ         CX
	JNZ          dimension

	SHLQ    $2, R8
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    R8, DI
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	ADDQ    R8, DI
	VMOVUPS Y4, (DI)
	VMOVUPS Y5, 32(DI)
	ADDQ    R8, DI
	VMOVUPS Y6, (DI)
	VMOVUPS Y7, 32(DI)
	VZEROUPPER
	RET

// func scores512(dim int, queries, keys, next, out *float32, stride int, ahead, beyond *float32)
TEXT ·scores512(SB), NOSPLIT, $0-64
	MOVQ   dim+0(FP), CX
	MOVQ   queries+8(FP), AX
	MOVQ   keys+16(FP), BX
	MOVQ   next+24(FP), DX
	MOVQ   out+32(FP), DI
	MOVQ   stride+40(FP), R10
	MOVQ   ahead+48(FP), SI
	MOVQ   beyond+56(FP), R8
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	XORQ   R9, R9

dimension:
	PREFETCHT0   (SI)(R9*1)
	PREFETCHT0   (R8)(R9*1)
	VMOVUPS      (BX)(R9*1), Z8
	VMOVUPS      (DX)(R9*1), Z9
	VBROADCASTSS (AX), Z10
	VFMADD231PS  Z10, Z8, Z0
	VFMADD231PS  Z10, Z9, Z1
	VBROADCASTSS 4(AX), Z11
	VFMADD231PS  Z11, Z8, Z2
	VFMADD231PS  Z11, Z9, Z3
	VBROADCASTSS 8(AX), Z12
	VFMADD231PS  Z12, Z8, Z4
	VFMADD231PS  Z12, Z9, Z5
	VBROADCASTSS 12(AX), Z13
	VFMADD231PS  Z13, Z8, Z6
	VFMADD231PS  Z13, Z9, Z7
	ADDQ         $16, AX
	ADDQ         $64, R9
	DECQ         CX
	JNZ          dimension

	SHLQ    $2, R10
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	ADDQ    R10, DI
	VMOVUPS Z2, (DI)
	VMOVUPS Z3, 64(DI)
	ADDQ    R10, DI
	VMOVUPS Z4, (DI)
	VMOVUPS Z5, 64(DI)
	ADDQ    R10, DI
	VMOVUPS Z6, (DI)
	VMOVUPS Z7, 64(DI)
	VZEROUPPER
	RET

// func mix256(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead *float32)
TEXT ·mix256(SB), NOSPLIT, $0-48
	MIXARGUMENTS

dimensions:  // AX bytes behind the start of each row
	MOVQ    0(DI), R13
	VMOVUPS (R13)(AX*1), Y0
	VMOVUPS 32(R13)(AX*1), Y1
	MOVQ    8(DI), R13
	VMOVUPS (R13)(AX*1), Y2
	VMOVUPS 32(R13)(AX*1), Y3
	MOVQ    16(DI), R13
	VMOVUPS (R13)(AX*1), Y4
	VMOVUPS 32(R13)(AX*1), Y5
	MOVQ    24(DI), R13
	VMOVUPS (R13)(AX*1), Y6
	VMOVUPS 32(R13)(AX*1), Y7
	MOVQ    AX, R13
	XORQ    R12, R12

token:
	PREFETCHT0 (SI)              // line by line, as they lie
	VMOVUPS    (BX)(R13*1), Y8
	VMOVUPS    32(BX)(R13*1), Y9
	MIX256(R8, Y10, Y0, Y1)
	MIX256(R9, Y11, Y2, Y3)
	MIX256(R10, Y12, Y4, Y5)
	MIX256(R11, Y13, Y6, Y7)
	ADDQ       $64, SI
	ADDQ       CX, R13
	ADDQ       $4, R12
	CMPQ       R12, DX
	JNE        token

	MOVQ    0(DI), R13
	VMOVUPS Y0, (R13)(AX*1)
	VMOVUPS Y1, 32(R13)(AX*1)
	MOVQ    8(DI), R13
	VMOVUPS Y2, (R13)(AX*1)
	VMOVUPS Y3, 32(R13)(AX*1)
	MOVQ    16(DI), R13
	VMOVUPS Y4, (R13)(AX*1)
	VMOVUPS Y5, 32(R13)(AX*1)
	MOVQ    24(DI), R13
	VMOVUPS Y6, (R13)(AX*1)
	VMOVUPS Y7, 32(R13)(AX*1)
	ADDQ    $64, AX
	CMPQ    AX, CX
	JNE     dimensions
	VZEROUPPER
	RET

// func mix512(dim, tokens int, out, weights *[maxQueries]*float32, values, ahead *float32)
TEXT ·mix512(SB), NOSPLIT, $0-48
	MIXARGUMENTS

dimensions:  // AX bytes behind the start of each row
	MOVQ    0(DI), R13
	VMOVUPS (R13)(AX*1), Z0
	VMOVUPS 64(R13)(AX*1), Z1
	VMOVUPS 128(R13)(AX*1), Z2
	VMOVUPS 192(R13)(AX*1), Z3
	MOVQ    8(DI), R13
	VMOVUPS (R13)(AX*1), Z4
	VMOVUPS 64(R13)(AX*1), Z5
	VMOVUPS 128(R13)(AX*1), Z6
	VMOVUPS 192(R13)(AX*1), Z7
	MOVQ    16(DI), R13
	VMOVUPS (R13)(AX*1), Z8
	VMOVUPS 64(R13)(AX*1), Z9
	VMOVUPS 128(R13)(AX*1), Z10
	VMOVUPS 192(R13)(AX*1), Z11
	MOVQ    24(DI), R13
	VMOVUPS (R13)(AX*1), Z12
	VMOVUPS 64(R13)(AX*1), Z13
	VMOVUPS 128(R13)(AX*1), Z14
	VMOVUPS 192(R13)(AX*1), Z15
	MOVQ    AX, R13
	XORQ    R12, R12

token:
	PREFETCHT0 (SI)(R13*1)
	PREFETCHT0 64(SI)(R13*1)
	PREFETCHT0 128(SI)(R13*1)
	PREFETCHT0 192(SI)(R13*1)
	VMOVUPS    (BX)(R13*1), Z16
	VMOVUPS    64(BX)(R13*1), Z17
	VMOVUPS    128(BX)(R13*1), Z18
	VMOVUPS    192(BX)(R13*1), Z19
	MIX512(R8, Z20, Z0, Z1, Z2, Z3)
	MIX512(R9, Z21, Z4, Z5, Z6, Z7)
	MIX512(R10, Z22, Z8, Z9, Z10, Z11)
	MIX512(R11, Z23, Z12, Z13, Z14, Z15)
	ADDQ       CX, R13
	ADDQ       $4, R12
	CMPQ       R12, DX
	JNE        token

	MOVQ    0(DI), R13
	VMOVUPS Z0, (R13)(AX*1)
	VMOVUPS Z1, 64(R13)(AX*1)
	VMOVUPS Z2, 128(R13)(AX*1)
	VMOVUPS Z3, 192(R13)(AX*1)
	MOVQ    8(DI), R13
	VMOVUPS Z4, (R13)(AX*1)
	VMOVUPS Z5, 64(R13)(AX*1)
	VMOVUPS Z6, 128(R13)(AX*1)
	VMOVUPS Z7, 192(R13)(AX*1)
	MOVQ    16(DI), R13
	VMOVUPS Z8, (R13)(AX*1)
	VMOVUPS Z9, 64(R13)(AX*1)
	VMOVUPS Z10, 128(R13)(AX*1)
	VMOVUPS Z11, 192(R13)(AX*1)
	MOVQ    24(DI), R13
	VMOVUPS Z12, (R13)(AX*1)
	VMOVUPS Z13, 64(R13)(AX*1)
	VMOVUPS Z14, 128(R13)(AX*1)
	VMOVUPS Z15, 192(R13)(AX*1)
	ADDQ    $256, AX
	CMPQ    AX, CX
	JNE     dimensions
	VZEROUPPER
	RET
