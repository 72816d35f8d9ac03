package membench

import (
	"fmt"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/registry"
)

// stems finds the content stems of a text as bleve's English analyzer does: words without stop words, Porter's stems.
type stems struct{ analyzer analysis.Analyzer }

func newStems() (*stems, error) {
	analyzer, err := registry.NewCache().AnalyzerNamed(en.AnalyzerName)
	if err != nil {
		return nil, fmt.Errorf("analyzer %q: %w", en.AnalyzerName, err)
	}
	return &stems{analyzer}, nil
}

func (s *stems) of(text string) map[string]bool {
	found := map[string]bool{}
	for _, token := range s.analyzer.Analyze([]byte(text)) {
		found[string(token.Term)] = true
	}
	return found
}

// shared returns the content stems that two texts have in common.
func (s *stems) shared(a, b string) []string {
	var both []string
	in := s.of(b)
	for stem := range s.of(a) {
		if in[stem] {
			both = append(both, stem)
		}
	}
	return both
}

// share reports whether two texts have a content stem in common.
func (s *stems) share(a, b string) bool { return len(s.shared(a, b)) > 0 }
