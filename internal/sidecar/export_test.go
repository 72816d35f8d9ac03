package sidecar

// HoldsBack reports whether the engine is known to have slots for which prompts are held.
func (a *API) HoldsBack() bool { return a.slots != nil && a.slots.count() > 1 }
