package httpload

import (
	"syscall"
	"time"
)

// nap sleeps for a short time, some 0.06 ms longer than asked; a signal may end it early.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
