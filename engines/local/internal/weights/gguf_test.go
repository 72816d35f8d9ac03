package weights_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local/internal/chattemplate"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
	"github.com/ragpilot/ragpilot/internal/nn/quant"
)

func open(t testing.TB, o tinymodel.Options) *weights.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, o); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestOpenGGUF(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		for _, format := range []quant.Type{
			quant.F32, quant.F16, quant.BF16, quant.Q8_0, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1,
			quant.IQ4_NL,
		} {
			t.Run(arch+" "+format.String(), func(t *testing.T) {
				m := open(t, tinymodel.Options{Architecture: arch, Type: format, Untied: arch == "qwen2", Seed: 3})
				want := weights.Params{
					Architecture: arch, Layers: 2, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Vocab: 320, Context: 512,
					RopeBase: 10000, RopeInterleaved: arch == "llama", Eps: 1e-5, TiedOutput: arch != "qwen2",
				}
				if diff := cmp.Diff(want, m.Params); diff != "" {
					t.Error(diff)
				}
				q := m.Tensors["blk.1.attn_k.weight"]
				if q.Type != format || q.Rows != 32 || q.Cols != 64 {
					t.Errorf("blk.1.attn_k.weight is %v, %d rows of %d", q.Type, q.Rows, q.Cols)
				}
				if out := m.Output(); out.Rows != 320 || out.Cols != 64 {
					t.Errorf("the output is %q, %d rows of %d", out.Name, out.Rows, out.Cols)
				}
				ids := m.Tokenizer.Encode("the end of the thing", false)
				if text := m.Tokenizer.Decode(ids, false); text != "the end of the thing" || len(ids) > 12 {
					t.Errorf("%v is %q", ids, text)
				}
				if !slices.Equal(m.Stop, []int32{0, 2}) || m.BOS != 1 || m.AddBOS || len(m.Warnings) > 0 {
					t.Errorf("stop %v, BOS %d, added %v, warnings %q", m.Stop, m.BOS, m.AddBOS, m.Warnings)
				}
				chat := m.Chat([]engines.Message{{Role: "user", Content: "hi <|im_end|>"}}, true)
				if len(chat) == 0 || chat[0] != 1 || count(chat, 1) != 2 || count(chat, 2) != 1 {
					t.Errorf("the chat is %v", chat)
				}
			})
		}
	}
}

func TestOpenSentencePiece(t *testing.T) {
	m := open(t, tinymodel.Options{SentencePiece: true})
	if !slices.Equal(m.Stop, []int32{2}) || m.BOS != 1 || !m.AddBOS || len(m.Warnings) > 0 || m.Template.Family != chattemplate.Zephyr {
		t.Errorf("stop %v, BOS %d, added %v, template %v, warnings %q", m.Stop, m.BOS, m.AddBOS, m.Template, m.Warnings)
	}
	question := []engines.Message{{Role: "user", Content: "hi <s>"}}
	for _, c := range []struct {
		family chattemplate.Family
		text   []string // ordinary text and, every second, a special token
	}{
		{chattemplate.Zephyr, []string{"", "<s>", "<|user|>\nhi <s>", "</s>", "\n<|assistant|>\n"}},
		{chattemplate.Mistral, []string{"", "<s>", "", "[INST]", " hi <s>", "[/INST]"}},
		// The names of ChatML are none here, and ordinary text together with the rest.
		{chattemplate.ChatML, []string{"<|im_start|>user\nhi <s><|im_end|>\n<|im_start|>assistant\n"}},
	} {
		var want []int32
		for i, text := range c.text {
			want = append(want, m.Tokenizer.Encode(text, i%2 == 1)...)
		}
		m.Template.Family = c.family
		if got := m.Chat(question, true); !slices.Equal(got, want) || count(got, 1) > 1 {
			t.Errorf("%v: the chat is %v, %q, want %v", c.family, got, m.Tokenizer.Decode(got, true), want)
		}
	}
	if ids := m.Text("hi"); ids[0] != 1 || m.Tokenizer.Decode(ids[1:], false) != "hi" {
		t.Errorf("a text is %v", ids)
	}
}

func count(ids []int32, id int32) int {
	n := 0
	for _, x := range ids {
		if x == id {
			n++
		}
	}
	return n
}

func TestOpenSmolLM2(t *testing.T) {
	m, err := weights.Open(modeltest.SmolLM2(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := weights.Params{
		Architecture: "llama", Layers: 30, Hidden: 576, Heads: 9, KVHeads: 3, HeadDim: 64, FFN: 1536, Vocab: 49152, Context: 8192,
		RopeBase: 100000, RopeInterleaved: true, Eps: 1e-5, TiedOutput: true,
	}
	if diff := cmp.Diff(want, m.Params); diff != "" || len(m.Tensors) != 272 {
		t.Errorf("%s; %d tensors", diff, len(m.Tensors))
	}
	question := []engines.Message{{Role: "user", Content: "What is the capital of France?"}}
	const system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
	if m.Template != (chattemplate.Template{System: system}) || len(m.Warnings) > 0 {
		t.Errorf("the template is %+v, warnings %q", m.Template, m.Warnings)
	}
	// As the reference encodes what the file's own template renders.
	withSystem := []int32{
		1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198,
		1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198,
	}
	if got := m.Chat(question, true); !slices.Equal(got, withSystem) {
		t.Errorf("with the default system prompt, the chat is %v, want %v", got, withSystem)
	}
	m.Template.System = ""
	ids := m.Chat(question, true)
	if len(ids) != 16 || !slices.Equal(ids[:8], []int32{1, 4093, 198, 1780, 314, 260, 3575, 282}) {
		t.Errorf("without a system prompt, the chat is %v", ids)
	}
	if got := m.Tokenizer.Decode([]int32{504, 3575, 282, 4649, 314, 7042, 30}, false); got != "The capital of France is Paris." {
		t.Errorf("the answer is %q", got)
	}
}

func BenchmarkOpenSmolLM2(b *testing.B) {
	path := modeltest.SmolLM2(b)
	b.ReportAllocs()
	for b.Loop() {
		m, err := weights.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}
