package orders

import "context"

// MaxDocuments is the length of the longest order that is stored.
const MaxDocuments = 1 << 16

// Key names one place of one conversation: all that a client has sent up to its end, hashed.
type Key [16]byte

// Store remembers orders. An order of n documents holds 0…n-1 once each: the place among the documents as they came
// of the one that is sent first, second, and so on. All methods are safe for concurrent use; what they are given and
// what they return belongs to the caller. Tenants share nothing.
type Store interface {
	// Get returns the order of a place, or false if none is known. It waits for ctx at most.
	Get(ctx context.Context, tenant string, k Key) (order []int, ok bool)
	// Put remembers an order for a place that has none, and returns the one to use: the first one that was put, or the given
	// one if it was first or if the place's has another length (the first one stays). A store that does not know returns an order
	// that all such stores choose alike. An order that Valid refuses is not remembered; nil is returned.
	Put(ctx context.Context, tenant string, k Key, order []int) (winner []int)
	// Forget drops all orders of a tenant that were put before. Those of a Put at the same time may stay.
	Forget(ctx context.Context, tenant string) error
}

// Valid reports whether an order can be stored: each of 0…n-1 once, and 1 ≤ n ≤ MaxDocuments.
func Valid(order []int) bool {
	n := len(order)
	if n == 0 || n > MaxDocuments {
		return false
	}
	seen := make([]bool, n)
	for _, i := range order {
		if i < 0 || i >= n || seen[i] {
			return false
		}
		seen[i] = true
	}
	return true
}
