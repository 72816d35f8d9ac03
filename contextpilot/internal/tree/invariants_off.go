//go:build !invariants

package tree

// shadow costs nothing without the build tag invariants.
type shadow struct{}

func (shadow) insert(*Tree, string, []Elem, int, int)   {}
func (shadow) remove(*Tree, string, bool)               {}
func (shadow) shrink(*Tree, string, int, bool)          {}
func (shadow) extend(*Tree, string, int)                {}
func (shadow) serve(*Tree, string, bool, bool)          {}
func (shadow) resend(*Tree, string, bool)               {}
func (shadow) contradict(*Tree, string, int, bool, int) {}
func (shadow) clear(*Tree)                              {}
