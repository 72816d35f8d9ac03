// Package queue is a priority queue from which any item can be moved or removed: each item knows its place.
package queue

import "container/heap"

// Queue holds items, the one that goes first on top. Not safe for concurrent use.
type Queue[T any] struct{ items items[T] }

// New returns an empty queue. before reports whether a goes before b; place returns where x keeps its place in the queue.
func New[T any](before func(a, b T) bool, place func(x T) *int) *Queue[T] {
	return &Queue[T]{items[T]{before: before, place: place}}
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items.list) }

// Top returns the item that goes first; there must be one.
func (q *Queue[T]) Top() T { return q.items.list[0] }

// Push adds an item.
func (q *Queue[T]) Push(x T) { heap.Push(&q.items, x) }

// Moved restores the order after x has changed.
func (q *Queue[T]) Moved(x T) { heap.Fix(&q.items, *q.items.place(x)) }

// Remove takes x out.
func (q *Queue[T]) Remove(x T) { heap.Remove(&q.items, *q.items.place(x)) }

// items is a heap.Interface.
type items[T any] struct {
	list   []T
	before func(a, b T) bool
	place  func(x T) *int
}

func (h *items[T]) Len() int           { return len(h.list) }
func (h *items[T]) Less(i, j int) bool { return h.before(h.list[i], h.list[j]) }

func (h *items[T]) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.place(h.list[i]), *h.place(h.list[j]) = i, j
}

// Push is for package heap.
func (h *items[T]) Push(x any) {
	*h.place(x.(T)) = len(h.list)
	h.list = append(h.list, x.(T))
}

// Pop is for package heap.
func (h *items[T]) Pop() any {
	last := len(h.list) - 1
	x := h.list[last]
	clear(h.list[last:])
	h.list = h.list[:last]
	return x
}
