package embed

import "io"

// Draw is what [Bar] draws on a terminal, for the tests.
func Draw(p Progress, w io.Writer) { p.draw(w) }
