//go:build goexperiment.simd

#include "textflag.h"

// Two rows of packed weights, a block of 32 columns of each at a time. X15, X14 and X13 hold constants in all lanes: the digits of a
// 16-bit float, shifted to a float32's place, 2 to the power of the difference of their exponents, and what the format needs.

DATA constants<>+0(SB)/4, $0x8fffe000
DATA constants<>+4(SB)/4, $0x77800000
DATA constants<>+8(SB)/4, $15
DATA constants<>+12(SB)/4, $8
DATA constants<>+16(SB)/4, $16
GLOBL constants<>(SB), RODATA|NOPTR, $20

// How far the fifth bits of 32 columns, which lie in 4 bytes, are from the sign of a lane.
DATA fifths<>+0(SB)/8, $0x0000001e0000001f
DATA fifths<>+8(SB)/8, $0x0000001c0000001d
DATA fifths<>+16(SB)/8, $0x0000001a0000001b
DATA fifths<>+24(SB)/8, $0x0000001800000019
DATA fifths<>+32(SB)/8, $0x0000001600000017
DATA fifths<>+40(SB)/8, $0x0000001400000015
DATA fifths<>+48(SB)/8, $0x0000001200000013
DATA fifths<>+56(SB)/8, $0x0000001000000011
DATA fifths<>+64(SB)/8, $0x0000000e0000000f
DATA fifths<>+72(SB)/8, $0x0000000c0000000d
DATA fifths<>+80(SB)/8, $0x0000000a0000000b
DATA fifths<>+88(SB)/8, $0x0000000800000009
DATA fifths<>+96(SB)/8, $0x0000000600000007
DATA fifths<>+104(SB)/8, $0x0000000400000005
DATA fifths<>+112(SB)/8, $0x0000000200000003
DATA fifths<>+120(SB)/8, $0x0000000000000001
GLOBL fifths<>(SB), RODATA|NOPTR, $128

// ARGUMENTS loads the arguments and the constants, and clears the sums.
#define ARGUMENTS \
	MOVQ         blocks+0(FP), DX         \
	MOVQ         a+8(FP), AX              \
	MOVQ         v+16(FP), BX             \
	MOVQ         w+24(FP), CX             \
	MOVQ         next+32(FP), SI          \
	VPBROADCASTD constants<>+0(SB), Y15   \
	VPBROADCASTD constants<>+4(SB), Y14   \
	VPBROADCASTD constants<>+8(SB), Y13   \
	VPBROADCASTD constants<>+12(SB), Y12  \
	VPXOR        Y10, Y10, Y10            \
	VPXOR        Y11, Y11, Y11

// HALF makes the upper 16-bit float of each lane a float32.
#define HALF(from, to) \
	VPSRAD $3, from, to  \
	VPAND  Y15, to, to   \
	VMULPS Y14, to, to

// NIBBLES are 32 columns as numbers: in q0, q1, q2, q3.
#define NIBBLES(low, high, q0, q1, q2, q3) \
	VPMOVZXBD low, q2       \
	VPMOVZXBD high, q3      \
	VPAND     Y13, q2, q0   \
	VPAND     Y13, q3, q1   \
	VPSRLD    $4, q2, q2    \
	VPSRLD    $4, q3, q3

// SCALED adds 8 columns, numbers times d, times the input at x, to a sum.
#define SCALED(q, d, x, sum) \
	VCVTDQ2PS   q, q      \
	VMULPS      d, q, q   \
	VFMADD231PS x, q, sum

// MOVED does it with numbers times d plus m.
#define MOVED(q, d, m, x, sum) \
	VCVTDQ2PS   q, q      \
	VMULPS      d, q, q   \
	VADDPS      m, q, q   \
	VFMADD231PS x, q, sum

#define ROWQ41(row, sum) \
	VPBROADCASTD (row), Y4  \
	VPSLLD       $16, Y4, Y5 \
	HALF(Y5, Y5)             \
	HALF(Y4, Y4)             \
	NIBBLES(4(row), 12(row), Y0, Y1, Y2, Y3) \
	MOVED(Y0, Y5, Y4, 0(AX), sum)  \
	MOVED(Y1, Y5, Y4, 32(AX), sum) \
	MOVED(Y2, Y5, Y4, 64(AX), sum) \
	MOVED(Y3, Y5, Y4, 96(AX), sum)

#define ROWQ40(row, sum) \
	VPBROADCASTW (row), Y4   \
	HALF(Y4, Y4)             \
	NIBBLES(2(row), 10(row), Y0, Y1, Y2, Y3) \
	VPSUBD       Y12, Y0, Y0 \
	VPSUBD       Y12, Y1, Y1 \
	VPSUBD       Y12, Y2, Y2 \
	VPSUBD       Y12, Y3, Y3 \
	SCALED(Y0, Y4, 0(AX), sum)  \
	SCALED(Y1, Y4, 32(AX), sum) \
	SCALED(Y2, Y4, 64(AX), sum) \
	SCALED(Y3, Y4, 96(AX), sum)

// FIFTH makes 16 of each of 8 fifth bits in Y7: in Y6.
#define FIFTH(at) \
	VPSLLVD fifths<>+at(SB), Y7, Y6 \
	VPSRAD  $31, Y6, Y6             \
	VPAND   Y12, Y6, Y6

// NOFIFTH makes 16 of each of 8 fifth bits in Y7 that is not set: in Y6.
#define NOFIFTH(at) \
	VPSLLVD fifths<>+at(SB), Y7, Y6 \
	VPSRAD  $31, Y6, Y6             \
	VPANDN  Y12, Y6, Y6

#define ROWQ50(row, sum) \
	VPBROADCASTW (row), Y4   \
	HALF(Y4, Y4)             \
	VPBROADCASTD 2(row), Y7  \
	NIBBLES(6(row), 14(row), Y0, Y1, Y2, Y3) \
	NOFIFTH(0)               \
	VPSUBD       Y6, Y0, Y0  \
	NOFIFTH(32)              \
	VPSUBD       Y6, Y1, Y1  \
	NOFIFTH(64)              \
	VPSUBD       Y6, Y2, Y2  \
	NOFIFTH(96)              \
	VPSUBD       Y6, Y3, Y3  \
	SCALED(Y0, Y4, 0(AX), sum)  \
	SCALED(Y1, Y4, 32(AX), sum) \
	SCALED(Y2, Y4, 64(AX), sum) \
	SCALED(Y3, Y4, 96(AX), sum)

#define ROWQ51(row, sum) \
	VPBROADCASTD (row), Y4   \
	VPSLLD       $16, Y4, Y5 \
	HALF(Y5, Y5)             \
	HALF(Y4, Y4)             \
	VPBROADCASTD 4(row), Y7  \
	NIBBLES(8(row), 16(row), Y0, Y1, Y2, Y3) \
	FIFTH(0)                 \
	VPOR         Y6, Y0, Y0  \
	FIFTH(32)                \
	VPOR         Y6, Y1, Y1  \
	FIFTH(64)                \
	VPOR         Y6, Y2, Y2  \
	FIFTH(96)                \
	VPOR         Y6, Y3, Y3  \
	MOVED(Y0, Y5, Y4, 0(AX), sum)  \
	MOVED(Y1, Y5, Y4, 32(AX), sum) \
	MOVED(Y2, Y5, Y4, 64(AX), sum) \
	MOVED(Y3, Y5, Y4, 96(AX), sum)

#define ROWQ8(row, sum) \
	VPBROADCASTW (row), Y4   \
	HALF(Y4, Y4)             \
	VPMOVSXBD    2(row), Y0  \
	VPMOVSXBD    10(row), Y1 \
	VPMOVSXBD    18(row), Y2 \
	VPMOVSXBD    26(row), Y3 \
	SCALED(Y0, Y4, 0(AX), sum)  \
	SCALED(Y1, Y4, 32(AX), sum) \
	SCALED(Y2, Y4, 64(AX), sum) \
	SCALED(Y3, Y4, 96(AX), sum)

// DONE stores the sums.
#define DONE \
	MOVQ    out+40(FP), DI \
	VMOVUPS Y10, (DI)      \
	VMOVUPS Y11, 32(DI)    \
	VZEROUPPER             \
	RET

// func rowsQ41(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·rowsQ41(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	ROWQ41(BX, Y10)
	ROWQ41(CX, Y11)
	ADDQ       $128, AX
	ADDQ       $20, BX
	ADDQ       $20, CX
	ADDQ       $40, SI
	DECQ       DX
	JNZ        block
	DONE

// func rowsQ40(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·rowsQ40(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	ROWQ40(BX, Y10)
	ROWQ40(CX, Y11)
	ADDQ       $128, AX
	ADDQ       $18, BX
	ADDQ       $18, CX
	ADDQ       $36, SI
	DECQ       DX
	JNZ        block
	DONE

// func rowsQ50(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·rowsQ50(SB), NOSPLIT, $0-48
	ARGUMENTS
	VPBROADCASTD constants<>+16(SB), Y12

block:
	PREFETCHT0 (SI)
	ROWQ50(BX, Y10)
	ROWQ50(CX, Y11)
	ADDQ       $128, AX
	ADDQ       $22, BX
	ADDQ       $22, CX
	ADDQ       $44, SI
	DECQ       DX
	JNZ        block
	DONE

// func rowsQ51(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·rowsQ51(SB), NOSPLIT, $0-48
	ARGUMENTS
	VPBROADCASTD constants<>+16(SB), Y12

block:
	PREFETCHT0 (SI)
	ROWQ51(BX, Y10)
	ROWQ51(CX, Y11)
	ADDQ       $128, AX
	ADDQ       $24, BX
	ADDQ       $24, CX
	ADDQ       $48, SI
	DECQ       DX
	JNZ        block
	DONE

// func rowsQ8(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·rowsQ8(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	ROWQ8(BX, Y10)
	ROWQ8(CX, Y11)
	ADDQ       $128, AX
	ADDQ       $34, BX
	ADDQ       $34, CX
	ADDQ       $68, SI
	DECQ       DX
	JNZ        block
	DONE

// With AVX-512 a vector holds both rows, v in its lower half. That halves the arithmetic, of which there is more than the rest.

// PAIRARGUMENTS loads the arguments and the constants, and clears the sums.
#define PAIRARGUMENTS \
	MOVQ         blocks+0(FP), DX        \
	MOVQ         a+8(FP), AX             \
	MOVQ         v+16(FP), BX            \
	MOVQ         w+24(FP), CX            \
	MOVQ         next+32(FP), SI         \
	VPBROADCASTD constants<>+8(SB), Z13  \
	VPBROADCASTD constants<>+12(SB), Z12 \
	VPXORQ       Z10, Z10, Z10

// PAIRNIBBLES are 32 columns as numbers: in Z0, Z1, Z2, Z3.
#define PAIRNIBBLES(at) \
	VMOVQ     at(BX), X2         \
	VMOVHPS   at(CX), X2, X2     \
	VMOVQ     (at+8)(BX), X3     \
	VMOVHPS   (at+8)(CX), X3, X3 \
	VPMOVZXBD X2, Z2             \
	VPMOVZXBD X3, Z3             \
	VPANDD    Z13, Z2, Z0        \
	VPANDD    Z13, Z3, Z1        \
	VPSRLD    $4, Z2, Z2         \
	VPSRLD    $4, Z3, Z3

#define PAIRSCALED(q, x) \
	VBROADCASTF32X8 x, Z6      \
	VCVTDQ2PS       q, q       \
	VMULPS          Z4, q, q   \
	VFMADD231PS     Z6, q, Z10

#define PAIRMOVED(q, x) \
	VBROADCASTF32X8 x, Z6      \
	VCVTDQ2PS       q, q       \
	VMULPS          Z5, q, q   \
	VADDPS          Z4, q, q   \
	VFMADD231PS     Z6, q, Z10

#define PAIRDONE \
	MOVQ    out+40(FP), DI \
	VMOVUPS Z10, (DI)      \
	VZEROUPPER             \
	RET

// func pairQ41(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·pairQ41(SB), NOSPLIT, $0-48
	PAIRARGUMENTS
	MOVL  $0xf0, R8
	KMOVW R8, K1

block:
	PREFETCHT0   (SI)
	VPBROADCASTD (BX), Y4
	VPBROADCASTD (CX), K1, Y4
	VCVTPH2PS    Y4, Z4
	VMOVSLDUP    Z4, Z5
	VMOVSHDUP    Z4, Z4
	PAIRNIBBLES(4)
	PAIRMOVED(Z0, 0(AX))
	PAIRMOVED(Z1, 32(AX))
	PAIRMOVED(Z2, 64(AX))
	PAIRMOVED(Z3, 96(AX))
	ADDQ         $128, AX
	ADDQ         $20, BX
	ADDQ         $20, CX
	ADDQ         $40, SI
	DECQ         DX
	JNZ          block
	PAIRDONE

// func pairQ40(blocks int, a *quad, v, w, next *byte, out *[2]vec)
TEXT ·pairQ40(SB), NOSPLIT, $0-48
	PAIRARGUMENTS
	MOVL  $0xff00, R8
	KMOVW R8, K1

block:
	PREFETCHT0   (SI)
	VPBROADCASTW (BX), Y4
	VPBROADCASTW (CX), K1, Y4
	VCVTPH2PS    Y4, Z4
	PAIRNIBBLES(2)
	VPSUBD       Z12, Z0, Z0
	VPSUBD       Z12, Z1, Z1
	VPSUBD       Z12, Z2, Z2
	VPSUBD       Z12, Z3, Z3
	PAIRSCALED(Z0, 0(AX))
	PAIRSCALED(Z1, 32(AX))
	PAIRSCALED(Z2, 64(AX))
	PAIRSCALED(Z3, 96(AX))
	ADDQ         $128, AX
	ADDQ         $18, BX
	ADDQ         $18, CX
	ADDQ         $36, SI
	DECQ         DX
	JNZ          block
	PAIRDONE
