//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package mmap

import (
	"fmt"
	"os"
	"syscall"
)

func open(f *os.File, size int) (*File, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &File{data: data, mapped: true}, nil
}

func unmap(data []byte) error { return syscall.Munmap(data) }
