// Products with packed weights, out = a·wᵀ. The columns belong in turn, four at a time, to eight sums, and a fixed tree adds these. All
// kernels here add in this order, so that what comes out for a row of a does not depend on the number of rows or on the kernel.
#include "common.h"
#include "formats.h"

// gemv is for up to NR rows of a. A warp has four rows of weights, eight lanes each.
template <int T, int NR>
__device__ __forceinline__ void gemv(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) {
  u32 lane = threadIdx.x % 32, part = lane % 8;
  u64 n = ((u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 4 + lane / 8;
  const u8* row = w + (n < wrows ? n : wrows - 1) * bytes;
  float sums[NR];
#pragma unroll
  for (int r = 0; r < NR; r++) sums[r] = 0;
#pragma unroll(NR > 1 ? 2 : 4)
  for (u32 k = 4 * part; k < cols; k += 32) {
    f4 v = weights<T>(row, k);
#pragma unroll
    for (int r = 0; r < NR; r++) {
      if (r < rows) {
        f4 x = *(const f4*)(a + r * cols + k);
        sums[r] = fmaf(x.x, v.x, sums[r]);
        sums[r] = fmaf(x.y, v.y, sums[r]);
        sums[r] = fmaf(x.z, v.z, sums[r]);
        sums[r] = fmaf(x.w, v.w, sums[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < NR; r++) {
    if (r < rows) {
      for (int m = 4; m; m >>= 1) sums[r] = add_(sums[r], __shfl_xor_sync(0xffffffffu, sums[r], m));
      if (part == 0 && n < wrows) out[r * wrows + n] = sums[r];
    }
  }
}

const u32 TILE = 64, STEP = 64, LINE = TILE + 4; // LINE: floats between columns in shared memory; multiples of 4, few bank conflicts

// tile is for many rows of a: a block computes 64 × 64 products. Warp g of each half has every eighth four columns: each thread 8 × 8 sums.
template <int T>
__device__ __forceinline__ void tile(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) {
  __shared__ __align__(16) float memory[2 * STEP * LINE];
  float *as = memory, *ws = memory + STEP * LINE;
  u32 t = threadIdx.x, lane = t % 32, warp = t / 32, group = warp % 8, half = warp / 8;
  u64 n0 = (u64)blockIdx.x * TILE, r0 = (u64)blockIdx.y * TILE;
  u32 x = half * 32 + lane / 8 * 4, y = lane % 8 * 4; // of the first of this thread's rows and columns of out; others are 16 and 32 on
  float sums[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
#pragma unroll
    for (int j = 0; j < 8; j++) sums[i][j] = 0;
  }
  for (u32 k0 = 0; k0 < cols; k0 += STEP) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      u32 unit = warp + 16 * i, r = unit % 8 * 8 + lane % 8, c = (unit / 8 * 4 + lane / 8) * 4, k = k0 + c;
      f4 av = make(0, 0, 0, 0), wv = av;
      if (k < cols) {
        if (r0 + r < rows) av = *(const f4*)(a + (r0 + r) * cols + k);
        if (n0 + r < wrows) wv = weights<T>(w + (n0 + r) * bytes, k);
      }
      float *at = as + c * LINE + r, *wt = ws + c * LINE + r;
      at[0] = av.x, at[LINE] = av.y, at[2 * LINE] = av.z, at[3 * LINE] = av.w;
      wt[0] = wv.x, wt[LINE] = wv.y, wt[2 * LINE] = wv.z, wt[3 * LINE] = wv.w;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      u32 c = i / 4 * 32 + group * 4 + i % 4;
      f4 a0 = *(const f4*)(as + c * LINE + x), a1 = *(const f4*)(as + c * LINE + x + 16);
      f4 w0 = *(const f4*)(ws + c * LINE + y), w1 = *(const f4*)(ws + c * LINE + y + 32);
      float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, wv[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
#pragma unroll
      for (int p = 0; p < 8; p++) {
#pragma unroll
        for (int q = 0; q < 8; q++) sums[p][q] = fmaf(av[p], wv[q], sums[p][q]);
      }
    }
  }
  // The tree over the groups, one half of the warps after the other: the shared memory has room for four groups' sums.
#pragma unroll 1 // this is done once, and would be most of the code
  for (u32 h = 0; h < 2; h++) {
#pragma unroll 1
    for (u32 m = 4; m; m >>= 1) {
      __syncthreads();
      if (half == h && group >= m && group < 2 * m) {
#pragma unroll
        for (int i = 0; i < 64; i++) memory[((group - m) * 64 + i) * 32 + lane] = sums[i / 8][i % 8];
      }
      __syncthreads();
      if (half == h && group < m) {
#pragma unroll
        for (int i = 0; i < 64; i++) sums[i / 8][i % 8] = add_(sums[i / 8][i % 8], memory[(group * 64 + i) * 32 + lane]);
      }
    }
  }
  // Through shared memory, so that neighbours write to neighbours.
  __syncthreads();
  if (group == 0) {
#pragma unroll
    for (int i = 0; i < 64; i++) memory[(x + i / 32 * 16 + i / 8 % 4) * LINE + y + i % 8 / 4 * 32 + i % 4] = sums[i / 8][i % 8];
  }
  __syncthreads();
#pragma unroll 1
  for (u32 i = t; i < TILE * TILE; i += 512) {
    u64 r = r0 + i / TILE, n = n0 + i % TILE;
    if (r < rows && n < wrows) out[r * wrows + n] = memory[i / TILE * LINE + i % TILE];
  }
}

// unpack writes the rows of w with these numbers: a block for each.
template <int T>
__device__ __forceinline__ void unpack(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) {
  const u8* row = w + (u64)numbers[blockIdx.x] * bytes;
  for (u32 k = 4 * threadIdx.x; k < cols; k += 4 * blockDim.x) *(f4*)(out + (u64)blockIdx.x * cols + k) = weights<T>(row, k);
}

// The entry points. They are written out because the build of the emulator looks for their names in the text.
extern "C" __global__ void gemv_f32(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<F32, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_f32(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<F32, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_f32(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<F32>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_f32(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<F32>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_f16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<F16, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_f16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<F16, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_f16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<F16>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_f16(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<F16>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_bf16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<BF16, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_bf16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<BF16, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_bf16(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<BF16>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_bf16(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<BF16>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q8_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q8_0, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q8_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q8_0, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q8_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q8_0>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q8_0(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q8_0>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q4_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_0, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q4_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_0, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q4_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q4_0>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q4_0(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q4_0>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q4_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_1, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q4_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_1, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q4_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q4_1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q4_1(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q4_1>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q5_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_0, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q5_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_0, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q5_0(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q5_0>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q5_0(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q5_0>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q5_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_1, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q5_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_1, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q5_1(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q5_1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q5_1(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q5_1>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q3_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q3_K, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q3_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q3_K, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q3_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q3_K>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q3_k(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q3_K>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q4_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_K, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q4_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q4_K, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q4_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q4_K>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q4_k(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q4_K>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q5_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_K, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q5_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q5_K, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q5_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q5_K>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q5_k(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q5_K>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_q6_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q6_K, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_q6_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<Q6_K, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_q6_k(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<Q6_K>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_q6_k(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<Q6_K>(out, w, numbers, cols, bytes); }
extern "C" __global__ void gemv_iq4_nl(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<IQ4_NL, 1>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void gemv8_iq4_nl(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { gemv<IQ4_NL, 8>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void tile_iq4_nl(float* out, const float* a, const u8* w, u64 rows, u64 wrows, u64 cols, u64 bytes) { tile<IQ4_NL>(out, a, w, rows, wrows, cols, bytes); }
extern "C" __global__ void rows_iq4_nl(float* out, const u8* w, const i32* numbers, u64 cols, u64 bytes) { unpack<IQ4_NL>(out, w, numbers, cols, bytes); }
