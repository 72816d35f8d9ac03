#include "textflag.h"
#include "sums_amd64.h"

// The loops that need no more than a few lines each. A sum is 8 sums, one in each lane, until all columns are added.

// SUM1 does what SUM4 does with one vector, whose sum is in all lanes of xa.
#define SUM1(a, xa, xt) \
	VHADDPS      a, a, a    \
	VHADDPS      a, a, a    \
	VEXTRACTF128 $1, a, xt  \
	VADDPS       xt, xa, xa

// func addLanes(n int, sums *vec, out *float32, step int)
TEXT ·addLanes(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ sums+8(FP), SI
	MOVQ out+16(FP), DI
	MOVQ step+24(FP), DX
	SHLQ $2, DX

four:
	VMOVUPS      (SI), Y0
	VMOVUPS      64(SI), Y1
	VHADDPS      32(SI), Y0, Y0
	VHADDPS      96(SI), Y1, Y1
	VHADDPS      Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VMOVUPS      X0, (DI)
	ADDQ         $128, SI
	ADDQ         DX, DI
	DECQ         CX
	JNZ          four
	VZEROUPPER
	RET

// func addLane(v *vec) float32
TEXT ·addLane(SB), NOSPLIT, $0-12
	MOVQ    v+0(FP), SI
	VMOVUPS (SI), Y0
	SUM1(Y0, X0, X1)
	VMOVSS  X0, ret+8(FP)
	VZEROUPPER
	RET

// func dot256(n int, a, b *float32) float32
TEXT ·dot256(SB), NOSPLIT, $0-28
	MOVQ   n+0(FP), CX
	MOVQ   a+8(FP), AX
	MOVQ   b+16(FP), BX
	VXORPS Y0, Y0, Y0

columns:
	VMOVUPS     (AX), Y1
	VFMADD231PS (BX), Y1, Y0
	ADDQ        $32, AX
	ADDQ        $32, BX
	SUBQ        $8, CX
	JNZ         columns
	SUM1(Y0, X0, X1)
	VMOVSS      X0, ret+24(FP)
	VZEROUPPER
	RET

// TILE1 adds 8 columns of a row of the input, at a, times those of four rows of weights, at w, to four sums.
#define TILE1(a, w0, w1, w2, w3) \
	VMOVUPS     a, Y8      \
	VFMADD231PS w0, Y8, Y0 \
	VFMADD231PS w1, Y8, Y1 \
	VFMADD231PS w2, Y8, Y2 \
	VFMADD231PS w3, Y8, Y3

// func tile1(k int, a, group, out *float32)
TEXT ·tile1(SB), NOSPLIT, $0-32
	MOVQ   k+0(FP), CX
	MOVQ   a+8(FP), AX
	MOVQ   group+16(FP), BX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $16, CX
	JLT    last

columns: // 16 at a time
	TILE1((AX), (BX), 32(BX), 64(BX), 96(BX))
	TILE1(32(AX), 128(BX), 160(BX), 192(BX), 224(BX))
	ADDQ $64, AX
	ADDQ $256, BX
	SUBQ $16, CX
	JGE  columns

last:
	CMPQ CX, $-16
	JEQ  done
	TILE1((AX), (BX), 32(BX), 64(BX), 96(BX))

done:
	MOVQ    out+24(FP), DI
	SUM4(Y0, Y1, Y2, Y3, X0, X1)
	VMOVUPS X0, (DI)
	VZEROUPPER
	RET

// TILE2 does it with two rows of the input.
#define TILE2(a, b, w0, w1, w2, w3) \
	VMOVUPS     a, Y8       \
	VMOVUPS     b, Y9       \
	VMOVUPS     w0, Y10     \
	VMOVUPS     w1, Y11     \
	VMOVUPS     w2, Y12     \
	VMOVUPS     w3, Y13     \
	VFMADD231PS Y8, Y10, Y0 \
	VFMADD231PS Y9, Y10, Y4 \
	VFMADD231PS Y8, Y11, Y1 \
	VFMADD231PS Y9, Y11, Y5 \
	VFMADD231PS Y8, Y12, Y2 \
	VFMADD231PS Y9, Y12, Y6 \
	VFMADD231PS Y8, Y13, Y3 \
	VFMADD231PS Y9, Y13, Y7

// func tile2(k int, a, b, group, outA, outB *float32)
TEXT ·tile2(SB), NOSPLIT, $0-48
	MOVQ   k+0(FP), CX
	MOVQ   a+8(FP), AX
	MOVQ   b+16(FP), DX
	MOVQ   group+24(FP), BX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	SUBQ   $16, CX
	JLT    last

columns: // 16 at a time
	TILE2((AX), (DX), (BX), 32(BX), 64(BX), 96(BX))
	TILE2(32(AX), 32(DX), 128(BX), 160(BX), 192(BX), 224(BX))
	ADDQ $64, AX
	ADDQ $64, DX
	ADDQ $256, BX
	SUBQ $16, CX
	JGE  columns

last:
	CMPQ CX, $-16
	JEQ  done
	TILE2((AX), (DX), (BX), 32(BX), 64(BX), 96(BX))

done:
	MOVQ    outA+32(FP), DI
	MOVQ    outB+40(FP), SI
	SUM4(Y0, Y1, Y2, Y3, X0, X8)
	SUM4(Y4, Y5, Y6, Y7, X4, X9)
	VMOVUPS X0, (DI)
	VMOVUPS X4, (SI)
	VZEROUPPER
	RET

// func mixRow(dim, tokens int, out, weights, values *float32)
TEXT ·mixRow(SB), NOSPLIT, $0-40
	MOVQ dim+0(FP), CX
	MOVQ tokens+8(FP), DX
	MOVQ out+16(FP), DI
	MOVQ weights+24(FP), SI
	MOVQ values+32(FP), BX
	SHLQ $2, CX             // bytes of a token's values
	XORQ AX, AX

dimensions: // AX bytes behind the start of each row
	VMOVUPS (DI)(AX*1), Y0
	LEAQ    (BX)(AX*1), R8
	XORQ    R9, R9

token:
	VBROADCASTSS (SI)(R9*4), Y1
	VFMADD231PS  (R8), Y1, Y0
	ADDQ         CX, R8
	INCQ         R9
	CMPQ         R9, DX
	JNE          token
	VMOVUPS      Y0, (DI)(AX*1)
	ADDQ         $32, AX
	CMPQ         AX, CX
	JNE          dimensions
	VZEROUPPER
	RET

// func largest(x *float32, n int) float32
TEXT ·largest(SB), NOSPLIT, $0-20
	MOVQ    x+0(FP), AX
	MOVQ    n+8(FP), CX
	VMOVUPS (AX), Y0
	JMP     more

next:
	ADDQ   $32, AX
	VMAXPS (AX), Y0, Y0

more:
	SUBQ         $8, CX
	JNZ          next
	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VSHUFPS      $0x4e, X0, X0, X1
	VMAXPS       X0, X1, X0
	VSHUFPS      $0xb1, X0, X0, X1
	VMAXPS       X0, X1, X0
	VMOVSS       X0, ret+16(FP)
	VZEROUPPER
	RET

// func scale256(n int, out, x, w *float32, factor float32)
TEXT ·scale256(SB), NOSPLIT, $0-36
	MOVQ         n+0(FP), CX
	MOVQ         out+8(FP), DI
	MOVQ         x+16(FP), AX
	MOVQ         w+24(FP), BX
	VBROADCASTSS factor+32(FP), Y0

next:
	VMOVUPS (BX), Y2
	VMULPS  (AX), Y0, Y1
	VMULPS  Y1, Y2, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, AX
	ADDQ    $32, BX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     next
	VZEROUPPER
	RET
