package dispatch

// Spend says what all processes together have spent, so that Config.MaxCost bounds that. Less than is known already changes nothing.
func (d *Dispatcher) Spend(total float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.purse.spent = max(d.purse.spent, total)
}
