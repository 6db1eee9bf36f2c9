// Package cluster has the tests of adapters/raft with a cluster, and its benchmarks beside raft-boltdb.
//
// It is a module of its own, so that the go.mod of adapters/raft does not name raft-boltdb, raft-wal and what they
// bring.
package cluster
