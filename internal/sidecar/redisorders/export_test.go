package redisorders

import (
	"context"
	"fmt"
)

// Ping asks whether Redis answers. It waits as long as ctx lets it, at most a second or two budgets.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redisorders: %w", s.redact(err))
	}
	return nil
}
