package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/ragpilot/ragpilot/embed"
)

// answer is the body of an answer.
type answer struct {
	Data []struct {
		Index  *int            `json:"index"`
		Vector json.RawMessage `json:"embedding"`
	} `json:"data"`
}

// read returns want vectors of one length, which must be dimensions if that is not 0.
func read(body []byte, want, dimensions int) ([][]float32, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if len(a.Data) != want {
		return nil, fmt.Errorf("%w: %d and %d", embed.ErrCount, len(a.Data), want)
	}
	vectors := make([][]float32, want)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= want || vectors[at] != nil {
			return nil, fmt.Errorf("%w: vector %d of %d has the index %d, out of range or for the second time", ErrBadAnswer, i, want, at)
		}
		v, err := vector(d.Vector)
		if err != nil {
			return nil, fmt.Errorf("%w: vector %d: %w", ErrBadAnswer, at, err)
		}
		vectors[at] = v
	}
	if dimensions == 0 {
		dimensions = len(vectors[0])
	}
	for i, v := range vectors {
		if len(v) != dimensions {
			return nil, fmt.Errorf("text %d of the batch: %w", i, &embed.DimensionError{Want: dimensions, Got: len(v)})
		}
	}
	return vectors, nil
}

// vector reads a list of numbers, or 32-bit numbers, little endian, in base64. It has one number at least, and all are finite.
func vector(raw json.RawMessage) ([]float32, error) {
	var v []float32
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		if len(data)%4 != 0 {
			return nil, fmt.Errorf("%d bytes are not a whole number of 32-bit values", len(data))
		}
		v = make([]float32, len(data)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	} else if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if len(v) == 0 {
		return nil, errors.New("it is empty")
	}
	for i, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("number %d is %v", i, x)
		}
	}
	return v, nil
}
