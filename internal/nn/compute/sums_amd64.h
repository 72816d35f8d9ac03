// SUM4 adds the lanes of four vectors, each as ((0+1)+(2+3)) + ((4+5)+(6+7)): in the lower half of a, which is xa. c and xt change.
#define SUM4(a, b, c, d, xa, xt) \
	VHADDPS      b, a, a    \
	VHADDPS      d, c, c    \
	VHADDPS      c, a, a    \
	VEXTRACTF128 $1, a, xt  \
	VADDPS       xt, xa, xa
