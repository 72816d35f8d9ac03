//go:build !linux

package httpload

import "time"

// nap sleeps for a short time.
func nap(d time.Duration) { time.Sleep(d) }
