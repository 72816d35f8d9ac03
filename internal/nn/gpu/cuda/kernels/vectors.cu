// Operations on rows of floats.
#include "common.h"

// norm: a warp for each row. See compute.Crew.Norm.
extern "C" __global__ void norm(float* out, const float* x, const float* weights, u64 rows, u64 width, u64 epsilon) {
  u64 row = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  u32 lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += row * width, out += row * width;
  float sum = 0;
  for (u64 i = lane; i < width; i += 32) sum = fmaf(x[i], x[i], sum);
  float mean = warp_sum(sum) / (float)width;
  float factor = (float)(1.0 / sqrt((double)add_(mean, bits((u32)epsilon))));
  for (u64 i = lane; i < width; i += 32) out[i] = mul_(mul_(x[i], factor), weights[i]);
}

extern "C" __global__ void add(float* x, const float* y, u64 n) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) x[i] = add_(x[i], y[i]);
}

extern "C" __global__ void add_row(float* x, const float* bias, u64 n, u64 width) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) x[i] = add_(x[i], bias[i % width]);
}

// gate is silu(g)·u.
extern "C" __global__ void gate(float* g, const float* u, u64 n) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
    float v = g[i];
    g[i] = mul_(v / add_(1, expf(-v)), u[i]);
  }
}

extern "C" __global__ void fill(float* x, u64 n, u64 value) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) x[i] = bits((u32)value);
}

// rotate turns all heads of a row by the row's angles: a block for each row. See compute.Rope.Rotate.
extern "C" __global__ void rotate(float* x, const float* angles, u64 width, u64 dim, u64 interleaved) {
  x += (u64)blockIdx.x * width, angles += (u64)blockIdx.x * dim;
  u64 pairs = dim / 2, all = width / dim * pairs;
  for (u64 i = threadIdx.x; i < all; i += blockDim.x) {
    u64 head = i / pairs, j = i % pairs;
    float *a = x + head * dim + (interleaved ? 2 * j : j), *b = a + (interleaved ? 1 : pairs);
    float cosine = angles[2 * j], sine = angles[2 * j + 1], p = *a, q = *b;
    *a = sub_(mul_(p, cosine), mul_(q, sine));
    *b = add_(mul_(p, sine), mul_(q, cosine));
  }
}

// keep copies the rows with these numbers: blocks of x for a row each, y shares its floats out.
extern "C" __global__ void keep(float* out, const float* x, const i32* numbers, u64 width) {
  const float* from = x + (u64)numbers[blockIdx.x] * width;
  float* to = out + (u64)blockIdx.x * width;
  for (u64 i = (u64)blockIdx.y * blockDim.x + threadIdx.x; i < width; i += (u64)gridDim.y * blockDim.x) to[i] = from[i];
}

// argmax: a block of 256 threads for each row. Of equal numbers the first wins.
extern "C" __global__ void argmax(i32* places, const float* x, u64 width) {
  __shared__ float best[256];
  __shared__ u32 place[256];
  u32 t = threadIdx.x;
  x += (u64)blockIdx.x * width;
  float most = t < width ? x[t] : -infinity_();
  u32 at = t < width ? t : 0xffffffffu;
  for (u64 i = t + 256; i < width; i += 256) {
    float v = x[i];
    if (v > most) most = v, at = (u32)i;
  }
  best[t] = most, place[t] = at;
  for (u32 m = 128; m; m >>= 1) {
    __syncthreads();
    if (t < m && (best[t + m] > best[t] || (best[t + m] == best[t] && place[t + m] < place[t]))) {
      best[t] = best[t + m], place[t] = place[t + m];
    }
  }
  if (t == 0) places[blockIdx.x] = (i32)place[0];
}

// order is a number that is larger for larger floats. Both zeros are the same, and what is not a number is the least.
__device__ __forceinline__ u32 order(float x) {
  if (x != x) return 0;
  if (x == 0) return 0x80000000u;
  u32 u = image(x);
  return u >> 31 ? ~u : u | 0x80000000u;
}

// top_k writes the places of each row's k largest numbers in ascending order: a block of 1024 threads for each row. The k-th largest is
// found eight bits at a time; then each thread writes what is larger in a stretch of its own, and the first of what is equal.
extern "C" __global__ void __launch_bounds__(1024) top_k(i32* places, const float* x, u64 width, u64 k);
extern "C" __global__ void top_k(i32* places, const float* x, u64 width, u64 k) {
  __shared__ u32 counts[256], larger[1024], equal[1024];
  __shared__ u32 prefix, missing;
  u32 t = threadIdx.x;
  x += (u64)blockIdx.x * width, places += (u64)blockIdx.x * k;
  if (t == 0) prefix = 0, missing = (u32)k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (t < 256) counts[t] = 0;
    __syncthreads();
    u32 known = prefix, mask = shift == 24 ? 0 : 0xffffffffu << (shift + 8);
    for (u64 i = t; i < width; i += 1024) {
      u32 o = order(x[i]);
      if ((o & mask) == known) atomicAdd(&counts[o >> shift & 255u], 1u);
    }
    __syncthreads();
    if (t == 0) {
      u32 digit = 255, need = missing;
      for (; counts[digit] < need; digit--) need -= counts[digit];
      prefix = known | digit << shift, missing = need;
    }
    __syncthreads();
  }
  u32 limit = prefix, need = missing;
  u64 stretch = (width + 1023) / 1024, from = t * stretch, to = from + stretch < width ? from + stretch : width;
  u32 more = 0, same = 0;
  for (u64 i = from; i < to; i++) {
    u32 o = order(x[i]);
    more += o > limit, same += o == limit;
  }
  larger[t] = more, equal[t] = same;
  for (u32 m = 1; m < 1024; m <<= 1) {
    __syncthreads();
    u32 a = t >= m ? larger[t - m] : 0, b = t >= m ? equal[t - m] : 0;
    __syncthreads();
    larger[t] += a, equal[t] += b;
  }
  u32 before = larger[t] - more, taken = equal[t] - same; // of the threads before this one
  for (u64 i = from; i < to; i++) {
    u32 o = order(x[i]);
    if (o > limit || (o == limit && taken < need)) places[before + (taken < need ? taken : need)] = (i32)i;
    before += o > limit, taken += o == limit;
  }
}
