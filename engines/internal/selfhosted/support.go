package selfhosted

// Support says whether the server has a feature: Has, how that is Known, and from what. The zero value is "not known".
type Support struct {
	Known bool   // Has was found out
	Has   bool   // false unless Known
	How   string // from what: the server's version, its schema, its settings, one of its answers
}

// Yes is the finding that the feature is there.
func Yes(how string) Support { return Support{Known: true, Has: true, How: how} }

// No is the finding that the feature is not there.
func No(how string) Support { return Support{Known: true, How: how} }

// Unknown is no finding, for a reason.
func Unknown(how string) Support { return Support{How: how} }

// String returns "yes", "no" or "not known", with its source.
func (s Support) String() string {
	word := "not known"
	switch {
	case s.Has:
		word = "yes"
	case s.Known:
		word = "no"
	}
	if s.How == "" {
		return word
	}
	return word + " (" + s.How + ")"
}

// First returns the first finding, or the first reason why there is none.
func First(found ...Support) Support {
	for _, s := range found {
		if s.Known {
			return s
		}
	}
	for _, s := range found {
		if s.How != "" {
			return s
		}
	}
	return Support{}
}
