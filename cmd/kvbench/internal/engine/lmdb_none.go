//go:build !lmdb

package engine

import "errors"

const hasLMDB = false

func openLMDB(string, Settings) (Live, error) {
	return nil, errors.New("lmdb: this program was built without it")
}
