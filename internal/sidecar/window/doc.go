// Package window plans requests that arrive within a short time together, for servers.
//
//	w := window.New(pilot, 3*time.Millisecond, 0)
//	plan, err := w.Plan(ctx, request) // waits for others at most 3 ms
package window
