package state

// Failed returns how many notes could not be written.
func (s *State) Failed() int { return int(s.failed.Load()) }
