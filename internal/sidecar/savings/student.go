package savings

import "math"

// student returns the 97.5 % quantile of Student's distribution by its expansion in 1/ν (Abramowitz and Stegun, 26.7.5):
// within 1 % of the true one from 2 degrees of freedom on, and that of 2 for fewer, of which nothing can be said anyway.
func student(freedom float64) float64 {
	const z = 1.959963984540054
	v := math.Max(freedom, 2)
	z2 := z * z
	g1 := z * (z2 + 1) / 4
	g2 := z * ((5*z2+16)*z2 + 3) / 96
	g3 := z * (((3*z2+19)*z2+17)*z2 - 15) / 384
	g4 := z * ((((79*z2+776)*z2+1482)*z2-1920)*z2 - 945) / 92160
	return z + (g1+(g2+(g3+g4/v)/v)/v)/v
}
