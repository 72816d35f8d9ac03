package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/eval"
)

// evalProgress is the time between two lines of progress.
const evalProgress = 10 * time.Second

// evalMeter prints how far a run is. Not safe for concurrent use.
type evalMeter struct {
	out              io.Writer
	rows, old, done  int
	exact            int // rows that plain has right
	began, lastPrint time.Time
}

func newEvalMeter(out io.Writer, rows int, done []eval.Outcome) *evalMeter {
	m := &evalMeter{out: out, rows: rows, began: time.Now()}
	for i := range done {
		m.count(&done[i])
	}
	m.old = m.done
	if m.old > 0 {
		fmt.Fprintf(out, "%d of %d rows are done\n", m.old, rows)
	}
	m.lastPrint = m.began
	return m
}

func (m *evalMeter) count(o *eval.Outcome) {
	m.done++
	if o.Arms[0].Exact {
		m.exact++
	}
}

func (m *evalMeter) add(o *eval.Outcome) {
	m.count(o)
	now := time.Now()
	if now.Sub(m.lastPrint) < evalProgress && m.done < m.rows {
		return
	}
	m.lastPrint = now
	each := now.Sub(m.began) / time.Duration(m.done-m.old)
	left := (each * time.Duration(m.rows-m.done)).Round(time.Second)
	fmt.Fprintf(m.out, "%d of %d rows, %s exact match %.1f %%, %v a row, %v left\n",
		m.done, m.rows, eval.Plain, 100*float64(m.exact)/float64(m.done), each.Round(time.Millisecond), left)
}
