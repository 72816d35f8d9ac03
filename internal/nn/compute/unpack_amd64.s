#include "textflag.h"
#include "packed_amd64.h"

// A row of packed weights as floats: DI is where the next 8 go, 128 bytes behind the 8 before them (groupRows·lanes floats), and SI where they are. CX
// counts what is left. Products are exact where a minimum is added or subtracted, so that both may be fused.

DATA bits<>+0(SB)/4, $3
DATA bits<>+4(SB)/4, $4
DATA bits<>+8(SB)/4, $32
DATA bits<>+12(SB)/4, $0x30
GLOBL bits<>(SB), RODATA|NOPTR, $16

// How far the upper bits of the scales of Q3_K are to be shifted down.
DATA uppers<>+0(SB)/8, $0
DATA uppers<>+8(SB)/8, $0
DATA uppers<>+16(SB)/8, $0x0000000200000002
DATA uppers<>+24(SB)/8, $0x0000000200000002
GLOBL uppers<>(SB), RODATA|NOPTR, $32

// PUT stores 8 numbers, as floats times the scale d.
#define PUT(q, d, at) \
	VCVTDQ2PS q, q      \
	VMULPS    d, q, q   \
	VMOVUPS   q, at(DI)

// PUTMOVED stores numbers times d plus m, and PUTLESS minus m.
#define PUTMOVED(q, d, m, at) \
	VCVTDQ2PS   q, q      \
	VFMADD213PS m, d, q   \
	VMOVUPS     q, at(DI)

#define PUTLESS(q, d, m, at) \
	VCVTDQ2PS   q, q      \
	VFMSUB213PS m, d, q   \
	VMOVUPS     q, at(DI)

// PUTS goes on behind a block of 32 weights of bytes bytes, and so does PUTSMOVED.
#define PUTS(bytes) \
	PUT(Y0, Y4, 0)   \
	PUT(Y1, Y4, 128) \
	PUT(Y2, Y4, 256) \
	PUT(Y3, Y4, 384) \
	ADDQ $bytes, SI  \
	ADDQ $512, DI    \
	DECQ CX

#define PUTSMOVED(bytes) \
	PUTMOVED(Y0, Y5, Y4, 0)   \
	PUTMOVED(Y1, Y5, Y4, 128) \
	PUTMOVED(Y2, Y5, Y4, 256) \
	PUTMOVED(Y3, Y5, Y4, 384) \
	ADDQ $bytes, SI           \
	ADDQ $512, DI             \
	DECQ CX

// func unpackF32(to *float32, row *byte, vectors int)
TEXT ·unpackF32(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ vectors+16(FP), CX

next:
	VMOVUPS (SI), Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $128, DI
	DECQ    CX
	JNZ     next
	VZEROUPPER
	RET

// func unpackF16(to *float32, row *byte, vectors int)
TEXT ·unpackF16(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ vectors+16(FP), CX

next:
	VCVTPH2PS (SI), Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $128, DI
	DECQ      CX
	JNZ       next
	VZEROUPPER
	RET

// func unpackBF16(to *float32, row *byte, vectors int)
TEXT ·unpackBF16(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ vectors+16(FP), CX

next:
	VPMOVZXWD (SI), Y0
	VPSLLD    $16, Y0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $128, DI
	DECQ      CX
	JNZ       next
	VZEROUPPER
	RET

// func unpackQ8(to *float32, row *byte, blocks int)
TEXT ·unpackQ8(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ blocks+16(FP), CX

block:
	BLOCKQ8(SI)
	PUTS(34)
	JNZ block
	VZEROUPPER
	RET

// func unpackQ40(to *float32, row *byte, blocks int)
TEXT ·unpackQ40(SB), NOSPLIT, $0-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13
	VPBROADCASTD constants<>+4(SB), Y12

block:
	BLOCKQ40(SI)
	PUTS(18)
	JNZ block
	VZEROUPPER
	RET

// func unpackQ41(to *float32, row *byte, blocks int)
TEXT ·unpackQ41(SB), NOSPLIT, $0-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13

block:
	BLOCKQ41(SI)
	PUTSMOVED(20)
	JNZ block
	VZEROUPPER
	RET

// func unpackQ50(to *float32, row *byte, blocks int)
TEXT ·unpackQ50(SB), NOSPLIT, $0-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13
	VPBROADCASTD constants<>+8(SB), Y12

block:
	BLOCKQ50(SI)
	PUTS(22)
	JNZ block
	VZEROUPPER
	RET

// func unpackQ51(to *float32, row *byte, blocks int)
TEXT ·unpackQ51(SB), NOSPLIT, $0-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13
	VPBROADCASTD constants<>+8(SB), Y12

block:
	BLOCKQ51(SI)
	PUTSMOVED(24)
	JNZ block
	VZEROUPPER
	RET

// func unpackIQ4(to *float32, row *byte, blocks int, table *[16]int8)
TEXT ·unpackIQ4(SB), NOSPLIT, $0-32
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	MOVQ         table+24(FP), AX
	VMOVDQU      (AX), X11
	VPBROADCASTD constants<>+0(SB), X13
	VPSLLD       $8, X13, X12
	VPOR         X12, X13, X13
	VPSLLD       $16, X13, X12
	VPOR         X12, X13, X13          // 15 in all bytes

block:
	SCALE(SI)
	VMOVDQU   2(SI), X0
	VPSRLW    $4, X0, X2
	VPAND     X13, X0, X0
	VPAND     X13, X2, X2
	VPSHUFB   X0, X11, X0 // values of the table
	VPSHUFB   X2, X11, X2
	VPSRLDQ   $8, X0, X1
	VPSRLDQ   $8, X2, X3
	VPMOVSXBD X0, Y0
	VPMOVSXBD X1, Y1
	VPMOVSXBD X2, Y2
	VPMOVSXBD X3, Y3
	PUTS(18)
	JNZ       block
	VZEROUPPER
	RET

// Blocks of 256 weights. Their scales are computed first, and lie on the stack.

// LARGENEXT goes on behind a block of bytes bytes.
#define LARGENEXT(bytes) \
	ADDQ $bytes, SI \
	ADDQ $4096, DI  \
	DECQ CX

// SCALES4K are the 8 scales and the 8 minima of a block of Q4_K or Q5_K, as [quant.ScaleQ4K] unpacks them, times the block's. A byte holds
// one of them: R8 the first four scales, R9 their minima, R10 the last four scales, and R11 their minima.
#define SCALES4K \
	SCALES(SI)                  \
	MOVL      4(SI), R8         \
	MOVL      8(SI), R9         \
	MOVL      12(SI), R10       \
	MOVL      R10, R11          \
	SHRL      $4, R11           \
	ANDL      $0x0f0f0f0f, R10  \
	ANDL      $0x0f0f0f0f, R11  \
	MOVL      R8, R12           \
	MOVL      R9, R13           \
	SHRL      $2, R12           \
	SHRL      $2, R13           \
	ANDL      $0x30303030, R12  \
	ANDL      $0x30303030, R13  \
	ORL       R12, R10          \
	ORL       R13, R11          \
	ANDL      $0x3f3f3f3f, R8   \
	ANDL      $0x3f3f3f3f, R9   \
	VMOVD     R8, X0            \
	VMOVD     R9, X1            \
	VPINSRD   $1, R10, X0, X0   \
	VPINSRD   $1, R11, X1, X1   \
	VPMOVZXBD X0, Y0            \
	VPMOVZXBD X1, Y1            \
	VCVTDQ2PS Y0, Y0            \
	VCVTDQ2PS Y1, Y1            \
	VMULPS    Y5, Y0, Y0        \
	VMULPS    Y4, Y1, Y1        \
	VMOVUPS   Y0, scales-64(SP) \
	VMOVUPS   Y1, minima-32(SP)

// PART4K loads the scales and minima of 64 weights: the first 32 are times Y4 minus Y5, the others times Y6 minus Y7.
#define PART4K(j) \
	VBROADCASTSS scales-64+8*j(SP), Y4 \
	VBROADCASTSS minima-32+8*j(SP), Y5 \
	VBROADCASTSS scales-60+8*j(SP), Y6 \
	VBROADCASTSS minima-28+8*j(SP), Y7

// HALVES4K unpacks 8 bytes at from: 8 weights, and the 8 that are 32 behind them.
#define HALVES4K(from, to) \
	VPMOVZXBD from(SI), Y1      \
	VPAND     Y13, Y1, Y0       \
	VPSRLD    $4, Y1, Y1        \
	PUTLESS(Y0, Y4, Y5, to)     \
	PUTLESS(Y1, Y6, Y7, 512+to)

#define PARTQ4K(j) \
	PART4K(j)                     \
	HALVES4K(16+32*j, 1024*j)     \
	HALVES4K(24+32*j, 128+1024*j) \
	HALVES4K(32+32*j, 256+1024*j) \
	HALVES4K(40+32*j, 384+1024*j)

// func unpackQ4K(to *float32, row *byte, blocks int)
TEXT ·unpackQ4K(SB), NOSPLIT, $64-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13

block:
	SCALES4K
	PARTQ4K(0)
	PARTQ4K(1)
	PARTQ4K(2)
	PARTQ4K(3)
	LARGENEXT(144)
	JNZ block
	VZEROUPPER
	RET

// HALVES5K does it with fifth bits, which are where 16 is in fifth; the next 64 weights' will be there.
#define HALVES5K(from, fifth, to) \
	VPMOVZXBD from(SI), Y1      \
	VPAND     Y13, Y1, Y0       \
	VPSRLD    $4, Y1, Y1        \
	VPAND     Y12, fifth, Y2    \
	VPSRLD    $1, fifth, fifth  \
	VPAND     Y12, fifth, Y3    \
	VPSRLD    $1, fifth, fifth  \
	VPOR      Y2, Y0, Y0        \
	VPOR      Y3, Y1, Y1        \
	PUTLESS(Y0, Y4, Y5, to)     \
	PUTLESS(Y1, Y6, Y7, 512+to)

#define FIFTHS5K(from, fifth) \
	VPMOVZXBD from(SI), fifth  \
	VPSLLD    $4, fifth, fifth

#define PARTQ5K(j) \
	PART4K(j)                          \
	HALVES5K(48+32*j, Y8, 1024*j)      \
	HALVES5K(56+32*j, Y9, 128+1024*j)  \
	HALVES5K(64+32*j, Y10, 256+1024*j) \
	HALVES5K(72+32*j, Y11, 384+1024*j)

// func unpackQ5K(to *float32, row *byte, blocks int)
TEXT ·unpackQ5K(SB), NOSPLIT, $64-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13
	VPBROADCASTD constants<>+8(SB), Y12

block:
	SCALES4K
	FIFTHS5K(16, Y8)
	FIFTHS5K(24, Y9)
	FIFTHS5K(32, Y10)
	FIFTHS5K(40, Y11)
	PARTQ5K(0)
	PARTQ5K(1)
	PARTQ5K(2)
	PARTQ5K(3)
	LARGENEXT(176)
	JNZ block
	VZEROUPPER
	RET

// QUARTERS6K unpacks 8 bytes at upper, whose quarters are the upper 2 bits of weights 32 apart, and 8 bytes at lower and 8 at 32 behind it, the
// lower 4 bits. The scales are 8 bytes apart, two for each 32 weights.
#define QUARTERS6K(lower, upper, scale, to) \
	VPMOVZXBD    lower(SI), Y0              \
	VPMOVZXBD    lower+32(SI), Y1           \
	VPMOVZXBD    upper(SI), Y4              \
	VPSRLD       $4, Y0, Y2                 \
	VPSRLD       $4, Y1, Y3                 \
	VPAND        Y13, Y0, Y0                \
	VPAND        Y13, Y1, Y1                \
	VPSLLD       $4, Y4, Y5                 \
	VPSLLD       $2, Y4, Y6                 \
	VPSRLD       $2, Y4, Y7                 \
	VPAND        Y12, Y5, Y5                \
	VPAND        Y12, Y6, Y6                \
	VPAND        Y12, Y4, Y4                \
	VPAND        Y12, Y7, Y7                \
	VPOR         Y5, Y0, Y0                 \
	VPOR         Y6, Y1, Y1                 \
	VPOR         Y4, Y2, Y2                 \
	VPOR         Y7, Y3, Y3                 \
	VPSUBD       Y11, Y0, Y0                \
	VPSUBD       Y11, Y1, Y1                \
	VPSUBD       Y11, Y2, Y2                \
	VPSUBD       Y11, Y3, Y3                \
	VBROADCASTSS scales-64+scale(SP), Y4    \
	VBROADCASTSS scales-64+8+scale(SP), Y5  \
	VBROADCASTSS scales-64+16+scale(SP), Y6 \
	VBROADCASTSS scales-64+24+scale(SP), Y7 \
	PUT(Y0, Y4, to)                         \
	PUT(Y1, Y5, 512+to)                     \
	PUT(Y2, Y6, 1024+to)                    \
	PUT(Y3, Y7, 1536+to)

#define PARTQ6K(part) \
	QUARTERS6K(64*part, 128+32*part, 32*part, 2048*part)          \
	QUARTERS6K(8+64*part, 136+32*part, 32*part, 128+2048*part)    \
	QUARTERS6K(16+64*part, 144+32*part, 4+32*part, 256+2048*part) \
	QUARTERS6K(24+64*part, 152+32*part, 4+32*part, 384+2048*part)

// func unpackQ6K(to *float32, row *byte, blocks int)
TEXT ·unpackQ6K(SB), NOSPLIT, $64-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y13
	VPBROADCASTD bits<>+12(SB), Y12
	VPBROADCASTD bits<>+8(SB), Y11

block:
	VPBROADCASTW 208(SI), X4
	VCVTPH2PS    X4, Y4
	VPMOVSXBD    192(SI), Y0
	VPMOVSXBD    200(SI), Y1
	VCVTDQ2PS    Y0, Y0
	VCVTDQ2PS    Y1, Y1
	VMULPS       Y4, Y0, Y0
	VMULPS       Y4, Y1, Y1
	VMOVUPS      Y0, scales-64(SP)
	VMOVUPS      Y1, scales-32(SP)
	PARTQ6K(0)
	PARTQ6K(1)
	LARGENEXT(210)
	JNZ          block
	VZEROUPPER
	RET

// QUARTER3K unpacks 8 weights, 2 bits of each in Y0 and a third where 4 is in Y1, and goes on to those that are 32 behind them.
#define QUARTER3K(scale, to) \
	VPAND        Y13, Y0, Y2             \
	VPANDN       Y12, Y1, Y3             \
	VPSRLD       $2, Y0, Y0              \
	VPSRLD       $1, Y1, Y1              \
	VPSUBD       Y3, Y2, Y2              \
	VBROADCASTSS scales-64+scale(SP), Y4 \
	PUT(Y2, Y4, to)

// EIGHTH3K unpacks every fourth 8 weights: the third bits lie in 8 bytes at third.
#define EIGHTH3K(third, scale) \
	VPMOVZXBD third(SI), Y1            \
	VPSLLD    $2, Y1, Y1               \
	VPMOVZXBD 32+third(SI), Y0         \
	QUARTER3K(scale, 16*third)         \
	QUARTER3K(8+scale, 512+16*third)   \
	QUARTER3K(16+scale, 1024+16*third) \
	QUARTER3K(24+scale, 1536+16*third) \
	VPMOVZXBD 64+third(SI), Y0         \
	QUARTER3K(32+scale, 2048+16*third) \
	QUARTER3K(40+scale, 2560+16*third) \
	QUARTER3K(48+scale, 3072+16*third) \
	QUARTER3K(56+scale, 3584+16*third)

// func unpackQ3K(to *float32, row *byte, blocks int)
TEXT ·unpackQ3K(SB), NOSPLIT, $64-24
	MOVQ         to+0(FP), DI
	MOVQ         row+8(FP), SI
	MOVQ         blocks+16(FP), CX
	VPBROADCASTD constants<>+0(SB), Y11
	VPBROADCASTD bits<>+0(SB), Y13
	VPBROADCASTD bits<>+4(SB), Y12
	VPBROADCASTD bits<>+8(SB), Y10
	VPBROADCASTD bits<>+12(SB), Y9

block:

	// The 16 scales as [quant.ScaleQ3K] unpacks them, times the block's: 4 bits of each in 8 bytes, and 2 in 4.
	VPBROADCASTW 108(SI), X4
	VCVTPH2PS    X4, Y4
	VPMOVZXBD    96(SI), Y0
	VPSRLD       $4, Y0, Y1
	VPAND        Y11, Y0, Y0
	VPBROADCASTD 104(SI), X2
	VPMOVZXBD    X2, Y2
	VPSLLD       $4, Y2, Y2
	VPSRLVD      uppers<>(SB), Y2, Y2
	VPSRLD       $4, Y2, Y3
	VPAND        Y9, Y2, Y2
	VPAND        Y9, Y3, Y3
	VPOR         Y2, Y0, Y0
	VPOR         Y3, Y1, Y1
	VPSUBD       Y10, Y0, Y0
	VPSUBD       Y10, Y1, Y1
	VCVTDQ2PS    Y0, Y0
	VCVTDQ2PS    Y1, Y1
	VMULPS       Y4, Y0, Y0
	VMULPS       Y4, Y1, Y1
	VMOVUPS      Y0, scales-64(SP)
	VMOVUPS      Y1, scales-32(SP)
	EIGHTH3K(0, 0)
	EIGHTH3K(8, 0)
	EIGHTH3K(16, 4)
	EIGHTH3K(24, 4)
	LARGENEXT(110)
	JNZ          block
	VZEROUPPER
	RET
