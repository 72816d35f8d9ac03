// What the emulated driver has beside the driver's own functions. It is found with dlsym: a program is linked with no emulator.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// rp_emu_is_emulator returns 1.
int rp_emu_is_emulator(void);

// rp_emu_live says what a device's program has made and not given back. What a context had that was destroyed counts too, unless the
// context had failed. It returns 0, or 101 if there is no such device.
int rp_emu_live(int device, uint64_t* device_bytes, uint64_t* host_bytes, uint64_t* streams, uint64_t* events, uint64_t* modules);

// rp_emu_check looks for bytes written beside allocations, and into freed ones, and ends the program if there are any.
void rp_emu_check(void);

#ifdef __cplusplus
}
#endif
