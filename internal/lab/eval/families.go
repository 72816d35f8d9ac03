package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// family is a kind of things that chunks are about; {e} stands for the thing.
type family struct {
	name      string
	entity    func(*random) string
	intro     []string
	relations []relation
	filler    []string
}

// relation is what can be asked about a thing. All have the same form, so that the answer is found by reading one sentence.
type relation struct {
	noun  string
	value func(*random) string
	who   bool // the value is a person
}

// lead is the fact's sentence up to the value.
func (r *relation) lead(entity string) string { return "The " + r.noun + " of " + entity + " is" }

func (r *relation) fact(entity, value string) string { return r.lead(entity) + " " + value + "." }

func (r *relation) question(entity string) string {
	if r.who {
		return "Who is the " + r.noun + " of " + entity + "?"
	}
	return "What is the " + r.noun + " of " + entity + "?"
}

// about puts a thing's name into a sentence and begins it with a capital.
func about(template, entity string) string {
	s := strings.ReplaceAll(template, "{e}", entity)
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

func person(r *random) string  { return pick(r, givenNames) + " " + pick(r, surnames) }
func ship(r *random) string    { return "the " + pick(r, adjectives) + " " + capital(pick(r, beasts)) }
func village(r *random) string { return pick(r, placeHeads) + pick(r, placeTails) }
func house(r *random) string   { return pick(r, surnames) + " " + pick(r, houseKinds) }
func team(r *random) string    { return "the " + pick(r, cities) + " " + capital(pick(r, beasts)) }
func pet(r *random) string     { return pick(r, givenNames) + " the " + pick(r, beasts) }
func course(r *random) string  { return "the " + pick(r, trades) + " course of " + pick(r, surnames) }
func city(r *random) string    { return pick(r, cities) }
func colour(r *random) string  { return pick(r, colours) }
func goods(r *random) string   { return pick(r, wares) }
func trade(r *random) string   { return pick(r, trades) }

func parcel(r *random) string {
	return "parcel " + pick(r, letters) + pick(r, letters) + "-" + number(r)[1:]
}

// number returns four digits.
func number(r *random) string {
	n := 1000 + r.below(9000)
	return string([]byte{byte('0' + n/1000), byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)})
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// families are all templates. Every chunk of a family has all of its relations, in an order of its own.
var families = []family{
	{
		"staff", person,
		[]string{"{e} joined the company after a long search.", "This page is about {e}, who works in the main building.", "{e} is known to everybody on the second floor."},
		[]relation{{"locker number", number, false}, {"home town", city, false}, {"bicycle colour", colour, false}, {"former job", trade, false}, {"assistant", person, true}},
		[]string{"The contract was renewed in spring.", "Most meetings take place before noon.", "Letters go to the front desk.", "The office has two windows and a plant."},
	},
	{
		"ship", ship,
		[]string{"Among the boats in the register is {e}.", "The harbour keeps a file on {e}.", "{e} was built in a small yard."},
		[]relation{{"home port", city, false}, {"captain", person, true}, {"hull colour", colour, false}, {"usual cargo", goods, false}, {"register number", number, false}},
		[]string{"Repairs are done in winter.", "The crew sleeps below deck.", "The weather decides when it sails.", "A bell rings at every change of watch."},
	},
	{
		"village", village,
		[]string{"{e} lies in a quiet valley.", "Few travellers stop in {e}.", "The road to {e} follows the river."},
		[]relation{{"mayor", person, true}, {"main product", goods, false}, {"population", number, false}, {"flag colour", colour, false}, {"twin town", city, false}},
		[]string{"The bus stops twice a day.", "There is a bench under the old tree.", "The school closed some years ago.", "In summer the fields are dry."},
	},
	{
		"house", house,
		[]string{"Visitors like {e} for its garden.", "{e} stands near the old bridge.", "The guide has one page about {e}."},
		[]relation{{"owner", person, true}, {"door colour", colour, false}, {"phone number", number, false}, {"sister house", city, false}, {"cook's favourite", goods, false}},
		[]string{"The roof was mended last year.", "Tickets are sold at the gate.", "There are three rooms upstairs.", "Dogs must wait outside."},
	},
	{
		"team", team,
		[]string{"{e} play in the second league.", "The season began well for {e}.", "Reporters write little about {e}."},
		[]relation{{"coach", person, true}, {"shirt colour", colour, false}, {"number of members", number, false}, {"prize", goods, false}, {"coach's first job", trade, false}},
		[]string{"Training is on Tuesday and Friday.", "The bus was late again.", "The grass was wet and the match slow.", "Half of the players are new."},
	},
	{
		"parcel", parcel,
		[]string{"The depot received {e} in the morning.", "A clerk wrote a note about {e}.", "On the second shelf is {e}."},
		[]relation{{"sender", person, true}, {"destination", city, false}, {"label colour", colour, false}, {"content", goods, false}, {"customs code", number, false}},
		[]string{"It must be kept dry.", "The van leaves in the afternoon.", "Nobody has signed for it yet.", "The scales were checked last week."},
	},
	{
		"pet", pet,
		[]string{"{e} lives in the animal shelter.", "The cleaners like {e} best.", "Children ask for {e} at the gate."},
		[]relation{{"keeper", person, true}, {"birthplace", city, false}, {"favourite food", goods, false}, {"collar colour", colour, false}, {"chip number", number, false}},
		[]string{"It sleeps most of the day.", "The fence was painted in May.", "Visits end at five.", "The vet comes every month."},
	},
	{
		"course", course,
		[]string{"Students praise {e}.", "A leaflet describes {e}.", "In autumn begins {e}."},
		[]relation{{"examiner", person, true}, {"room number", number, false}, {"venue", city, false}, {"folder colour", colour, false}, {"entrance gift", goods, false}},
		[]string{"It lasts ten weeks.", "There is a waiting list.", "The last lesson is a party.", "Books can be borrowed."},
	},
}
