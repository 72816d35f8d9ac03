#include "textflag.h"

// The products of four rows of the input with two groups, and of three with one: as many sums as registers
// have room for, so that little is loaded for each.

// ROW adds 8 columns of a row of the input, at p, to its sums.
#define ROW(p, x, a, b, c, d) \
	VBROADCASTF32X8 p, x      \
	VFMADD231PS     x, Z16, a \
	VFMADD231PS     x, Z17, b \
	VFMADD231PS     x, Z18, c \
	VFMADD231PS     x, Z19, d

// func sums512(k int, input, groups *float32, sums *[4][2 * groupRows]vec)
TEXT ·sums512(SB), NOSPLIT, $0-32
	MOVQ   k+0(FP), CX
	MOVQ   input+8(FP), AX
	MOVQ   groups+16(FP), BX
	MOVQ   sums+24(FP), DI
	SHLQ   $2, CX            // bytes of a row of the input
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

columns:  // DX bytes behind the start of each row of the input, and 4·DX behind that of each group
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

// WEIGHTS adds 8 columns of a row of the group, at p, times those of three rows of the input to their sums.
#define WEIGHTS(p, a, b, c) \
	VMOVUPS     p, Y15      \
	VFMADD231PS Y12, Y15, a \
	VFMADD231PS Y13, Y15, b \
	VFMADD231PS Y14, Y15, c

// func sums256(k int, input, group *float32, sums *[3][groupRows]vec)
TEXT ·sums256(SB), NOSPLIT, $0-32
	MOVQ   k+0(FP), CX
	MOVQ   input+8(FP), AX
	MOVQ   group+16(FP), BX
	MOVQ   sums+24(FP), DI
	SHLQ   $2, CX           // bytes of a row of the input
	LEAQ   (AX)(CX*1), R9
	LEAQ   (R9)(CX*1), R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	XORQ   DX, DX

columns:  // DX bytes behind the start of each row of the input, and 4·DX behind that of the group
	VMOVUPS (AX)(DX*1), Y12
	VMOVUPS (R9)(DX*1), Y13
	VMOVUPS (R10)(DX*1), Y14
	WEIGHTS((BX)(DX*4), Y0, Y4, Y8)
	WEIGHTS(32(BX)(DX*4), Y1, Y5, Y9)
	WEIGHTS(64(BX)(DX*4), Y2, Y6, Y10)
	WEIGHTS(96(BX)(DX*4), Y3, Y7, Y11)
	ADDQ    $32, DX
	CMPQ    DX, CX
	JNE     columns

	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	VMOVUPS Y8, 256(DI)
	VMOVUPS Y9, 288(DI)
	VMOVUPS Y10, 320(DI)
	VMOVUPS Y11, 352(DI)
	VZEROUPPER
	RET
