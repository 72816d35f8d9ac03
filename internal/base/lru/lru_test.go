package lru_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/base/lru"
)

// The model is a list of keys, last used at the end.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(-1, 4).Draw(t, "limit")
		c := lru.New[int, string](limit)
		var keys []int
		values := map[int]string{}
		drop := func(k int) { keys = slices.DeleteFunc(keys, func(x int) bool { return x == k }) }
		key := func(t *rapid.T) int { return rapid.IntRange(0, 6).Draw(t, "key") }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key(t), rapid.String().Draw(t, "value")
				gone, was, full := c.Put(k, v)
				drop(k)
				keys = append(keys, k)
				if full != (len(keys) > max(limit, 1)) || full && (gone != keys[0] || was != values[keys[0]]) {
					t.Fatalf("%d %q %v went of %v", gone, was, full, keys)
				}
				values[k] = v
				keys = keys[max(0, len(keys)-max(limit, 1)):]
			},
			"get": func(t *rapid.T) {
				k := key(t)
				v, ok := c.Get(k)
				if want := slices.Contains(keys, k); ok != want || ok && v != values[k] || !ok && v != "" {
					t.Fatalf("key %d: %q %v, want %q %v", k, v, ok, values[k], want)
				}
				if ok {
					drop(k)
					keys = append(keys, k)
				}
			},
			"has": func(t *rapid.T) {
				k := key(t)
				if got, want := c.Has(k), slices.Contains(keys, k); got != want {
					t.Fatalf("key %d: %v, want %v", k, got, want)
				}
			},
			"delete": func(t *rapid.T) {
				k := key(t)
				c.Delete(k)
				drop(k)
			},
			"drop": func(t *rapid.T) {
				k, v, ok := c.DropOldest()
				if ok != (len(keys) > 0) || ok && (k != keys[0] || v != values[k]) {
					t.Fatalf("%d %q %v went of %v", k, v, ok, keys)
				}
				drop(k)
			},
			"": func(t *rapid.T) {
				if c.Len() != len(keys) {
					t.Fatalf("%d entries, want %v", c.Len(), keys)
				}
				at := len(keys)
				for k, v := range c.All() { // the last used one first, and none is used by that
					if at--; at < 0 || keys[at] != k || values[k] != v {
						t.Fatalf("%d %q, want the keys %v from behind", k, v, keys)
					}
				}
				for range c.All() {
					break
				}
				at = 0
				for k := range c.Backward() {
					if k != keys[at] {
						t.Fatalf("%d, want the keys %v from the front", k, keys)
					}
					at++
				}
			},
		})
	})
}

// The total weight is bounded and reported, but for a single entry that exceeds it.
func TestWeight(t *testing.T) {
	reported := 0
	c := lru.With(lru.Options[string, int]{
		Weight: 10, Weigh: func(_ string, v int) int { return v }, Changed: func(delta int) { reported += delta },
	})
	want := func(weight int, keys ...string) {
		t.Helper()
		var held []string
		for k := range c.All() {
			held = append(held, k)
		}
		if c.Weight() != weight || reported != weight || !slices.Equal(held, keys) {
			t.Errorf("weight %d, reported %d, keys %v; want %d, %v", c.Weight(), reported, held, weight, keys)
		}
	}
	c.Put("a", 4)
	c.Put("b", 4)
	c.Put("a", 6)
	want(10, "a", "b")
	c.Put("c", 5)
	want(5, "c")
	c.Put("d", 50)
	want(50, "d")
	c.Put("e", 1)
	want(1, "e")
	c.PutBehind("e", "f", 20)
	want(21, "e", "f")
	for k := range c.All() {
		c.Delete(k)
	}
	want(0)
}
