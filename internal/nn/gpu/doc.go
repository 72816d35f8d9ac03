// Package gpu is what the local engine computes on: a [Device] with its memory, weights, pages of keys and values, and streams of
// operations. There is one forward pass, and it is written against these interfaces.
//
// [CPU] is a device in Go, in every build: package compute does the arithmetic, and buffers are slices. Package cuda has the device for
// cards of NVIDIA, in builds with the tag cuda. Package gputest has the suite that each device passes.
//
// Operations of a [Stream] return no errors: they may run later. The first one that fails makes the stream fail, those behind it do
// nothing, and [Stream.Sync] returns an [*Error] that names the operation and the tensor.
package gpu
