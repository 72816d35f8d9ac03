package promptcache

import (
	"cmp"
	"slices"
	"strings"
)

// Price is in money per million tokens. Input must be given. Other fields at 0 follow from it where the provider has
// one ratio for all models: Anthropic's CacheWrite, CacheWrite1h and CacheRead are 1.25, 2 and 0.1 times Input,
// MiniMax's CacheWrite and CacheRead 1.25 and 0.1 times, OpenAI's CacheWrite 1.25 times. A price that is needed and
// neither given nor follows makes an amount unknown.
type Price struct {
	Input, CacheWrite, CacheWrite1h, CacheRead, Output float64
}

// rate is the price of the models that a pattern matches.
type rate struct {
	pattern string
	Price
}

// ratesOf sorts prices by how closely their patterns describe a model.
func ratesOf(prices map[string]Price, ratio Price) []rate {
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
	return rates
}

// rate finds the price of a model.
func (p *Provider) rate(model string) (Price, bool) {
	for _, r := range p.rates {
		if match(r.pattern, model) {
			return r.Price, true
		}
	}
	return Price{}, false
}

// match tells whether a name is as a pattern has it, in which * stands for any text.
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

// Saved returns what the same prompt would have cost without a cache minus what it did cost: below 0 if more was
// written than read. ok is false if a needed price or number is unknown.
func (p *Provider) Saved(model string, u Usage) (money float64, ok bool) {
	price, ok := p.rate(model)
	if !ok {
		return 0, false
	}
	short, long, ok := p.written(u)
	if !ok {
		return 0, false
	}
	var b bill
	b.add(u.Read, price.CacheRead, price.Input)
	b.add(short, price.CacheWrite, price.Input)
	b.add(long, price.CacheWrite1h, price.Input)
	return b.saved / 1e6, !b.unknown
}

// Cost returns what a request has cost, answer included. ok is false if a needed price or number is unknown.
func (p *Provider) Cost(model string, u Usage) (money float64, ok bool) {
	price, ok := p.rate(model)
	if !ok || u.Prompt < 0 || u.Output < 0 {
		return 0, false
	}
	short, long, ok := p.written(u)
	if !ok {
		return 0, false
	}
	plain := u.Prompt
	if p.protocol == openAI {
		plain -= u.Read + short + long
	}
	var b bill
	b.add(max(plain, 0), price.Input, 0)
	b.add(u.Read, price.CacheRead, 0)
	b.add(short, price.CacheWrite, 0)
	b.add(long, price.CacheWrite1h, 0)
	b.add(u.Output, price.Output, 0)
	return -b.saved / 1e6, !b.unknown
}

// written returns the written tokens by how long they stay. ok is false if the cache's part is unknown.
func (p *Provider) written(u Usage) (short, long int, ok bool) {
	if u.Read < 0 || u.Written < 0 && p.protocol == messages {
		return 0, 0, false
	}
	n := max(u.Written, 0)
	switch {
	case p.protocol == openAI:
		return n, 0, true
	case u.Written1h > 0:
		long = min(u.Written1h, n)
	case p.extended:
		long = n
	}
	return n - long, long, true
}

// bill adds up, in millionths of the currency.
type bill struct {
	saved   float64
	unknown bool
}

func (b *bill) add(tokens int, price, instead float64) {
	if tokens > 0 && price == 0 {
		b.unknown = true
	}
	b.saved += float64(tokens) * (instead - price)
}
