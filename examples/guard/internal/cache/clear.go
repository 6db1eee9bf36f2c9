package cache

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// page is how many keys one step of Clear looks at.
const page = 1000

// Clear deletes all entries under the cache's prefix, on all nodes, in steps that
// hold no server up. Entries written meanwhile may stay.
func (c *Cache) Clear(ctx context.Context) error {
	var err error
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return c.clear(ctx, node)
		})
	} else {
		err = c.clear(ctx, c.redis)
	}
	if err != nil {
		return fmt.Errorf("cache: delete all of %s*: %w", c.config.Prefix, err)
	}
	return nil
}

// clear deletes the entries on one node.
func (c *Cache) clear(ctx context.Context, node redis.Cmdable) error {
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, c.config.Prefix+"*", page).Result()
		if err != nil {
			return err
		}
		// One command for each key: those of a cluster's node lie in many slots.
		_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range keys {
				p.Unlink(ctx, key)
			}
			return nil
		})
		if err != nil || next == 0 {
			return err
		}
		cursor = next
	}
}
