package offline

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// planDistinct plans the distinct sets in parts, so that repeated ones get equal orders and follow each other.
func planDistinct(ctx context.Context, sets [][]int32, weight []int32, o Options) (Result, error) {
	var own [][]int32                // the distinct sets
	var firsts []int32               // their requests
	next := make([]int32, len(sets)) // request → the next one of the same set, or none
	last := make([]int32, len(sets)) // first request of a set → the last one so far
	distinct(sets, func(i, first int) {
		next[i] = none
		if i == first {
			own = append(own, sets[i])
			firsts = append(firsts, int32(i))
		} else {
			next[last[first]] = int32(i)
		}
		last[first] = int32(i)
	})
	got, parts, err := planParts(ctx, own, weight, o)
	if err != nil {
		return Result{}, err
	}
	orders, schedule := make([][]int32, len(sets)), make([]int, 0, len(sets))
	where := make([]int32, len(weight))
	for _, part := range parts {
		for _, k := range part {
			first := firsts[k]
			for i := first; i != none; i = next[i] {
				order := got[k]
				if i != first {
					for at, d := range sets[i] {
						where[d] = int32(at)
					}
					order = make([]int32, len(got[k]))
					for n, at := range got[k] {
						order[n] = where[sets[first][at]]
					}
				}
				orders[i] = order
				schedule = append(schedule, int(i))
			}
		}
	}
	return finish(sets, orders, schedule, weight), nil
}

// planParts plans parts on all cores and returns the orders and the schedule of each part.
func planParts(ctx context.Context, sets [][]int32, weight []int32, o Options) ([][]int32, [][]int, error) {
	parts, err := partition(ctx, sets, weight, o.partition())
	if err != nil {
		return nil, nil, err
	}
	orders := make([][]int32, len(sets))
	schedules := make([][]int, len(parts))
	workers := min(runtime.GOMAXPROCS(0), len(parts))
	jobs := make(chan int, len(parts))
	for i := range parts {
		jobs <- i
	}
	close(jobs)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			s := newScratch(weight)
			for i := range jobs {
				own := make([][]int32, len(parts[i]))
				for k, r := range parts[i] {
					own[k] = sets[r]
				}
				part := o
				part.Seed += uint64(i)
				got, schedule, err := s.plan(ctx, own, weight, part)
				if err != nil {
					errs[w] = err
					return
				}
				for k, r := range parts[i] {
					orders[r] = got[k]
				}
				for k, r := range schedule {
					schedule[k] = int(parts[i][r])
				}
				schedules[i] = schedule
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, nil, err
		}
	}
	return orders, schedules, nil
}

// sampled is the number of parts' worth of requests in the sample by which requests are partitioned.
const sampled = 4

// partition divides requests into parts of at most size. A sample is agglomerated and its forest cut into units;
// every request joins the unit where it would share most, and units that stand together fill a part.
func partition(ctx context.Context, sets [][]int32, weight []int32, size int) ([][]int32, error) {
	n := len(sets)
	known := n
	if size < n/sampled {
		known = sampled * size
	}
	sample := make([][]int32, 0, known)
	for k := range known {
		sample = append(sample, sets[k*n/known])
	}
	p := reduce(sample, weight, make([]int32, len(weight)))
	f, err := agglomerate(ctx, p.weight, p.sets)
	if err != nil {
		return nil, err
	}
	units := cut(f, len(p.sets), max(1, len(sample)/(8*(n/size+1))))
	of := make([]int32, n)
	count := make([]int32, slices.Max(units)+1)
	var numbers []int32
	for i := range of {
		if i&1023 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		numbers = p.translate(numbers[:0], sets[i])
		slices.Sort(numbers) // equal sets find the same place
		place, _ := f.findSet(numbers, root, 0)
		of[i] = units[place]
		count[of[i]]++
	}
	return fill(of, count, size), nil
}

// cut numbers the units of a forest depth first, by node: subtrees of at most most leaves, or what is above them.
func cut(f *forest, leaves, most int) []int32 {
	units := make([]int32, len(f.nodes))
	below := make([]int, len(f.nodes))
	var count func(v int32) int
	count = func(v int32) int {
		if v != root && int(v) <= leaves {
			below[v] = 1
		}
		for c := f.nodes[v].kid; c != none; c = f.nodes[c].next {
			below[v] += count(c)
		}
		return below[v]
	}
	count(root)
	next := int32(0)
	var number func(v int32, whole bool)
	number = func(v int32, whole bool) {
		if !whole {
			next++
		}
		units[v] = next - 1
		whole = whole || below[v] <= most
		for c := f.nodes[v].kid; c != none; c = f.nodes[c].next {
			number(c, whole)
		}
	}
	number(root, false)
	return units
}

// fill packs consecutive units into parts; a unit of more than size is cut.
func fill(of, count []int32, size int) [][]int32 {
	begin := make([]int32, len(count)+1)
	for u, n := range count {
		begin[u+1] = begin[u] + n
	}
	sorted := make([]int32, len(of))
	at := slices.Clone(begin)
	for i, u := range of {
		sorted[at[u]] = int32(i)
		at[u]++
	}
	var parts [][]int32
	add := func(lo, hi int32) {
		if lo < hi {
			part := sorted[lo:hi:hi]
			slices.Sort(part)
			parts = append(parts, part)
		}
	}
	lo := int32(0)
	for u := range count {
		if int(begin[u+1]-lo) > size {
			add(lo, begin[u])
			lo = begin[u]
		}
		for int(begin[u+1]-lo) > size {
			add(lo, lo+int32(size))
			lo += int32(size)
		}
	}
	add(lo, int32(len(of)))
	return parts
}
