//go:build !unix

package vfs

import "errors"

// Map implements Mapper: there is none here.
func (*osReadFile) Map(int64) (data []byte, unmap func() error, err error) {
	return nil, nil, errors.ErrUnsupported
}
