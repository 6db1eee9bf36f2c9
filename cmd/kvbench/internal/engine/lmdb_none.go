//go:build !lmdb

package engine

import "errors"

// hasLMDB says that this program was built without LMDB.
const hasLMDB = false

func openLMDB(string, Settings) (Live, error) {
	return nil, errors.New("lmdb: this program was built without it")
}
