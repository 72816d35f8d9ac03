package bleve

// NewBar lets tests draw without a terminal and with a clock of their own.
var NewBar = newBar
