//go:build goexperiment.simd

#include "textflag.h"

// The products of four rows of the input with two groups. It is not written with simd/archsimd, which has no function that loads 8 floats
// into both halves of a register.

// ROW adds 8 columns of a row of the input, at p, to its sums.
#define ROW(p, x, a, b, c, d) \
	VBROADCASTF32X8 p, x  \
	VFMADD231PS x, Z16, a \
	VFMADD231PS x, Z17, b \
	VFMADD231PS x, Z18, c \
	VFMADD231PS x, Z19, d

// func sums512(k int, input, groups *float32, sums *[wideRows][wideGroups * groupRows]vec)
TEXT ·sums512(SB), NOSPLIT, $0-32
	MOVQ   k+0(FP), CX
	MOVQ   input+8(FP), AX
	MOVQ   groups+16(FP), BX
	MOVQ   sums+24(FP), DI
	SHLQ   $2, CX         // bytes of a row of the input
	LEAQ   (AX)(CX*1), R9
	LEAQ   (R9)(CX*1), R10
	LEAQ   (R10)(CX*1), R11
	LEAQ   (BX)(CX*4), R12
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	XORQ   DX, DX

columns: // DX bytes behind the start of each row of the input, and 4·DX behind that of each group
	VMOVUPS (BX)(DX*4), Z16
	VMOVUPS 64(BX)(DX*4), Z17
	VMOVUPS (R12)(DX*4), Z18
	VMOVUPS 64(R12)(DX*4), Z19
	ROW((AX)(DX*1), Z20, Z0, Z1, Z2, Z3)
	ROW((R9)(DX*1), Z21, Z4, Z5, Z6, Z7)
	ROW((R10)(DX*1), Z22, Z8, Z9, Z10, Z11)
	ROW((R11)(DX*1), Z23, Z12, Z13, Z14, Z15)
	ADDQ    $32, DX
	CMPQ    DX, CX
	JNE     columns

	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	VMOVUPS Z8, 512(DI)
	VMOVUPS Z9, 576(DI)
	VMOVUPS Z10, 640(DI)
	VMOVUPS Z11, 704(DI)
	VMOVUPS Z12, 768(DI)
	VMOVUPS Z13, 832(DI)
	VMOVUPS Z14, 896(DI)
	VMOVUPS Z15, 960(DI)
	VZEROUPPER
	RET
