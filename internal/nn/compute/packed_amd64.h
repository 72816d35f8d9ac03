// What products of one row (gemv_amd64.s) and unpacking (unpack_amd64.s) have in common: macros that turn a block of 32 packed weights into
// 32 whole numbers, those of the first 8 columns in Y0, then Y1, Y2 and Y3, and into their scale, in all lanes of Y4. In formats with a
// minimum Y5 is the scale, and Y4 the minimum. Y6 and Y7 may change. Y13 is 15 in all lanes, and Y12 what the format needs.

DATA constants<>+0(SB)/4, $15
DATA constants<>+4(SB)/4, $8
DATA constants<>+8(SB)/4, $16
GLOBL constants<>(SB), RODATA|NOPTR, $12

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

// SCALE is the 16-bit float at the beginning of a row, as a float32 in each lane: in Y4.
#define SCALE(row) \
	VPBROADCASTW (row), X4 \
	VCVTPH2PS    X4, Y4

// SCALES are the first of two in Y5, and the second in Y4.
#define SCALES(row) \
	VPBROADCASTD (row), X4 \
	VCVTPH2PS    X4, Y4    \
	VMOVSLDUP    Y4, Y5    \
	VMOVSHDUP    Y4, Y4

// NIBBLES are 32 columns as numbers: in q0, q1, q2, q3.
#define NIBBLES(low, high, q0, q1, q2, q3) \
	VPMOVZXBD low, q2     \
	VPMOVZXBD high, q3    \
	VPAND     Y13, q2, q0 \
	VPAND     Y13, q3, q1 \
	VPSRLD    $4, q2, q2  \
	VPSRLD    $4, q3, q3

// FIFTH makes 16 of each of 8 fifth bits in Y7: in Y6. Y12 is 16.
#define FIFTH(at) \
	VPSLLVD fifths<>+at(SB), Y7, Y6 \
	VPSRAD  $31, Y6, Y6             \
	VPAND   Y12, Y6, Y6

// NOFIFTH makes 16 of each of 8 fifth bits in Y7 that is not set: in Y6. Y12 is 16.
#define NOFIFTH(at) \
	VPSLLVD fifths<>+at(SB), Y7, Y6 \
	VPSRAD  $31, Y6, Y6             \
	VPANDN  Y12, Y6, Y6

#define BLOCKQ8(row) \
	SCALE(row)            \
	VPMOVSXBD 2(row), Y0  \
	VPMOVSXBD 10(row), Y1 \
	VPMOVSXBD 18(row), Y2 \
	VPMOVSXBD 26(row), Y3

// BLOCKQ40 needs 8 in Y12.
#define BLOCKQ40(row) \
	SCALE(row)                               \
	NIBBLES(2(row), 10(row), Y0, Y1, Y2, Y3) \
	VPSUBD Y12, Y0, Y0                       \
	VPSUBD Y12, Y1, Y1                       \
	VPSUBD Y12, Y2, Y2                       \
	VPSUBD Y12, Y3, Y3

#define BLOCKQ41(row) \
	SCALES(row)                              \
	NIBBLES(4(row), 12(row), Y0, Y1, Y2, Y3)

// BLOCKQ50 needs 16 in Y12, and so does BLOCKQ51.
#define BLOCKQ50(row) \
	SCALE(row)                               \
	VPBROADCASTD 2(row), Y7                  \
	NIBBLES(6(row), 14(row), Y0, Y1, Y2, Y3) \
	NOFIFTH(0)                               \
	VPSUBD       Y6, Y0, Y0                  \
	NOFIFTH(32)                              \
	VPSUBD       Y6, Y1, Y1                  \
	NOFIFTH(64)                              \
	VPSUBD       Y6, Y2, Y2                  \
	NOFIFTH(96)                              \
	VPSUBD       Y6, Y3, Y3

#define BLOCKQ51(row) \
	SCALES(row)                              \
	VPBROADCASTD 4(row), Y7                  \
	NIBBLES(8(row), 16(row), Y0, Y1, Y2, Y3) \
	FIFTH(0)                                 \
	VPOR         Y6, Y0, Y0                  \
	FIFTH(32)                                \
	VPOR         Y6, Y1, Y1                  \
	FIFTH(64)                                \
	VPOR         Y6, Y2, Y2                  \
	FIFTH(96)                                \
	VPOR         Y6, Y3, Y3
