package savings

import (
	"math"
	"testing"
)

func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 4.3027, 2: 4.3027, 3: 3.1824, 5: 2.5706, 10: 2.2281, 19: 2.0930, 30: 2.0423, 120: 1.9799, 1e9: 1.95996} {
		if got := student(freedom); math.Abs(got-want) > .01*want {
			t.Errorf("%v degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}
