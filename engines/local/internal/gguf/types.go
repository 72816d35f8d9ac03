package gguf

import "github.com/ragpilot/ragpilot/internal/nn/quant"

// ggml numbers the formats of tensors.
var (
	typeNumbers = map[uint32]quant.Type{
		0: quant.F32, 1: quant.F16, 2: quant.Q4_0, 3: quant.Q4_1, 6: quant.Q5_0, 7: quant.Q5_1, 8: quant.Q8_0, 11: quant.Q3_K,
		12: quant.Q4_K, 13: quant.Q5_K, 14: quant.Q6_K, 20: quant.IQ4_NL, 30: quant.BF16,
	}
	// Those that are not read, for messages.
	otherNumbers = map[uint32]string{
		9: "Q8_1", 10: "Q2_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
		23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
		40: "NVFP4", 41: "Q1_0",
	}
)

func typeOf(number uint32) (quant.Type, bool) {
	t, ok := typeNumbers[number]
	return t, ok
}

func nameOf(number uint32) string {
	if name, ok := otherNumbers[number]; ok {
		return name
	}
	return "unknown"
}

func numberOf(t quant.Type) (uint32, bool) {
	for n, known := range typeNumbers {
		if known == t {
			return n, true
		}
	}
	return 0, false
}
