package workload

import (
	"strings"
	"sync"

	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// Sizes of the made-up language.
const (
	commonWords = 4096
	topicWords  = 24
	// topicPercent of a block's words are its topic's.
	topicPercent = 25
)

const (
	onsets = "bdfghjklmnprstvwz"
	vowels = "aeiou"
	codas  = "lmnrst"
)

// commonness is the Zipf law of common words.
var commonness = sync.OnceValue(func() zipf { return newZipf(commonWords, 1) })

// language makes texts of made-up words. Common words are short and follow a Zipf law; each topic has words of its own.
type language struct {
	seed   uint64
	common []string
	often  zipf
	topics [][]string // made when needed
}

func newLanguage(seed uint64, topics int) *language {
	l := &language{seed: seed, often: commonness(), topics: make([][]string, topics)}
	r := newRandom(seed, forVocabulary, 0)
	for rank := range commonWords {
		syllables := 1
		switch {
		case rank >= 1024:
			syllables = 3
		case rank >= 48:
			syllables = 2
		}
		l.common = append(l.common, word(r, syllables))
	}
	return l
}

func word(r random, syllables int) string {
	b := make([]byte, 0, 3*syllables)
	for range syllables {
		b = append(b, onsets[r.Below(len(onsets))], vowels[r.Below(len(vowels))])
		if r.Below(3) == 0 {
			b = append(b, codas[r.Below(len(codas))])
		}
	}
	return string(b)
}

func (l *language) topic(topic int) []string {
	if l.topics[topic] == nil {
		r := newRandom(l.seed, forTopicWords, topic)
		for range topicWords {
			l.topics[topic] = append(l.topics[topic], word(r, 3))
		}
	}
	return l.topics[topic]
}

func (l *language) word(r random, topic int) string {
	if r.Below(100) < topicPercent {
		return l.topic(topic)[r.Below(topicWords)]
	}
	return l.common[l.often.draw(r, commonWords)]
}

// text returns sentences of exactly n tokens.
func (l *language) text(r random, topic, n int) string {
	var b strings.Builder
	sentence := 0 // words left of it
	for n > 0 {
		start := sentence == 0
		if start {
			sentence = 6 + r.Below(9)
		}
		w := l.word(r, topic)
		for tokens.Count(w) > n {
			w = l.common[r.Below(48)] // one syllable, one token
		}
		n -= tokens.Count(w)
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if start {
			b.WriteByte(w[0] - 'a' + 'A')
			w = w[1:]
		}
		b.WriteString(w)
		if sentence--; n == 1 || sentence == 0 && n > 0 {
			b.WriteByte('.')
			n--
			sentence = 0
		}
	}
	return b.String()
}

// question returns the words of a request.
func (l *language) question(r random, topic int) string {
	n := 5 + r.Below(8)
	w := make([]string, n)
	for i := range w {
		w[i] = l.word(r, topic)
	}
	w[n-1] = l.topic(topic)[r.Below(topicWords)] // what it is about
	return string(w[0][0]-'a'+'A') + strings.Join(w, " ")[1:] + "?"
}

// length draws the number of tokens of a text of this mean: a sum of three exponentially distributed numbers, which
// gives a standard deviation of 0.58 of the mean, cut off at an eighth and at six times the mean.
func length(r random, mean int) int {
	const third = 992_400_327 // ln 2 / 3 in fixed point
	sum := r.exponential() + r.exponential() + r.exponential()
	n := int((sum >> 16) * (third >> 16) * uint64(mean) >> 32)
	return min(max(n, 1, mean/8), 6*mean)
}
