package contextpilot

import "fmt"

// BestOptions are the settings of `best`, which callers cannot set.
type BestOptions = bestOptions

// NewBest is newBest.
func NewBest(o BestOptions) Policy { return newBest(o) }

// SetInject makes every stage call f first; an error or a panic of f is the stage's. nil: no faults.
func (p *Pilot) SetInject(f func(stage string) error) { p.inject = f }

// Check verifies the index of every scope, their table, and that the policy `paper` holds blocks for live requests only.
func (p *Pilot) Check() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	live, listed := 0, 0
	for id, sc := range p.scopes {
		sc.mu.Lock()
		err := sc.check()
		live += sc.tree.Len()
		sc.mu.Unlock()
		if err != nil {
			return fmt.Errorf("scope %v: %w", id, err)
		}
	}
	if n := int(p.live.Load()); n != live {
		return fmt.Errorf("%d requests are counted, %d are live", n, live)
	}
	for name, l := range p.tenants {
		for _, sc := range l.All() {
			if sc.id.Tenant != name || p.scopes[sc.id] != sc {
				return fmt.Errorf("scope %v is listed for tenant %q", sc.id, name)
			}
			listed++
		}
	}
	if listed != len(p.scopes) {
		return fmt.Errorf("%d scopes are listed, there are %d", listed, len(p.scopes))
	}
	return nil
}

func (sc *scope) check() error {
	if err := sc.tree.Check(); err != nil {
		return err
	}
	c, ok := sc.policy.(*paperPolicy)
	if !ok {
		return nil
	}
	if len(c.leaves) > sc.tree.Len() {
		return fmt.Errorf("%d leaves for %d requests", len(c.leaves), sc.tree.Len())
	}
	c.settle()
	if len(c.leaves) == 0 && (len(c.docs) != 0 || c.tree.Len() != 1) {
		return fmt.Errorf("nothing is live, but %d docs are held by %d nodes", len(c.docs), c.tree.Len())
	}
	return nil
}

// Bounded reports whether what the position holds is within its bounds.
func (p Position) Bounded() bool {
	if p.last == nil {
		return true
	}
	steps, blocks, length := 0, 0, 0
	for s := p.last; s != nil; s = s.before {
		steps, blocks, length = steps+1, blocks+s.sent+len(s.kept), length+len(s.path)
	}
	return steps <= maxTurns && blocks <= maxShown && length <= maxPath && steps == p.last.depth && blocks == p.last.blocks &&
		length == p.last.length
}
