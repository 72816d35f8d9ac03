package order_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// TestCloseToTheBound compares what plans compute with a bound that no plan is below (testdata/bound.py). RAGPILOT_ORDER_TABLES names a
// folder that the tables are written to, to find the bound again.
func TestCloseToTheBound(t *testing.T) {
	testkit.NotUnderRace(t)
	const n = 100
	effort := 20_000 * n
	if os.Getenv("RAGPILOT_ORDER_GGR") != "" {
		effort = 0 // the usual one
	}
	for name, bound := range map[string]float64{
		"decimals": 2815, "integers": 4374, "dates": 4525, "hierarchy": 5343, "zipf": 6603, "texts": 11353,
	} {
		var f family
		for _, one := range families {
			if one.name == name {
				f = one
			}
		}
		rnd := rand.New(rand.NewPCG(n, 11))
		var head []string
		var records [][]string
		labelled := make(rows, n)
		for i := range n {
			record := f.row(rnd, i, n)
			records = append(records, record)
			for c, v := range record {
				if i == 0 {
					head = append(head, fmt.Sprint("column", c))
				}
				labelled[i] = append(labelled[i], fmt.Sprintf("column%d: %s\n", c, v))
			}
		}
		if dir := os.Getenv("RAGPILOT_ORDER_TABLES"); dir != "" {
			file, err := os.Create(filepath.Join(dir, name+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if err := csv.NewWriter(file).WriteAll(append([][]string{head}, records...)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := order.New(context.Background(), labelled, order.Options{Effort: effort})
		if err != nil {
			t.Fatal(err)
		}
		computed := float64(p.Totals.Bytes - p.Totals.Saved)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-10s %.0f bytes are computed, and at least %.0f by any plan: %.4f times as many", name, computed, bound, computed/bound)
		if computed < bound || computed > 1.01*bound {
			t.Errorf("%s: %.0f bytes are computed, want %.0f to %.0f", name, computed, bound, 1.01*bound)
		}
	}
}
