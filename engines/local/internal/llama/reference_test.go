package llama_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/weights"
)

// wantLogits computes the logits after each of tokens by the formulas, in float64, slowly: no cache, no batch, no shared work.
func wantLogits(m *weights.Model, tokens []int32) [][]float64 {
	r := reference{m}
	x := make([][]float64, len(tokens))
	embedding := r.matrix("token_embd.weight")
	for i, token := range tokens {
		x[i] = slices.Clone(embedding[token])
	}
	for l := range m.Layers {
		x = r.layer(fmt.Sprintf("blk.%d.", l), x)
	}
	output := embedding
	if !m.TiedOutput {
		output = r.matrix("output.weight")
	}
	logits := make([][]float64, len(x))
	for i := range x {
		logits[i] = times(output, r.norm(x[i], "output_norm.weight"))
	}
	return logits
}

// reference computes what models of the Llama family are, by their formulas.
type reference struct{ *weights.Model }

func (r reference) layer(name string, x [][]float64) [][]float64 {
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x))
	for position := range x {
		n := r.norm(x[position], name+"attn_norm.weight")
		q[position] = r.rotated(r.projected(name+"attn_q", n), position)
		k[position] = r.rotated(r.projected(name+"attn_k", n), position)
		v[position] = r.projected(name+"attn_v", n)
	}
	out := make([][]float64, len(x))
	for position := range x {
		y := plus(x[position], times(r.matrix(name+"attn_output.weight"), r.attended(q[position], k[:position+1], v)))
		n := r.norm(y, name+"ffn_norm.weight")
		gate, up := times(r.matrix(name+"ffn_gate.weight"), n), times(r.matrix(name+"ffn_up.weight"), n)
		for i, g := range gate {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		out[position] = plus(y, times(r.matrix(name+"ffn_down.weight"), gate))
	}
	return out
}

// projected is W·x + b, with each head normalised where there are weights for it.
func (r reference) projected(name string, x []float64) []float64 {
	y := times(r.matrix(name+".weight"), x)
	if _, ok := r.Tensors[name+".bias"]; ok {
		y = plus(y, r.vector(name+".bias"))
	}
	if _, ok := r.Tensors[name+"_norm.weight"]; ok {
		var heads []float64
		for ; len(y) > 0; y = y[r.HeadDim:] {
			heads = append(heads, r.norm(y[:r.HeadDim], name+"_norm.weight")...)
		}
		y = heads
	}
	return y
}

func (r reference) rotated(x []float64, position int) []float64 {
	y, d := make([]float64, len(x)), r.HeadDim
	for head := 0; head < len(x); head += d {
		for j := range d / 2 {
			a, b := head+j, head+j+d/2
			if r.RopeInterleaved {
				a, b = head+2*j, head+2*j+1
			}
			angle := float64(position) * math.Pow(r.RopeBase, -2*float64(j)/float64(d))
			if r.RopeFactors != nil {
				angle /= float64(r.RopeFactors[j])
			}
			y[a] = x[a]*math.Cos(angle) - x[b]*math.Sin(angle)
			y[b] = x[a]*math.Sin(angle) + x[b]*math.Cos(angle)
		}
	}
	return y
}

func (r reference) attended(q []float64, k, v [][]float64) []float64 {
	out, d := make([]float64, len(q)), r.HeadDim
	for head := range r.Heads {
		shared := head * r.KVHeads / r.Heads * d
		weights, sum := make([]float64, len(k)), 0.0
		for t := range k {
			for i := range d {
				weights[t] += q[head*d+i] * k[t][shared+i]
			}
			weights[t] = math.Exp(weights[t] / math.Sqrt(float64(d)))
			sum += weights[t]
		}
		for t := range k {
			for i := range d {
				out[head*d+i] += weights[t] / sum * v[t][shared+i]
			}
		}
	}
	return out
}

func (r reference) norm(x []float64, name string) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, w := range r.vector(name) {
		y[i] = x[i] / math.Sqrt(sum/float64(len(x))+float64(r.Eps)) * w
	}
	return y
}

func (r reference) vector(name string) []float64 { return r.matrix(name)[0] }

func (r reference) matrix(name string) [][]float64 {
	t, ok := r.Tensors[name]
	if !ok {
		panic("no tensor " + name)
	}
	rows, all := make([][]float64, t.Rows), t.Float32()
	for i := range rows {
		for _, v := range all[i*t.Cols:][:t.Cols] {
			rows[i] = append(rows[i], float64(v))
		}
	}
	return rows
}

func times(m [][]float64, x []float64) []float64 {
	y := make([]float64, len(m))
	for i, row := range m {
		for j, w := range row {
			y[i] += w * x[j]
		}
	}
	return y
}

func plus(x, y []float64) []float64 {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = x[i] + y[i]
	}
	return z
}
