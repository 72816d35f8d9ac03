package minilm

// matmul computes out = x·wᵀ: out[m][n] from x[m][k] and w[n][k], all row by row. Each sum goes from the first product to
// the last whatever m and n are, so a row's result does not depend on the rows beside it.
func matmul(out, x, w []float32, m, n, k int) {
	i := 0
	for ; i+4 <= m; i += 4 {
		fourRows(out[i*n:(i+4)*n], x[i*k:(i+4)*k], w, n, k)
	}
	for ; i < m; i++ {
		row := x[i*k:][:k]
		for j := range n {
			out[i*n+j] = dot(row, w[j*k:][:k])
		}
	}
}

// fourRows is matmul with m = 4. Four rows at a time against two of w keep eight sums in registers, and load six numbers
// for eight products.
func fourRows(out, x, w []float32, n, k int) {
	x0, x1, x2, x3 := x[:k], x[k:][:k], x[2*k:][:k], x[3*k:][:k]
	o0, o1, o2, o3 := out[:n], out[n:][:n], out[2*n:][:n], out[3*n:][:n]
	j := 0
	for ; j+2 <= n; j += 2 {
		w0, w1 := w[j*k:][:k], w[(j+1)*k:][:k]
		var a0, a1, a2, a3, b0, b1, b2, b3 float32
		for p := range k {
			u, v := w0[p], w1[p]
			c0, c1, c2, c3 := x0[p], x1[p], x2[p], x3[p]
			a0, b0 = a0+u*c0, b0+v*c0
			a1, b1 = a1+u*c1, b1+v*c1
			a2, b2 = a2+u*c2, b2+v*c2
			a3, b3 = a3+u*c3, b3+v*c3
		}
		o0[j], o1[j], o2[j], o3[j] = a0, a1, a2, a3
		o0[j+1], o1[j+1], o2[j+1], o3[j+1] = b0, b1, b2, b3
	}
	for ; j < n; j++ {
		row := w[j*k:][:k]
		o0[j], o1[j], o2[j], o3[j] = dot(x0, row), dot(x1, row), dot(x2, row), dot(x3, row)
	}
}

// dot is the sum of the products, from the first to the last.
func dot(a, b []float32) float32 {
	var sum float32
	b = b[:len(a)]
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
