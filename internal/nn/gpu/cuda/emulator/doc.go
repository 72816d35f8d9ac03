// Package emulator is an emulated driver for cards of NVIDIA. libcuda/build.sh makes a libcuda.so.1 from it that runs our kernels on the
// CPU, so that all code with the tag cuda is tested on machines without a card. README.md says what it checks.
//
// The functions here are for tests in such builds: they find the emulator in the running program.
package emulator
