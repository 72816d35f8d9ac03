package settings

import (
	"fmt"
	"math"
	"strings"
)

// Price is what a model costs, in money per million tokens. Nothing is built in: providers change their prices.
type Price struct {
	// Model names the models; * stands for any text. The name with the most other characters counts.
	Model string `yaml:"model"`
	// Input is for prompt tokens that are computed. On an engine of one's own it is what computing them costs.
	Input float64 `yaml:"input"`
	// CacheRead is for those that come from the cache; 0: as the provider has it for all models, else nothing.
	CacheRead float64 `yaml:"cache_read"`
	// CacheWrite is for those that are written to it; 0: as CacheRead.
	CacheWrite float64 `yaml:"cache_write"`
	// CacheWrite1h is for those that are written to stay an hour; 0: as CacheRead.
	CacheWrite1h float64 `yaml:"cache_write_1h"`
	// Output is for generated tokens.
	Output float64 `yaml:"output"`
}

// checkPrices adds what is wrong with prices, and that they have no currency.
func (p *problems) checkPrices(c Config) {
	first := map[string]int{}
	for i, price := range c.Prices {
		field := fmt.Sprintf("prices[%d]", i)
		j, twice := first[price.Model]
		switch {
		case price.Model == "" || strings.TrimSpace(price.Model) != price.Model:
			p.add(field+".model", price.Model, "want the name of a model; * stands for any text")
		case twice:
			p.add(field+".model", price.Model, fmt.Sprintf("is that of prices[%d] too", j))
		default:
			first[price.Model] = i
		}
		for _, part := range []struct {
			name  string
			money float64
		}{
			{"input", price.Input},
			{"cache_read", price.CacheRead},
			{"cache_write", price.CacheWrite},
			{"cache_write_1h", price.CacheWrite1h},
			{"output", price.Output},
		} {
			p.want(part.money >= 0 && !math.IsInf(part.money, 1), field+"."+part.name, part.money, "want an amount of money per million tokens")
		}
		p.want(price.Input != 0, field+".input", price.Input, "is missing")
	}
	switch {
	case len(c.Prices) > 0 && c.Currency == "":
		p.add("currency", c.Currency, "want the currency of prices, such as USD")
	case len(c.Currency) > 16 || !presentable(c.Currency):
		p.add("currency", c.Currency, "want a code such as USD")
	}
}
