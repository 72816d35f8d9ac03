package eval

// What tests need of the inside.
var (
	Tango      = tango
	TangoScore = score
	Judged     = judge
)
