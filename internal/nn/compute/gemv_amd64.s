#include "textflag.h"
#include "packed_amd64.h"
#include "sums_amd64.h"

// Four rows of packed weights, a block of 32 columns of each at a time. Y13 and Y12 hold constants in all lanes: 15, and what the format
// needs.

// ARGUMENTS loads the arguments and the constants, and clears the sums.
#define ARGUMENTS \
	MOVQ         blocks+0(FP), DX       \
	MOVQ         a+8(FP), AX            \
	MOVQ         rows+16(FP), BX        \
	MOVQ         size+24(FP), R10       \
	MOVQ         next+32(FP), SI        \
	LEAQ         (BX)(R10*1), CX        \
	LEAQ         (CX)(R10*1), R8        \
	LEAQ         (R8)(R10*1), R9        \
	VPBROADCASTD constants<>+0(SB), Y13 \
	VPBROADCASTD constants<>+4(SB), Y12 \
	VPXOR        Y8, Y8, Y8             \
	VPXOR        Y9, Y9, Y9             \
	VPXOR        Y10, Y10, Y10          \
	VPXOR        Y11, Y11, Y11

// NEXT goes on to the next block of bytes bytes in each row.
#define NEXT(bytes) \
	ADDQ $128, AX       \
	ADDQ $bytes, BX     \
	ADDQ $bytes, CX     \
	ADDQ $bytes, R8     \
	ADDQ $bytes, R9     \
	ADDQ $(4*bytes), SI \
	DECQ DX

// SCALED adds 8 columns, numbers times d, times the input at x, to a sum.
#define SCALED(q, d, x, sum) \
	VCVTDQ2PS   q, q      \
	VMULPS      d, q, q   \
	VFMADD231PS x, q, sum

// MOVED does it with numbers times d plus m. The product of a number of 5 bits and a 16-bit float is exact, so that it may be fused with the addition.
#define MOVED(q, d, m, x, sum) \
	VCVTDQ2PS   q, q      \
	VFMADD213PS m, d, q   \
	VFMADD231PS x, q, sum

// SCALEDS and MOVEDS do it with 32 columns.
#define SCALEDS(sum) \
	SCALED(Y0, Y4, 0(AX), sum)  \
	SCALED(Y1, Y4, 32(AX), sum) \
	SCALED(Y2, Y4, 64(AX), sum) \
	SCALED(Y3, Y4, 96(AX), sum)

#define MOVEDS(sum) \
	MOVED(Y0, Y5, Y4, 0(AX), sum)  \
	MOVED(Y1, Y5, Y4, 32(AX), sum) \
	MOVED(Y2, Y5, Y4, 64(AX), sum) \
	MOVED(Y3, Y5, Y4, 96(AX), sum)

#define ROWQ8(row, sum) \
	BLOCKQ8(row) \
	SCALEDS(sum)

#define ROWQ40(row, sum) \
	BLOCKQ40(row) \
	SCALEDS(sum)

#define ROWQ41(row, sum) \
	BLOCKQ41(row) \
	MOVEDS(sum)

#define ROWQ50(row, sum) \
	BLOCKQ50(row) \
	SCALEDS(sum)

#define ROWQ51(row, sum) \
	BLOCKQ51(row) \
	MOVEDS(sum)

// DONE stores the sums of the lanes.
#define DONE \
	SUM4(Y8, Y9, Y10, Y11, X8, X0) \
	MOVQ    out+40(FP), DI         \
	VMOVUPS X8, (DI)               \
	VZEROUPPER                     \
	RET

#define ROWF32(row, sum) \
	VMOVUPS     0(row), Y0      \
	VMOVUPS     32(row), Y1     \
	VMOVUPS     64(row), Y2     \
	VMOVUPS     96(row), Y3     \
	VFMADD231PS 0(AX), Y0, sum  \
	VFMADD231PS 32(AX), Y1, sum \
	VFMADD231PS 64(AX), Y2, sum \
	VFMADD231PS 96(AX), Y3, sum

#define ROWF16(row, sum) \
	VCVTPH2PS   0(row), Y0      \
	VCVTPH2PS   16(row), Y1     \
	VCVTPH2PS   32(row), Y2     \
	VCVTPH2PS   48(row), Y3     \
	VFMADD231PS 0(AX), Y0, sum  \
	VFMADD231PS 32(AX), Y1, sum \
	VFMADD231PS 64(AX), Y2, sum \
	VFMADD231PS 96(AX), Y3, sum

// func rowsF32(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsF32(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	PREFETCHT0 192(SI)
	PREFETCHT0 256(SI)
	PREFETCHT0 320(SI)
	PREFETCHT0 384(SI)
	PREFETCHT0 448(SI)
	ROWF32(BX, Y8)
	ROWF32(CX, Y9)
	ROWF32(R8, Y10)
	ROWF32(R9, Y11)
	NEXT(128)
	JNZ        block
	DONE

// func rowsF16(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsF16(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	PREFETCHT0 192(SI)
	ROWF16(BX, Y8)
	ROWF16(CX, Y9)
	ROWF16(R8, Y10)
	ROWF16(R9, Y11)
	NEXT(64)
	JNZ        block
	DONE

// func rowsQ8(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsQ8(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	ROWQ8(BX, Y8)
	ROWQ8(CX, Y9)
	ROWQ8(R8, Y10)
	ROWQ8(R9, Y11)
	NEXT(34)
	JNZ        block
	DONE

// func rowsQ40(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsQ40(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	ROWQ40(BX, Y8)
	ROWQ40(CX, Y9)
	ROWQ40(R8, Y10)
	ROWQ40(R9, Y11)
	NEXT(18)
	JNZ        block
	DONE

// func rowsQ41(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsQ41(SB), NOSPLIT, $0-48
	ARGUMENTS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	ROWQ41(BX, Y8)
	ROWQ41(CX, Y9)
	ROWQ41(R8, Y10)
	ROWQ41(R9, Y11)
	NEXT(20)
	JNZ        block
	DONE

// func rowsQ50(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsQ50(SB), NOSPLIT, $0-48
	ARGUMENTS
	VPBROADCASTD constants<>+8(SB), Y12

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	ROWQ50(BX, Y8)
	ROWQ50(CX, Y9)
	ROWQ50(R8, Y10)
	ROWQ50(R9, Y11)
	NEXT(22)
	JNZ        block
	DONE

// func rowsQ51(blocks int, a *quad, rows *byte, size int, next *byte, out *[groupRows]float32)
TEXT ·rowsQ51(SB), NOSPLIT, $0-48
	ARGUMENTS
	VPBROADCASTD constants<>+8(SB), Y12

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	ROWQ51(BX, Y8)
	ROWQ51(CX, Y9)
	ROWQ51(R8, Y10)
	ROWQ51(R9, Y11)
	NEXT(24)
	JNZ        block
	DONE

// With AVX-512 a vector holds two rows, the first in its lower half.

// WIDEARGUMENTS loads the arguments and the constants, and clears the sums of 8 rows. R10 is how far the loop is in each row. The bits of K1
// choose, of 16-bit and 32-bit lanes alike, those of the upper half that a load is for.
#define WIDEARGUMENTS(upper) \
	MOVQ         blocks+0(FP), DX       \
	MOVQ         a+8(FP), AX            \
	MOVQ         rows+16(FP), BX        \
	MOVQ         size+24(FP), R10       \
	MOVQ         next+32(FP), SI        \
	LEAQ         (BX)(R10*1), CX        \
	LEAQ         (CX)(R10*1), R8        \
	LEAQ         (R8)(R10*1), R9        \
	LEAQ         (R9)(R10*1), R11       \
	LEAQ         (R11)(R10*1), R12      \
	LEAQ         (R12)(R10*1), R13      \
	LEAQ         (R13)(R10*1), DI       \
	MOVL         $upper, R10            \
	KMOVW        R10, K1                \
	XORQ         R10, R10               \
	VPBROADCASTD constants<>+0(SB), Z13 \
	VPBROADCASTD constants<>+4(SB), Z12 \
	VPXORQ       Z8, Z8, Z8             \
	VPXORQ       Z9, Z9, Z9             \
	VPXORQ       Z10, Z10, Z10          \
	VPXORQ       Z11, Z11, Z11

// WIDENEXT goes on to the next block of bytes bytes in each row.
#define WIDENEXT(bytes) \
	ADDQ $128, AX       \
	ADDQ $bytes, R10    \
	ADDQ $(8*bytes), SI \
	DECQ DX

// INPUT is 32 columns of the input, in both halves of Z16, Z17, Z18 and Z19.
#define INPUT \
	VBROADCASTF32X8 0(AX), Z16  \
	VBROADCASTF32X8 32(AX), Z17 \
	VBROADCASTF32X8 64(AX), Z18 \
	VBROADCASTF32X8 96(AX), Z19

// PAIRSCALE is the 16-bit float at the beginning of both rows, as a float32 in each lane of its half: in Z4.
#define PAIRSCALE(v, w) \
	VPBROADCASTW (v)(R10*1), Y4     \
	VPBROADCASTW (w)(R10*1), K1, Y4 \
	VCVTPH2PS    Y4, Z4

// PAIRSCALES are the first of two in Z5, and the second in Z4.
#define PAIRSCALES(v, w) \
	VPBROADCASTD (v)(R10*1), Y4     \
	VPBROADCASTD (w)(R10*1), K1, Y4 \
	VCVTPH2PS    Y4, Z4             \
	VMOVSLDUP    Z4, Z5             \
	VMOVSHDUP    Z4, Z4

// BYTES are 8 bytes of each row: in x.
#define BYTES(at, v, w, x) \
	VMOVQ   at(v)(R10*1), x    \
	VMOVHPS at(w)(R10*1), x, x

// PAIRNIBBLES are 32 columns as numbers: in Z0, Z1, Z2, Z3.
#define PAIRNIBBLES(at, v, w) \
	BYTES(at, v, w, X2)   \
	BYTES(at+8, v, w, X3) \
	VPMOVZXBD X2, Z2      \
	VPMOVZXBD X3, Z3      \
	VPANDD    Z13, Z2, Z0 \
	VPANDD    Z13, Z3, Z1 \
	VPSRLD    $4, Z2, Z2  \
	VPSRLD    $4, Z3, Z3

#define PAIRSCALED(q, x, sum) \
	VCVTDQ2PS   q, q      \
	VMULPS      Z4, q, q  \
	VFMADD231PS x, q, sum

#define PAIRMOVED(q, x, sum) \
	VCVTDQ2PS   q, q      \
	VFMADD213PS Z4, Z5, q \
	VFMADD231PS x, q, sum

#define PAIRQ8(v, w, sum) \
	PAIRSCALE(v, w)          \
	BYTES(2, v, w, X0)       \
	BYTES(10, v, w, X1)      \
	BYTES(18, v, w, X2)      \
	BYTES(26, v, w, X3)      \
	VPMOVSXBD X0, Z0         \
	VPMOVSXBD X1, Z1         \
	VPMOVSXBD X2, Z2         \
	VPMOVSXBD X3, Z3         \
	PAIRSCALED(Z0, Z16, sum) \
	PAIRSCALED(Z1, Z17, sum) \
	PAIRSCALED(Z2, Z18, sum) \
	PAIRSCALED(Z3, Z19, sum)

#define PAIRQ40(v, w, sum) \
	PAIRSCALE(v, w)          \
	PAIRNIBBLES(2, v, w)     \
	VPSUBD Z12, Z0, Z0       \
	VPSUBD Z12, Z1, Z1       \
	VPSUBD Z12, Z2, Z2       \
	VPSUBD Z12, Z3, Z3       \
	PAIRSCALED(Z0, Z16, sum) \
	PAIRSCALED(Z1, Z17, sum) \
	PAIRSCALED(Z2, Z18, sum) \
	PAIRSCALED(Z3, Z19, sum)

#define PAIRQ41(v, w, sum) \
	PAIRSCALES(v, w)        \
	PAIRNIBBLES(4, v, w)    \
	PAIRMOVED(Z0, Z16, sum) \
	PAIRMOVED(Z1, Z17, sum) \
	PAIRMOVED(Z2, Z18, sum) \
	PAIRMOVED(Z3, Z19, sum)

// PAIRFIFTHS adds 16 to columns whose fifth bit is set: Z7 has each row's 32 bits in its half, and Z20 to Z23 how far they are from a
// lane's sign.
#define PAIRFIFTHS(v, w, at) \
	VPBROADCASTD at(v)(R10*1), Y7 \
	VPBROADCASTD at(w)(R10*1), Y6 \
	VINSERTI64X4 $1, Y6, Z7, Z7   \
	PAIRFIFTH(Z20, Z0)            \
	PAIRFIFTH(Z21, Z1)            \
	PAIRFIFTH(Z22, Z2)            \
	PAIRFIFTH(Z23, Z3)

#define PAIRFIFTH(far, q) \
	VPSLLVD far, Z7, Z6 \
	VPSRAD  $31, Z6, Z6 \
	VPANDD  Z14, Z6, Z6 \
	VPORD   Z6, q, q

#define FIFTHS \
	VPBROADCASTD    constants<>+8(SB), Z14 \
	VBROADCASTF32X8 fifths<>+0(SB), Z20    \
	VBROADCASTF32X8 fifths<>+32(SB), Z21   \
	VBROADCASTF32X8 fifths<>+64(SB), Z22   \
	VBROADCASTF32X8 fifths<>+96(SB), Z23

#define PAIRQ50(v, w, sum) \
	PAIRSCALE(v, w)          \
	PAIRNIBBLES(6, v, w)     \
	PAIRFIFTHS(v, w, 2)      \
	VPSUBD Z14, Z0, Z0       \
	VPSUBD Z14, Z1, Z1       \
	VPSUBD Z14, Z2, Z2       \
	VPSUBD Z14, Z3, Z3       \
	PAIRSCALED(Z0, Z16, sum) \
	PAIRSCALED(Z1, Z17, sum) \
	PAIRSCALED(Z2, Z18, sum) \
	PAIRSCALED(Z3, Z19, sum)

#define PAIRQ51(v, w, sum) \
	PAIRSCALES(v, w)        \
	PAIRNIBBLES(8, v, w)    \
	PAIRFIFTHS(v, w, 4)     \
	PAIRMOVED(Z0, Z16, sum) \
	PAIRMOVED(Z1, Z17, sum) \
	PAIRMOVED(Z2, Z18, sum) \
	PAIRMOVED(Z3, Z19, sum)

#define WIDEDONE \
	MOVQ    out+40(FP), DI \
	VMOVUPS Z8, (DI)       \
	VMOVUPS Z9, 64(DI)     \
	VMOVUPS Z10, 128(DI)   \
	VMOVUPS Z11, 192(DI)   \
	VZEROUPPER             \
	RET

// func pairsQ8(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
TEXT ·pairsQ8(SB), NOSPLIT, $0-48
	WIDEARGUMENTS(0xff00)

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	PREFETCHT0 192(SI)
	PREFETCHT0 256(SI)
	INPUT
	PAIRQ8(BX, CX, Z8)
	PAIRQ8(R8, R9, Z9)
	PAIRQ8(R11, R12, Z10)
	PAIRQ8(R13, DI, Z11)
	WIDENEXT(34)
	JNZ        block
	WIDEDONE

// func pairsQ40(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
TEXT ·pairsQ40(SB), NOSPLIT, $0-48
	WIDEARGUMENTS(0xff00)

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	INPUT
	PAIRQ40(BX, CX, Z8)
	PAIRQ40(R8, R9, Z9)
	PAIRQ40(R11, R12, Z10)
	PAIRQ40(R13, DI, Z11)
	WIDENEXT(18)
	JNZ        block
	WIDEDONE

// func pairsQ41(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
TEXT ·pairsQ41(SB), NOSPLIT, $0-48
	WIDEARGUMENTS(0x00f0)

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	INPUT
	PAIRQ41(BX, CX, Z8)
	PAIRQ41(R8, R9, Z9)
	PAIRQ41(R11, R12, Z10)
	PAIRQ41(R13, DI, Z11)
	WIDENEXT(20)
	JNZ        block
	WIDEDONE

// func pairsQ50(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
TEXT ·pairsQ50(SB), NOSPLIT, $0-48
	WIDEARGUMENTS(0xff00)
	FIFTHS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	INPUT
	PAIRQ50(BX, CX, Z8)
	PAIRQ50(R8, R9, Z9)
	PAIRQ50(R11, R12, Z10)
	PAIRQ50(R13, DI, Z11)
	WIDENEXT(22)
	JNZ        block
	WIDEDONE

// func pairsQ51(blocks int, a *quad, rows *byte, size int, next *byte, out *[2 * groupRows]vec)
TEXT ·pairsQ51(SB), NOSPLIT, $0-48
	WIDEARGUMENTS(0x00f0)
	FIFTHS

block:
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	INPUT
	PAIRQ51(BX, CX, Z8)
	PAIRQ51(R8, R9, Z9)
	PAIRQ51(R11, R12, Z10)
	PAIRQ51(R13, DI, Z11)
	WIDENEXT(24)
	JNZ        block
	WIDEDONE
