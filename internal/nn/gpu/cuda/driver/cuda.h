/* gorgonia.org/cu v0.9.6 is written for CUDA 12. CUDA 13 has other parameters for five of the functions that it calls, and another name for
   one that drivers before CUDA 12.8 do not have. This file is found in front of CUDA's cuda.h and declares the old ones, which the driver
   still has. With CUDA 12 it changes nothing. */
#ifndef RAGPILOT_CUDA_H
#define RAGPILOT_CUDA_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000

#ifdef __cplusplus
extern "C" {
#endif

#undef cuCtxCreate
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
#define cuCtxCreate cuCtxCreate_v2

#undef cuMemAdvise
CUresult CUDAAPI ragpilot_cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice device) __asm__("cuMemAdvise");
#define cuMemAdvise ragpilot_cuMemAdvise

#undef cuMemPrefetchAsync
CUresult CUDAAPI ragpilot_cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice device, CUstream stream) __asm__("cuMemPrefetchAsync");
#define cuMemPrefetchAsync ragpilot_cuMemPrefetchAsync

#undef cuGraphAddDependencies
CUresult CUDAAPI ragpilot_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
    __asm__("cuGraphAddDependencies");
#define cuGraphAddDependencies ragpilot_cuGraphAddDependencies

#undef cuGraphGetEdges
CUresult CUDAAPI ragpilot_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n) __asm__("cuGraphGetEdges");
#define cuGraphGetEdges ragpilot_cuGraphGetEdges

#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);

#ifdef __cplusplus
}
#endif

#endif
#endif
