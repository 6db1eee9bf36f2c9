package diskcache

// Err returns why the cache keeps nothing, nil if it works. It matches vfs.ErrLocked if another process, or another
// cache of this one, has the directory.
func (c *Cache) Err() error {
	if c == nil {
		return nil
	}
	return c.err
}
