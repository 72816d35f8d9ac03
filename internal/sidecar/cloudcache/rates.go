package cloudcache

import (
	"cmp"
	"slices"
	"strings"
)

// Rates find the price of a model. The zero Rates know none. Safe for concurrent use: they do not change.
type Rates struct{ list []rate }

// rate is the price of the models that a pattern matches.
type rate struct {
	pattern string
	Price
}

// NewRates returns prices, by model as in [Options], as they are: nothing is derived. It is for engines of one's own.
func NewRates(prices map[string]Price) Rates { return newRates(prices, Price{}) }

// Of returns the price of a model.
func (r Rates) Of(model string) (Price, bool) {
	for _, one := range r.list {
		if match(one.pattern, model) {
			return one.Price, true
		}
	}
	return Price{}, false
}

// Prompt returns the cost of a prompt with so many tokens computed and so many read from the cache. Reading
// costs nothing unless a price is given.
func (p Price) Prompt(computed, read int) float64 {
	return (float64(computed)*p.Input + float64(read)*p.CacheRead) / 1e6
}

// newRates sorts prices by how closely their patterns describe a model.
func newRates(prices map[string]Price, ratio Price) Rates {
	rates := make([]rate, 0, len(prices))
	for name, p := range prices {
		for _, part := range []struct {
			of    *float64
			ratio float64
		}{{&p.CacheWrite, ratio.CacheWrite}, {&p.CacheWrite1h, ratio.CacheWrite1h}, {&p.CacheRead, ratio.CacheRead}} {
			if *part.of == 0 {
				*part.of = p.Input * part.ratio
			}
		}
		rates = append(rates, rate{name, p})
	}
	letters := func(r rate) int { return len(r.pattern) - strings.Count(r.pattern, "*") }
	slices.SortFunc(rates, func(a, b rate) int {
		return cmp.Or(letters(b)-letters(a), len(a.pattern)-len(b.pattern), strings.Compare(a.pattern, b.pattern))
	})
	return Rates{rates}
}

// match reports whether a name is as a pattern has it, in which * stands for any text.
func match(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == name
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = rest
	}
	return true
}
