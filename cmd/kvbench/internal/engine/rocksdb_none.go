//go:build !rocksdb

package engine

import "errors"

const hasRocksDB = false

var errNoRocksDB = errors.New("rocksdb: this program was built without it")

func rocksDBBuild() string { return "" }

func openRocksDBLive(string, Settings) (Live, error) { return nil, errNoRocksDB }

func openRocksDBTree(string, Settings, string, Tree) (Store, error) { return nil, errNoRocksDB }
