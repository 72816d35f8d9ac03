package tinymodel

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// tensor is one matrix before it is packed; rows is 0 for vectors.
type tensor struct {
	name       string
	rows, cols int
	data       []float32
	spread     float64 // the standard deviation of data
	// heads is the number of heads whose elements are paired by the rotation, 0: none.
	heads int
}

// tensors makes the weights, with elements j and j+HeadDim/2 of a head paired.
func (o Options) tensors() []tensor {
	vocabulary := len(o.vocabulary().Tokens)
	random := rand.New(rand.NewPCG(o.Seed, 64))
	var list []tensor
	add := func(name string, rows, cols, heads int, mean, spread float64) {
		t := tensor{name: name, rows: rows, cols: cols, heads: heads, spread: spread, data: make([]float32, max(1, rows)*cols)}
		for i := range t.data {
			t.data[i] = float32(mean + spread*random.NormFloat64())
		}
		list = append(list, t)
	}
	matrix := func(name string, rows, cols, heads int) {
		add(name+".weight", rows, cols, heads, 0, 1/math.Sqrt(float64(cols)))
	}
	vector := func(name string, n int) { add(name+".weight", 0, n, 0, 1, .1) }
	q, kv := o.Heads*o.HeadDim, o.KVHeads*o.HeadDim
	add("token_embd.weight", vocabulary, o.Hidden, 0, 0, .5)
	for l := range o.Layers {
		b := fmt.Sprintf("blk.%d.", l)
		vector(b+"attn_norm", o.Hidden)
		matrix(b+"attn_q", q, o.Hidden, o.Heads)
		matrix(b+"attn_k", kv, o.Hidden, o.KVHeads)
		matrix(b+"attn_v", kv, o.Hidden, 0)
		matrix(b+"attn_output", o.Hidden, q, 0)
		vector(b+"ffn_norm", o.Hidden)
		matrix(b+"ffn_gate", o.FFN, o.Hidden, 0)
		matrix(b+"ffn_up", o.FFN, o.Hidden, 0)
		matrix(b+"ffn_down", o.Hidden, o.FFN, 0)
		switch o.Architecture {
		case "qwen2":
			add(b+"attn_q.bias", 0, q, 0, 0, .2)
			add(b+"attn_k.bias", 0, kv, 0, 0, .2)
			add(b+"attn_v.bias", 0, kv, 0, 0, .2)
		case "qwen3":
			vector(b+"attn_q_norm", o.HeadDim)
			vector(b+"attn_k_norm", o.HeadDim)
		}
	}
	vector("output_norm", o.Hidden)
	if o.Untied {
		add("output.weight", vocabulary, o.Hidden, 0, 0, .5)
	}
	return list
}

// interleave moves the rows of every head so that elements 2j and 2j+1 are paired.
func (t tensor) interleave() tensor {
	size := t.rows / t.heads
	out := make([]float32, len(t.data))
	for row := range t.rows {
		head, i := row/size, row%size
		from := head*size + i%2*(size/2) + i/2
		copy(out[row*t.cols:(row+1)*t.cols], t.data[from*t.cols:])
	}
	t.data = out
	return t
}
