//go:build cuda

// gorgonia.org/cu calls cuInit before main and ends the program if that fails. The program's own cuInit, this one, comes before the
// driver's: it always succeeds and remembers what the driver said, so that a program for cards also runs where there is none.

#define _GNU_SOURCE
#include <dlfcn.h>

static int result = 34; // CUDA_ERROR_STUB_LIBRARY

// It is this program's alone: libraries that it loads find the driver's.
__attribute__((visibility("hidden"))) int cuInit(unsigned flags) {
	int (*driver)(unsigned) = (int (*)(unsigned))dlsym(RTLD_NEXT, "cuInit");
	if (driver) result = driver(flags);
	return 0;
}

int ragpilot_init_result(void) { return result; }
