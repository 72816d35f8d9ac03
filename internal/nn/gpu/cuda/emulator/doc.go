// Package emulator holds an emulated driver for cards of NVIDIA: a libcuda.so.1 that runs our kernels on the CPU. It is for tests, and
// has no Go code of its own but these.
package emulator
