#include "textflag.h"

// The exponential function of [exp] in every lane, with fused multiply-add.

DATA exps<>+0(SB)/4, $0xc2ae0000 // expMin
DATA exps<>+4(SB)/4, $0x42b00000 // expMax
DATA exps<>+8(SB)/4, $0x3fb8aa3b // log2e
DATA exps<>+12(SB)/4, $0xbf318000 // -ln2High
DATA exps<>+16(SB)/4, $0x395e8083 // -ln2Low
DATA exps<>+20(SB)/4, $0x39506967 // expC0
DATA exps<>+24(SB)/4, $0x3ab743ce // expC1
DATA exps<>+28(SB)/4, $0x3c088908 // expC2
DATA exps<>+32(SB)/4, $0x3d2aa9c1 // expC3
DATA exps<>+36(SB)/4, $0x3e2aaaaa // expC4
DATA exps<>+40(SB)/4, $0x3f000000 // expC5
DATA exps<>+44(SB)/4, $0x3f800000 // 1
DATA exps<>+48(SB)/4, $127
GLOBL exps<>(SB), RODATA|NOPTR, $52

// CONSTANTS loads constants, of those at BX.
#define CONSTANTS \
	LEAQ         exps<>(SB), BX \
	VBROADCASTSS 8(BX), Y14     \
	VBROADCASTSS 12(BX), Y13    \
	VBROADCASTSS 16(BX), Y12    \
	VBROADCASTSS 20(BX), Y11    \
	VBROADCASTSS 24(BX), Y10    \
	VBROADCASTSS 28(BX), Y9     \
	VBROADCASTSS 32(BX), Y8     \
	VBROADCASTSS 36(BX), Y7     \
	VBROADCASTSS 40(BX), Y6

// EXP is e to Y0: in Y2, and 0 where Y0 is below expMin. Y0, Y1, Y3 and Y4 change.
#define EXP \
	VBROADCASTSS 4(BX), Y1       \
	VMINPS       Y1, Y0, Y0      \
	VBROADCASTSS (BX), Y1        \
	VCMPPS       $13, Y1, Y0, Y4 \
	VMAXPS       Y1, Y0, Y0      \
	VMULPS       Y14, Y0, Y1     \
	VROUNDPS     $0, Y1, Y1      \
	VFMADD231PS  Y13, Y1, Y0     \
	VFMADD231PS  Y12, Y1, Y0     \
	VMOVAPS      Y11, Y2         \
	VFMADD213PS  Y10, Y0, Y2     \
	VFMADD213PS  Y9, Y0, Y2      \
	VFMADD213PS  Y8, Y0, Y2      \
	VFMADD213PS  Y7, Y0, Y2      \
	VFMADD213PS  Y6, Y0, Y2      \
	VMULPS       Y0, Y0, Y3      \
	VFMADD213PS  Y0, Y3, Y2      \
	VBROADCASTSS 44(BX), Y3      \
	VADDPS       Y3, Y2, Y2      \
	VCVTTPS2DQ   Y1, Y1          \
	VPBROADCASTD 48(BX), Y3      \
	VPADDD       Y3, Y1, Y1      \
	VPSLLD       $23, Y1, Y1     \
	VMULPS       Y1, Y2, Y2      \
	VANDPS       Y4, Y2, Y2

// func exps256(x *float32, n int, largest float32, sums *vec)
TEXT ·exps256(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), AX
	MOVQ         n+8(FP), CX
	MOVQ         sums+24(FP), DI
	VBROADCASTSS largest+16(FP), Y15
	CONSTANTS
	VXORPS       Y5, Y5, Y5          // the sums

next:
	VMOVUPS (AX), Y0
	VSUBPS  Y15, Y0, Y0
	EXP
	VMOVUPS Y2, (AX)
	VADDPS  Y2, Y5, Y5
	ADDQ    $32, AX
	SUBQ    $8, CX
	JNZ     next
	VMOVUPS Y5, (DI)
	VZEROUPPER
	RET

// func gate256(n int, x, u *float32)
TEXT ·gate256(SB), NOSPLIT, $0-24
	MOVQ   n+0(FP), CX
	MOVQ   x+8(FP), AX
	MOVQ   u+16(FP), DX
	CONSTANTS
	VXORPS Y15, Y15, Y15

next:
	VMOVUPS      (AX), Y5
	VSUBPS       Y5, Y15, Y0
	EXP
	VBROADCASTSS 44(BX), Y3
	VADDPS       Y3, Y2, Y2
	VDIVPS       Y2, Y5, Y2
	VMULPS       (DX), Y2, Y2
	VMOVUPS      Y2, (AX)
	ADDQ         $32, AX
	ADDQ         $32, DX
	SUBQ         $8, CX
	JNZ          next
	VZEROUPPER
	RET

// func exps512(x *float32, n int, largest float32, sums *vec)
TEXT ·exps512(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), AX
	MOVQ         n+8(FP), CX
	MOVQ         sums+24(FP), DI
	LEAQ         exps<>(SB), BX
	VBROADCASTSS largest+16(FP), Z15
	VBROADCASTSS (BX), Z17
	VBROADCASTSS 4(BX), Z18
	VBROADCASTSS 8(BX), Z14
	VBROADCASTSS 12(BX), Z13
	VBROADCASTSS 16(BX), Z12
	VBROADCASTSS 20(BX), Z11
	VBROADCASTSS 24(BX), Z10
	VBROADCASTSS 28(BX), Z9
	VBROADCASTSS 32(BX), Z8
	VBROADCASTSS 36(BX), Z7
	VBROADCASTSS 40(BX), Z6
	VBROADCASTSS 44(BX), Z16
	VPBROADCASTD 48(BX), Z19
	VXORPS       Y5, Y5, Y5          // the sums

next:
	VMOVUPS       (AX), Z0
	VSUBPS        Z15, Z0, Z0
	VMINPS        Z18, Z0, Z0
	VCMPPS        $13, Z17, Z0, K1 // not below expMin
	VMAXPS        Z17, Z0, Z0
	VMULPS        Z14, Z0, Z1
	VRNDSCALEPS   $0, Z1, Z1
	VFMADD231PS   Z13, Z1, Z0
	VFMADD231PS   Z12, Z1, Z0
	VMOVAPS       Z11, Z2
	VFMADD213PS   Z10, Z0, Z2
	VFMADD213PS   Z9, Z0, Z2
	VFMADD213PS   Z8, Z0, Z2
	VFMADD213PS   Z7, Z0, Z2
	VFMADD213PS   Z6, Z0, Z2
	VMULPS        Z0, Z0, Z3
	VFMADD213PS   Z0, Z3, Z2
	VADDPS        Z16, Z2, Z2
	VCVTTPS2DQ    Z1, Z1
	VPADDD        Z19, Z1, Z1
	VPSLLD        $23, Z1, Z1
	VMULPS.Z      Z1, Z2, K1, Z2
	VMOVUPS       Z2, (AX)
	VADDPS        Y2, Y5, Y5
	VEXTRACTF64X4 $1, Z2, Y3
	VADDPS        Y3, Y5, Y5
	ADDQ          $64, AX
	SUBQ          $16, CX
	JNZ           next
	VMOVUPS       Y5, (DI)
	VZEROUPPER
	RET
