package membench

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

//go:embed texts.json
var textsFile []byte

// textPool is what generated users say. Slots in braces are filled when a text is drawn: {v} with a value of the pattern, {name},
// {city} and the like from the lists that all texts share.
type textPool struct {
	Lists    map[string][]string `json:"lists"`
	Patterns []pattern           `json:"patterns"`
	// AboutOthers and AboutNobody are statements that resemble facts. No question asks for them.
	AboutOthers []string `json:"about_others"`
	AboutNobody []string `json:"about_nobody"`
	// SmallTalk needs no memory, and Replies are what an assistant says to it.
	SmallTalk []string `json:"small_talk"`
	Replies   []string `json:"replies"`
	// GeneralQuestions and Greetings need no memory either; each comes with its answer.
	GeneralQuestions [][2]string `json:"general_questions"`
	Greetings        [][2]string `json:"greetings"`
	// Answers say the value that was asked for.
	Answers []string `json:"answers"`
}

// pattern is a fact in words, with slots, and questions about it.
type pattern struct {
	Topic string `json:"topic"` // no two facts of a user have the same
	Fact  string `json:"fact"`
	// Update replaces the fact with another value; empty: it is never replaced.
	Update string   `json:"update"`
	Values []string `json:"values"` // of {v}; in the file {days} stands for the list of that name
	// Questions are in other words. The first has no content stem of the fact nor of the update.
	Questions []string `json:"questions"`
}

// texts returns the pool that is built in.
var texts = sync.OnceValue(func() *textPool {
	pool := &textPool{}
	if err := strictjson.Decode(textsFile, pool); err != nil {
		panic(err) // the file is a part of the program
	}
	for i := range pool.Patterns {
		p := &pool.Patterns[i]
		if list, ok := pool.Lists[strings.Trim(p.Values[0], "{}")]; ok && len(p.Values) == 1 {
			p.Values = slices.Clone(list)
		}
	}
	return pool
})
