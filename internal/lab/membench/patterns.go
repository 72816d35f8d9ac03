package membench

// pattern is a fact in words, with slots, and questions about it. {v} is the slot that the questions ask for; {name} and
// {city} are filled from lists that all patterns share.
type pattern struct {
	topic string // no two facts of a user have the same
	kind  string
	fact  string
	// update replaces the fact with another value; empty: it is never replaced.
	update string
	values string // of {v}, separated by "|"
	// ask are questions in other words, separated by "|". The first has no content stem of the fact nor of the update.
	ask string
}

// Values of slots that several patterns share.
const (
	cities = "Lisbon|Utrecht|Graz|Porto|Gdansk|Bergen|Bilbao|Turin|Leeds|Tampere|Brno|Aarhus|Ghent|Cork|Leipzig|Nantes"
	names  = "Ines|Tomas|Farida|Oskar|Mei|Ravi|Lucia|Anders|Noor|Pavel|Greta|Samuel|Yuki|Hanna|Diego|Zofia|Malik|Elsa|Bruno|Nadia"
	months = "January|February|March|April|May|June|July|August|September|October|November|December"
	later  = "March 2027|June 2027|October 2027|January 2028|May 2028|September 2028|February 2029|November 2029"
	dates  = "the 4th of March|the 11th of May|the 19th of June|the 2nd of July|the 23rd of August|the 8th of October|the 27th of November|the 14th of December"
	days   = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
	hours  = "six in the morning|half past seven|eight o'clock|quarter past nine|ten in the morning|half past four in the afternoon|six in the evening|nine at night"
)

// patterns returns all patterns, kind by kind.
func patterns() []pattern {
	var all []pattern
	for _, part := range [][]pattern{
		familyPatterns, workPatterns, healthPatterns, travelPatterns, foodPatterns, likingPatterns,
		homePatterns, thingPatterns, petPatterns, moneyPatterns, planPatterns, leisurePatterns,
	} {
		all = append(all, part...)
	}
	return all
}
