// Package faulttest holds no code but tests: `ragpilot serve` as a process of its own, and all that can go wrong around
// it. Engines are killed, stall, or answer with anything but HTTP; clients leave, send gigabytes, or nothing at all; the
// server itself is stopped, reloaded, or is killed in the middle of conversations.
//
// Whatever happened, each test asks the same at its end: there was no panic, the server answers the next request, it has
// no more goroutines and open files than before, and no turn was lost or doubled: the upstream's record of what
// it got is what clients sent, once each.
//
// The tests need Linux, for /proc. They build the program once and run beside each other, with little else on the machine:
//
//	RAGPILOT_FAULTS=1 go test ./internal/testkit/faulttest
package faulttest
