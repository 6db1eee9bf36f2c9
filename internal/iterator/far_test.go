package iterator

import (
	"bytes"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/version"
)

// What an iterator over a store in an object store leaves for the next, of whatever store, refers to nothing
// of that store: not to its bounds of memory, nor to the bounds of its keys.
func TestReleasedSourcesForgetAStoreInAnObjectStore(t *testing.T) {
	var s Sources
	use := func() (weak.Pointer[version.TableCache], weak.Pointer[byte]) {
		c := &version.TableCache{Far: true}
		lower := bytes.Repeat([]byte{'a'}, 1000)
		v := &version.Version{Runs: []*version.Run{{Level: 1}}}
		s.AddVersion(v, c, lower, nil, nil)
		require.Len(t, s.Iters, 1)
		s.Release()
		return weak.Make(c), weak.Make(&lower[0])
	}
	cache, lower := use()
	runtime.GC()
	require.Nil(t, cache.Value())
	require.Nil(t, lower.Value())
	runtime.KeepAlive(&s)
}
