package state

// report logs what of the state could not be read.
func (s *State) report() {
	r := s.journal.Recovery()
	for _, d := range r.Damaged {
		s.log.Warn("state is damaged: what stood there is lost, all else is kept; conversations whose order is lost are planned again, "+
			"and what a lost note forgot may be known again", "file", d.Segment, "damages", d.Damages, "bytes", d.Bytes)
	}
	if len(r.OtherVersion) > 0 {
		s.log.Warn("state of another release is set aside and not used: conversations that run are planned again", "files", r.OtherVersion)
	}
	if r.TornBytes > 0 {
		s.log.Info("the last note of the state was half written when its process ended, and is cut off", "bytes", r.TornBytes)
	}
}

// Damages returns at how many places the state was damaged when it was opened.
func (s *State) Damages() int { return s.journal.Recovery().Damages }
