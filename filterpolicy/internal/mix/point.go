package mix

// Point returns the i-th of a row of points on the 64-bit circle that belong to
// a key, each of them to be scaled to a table by Reduce; z is Mix of the key's
// hash.
//
// The points are as good as drawn apart. A walk in even steps, double hashing,
// costs a multiplication less for each; but two keys that have a point and the
// step in common, of which there are n/m² in a table of m cells, have all points
// in common, and sets that are small or asked for a very low rate show it.
func Point(z uint64, i int) uint64 { return Round(z + uint64(i)*Golden) }
