// Package names writes lists of names as one string: names have no line feeds, so that these separate them.
package names

import "strings"

// Join returns the string of a list.
func Join(list []string) string { return strings.Join(list, "\n") }

// Split returns the list of a string; nil for an empty one.
func Split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
