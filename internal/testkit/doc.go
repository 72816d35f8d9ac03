// Package testkit is what tests of many packages need: free ports ([FreeAddress]), the material beside the repository
// ([Shared]), logs that can be read while they are written ([Log]), requests ([Request], [Ask]), a network in memory
// ([Network]), waiting ([Eventually]), what must not fail ([Must]), runs ([Run]) or is closed with the test ([Opened]), and
// benchmarks that report medians ([Median], [Added]). Packages below it start real servers, or stand in for them.
package testkit
