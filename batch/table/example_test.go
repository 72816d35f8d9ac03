package table_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/ragpilot/ragpilot/batch/table"
)

func Example() {
	ctx := context.Background()
	t, err := table.Open(ctx, "-", table.Options{Format: table.CSV, Stdin: strings.NewReader("city,note\nLima,\"by\nthe sea\"\nOslo,\n")})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	summary, err := t.Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Rows, "rows of", t.Columns)
	for row, err := range t.Rows(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %q\n", row.Place(), row.Cells)
	}
	// Output:
	// 2 rows of [city note]
	// line 2: ["Lima" "by\nthe sea"]
	// line 4: ["Oslo" ""]
}
