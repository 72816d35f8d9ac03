// Package cuda is a [gpu.Device] for cards of NVIDIA, in builds with the tag cuda: importing it makes "cuda:N" known to [gpu.Open]. In
// other builds it is empty.
//
// The kernels are in the folder kernels. They are compiled to PTX once, for compute capability 8.0, and the card's driver compiles that
// for the card. Arithmetic is in float32.
//
// One goroutine, on an operating system thread of its own, makes all calls for a device; streams hand it their operations many at a time.
// Only waiting is done by the callers themselves. Pages lie in slabs: first the first layer of all of a slab's pages, then the second. A
// page that is written goes through memory that the card can read, and a kernel spreads it, layer by layer, while other streams compute.
package cuda
