// Package mmap makes a file's bytes readable as memory: mapped where the system can, read otherwise.
package mmap
