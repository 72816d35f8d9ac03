// What the parts of the emulated driver share.
#pragma once

#include "simt.hpp"

#include <string>

namespace rp_emu {

// Patterns of memory without contents. Each is not a number as float, bfloat16 and half, and far below zero as an integer.
constexpr uint32_t fresh_pattern = 0xffc1ffc1, freed_pattern = 0xffc2ffc2, guard_pattern = 0xffc3ffc3, shared_pattern = 0xffc4ffc4;

inline void fill(char* p, size_t n, uint32_t pattern) {
	for (; n && reinterpret_cast<uintptr_t>(p) % 4; n--, p++) *p = char(pattern >> 8 * (reinterpret_cast<uintptr_t>(p) % 4));
	std::fill_n(reinterpret_cast<uint32_t*>(p), n / 4, pattern);
	for (size_t i = n / 4 * 4; i < n; i++) p[i] = char(pattern >> 8 * (i % 4));
}

// fail prints a mistake of the program and ends it.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

const Kernel* find_kernel(const std::string& name);

// run_kernel runs all blocks. Only one call may be in progress.
void run_kernel(const Kernel& k, const char* arguments, const size_t* offsets, dim3 grid, dim3 block);

} // namespace rp_emu
