package durable

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// sharingViolation is ERROR_SHARING_VIOLATION.
const sharingViolation = syscall.Errno(32)

// Lock takes a directory's lock, which ends with the process or when unlock is called: a file that is opened
// exclusively. The error is [ErrLocked] if another one has it.
func Lock(dir string) (unlock func() error, err error) {
	path := filepath.Join(dir, "lock")
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() error { return syscall.CloseHandle(h) }, nil
}
