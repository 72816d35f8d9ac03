package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/batch/internal/order"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// synthetic draws a table with columns of several kinds, and repeats some rows.
func synthetic(seed uint64) rows {
	const n = 3000
	rnd := rand.New(rand.NewPCG(seed, 7))
	out := make(rows, 0, n)
	for i := range n {
		if i > 10 && i%9 == 0 {
			out = append(out, out[rnd.IntN(i)])
			continue
		}
		city := rnd.IntN(40)
		out = append(out, []string{
			fmt.Sprintf("city: place %d\n", city), fmt.Sprintf("state: state %d\n", city%6), fmt.Sprintf("price: %.1f\n", rnd.Float64()*90),
			fmt.Sprintf("kind: %d\n", rnd.IntN(4)), fmt.Sprintf("id: %d\n", i),
		})
	}
	return out
}

// openFiles counts the files that this process has open, where the system says so.
func openFiles(t *testing.T) int {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not list open files")
	}
	return len(l)
}

func TestLargeTablesArePlannedInParts(t *testing.T) {
	s := synthetic(1)
	before := openFiles(t)
	for i, mode := range modes {
		if testing.Short() && i > 0 {
			break
		}
		dir := t.TempDir()
		p, err := order.New(context.Background(), s, order.Options{Columns: mode, Memory: 1, Dir: dir, Effort: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, s, mode, p)
		if openFiles(t) == before {
			t.Fatalf("%s: no temporary file, although the table is larger than the memory", mode)
		}
		again := requests(t, p)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 || openFiles(t) != before {
			t.Fatalf("%s: temporary files are left", mode)
		}
		q, err := order.New(context.Background(), s, order.Options{Columns: mode, Memory: 1, Dir: dir, Effort: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(requests(t, q)) != fmt.Sprint(again) {
			t.Fatalf("%s: plans differ", mode)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartsLoseLittle(t *testing.T) {
	testkit.NotUnderRace(t)
	s := synthetic(2)
	var saved []int64
	for _, memory := range []int{0, 1} {
		p, err := order.New(context.Background(), s, order.Options{Memory: memory, Dir: t.TempDir(), Effort: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		saved = append(saved, p.Totals.Saved)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if saved[1]*10 < saved[0]*8 {
		t.Fatalf("parts save %d bytes of %d", saved[1], saved[0])
	}
}

func TestErrorsLeaveNoTemporaryFiles(t *testing.T) {
	s := synthetic(3)
	broken := errors.New("line 3001: broken")
	for _, mode := range modes {
		before, dir := openFiles(t), t.TempDir()
		_, err := order.New(context.Background(), failing{s, broken}, order.Options{Columns: mode, Memory: 1, Dir: dir, Effort: -1})
		if !errors.Is(err, broken) {
			t.Fatalf("%s: error %v, want %v", mode, err, broken)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 || openFiles(t) != before {
			t.Fatalf("%s: temporary files are left", mode)
		}
	}
}

func TestMissingDirectoryIsAnError(t *testing.T) {
	_, err := order.New(context.Background(), synthetic(4), order.Options{Memory: 1, Dir: "/does/not/exist", Effort: -1})
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error %v, want %v", err, os.ErrNotExist)
	}
}

func TestEqualRowsOfAHugeGroupAreOneRequest(t *testing.T) {
	s := slices.Repeat(rows{{"a", "b"}, {"b", "a"}}, 5000)
	p, err := order.New(context.Background(), s, order.Options{Memory: 1, Dir: t.TempDir(), Effort: -1})
	if err != nil {
		t.Fatal(err)
	}
	if p.Totals.Requests != 2 {
		t.Fatalf("%d requests, want 2", p.Totals.Requests)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
