package clients

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// Label is a finding that a case expects.
type Label struct {
	Line    int    `json:"line"`
	Against int    `json:"against"`
	Cause   string `json:"cause"`
	Path    string `json:"path"`
	Also    []int  `json:"against_also,omitempty"` // share as much as Against does: they are right too
	Within  bool   `json:"within,omitempty"`       // a path below Path is right too
}

// Case is a program that is run healthy and sick.
type Case struct {
	Name string
	Run  func(r *Run)
	Want []Label // in the sick run; a healthy run has no findings

	Labels func() []Label // in place of Want, for a case whose labels are known after its run
}

// Run is what a program of a case may use.
type Run struct {
	context.Context
	URL  string // of the recorder, without a path
	Sick bool
	rec  *Recorder
	rand *rand.Rand
}

// fault is an error that ends a program.
type fault struct{ error }

func check(err error) {
	if err != nil {
		panic(fault{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// sent is how many requests have come.
func (r *Run) sent() int {
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	return len(r.rec.bodies)
}

// Script says what the recorder answers next.
func (r *Run) Script(a ...Answer) {
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	r.rec.script = append(r.rec.script, a...)
}

// If is a if the condition holds, and b if not.
func If[T any](condition bool, a, b T) T {
	if condition {
		return a
	}
	return b
}

// Time is the time at the n-th request.
func (r *Run) Time(n int) time.Time {
	t := time.Date(2026, 11, 27, 16, 14, 9, 482_113_077, time.FixedZone("CET", 3600)).Add(time.Duration(n) * 97 * time.Second)
	return t.Add(time.Duration(n) * 26 * time.Hour)
}

// Shuffled returns the numbers below n in another order, as ranging over a map gives them. They never begin with first.
func (r *Run) Shuffled(n, first int) []int {
	for {
		if p := r.rand.Perm(n); p[0] != first {
			return p
		}
	}
}

// letters returns n letters of an alphabet.
func (r *Run) letters(n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.rand.IntN(len(alphabet))]
	}
	return string(b)
}

// Hex returns n hexadecimal digits.
func (r *Run) Hex(n int) string { return r.letters(n, "0123456789abcdef") }

// UUID returns a random UUID.
func (r *Run) UUID() string {
	return fmt.Sprintf("%s-%s-4%s-%s%s-%s", r.Hex(8), r.Hex(4), r.Hex(3), r.letters(1, "89ab"), r.Hex(3), r.Hex(12))
}

// ULID returns an identifier of 26 letters, of which the first ten are a time.
func (r *Run) ULID() string {
	return "01KB" + r.letters(22, "0123456789ABCDEFGHJKMNPQRSTVWXYZ")
}

// NanoID returns an identifier as nanoid makes it.
func (r *Run) NanoID() string {
	return r.letters(21, "useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict")
}

// Cases returns all cases.
func Cases() []Case {
	return slices.Concat(chatCases, chatMoreCases, responsesCases, anthropicCases, anthropicMoreCases, langchainCases, einoCases,
		adkCases, mcpCases)
}

// Record runs a program and returns the bodies that it sent.
func Record(ctx context.Context, name string, program func(*Run), sick bool) (bodies [][]byte, err error) {
	rec := NewRecorder()
	defer rec.Close()
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(fault)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("case %s: %w", name, f.error)
		}
	}()
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	program(&Run{Context: ctx, URL: rec.server.URL, Sick: sick, rec: rec, rand: rand.New(rand.NewPCG(h.Sum64(), 1))})
	bodies, err = rec.take()
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	return bodies, nil
}

// order is the usual order for the first request, and another one for each further.
func (r *Run) order(request, n int) []int {
	if request == 0 || !r.Sick {
		return InOrder(n)
	}
	return r.Shuffled(n, 0)
}
