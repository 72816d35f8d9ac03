package contextfile_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// made is a context of a tiny model.
type made struct {
	file   *weights.Model
	model  *llama.Model
	header contextfile.Header
	kept   *compress.Kept
	path   string
}

func makeContext(t testing.TB, format string) *made {
	t.Helper()
	m := &made{path: filepath.Join(t.TempDir(), "a.context")}
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(model, tinymodel.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.file, err = weights.Open(model); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.file.Close() })
	if m.model, err = llama.New(m.file, gpu.CPU{}); err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, 80)
	for i := range tokens {
		tokens[i] = int32(i * i % 300)
	}
	computed, err := compress.New(m.model, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer computed.Close()
	part, err := computed.Part(t.Context(), nil, tokens, compress.Texts{Prompt: tokens[:20], Notes: tokens[:40]})
	if err != nil {
		t.Fatal(err)
	}
	scorer, err := compress.ByName(compress.Default)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := scorer.Score(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	if m.kept, err = part.Keep(scores, 32); err != nil {
		t.Fatal(err)
	}
	if ok, err := part.Look(t.Context(), m.kept); !ok || err != nil {
		t.Fatal(ok, err)
	}
	identity := m.file.Identity()
	m.header = contextfile.Header{
		Model: m.file.Name, Identity: hex.EncodeToString(identity[:]), Kernel: "test", Layers: m.file.Layers, KV: m.file.KVHeads,
		Dim:    m.file.HeadDim,
		Format: format, Mode: contextfile.Joint, Scorer: "reference", Task: "answer", Notes: "given", Tokens: 80, Slots: 32, Profile: true,
		Rest: []int32{1, 2},
		Parts: []contextfile.Part{
			{Key: "a", Tokens: 40, Slots: 16, Sources: []contextfile.Source{{Name: "a.txt", Tokens: 40}}},
			{Key: "b", Slots: 16},
		},
	}
	pages, err := m.header.Encode(m.kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := contextfile.Write(m.path, m.header, pages); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *made) read(t testing.TB) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(m.path))(t)
}

// TestFile: what was written is read again, with f32 bit for bit, and stands at its place.
func TestFile(t *testing.T) {
	for _, format := range []string{"f32", "f16", "int8"} {
		t.Run(format, func(t *testing.T) {
			m := makeContext(t, format)
			if info, err := os.Stat(m.path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Error(info, err)
			}
			f, err := contextfile.Open(m.path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Task != "answer" || f.Parts[0].Sources[0].Name != "a.txt" || !slices.Equal(f.Rest, []int32{1, 2}) ||
				f.Bytes != int64(len(m.read(t))) {
				t.Errorf("%+v", f.Header)
			}
			if err := f.Fits(m.file.Identity(), "test", m.model); err != nil {
				t.Error(err)
			}
			pages, err := f.Load(m.model)
			if err != nil {
				t.Fatal(err)
			}
			for i, page := range m.kept.Pages {
				want := modeltest.Placed(t, m.model, page, m.kept.Positions[i], i*llama.PageTokens)
				if format == "f32" && !slices.Equal(pages[i].Host, want) {
					t.Errorf("page %d has other numbers", i)
				}
				for j, x := range pages[i].Host {
					if d := x - want[j]; max(d, -d) > 0.05 {
						t.Fatalf("page %d, number %d: %g, want %g", i, j, x, want[j])
					}
				}
			}
			encoded, err := f.Encode(m.kept)
			if err != nil {
				t.Fatal(err)
			}
			for i, page := range slices.Concat(f.Pages(0), f.Pages(1)) {
				if !bytes.Equal(page, encoded[i]) {
					t.Errorf("page %d was written in other bytes", i)
				}
			}
		})
	}
}

// TestRefuses: files of another model, kernel or version say so, with what is wrong.
func TestRefuses(t *testing.T) {
	m := makeContext(t, "f32")
	f, err := contextfile.Open(m.path)
	if err != nil {
		t.Fatal(err)
	}
	other := m.file.Identity()
	other[0]++
	for want, err := range map[string]error{
		"identity " + f.Identity[:16]: f.Fits(other, "test", m.model),
		"kernel test":                 f.Fits(m.file.Identity(), "avx2", m.model),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	data := m.read(t)
	for version, want := range map[string]string{
		"0": "version 0: want 1 to 2", "3": "version 3: want 1 to 2",
		"1": "version 1 with a profile",
	} {
		other := bytes.Replace(data, []byte(`"version":2`), []byte(`"version":`+version), 1)
		if _, err := contextfile.Read(bytes.NewReader(repair(other)), int64(len(other))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of version %s", err, version)
		}
	}
	if _, err := contextfile.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v of a file that is not there", err)
	}
	if err := contextfile.Write(filepath.Join(t.TempDir(), "none", "a"), f.Header, nil); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

// TestProfile: a file has the shares of each head's slots, and one without them is written and read, too, as those of version 1 are.
func TestProfile(t *testing.T) {
	m := makeContext(t, "int8")
	f, err := contextfile.Open(m.path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Shares(), compress.Shares(m.kept.Profile, m.file.Layers, m.file.KVHeads); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("shares are %v, want %v", got, want)
	}
	m.header.Profile = false
	if _, err := m.header.Encode(m.kept); err == nil {
		t.Error("a profile was left out")
	}
	m.kept.Profile = nil
	pages, err := m.header.Encode(m.kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := contextfile.Write(m.path, m.header, pages); err != nil {
		t.Fatal(err)
	}
	data := m.read(t)
	old := repair(bytes.Replace(data, []byte(`"version":2`), []byte(`"version":1`), 1))
	for _, data := range [][]byte{data, old} {
		f, err := contextfile.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Shares() != nil {
			t.Fatalf("%v, %v", f, err)
		}
		if _, err := f.Load(m.model); err != nil {
			t.Error(err)
		}
	}
}

// TestDamage: a file that is cut at any byte, is longer, or has any byte changed is an error.
func TestDamage(t *testing.T) {
	data := makeContext(t, "int8").read(t)
	bad := func(what string, data []byte) {
		t.Helper()
		if _, err := contextfile.Read(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for i := range data {
		bad("cut", data[:i])
		changed := slices.Clone(data)
		changed[i] ^= 1 << (i % 8)
		bad("changed", changed)
	}
	bad("longer", append(slices.Clone(data), 0))
	if _, err := contextfile.Read(bytes.NewReader(data[:len(data)-1]), int64(len(data))); err == nil {
		t.Error("a file that was cut while it is read is no error")
	}
}

// repair writes the header's sum anew, if there is a header.
func repair(data []byte) []byte {
	return contextfile.Repair(slices.Clone(data))
}

// FuzzRead: whatever stands in a file, reading it ends, and what is read can be loaded.
func FuzzRead(f *testing.F) {
	m := makeContext(f, "int8")
	data := m.read(f)
	f.Add(data)
	f.Add(data[:100])
	f.Add([]byte("RPCONTXT\x02\x00\x00\x00{}"))
	for from, to := range map[string]string{
		`"layers":2`: `"layers":9`, `"slots":32`: `"slots":48`, `"format":"int8"`: `"format":"f32"`,
		`"kv_heads":2`: `"kv_heads":-2`,
	} {
		f.Add(bytes.Replace(data, []byte(from), []byte(to), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, repair(data)} {
			file, err := contextfile.Read(bytes.NewReader(data), int64(len(data)))
			if err != nil || file.Fits(m.file.Identity(), "test", m.model) != nil {
				continue
			}
			if pages, err := file.Load(m.model); err != nil || len(pages) != file.Slots/llama.PageTokens {
				t.Errorf("%d pages of %d slots, error %v", len(pages), file.Slots, err)
			}
			for _, layer := range file.Shares() {
				for head := range file.KV {
					sum := 0.0
					for _, x := range layer[head*file.Slots:][:file.Slots] {
						sum += float64(x)
					}
					if math.Abs(sum-1) > 1e-4 {
						t.Errorf("the shares of a head add up to %g", sum)
					}
				}
			}
		}
	})
}
