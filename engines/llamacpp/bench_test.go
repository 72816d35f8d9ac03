package llamacpp

import (
	"fmt"
	"testing"
)

// What the engine itself costs per request: the choice among slots that all hold most of the prompt.
func BenchmarkChoose(b *testing.B) {
	for _, tokens := range []int{1000, 16000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			prompt := make([]token, tokens)
			for i := range prompt {
				prompt[i] = token(i)
			}
			slots := make([]slot, 4)
			for i := range slots {
				slots[i].set(prompt[:tokens-i], tokens-i)
			}
			b.ReportAllocs()
			for b.Loop() {
				choose(slots, prompt, DefaultSimilarity)
			}
		})
	}
}

// And per generated token.
func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" zatu"},"logprobs":{"content":[{"id":498,"token":" zatu",` +
		`"bytes":[32,122,97,116,117],"prob":0.043,"top_probs":[{"id":389,"token":" lowi","bytes":[32,108,111,119,105],"prob":0.081}]}]}}],` +
		`"created":1795291881,"id":"chatcmpl-o6xE1YlPefrF49GiXD6t2TgqwpxyvUra","model":"tiny.gguf","object":"chat.completion.chunk",` +
		`"timings":{"cache_n":13,"prompt_n":1,"prompt_ms":1.216,"predicted_n":2,"predicted_ms":0.603,"predicted_per_second":1658.37}}`)
	b.ReportAllocs()
	for b.Loop() {
		r := newRecord()
		r.add(chunk)
	}
}
