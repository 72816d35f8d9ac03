package eval

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
	"github.com/ragpilot/ragpilot/internal/lab/draw"
)

//go:embed vocabulary.json
var vocabularyFile []byte

// vocabulary is what generated rows are written with.
type vocabulary struct {
	// Names and values of things. The lists are broad, so that an answer cannot be guessed.
	GivenNames, Surnames, Cities, Colours, Wares, Trades, Beasts, Adjectives, PlaceHeads, PlaceTails, HouseKinds []string
	// The connectivity corpus.
	Domains, SponsorKinds, Roles, Departments, Hobbies, Goals []string
	// The parts of sentences that state no fact. They have no digits and none of the words that rows ask for.
	Subjects, Predicates, Circumstances []string
	// Families are all kinds of chunks. Every chunk of a family has all of its relations, in an order of its own.
	Families []family
}

// words returns the vocabulary that is built in.
var words = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{}
	if err := strictjson.Decode(vocabularyFile, v); err != nil {
		panic(err) // the file is a part of the program
	}
	return v
})

// listWords are the words that lists consist of.
var listWords = sync.OnceValue(func() []string { return slices.Concat(words().Wares, words().Trades, words().Beasts) })

// family is a kind of things that chunks are about; {e} stands for the thing.
type family struct {
	Name      string
	Entity    string // a key of names
	Intro     []string
	Relations []relation
	Filler    []string
}

// relation is what can be asked about a thing. All have the same form, so that the answer is found by reading one sentence.
type relation struct {
	Noun  string
	Value string // a key of names
}

// lead is the fact's sentence up to the value.
func (r *relation) lead(entity string) string { return "The " + r.Noun + " of " + entity + " is" }

func (r *relation) fact(entity, value string) string { return r.lead(entity) + " " + value + "." }

func (r *relation) question(entity string) string {
	if r.Value == "person" {
		return "Who is the " + r.Noun + " of " + entity + "?"
	}
	return "What is the " + r.Noun + " of " + entity + "?"
}

// about puts a thing's name into a sentence and begins it with a capital.
func about(template, entity string) string {
	s := strings.ReplaceAll(template, "{e}", entity)
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// names draw the names of things and the values of relations.
var names = map[string]func(*draw.Random) string{
	"person": person, "ship": ship, "number": number,
	"village": func(r *draw.Random) string {
		return draw.Pick(r, words().PlaceHeads) + draw.Pick(r, words().PlaceTails)
	},
	"house": func(r *draw.Random) string {
		return draw.Pick(r, words().Surnames) + " " + draw.Pick(r, words().HouseKinds)
	},
	"team": func(r *draw.Random) string {
		return "the " + draw.Pick(r, words().Cities) + " " + capital(draw.Pick(r, words().Beasts))
	},
	"pet": func(r *draw.Random) string {
		return draw.Pick(r, words().GivenNames) + " the " + draw.Pick(r, words().Beasts)
	},
	"course": func(r *draw.Random) string {
		return "the " + draw.Pick(r, words().Trades) + " course of " + draw.Pick(r, words().Surnames)
	},
	"parcel": func(r *draw.Random) string {
		return "parcel " + draw.Pick(r, letters) + draw.Pick(r, letters) + "-" + number(r)[1:]
	},
	"city":   func(r *draw.Random) string { return draw.Pick(r, words().Cities) },
	"colour": func(r *draw.Random) string { return draw.Pick(r, words().Colours) },
	"goods":  func(r *draw.Random) string { return draw.Pick(r, words().Wares) },
	"trade":  func(r *draw.Random) string { return draw.Pick(r, words().Trades) },
}

func person(r *draw.Random) string {
	return draw.Pick(r, words().GivenNames) + " " + draw.Pick(r, words().Surnames)
}

func ship(r *draw.Random) string {
	return "the " + draw.Pick(r, words().Adjectives) + " " + capital(draw.Pick(r, words().Beasts))
}

var letters = strings.Split("ABCDEFGHJKLMNPQRSTUVWXYZ", "")

// number returns four digits.
func number(r *draw.Random) string { return strconv.Itoa(1000 + r.Below(9000)) }

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
