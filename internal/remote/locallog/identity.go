package locallog

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// An identity is what a directory with logs says of itself: a file of one line of text,
//
//	siftkv-log format=1 id=0123456789abcdef store=0123456789abcdef epoch=3 crc=89abcdef
//
// The id is random, and replaced when logs do not continue those before. The epoch is that of the last writer that had
// the directory: lists of files of higher epochs are of others. The crc is the CRC-32C of all before " crc", bound to
// (0, 0), in hexadecimal.
type identity struct{ id, store, epoch uint64 }

const (
	identityName    = "LOG-HOME"
	lockName        = "LOG-LOCK" // the cache in the same directory has LOCK
	identityVersion = 1
	maxIdentity     = 4096 // bytes: many more than an identity file has
)

func (h identity) encode() []byte {
	line := fmt.Sprintf("siftkv-log format=%d id=%016x store=%016x epoch=%d", identityVersion, h.id, h.store, h.epoch)
	return base.SealLine(line)
}

var errIdentity = errors.New("not a line that this store writes")

// decodeIdentity is the inverse of encode. It accepts nothing else.
func decodeIdentity(text []byte) (h identity, err error) {
	var version int
	line, ok := base.UnsealLine(string(text))
	if _, err := fmt.Sscanf(line, "siftkv-log format=%d ", &version); err != nil || !ok {
		return h, errIdentity
	}
	if version > identityVersion {
		return h, fmt.Errorf("%w: a directory of logs has version %d", manifest.ErrNewerFormat, version)
	}
	_, err = fmt.Sscanf(line, "siftkv-log format=1 id=%x store=%x epoch=%d", &h.id, &h.store, &h.epoch)
	if err != nil || string(h.encode()) != string(text) || h.id == 0 || h.store == 0 {
		return identity{}, errIdentity
	}
	return h, nil
}
