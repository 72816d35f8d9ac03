package conversation

// FewHashes makes the hash of a text one of n until restore is called, so that different texts often have the same.
func FewHashes(n uint64) (restore func()) {
	whole := hashOf
	hashOf = func(text string) content {
		h := whole(text)
		return content{Lo: h.Lo % n &^ 1}
	}
	return func() { hashOf = whole }
}
