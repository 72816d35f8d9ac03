//go:build cuda

package local

import _ "github.com/ragpilot/ragpilot/internal/nn/gpu/cuda" // makes cards known to [Config].Device
