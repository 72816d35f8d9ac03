//go:build cuda

package emulator

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

static int is_emulator(void) {
	int (*f)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "rp_emu_is_emulator");
	return f ? f() : 0;
}

static int live(int device, uint64_t *n) {
	int (*f)(int, uint64_t *, uint64_t *, uint64_t *, uint64_t *, uint64_t *);
	f = (int (*)(int, uint64_t *, uint64_t *, uint64_t *, uint64_t *, uint64_t *))dlsym(RTLD_DEFAULT, "rp_emu_live");
	return f ? f(device, n, n + 1, n + 2, n + 3, n + 4) : -1;
}

static void check(void) {
	void (*f)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "rp_emu_check");
	if (f) f();
}
*/
import "C"

import "fmt"

// Present reports whether this program runs with the emulated driver.
func Present() bool { return C.is_emulator() == 1 }

// Live is what a program has made on a device and not given back.
type Live struct {
	DeviceBytes, HostBytes   uint64
	Streams, Events, Modules uint64
}

// Count returns what is live on a device. What a context had when it was destroyed is counted, unless the context had failed: a program
// that gives back each thing has zeros.
func Count(device int) Live {
	var n [5]C.uint64_t
	if code := C.live(C.int(device), &n[0]); code != 0 {
		panic(fmt.Sprintf("emulator: no count of device %d: %d", device, int(code)))
	}
	return Live{uint64(n[0]), uint64(n[1]), uint64(n[2]), uint64(n[3]), uint64(n[4])}
}

// Check ends the program if bytes beside allocations, or in freed ones, were written.
func Check() { C.check() }
