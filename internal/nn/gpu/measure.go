package gpu

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Measurements are what the operations of a card take.
type Measurements struct {
	Card   string // model and memory
	Driver string
	// Emulated: no card computed. The times are of the emulated driver.
	Emulated bool
	Rows     []Measurement
}

// Measurement is one operation beside what bounds it, in the same run: the card's own clock, after a warm-up, over buffers that no cache of
// the card holds.
type Measurement struct {
	Operation string
	Shape     string
	Bytes     int64         // that are read and written, or go between the card and the host; 0: arithmetic is the bound
	Flops     int64         // multiplications and additions; 0: memory is the bound
	Median    time.Duration // of a launch
	Min       time.Duration
	Bound     time.Duration // that one copy that moves as many bytes took, or the arithmetic takes at the card's peak
	Goal      float64       // least Efficiency that is wanted; 0: none
	Right     bool          // results are those of the CPU
	Sum       string        // of the results' bits
}

// Efficiency is the part of what is possible that was reached.
func (m Measurement) Efficiency() float64 {
	if m.Median <= 0 {
		return 0
	}
	return float64(m.Bound) / float64(m.Median)
}

// verdict says whether a measurement is as it should be.
func (m Measurement) verdict() string {
	switch {
	case !m.Right:
		return "**wrong results**"
	case m.Goal == 0:
		return "no goal"
	case m.Efficiency() >= m.Goal:
		return "reached"
	}
	return "**not reached**"
}

// Wrong names the operations whose results are wrong.
func (m Measurements) Wrong() []string {
	var names []string
	for _, r := range m.Rows {
		if !r.Right {
			names = append(names, r.Operation)
		}
	}
	return names
}

// WriteTable writes measurements as a table in Markdown.
func (m Measurements) WriteTable(w io.Writer) error {
	var b strings.Builder
	if m.Emulated {
		b.WriteString("These figures are of the emulated driver. They say nothing about a card.\n\n")
	}
	fmt.Fprintf(&b, "Card: %s. Driver: %s.\n\n", m.Card, m.Driver)
	b.WriteString("| operation | shape | MB | GFLOP | median µs | least µs | of the bound | goal | result | sum |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range m.Rows {
		goal := "–"
		if r.Goal > 0 {
			goal = fmt.Sprintf("%.2f", r.Goal)
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f | %.2f | %.1f | %.1f | %.2f | %s | %s | `%s` |\n", r.Operation, r.Shape, float64(r.Bytes)/1e6,
			float64(r.Flops)/1e9, micros(r.Median), micros(r.Min), r.Efficiency(), goal, r.verdict(), r.Sum)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
