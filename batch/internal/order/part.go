package order

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/ragpilot/ragpilot/internal/prompt/offline"
)

// part is a set of unlike rows that is planned as one whole.
type part struct {
	text [][]byte  // by unit
	sets [][]int32 // by row: its units as given
}

// smallCells is the number of cells up to which the search starts from several orders.
const smallCells = 60_000

// plan returns the units of each row in prompt order. alone: on one core.
func (p *part) plan(ctx context.Context, effort int, alone bool) ([][]int32, error) {
	starts, err := p.starts(ctx, alone)
	if err != nil {
		return nil, err
	}
	cells := 0
	for _, s := range p.sets {
		cells += len(s)
	}
	most := 1
	if !alone && effort >= 0 && cells <= smallCells {
		most = 4
		effort /= 2
	}
	starts = starts[:min(most, len(starts))]
	errs := make([]error, len(starts))
	jobs := make(chan int, len(starts))
	for i := range starts {
		jobs <- i
	}
	close(jobs)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(starts)) {
		wg.Go(func() {
			for i := range jobs {
				errs[i] = newSearch(ctx, starts[i], uint64(i), effort).run()
			}
		})
	}
	wg.Wait()
	best := slices.MinFunc(starts, func(a, b *trie) int { return cmp.Compare(a.cost, b.cost) })
	return best.order, errors.Join(errs...)
}

// starts returns the tries of several orders, the smallest first.
func (p *part) starts(ctx context.Context, alone bool) ([]*trie, error) {
	makers := []func() ([][]int32, error){
		func() ([][]int32, error) { return p.merge(ctx) },
		func() ([][]int32, error) { return cloneOrders(p.sets), nil },
	}
	if columns, ok := p.columns(); ok && columns > 1 {
		makers = append(makers, func() ([][]int32, error) { return p.fixed(columns), nil })
		for _, o := range greedies {
			makers = append(makers, func() ([][]int32, error) { return newGreedy(p, columns, o).orders(columns), nil })
		}
	}
	if alone && len(makers) > 3 {
		makers = makers[:3]
	}
	tries, errs := make([]*trie, len(makers)), make([]error, len(makers))
	jobs := make(chan int, len(makers))
	for i := range makers {
		jobs <- i
	}
	close(jobs)
	workers := min(runtime.GOMAXPROCS(0), len(makers))
	if alone {
		workers = 1
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range jobs {
				orders, err := makers[i]()
				if errs[i] = err; err == nil {
					tries[i] = newTrie(p.text, orders)
					tries[i].fill()
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(tries, func(a, b *trie) int { return cmp.Compare(a.cost, b.cost) })
	return tries, nil
}

// fill inserts all rows.
func (t *trie) fill() {
	for r := range t.order {
		t.insert(int32(r))
	}
}

// columns is the number of units of every row, if all have the same.
func (p *part) columns() (int, bool) {
	for _, s := range p.sets {
		if len(s) != len(p.sets[0]) {
			return 0, false
		}
	}
	return len(p.sets[0]), true
}

// merge orders whole units. A repeated unit of a row is a block of its own.
func (p *part) merge(ctx context.Context) ([][]int32, error) {
	type copyOf struct{ unit, n int32 }
	number := map[copyOf]int32{}
	weight := make([]int32, len(p.text), len(p.text)+16)
	for u, text := range p.text {
		weight[u] = int32(len(text))
	}
	sets := make([][]int32, len(p.sets))
	seen := make([]int32, len(p.text)) // 1 + the last row that holds it
	for r, units := range p.sets {
		set := slices.Clone(units)
		for i, u := range units {
			if seen[u] != int32(r+1) {
				seen[u] = int32(r + 1)
				continue
			}
			k := copyOf{u, 0}
			for _, v := range units[:i] {
				if v == u {
					k.n++
				}
			}
			d, ok := number[k]
			if !ok {
				d = int32(len(weight))
				number[k] = d
				weight = append(weight, weight[u])
			}
			set[i] = d
		}
		sets[r] = set
	}
	res, err := offline.Plan(ctx, sets, weight, offline.Options{})
	if err != nil {
		return nil, err
	}
	orders := make([][]int32, len(p.sets))
	for r, order := range res.Orders {
		orders[r] = make([]int32, len(order))
		for i, at := range order {
			orders[r][i] = p.sets[r][at]
		}
	}
	p.tails(orders, res.Schedule)
	return orders, nil
}

// tails orders the units that no other row shares: rows that leave the trie of whole units at the same place go on with the same column,
// the one whose texts begin alike most.
func (p *part) tails(orders [][]int32, schedule []int) {
	columns, ok := p.columns()
	if !ok || columns < 2 {
		return
	}
	rank := rankTexts(p.text)
	leave := make([]int, len(schedule)) // units shared with a neighbour
	for i := 1; i < len(schedule); i++ {
		n := 0
		a, b := orders[schedule[i-1]], orders[schedule[i]]
		for n < columns && a[n] == b[n] {
			n++
		}
		leave[i-1] = max(leave[i-1], n)
		leave[i] = n
	}
	groups := map[string][]int{}
	var keys []string
	var key []byte
	for i, r := range schedule {
		key = key[:0]
		for _, u := range orders[r][:leave[i]] {
			key = append(key, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
		}
		if _, ok := groups[string(key)]; !ok {
			keys = append(keys, string(key))
		}
		groups[string(key)] = append(groups[string(key)], r)
	}
	for _, k := range keys {
		if rows := groups[k]; len(rows) > 1 {
			p.tail(orders, rows, len(k)/4, rank)
		}
	}
}

func (p *part) tail(orders [][]int32, rows []int, from int, rank []int32) {
	columns := len(p.sets[0])
	type gain struct{ column, bytes int }
	gains := make([]gain, 0, columns)
	units := make([]int32, 0, len(rows))
	for c := range columns {
		units = units[:0]
		for _, r := range rows {
			if slices.Contains(orders[r][from:], p.sets[r][c]) {
				units = append(units, p.sets[r][c])
			}
		}
		slices.SortFunc(units, func(a, b int32) int { return cmp.Compare(rank[a], rank[b]) })
		sum := 0
		for i := 1; i < len(units); i++ {
			sum += common(p.text[units[i-1]], p.text[units[i]])
		}
		gains = append(gains, gain{c, sum})
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, r := range rows {
		at := from
		for _, g := range gains {
			u := p.sets[r][g.column]
			if k := slices.Index(orders[r][at:], u); k >= 0 {
				copy(orders[r][at+1:], orders[r][at:at+k])
				orders[r][at] = u
				at++
			}
		}
	}
}
