package minilm

// Encode gives the tests a text's tokens.
func (m *Model) Encode(text string) []int32 { return m.tokenizer.encode(text, m.limit) }

// Matmul is matmul, for the tests.
func Matmul(out, x, w []float32, m, n, k int) { matmul(out, x, w, m, n, k) }
