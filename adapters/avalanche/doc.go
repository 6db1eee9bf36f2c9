// Package avalanche is a database.Database of avalanchego over a SiftKV store:
//
//	db, err := avalanche.Open(dir, nil, nil)
//
// Writes are on stable storage when they return, unless they are asked to be faster. A batch takes effect
// at one moment. Values are copies, which the caller may keep.
package avalanche
