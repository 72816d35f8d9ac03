package selfhosted

// Support says whether a server has a feature, and how that is known. The zero value is "not known".
type Support struct {
	Known bool   // Has was found out
	Has   bool   // false unless Known
	How   string // what told: a version, a schema, an answer
}

// Yes and No are findings, Unknown says why there is none.
func Yes(how string) Support { return Support{Known: true, Has: true, How: how} }

// No says that the feature is not there.
func No(how string) Support { return Support{Known: true, How: how} }

// Unknown says that nothing told.
func Unknown(how string) Support { return Support{How: how} }

// String returns "yes", "no" or "not known", with what told.
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
