package batch_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/ragpilot/ragpilot/batch"
	"github.com/ragpilot/ragpilot/batch/table"
)

func ExampleNewPlan() {
	const orders = `number,product,city
1,a long name of a product,Lima
2,another name,Oslo
3,a long name of a product,Rome
`
	ctx := context.Background()
	t, err := table.Open(ctx, "-", table.Options{Format: table.CSV, Stdin: strings.NewReader(orders)})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	p, err := batch.NewPlan(ctx, t, batch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	for r, err := range p.Requests() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Row, r.Columns[0])
	}
	// Output:
	// 0 product
	// 2 product
	// 1 product
}
