package cuckootable

// Slots returns the number of slots of a shard.
func (s Shape) Slots() int { return int(s.Buckets) * slots }

// Used returns the number of slots in use.
func (t *Table) Used() int {
	used := t.shape.Slots()
	for bucket := range t.shape.Buckets {
		used -= t.count(bucket, 0)
	}
	return used
}
