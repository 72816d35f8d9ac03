package llamacpp

// token is a token ID of the server's vocabulary. unknown stands for one that was generated and not reported.
type token = int32

const unknown token = -1

// common returns the length of the common prefix.
func common(a, b []token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// known returns the tokens before the first unknown one.
func known(tokens []token) []token {
	for i, t := range tokens {
		if t == unknown {
			return tokens[:i]
		}
	}
	return tokens
}
