package minilm_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/embed/minilm"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// golden is what the reference tokenizer and a computation in 64 bits say of a text; testdata/golden.py makes it.
type golden struct {
	Text   string    `json:"text"`
	Tokens []int32   `json:"tokens"`
	Vector []float32 `json:"vector"`
}

func goldens(t testing.TB, path string) []golden {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t testing.TB, dir string) *minilm.Model {
	t.Helper()
	return testkit.Must(minilm.Open(dir))(t)
}

// published opens the model that RAGPILOT_MINILM names, that Pull has fetched, or that it fetches now if
// RAGPILOT_MINILM_PULL is 1.
func published(t testing.TB) *minilm.Model {
	t.Helper()
	return open(t, folder(t))
}

func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getenv("RAGPILOT_MINILM"), error(nil)
	switch {
	case dir != "":
		return dir
	case os.Getenv("RAGPILOT_MINILM_PULL") == "1":
		dir, err = minilm.Pull(t.Context(), minilm.PullOptions{Progress: func(s minilm.Step) { t.Logf("%+v", s) }})
	default:
		dir, err = minilm.DefaultDir()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs the model: RAGPILOT_MINILM names its folder, and with RAGPILOT_MINILM_PULL=1 its 83 MB are downloaded")
	}
	return dir
}

func TestTinyModel(t *testing.T) {
	compare(t, open(t, "testdata/tiny"), goldens(t, "testdata/tiny/golden.json"))
}

func TestRealModel(t *testing.T) {
	testkit.NotUnderRace(t)
	m := published(t)
	if m.Name() != "all-minilm-l6-v2-384" || m.Dimensions() != 384 {
		t.Errorf("%s with %d dimensions", m.Name(), m.Dimensions())
	}
	compare(t, m, goldens(t, "testdata/golden.json"))
}

// compare checks tokens and vectors, one by one and all together.
func compare(t *testing.T, m *minilm.Model, want []golden) {
	t.Helper()
	var texts []string
	for _, w := range want {
		texts = append(texts, w.Text)
		if got := m.Encode(w.Text); !slices.Equal(got, w.Tokens) {
			t.Errorf("%q:\n%d, want\n%d", w.Text, got, w.Tokens)
		}
		if got := m.Tokens(w.Text); got != len(w.Tokens) {
			t.Errorf("%q has %d tokens, want %d", w.Text, got, len(w.Tokens))
		}
	}
	together, err := m.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, w := range want {
		for j, x := range together[i] {
			worst = max(worst, math.Abs(float64(x)-float64(w.Vector[j])))
		}
		alone, err := m.EmbedQuery(t.Context(), w.Text)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(alone, together[i]) {
			t.Errorf("%q has another vector alone than among others", w.Text)
		}
	}
	t.Logf("largest difference: %.2g", worst)
	if !(worst <= 1e-5) {
		t.Errorf("largest difference to the golden vectors: %g, want 1e-5 at most", worst)
	}
}
